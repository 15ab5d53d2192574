//! What a capture is asked to do.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use tscap_common::block::MAX_CAPLEN;
use tscap_live::Scope;

use tscap_base::failure::{Context as _, Failure};
use tscap_clock::{StampSource, TscPath};
use tscap_engine::{Io, RotationPlan, STATISTICS_EVERY};
use tscap_file::accounting::Direction;
use tscap_filter::{Filter, LinkType, Program};
use tscap_network::netdev::Link;
use tscap_network::{address, namespaces};
use tscap_programs::hook::{EgressPoint, HookChoice, PROGRAMS};
use tscap_references::Followed;

/// The clock of the stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ClockChoice {
    /// The cheapest that works here: tsc by a kfunc, where the TSC is invariant,
    /// else ktime
    #[default]
    Auto,
    /// CLOCK_MONOTONIC, by bpf_ktime_get_ns
    Ktime,
    /// CLOCK_TAI, by bpf_ktime_get_tai_ns (kernel 6.1)
    Tai,
    /// The CPU's time-stamp counter: by a kfunc, of the kernel or of tscap's module
    /// (tscap-ebpf/kmod), else by a perf event (kernel 6.16), which is more expensive
    /// than ktime
    Tsc,
}

impl ClockChoice {
    /// The clock that it stands for, where kfuncs are not looked for.
    pub fn source(self) -> StampSource {
        match self {
            Self::Auto | Self::Ktime => StampSource::Ktime,
            Self::Tai => StampSource::Tai,
            Self::Tsc => StampSource::Tsc,
        }
    }
}

/// Which frames to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DirectionChoice {
    /// Received ones
    In,
    /// Sent ones
    Out,
    /// Both
    #[default]
    Inout,
}

impl DirectionChoice {
    /// Whether sent frames are taken.
    pub fn takes_sent(self) -> bool {
        self != Self::In
    }

    /// What is taken of an interface. The loopback receives what it sends: once is enough.
    pub fn of(self, link: &Link) -> &'static [Direction] {
        match self {
            Self::Inout if link.is_loopback() => &[Direction::In],
            Self::In => &[Direction::In],
            Self::Out => &[Direction::Out],
            Self::Inout => &Direction::ALL,
        }
    }
}

/// What to do with receive offloads that hide frames as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Offloads {
    /// Leave them as they are, and warn
    #[default]
    Keep,
    /// Turn them off for the capture and restore them after it, also if it is killed
    Off,
}

/// Whose hardware stamps to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HardwareStamps {
    /// Those of the frames that the interface stamps as it is
    Read,
    /// Of every frame: the interface's receive filter is set to all for the capture, and
    /// restored after it, also if it is killed
    Set,
}

/// How a port that only listens is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tap {
    /// Only if nothing else uses the interface
    Unused,
    /// Whatever uses it
    Force,
}

/// Where the file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, pipe or device.
    Path(PathBuf),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("standard output"),
            Self::Path(path) => path.display().fmt(f),
        }
    }
}

/// Of another clock nobody knows what a reference showed at a stamp.
pub const BY_TSC: &str = "times by a reference take stamps of the TSC: leave out --clock, or give \
                      --clock tsc";

/// Most writers of a capture.
pub const MAX_WRITERS: u32 = 64;

/// What becomes of this process's privileges once everything is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// It keeps them.
    #[default]
    Keep,
    /// Each thread keeps what it needs, and a process of root's becomes another user's.
    GiveUp {
        /// The user, by name or number; `None` for `tscap` if there is one.
        user: Option<String>,
        /// Folders in which who calls makes files later.
        folders: Vec<PathBuf>,
    },
}

/// Which programs to load: what tests replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The eBPF object: an ELF file with the programs and their maps.
    pub object: Vec<u8>,
    /// Name of the program in it; `None` for the one of the clock.
    pub name: Option<String>,
    /// The CPUs that get a ring; `None` for all that are online.
    pub ring_cpus: Option<Vec<u32>>,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            object: PROGRAMS.to_vec(),
            name: None,
            ring_cpus: None,
        }
    }
}

/// A capture, as asked for, into a pcapng file. The fields have
/// defaults; [`Self::start`] begins it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The interfaces, each once: names; patterns with `*`, `?` and `[…]`; or `any` for all
    /// that are up. Interfaces that match later join the capture.
    pub interfaces: Vec<String>,
    /// The network namespaces that they are in; none for this process's own.
    pub namespaces: Vec<namespaces::Target>,
    /// Where the file goes.
    pub target: Target,
    /// Most bytes to capture of each frame, 1 to `MAX_CAPLEN`.
    pub snaplen: u32,
    /// Most frames to write.
    pub count: Option<u64>,
    /// Longest time to capture.
    pub duration: Option<Duration>,
    /// Put the interfaces into promiscuous mode.
    pub promiscuous: bool,
    /// Clock to stamp frames with.
    pub clock: ClockChoice,
    /// By this path to the TSC only.
    pub tsc_path: Option<TscPath>,
    /// The reference whose time the file's times are, whatever the host's clock shows; `None`
    /// for the host's clock. Takes `clock` tsc. Who follows it publishes what is known while
    /// the capture runs.
    pub reference: Option<Followed>,
    /// Which frames to take, by the way they go.
    pub direction: DirectionChoice,
    /// Where received frames are to be stamped.
    pub hook: HookChoice,
    /// Where sent frames are to be stamped.
    pub egress_point: EgressPoint,
    /// Frames end in the programs at XDP: the network stack sees nothing of the interfaces,
    /// which only listen. Takes `direction` in, and interfaces by name.
    pub tap: Option<Tap>,
    /// What to do with receive offloads.
    pub offloads: Offloads,
    /// Take the stamps of the interfaces' own clocks beside tscap's.
    pub hardware_stamps: Option<HardwareStamps>,
    /// Keep raw stamps.
    pub keep_raw: bool,
    /// Take the TSC as it is.
    pub force: bool,
    /// Record direction and queue of each frame. The direction is recorded in any case
    /// where sent frames are taken.
    pub packet_meta: bool,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// Converter threads, each with its share of the CPUs and a file of its own, a part of the
    /// capture: 1 to [`MAX_WRITERS`].
    pub writers: u32,
    /// CPUs for the converter threads, one each.
    pub converter_cpus: Option<Vec<u32>>,
    /// Real-time priority of the converter threads ([`PRIORITIES`]), which run before every
    /// thread of the normal policy then; `None` for the normal policy.
    ///
    /// [`PRIORITIES`]: tscap_host::scheduling::PRIORITIES
    pub priority: Option<u32>,
    /// CPUs to receive on, each once; `None` to leave that as it is.
    pub rx_cpus: Option<Vec<u32>>,
    /// Take only the frames that match.
    pub filter: Option<Filter>,
    /// How files are written.
    pub io: Io,
    /// Several files; `target` is what they are named after.
    pub rotation: Option<RotationPlan>,
    /// The group that may read the files, by name or number; `None` for their owner alone.
    pub group: Option<String>,
    /// What becomes of this process's privileges. They are given up for the whole process and
    /// for good.
    pub privileges: Privileges,
    /// How often statistics go into the file, and the offset of each CPU's TSC event is
    /// checked, which takes a third of a millisecond on each CPU; more than 0. By default
    /// 10 s.
    pub statistics_every: Duration,
    /// The eBPF programs.
    pub programs: Programs,
}

impl Capture {
    /// A capture on `interfaces` into the file `path`: whole frames, in promiscuous mode,
    /// until it is stopped.
    pub fn on<N: Into<String>>(
        interfaces: impl IntoIterator<Item = N>,
        path: impl Into<PathBuf>,
    ) -> Self {
        Self {
            interfaces: interfaces.into_iter().map(Into::into).collect(),
            namespaces: Vec::new(),
            target: Target::Path(path.into()),
            snaplen: MAX_CAPLEN as u32,
            count: None,
            duration: None,
            promiscuous: true,
            clock: ClockChoice::default(),
            tsc_path: None,
            reference: None,
            direction: DirectionChoice::default(),
            hook: HookChoice::default(),
            egress_point: EgressPoint::default(),
            tap: None,
            offloads: Offloads::default(),
            hardware_stamps: None,
            keep_raw: false,
            force: false,
            packet_meta: false,
            ring_bytes: None,
            writers: 1,
            converter_cpus: None,
            priority: None,
            rx_cpus: None,
            filter: None,
            io: Io::default(),
            rotation: None,
            group: None,
            privileges: Privileges::Keep,
            statistics_every: STATISTICS_EVERY,
            programs: Programs::default(),
        }
    }
}

impl Capture {
    /// What of this contradicts something else of it.
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.reference.is_some() && self.clock != ClockChoice::Tsc {
            return Some(BY_TSC);
        }
        let of_tap = self.contradiction_of_tap();
        let of_hardware = || self.contradiction_of_hardware_stamps();
        of_tap
            .or_else(of_hardware)
            .or_else(|| self.contradiction_of_writers())
    }

    fn contradiction_of_hardware_stamps(&self) -> Option<&'static str> {
        self.hardware_stamps?;
        match self.hook {
            _ if self.direction == DirectionChoice::Out => {
                Some("--hw-stamps is for received frames, and -Q out takes none")
            }
            HookChoice::Auto | HookChoice::Xdp => None,
            HookChoice::Generic | HookChoice::Tcx => {
                Some("--hw-stamps takes native XDP: only there a driver tells its stamps")
            }
        }
    }

    fn contradiction_of_writers(&self) -> Option<&'static str> {
        let converters = self.converter_cpus.as_ref();
        match self.writers {
            _ if converters.is_some_and(|cpus| cpus.len() != self.writers as usize) => {
                Some("--converter-cpu takes one CPU for each writer, such as 2,3 for --writers 2")
            }
            0..=1 => None,
            _ if self.target == Target::Stdout => Some(
                "several writers write a file each: give -w the name of a file, or leave out \
                 --writers",
            ),
            _ if self.count.is_some() => Some(
                "several writers don't count their frames together: leave out -c, or give \
                 --duration in its place",
            ),
            _ => None,
        }
    }

    /// Where each writer writes: `target` itself if it is the only one, else beside it.
    pub fn targets(&self) -> Vec<Target> {
        match (self.writers, &self.target) {
            (2.., Target::Path(path)) => {
                let parts = (0..self.writers).map(|writer| Target::Path(part(path, writer)));
                parts.collect()
            }
            _ => vec![self.target.clone()],
        }
    }

    /// The filter as it is for frames of an interface, which is in `scope`.
    pub(super) fn filter_in(
        &self,
        scope: &Scope,
        link: &Link,
    ) -> Result<Option<&Program>, Failure> {
        let netmask = scope.visit(|| self.netmask(link))??;
        // libpcap may resolve names for it, which is not to be done there.
        self.filter_for(link, netmask)
    }

    /// The filter as it is for frames of an interface of this thread's network namespace.
    pub(super) fn filter_here(&self, link: &Link) -> Result<Option<&Program>, Failure> {
        self.filter_for(link, self.netmask(link)?)
    }

    fn netmask(&self, link: &Link) -> Result<Option<Ipv4Addr>, Failure> {
        netmask_for(self.filter.as_ref(), link)
    }

    fn filter_for(
        &self,
        link: &Link,
        netmask: Option<Ipv4Addr>,
    ) -> Result<Option<&Program>, Failure> {
        let link_type = link.frames().unwrap_or(LinkType::Ethernet);
        let filter = self.filter.as_ref();
        let program = filter.map(|it| it.program_for(link_type, netmask));
        program.transpose()
    }
}

/// What a filter must know of an interface of this thread's network namespace.
///
/// # Errors
/// If the kernel can't be asked.
pub fn netmask_for(filter: Option<&Filter>, link: &Link) -> Result<Option<Ipv4Addr>, Failure> {
    if !filter.is_some_and(|it| it.asks_for_netmask) {
        return Ok(None);
    }
    let what = || format!("cannot look up the addresses of {}", link.name);
    address::netmask(link.index).context(what())
}

/// The file that writer number `writer` writes its part to: out-w0.pcapng of out.pcapng.
fn part(path: &Path, writer: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-w{writer}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A capture on veth0 into f, changed by the words of `tscap capture` that tests use.
#[cfg(test)]
pub(super) fn plan_of(words: &str) -> Capture {
    let plan = Capture::on(["veth0"], "f");
    match words {
        "" => plan,
        "--converter-cpu 1" => Capture {
            converter_cpus: Some(vec![1]),
            ..plan
        },
        "--rx-cpu 0" | "--rx-cpu 0-1" => Capture {
            rx_cpus: Some(vec![0]),
            ..plan
        },
        "--offloads off" => Capture {
            offloads: Offloads::Off,
            ..plan
        },
        other => panic!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_writer_has_a_file_beside_the_one_that_is_asked_for() {
        let names = |path: &str, writers| {
            let plan = Capture {
                writers,
                ..Capture::on(["veth0"], path)
            };
            let names = plan.targets().into_iter().map(|it| it.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names("a/out.pcapng", 1), ["a/out.pcapng"]);
        let two = ["a/out-w0.pcapng", "a/out-w1.pcapng"];
        assert_eq!(names("a/out.pcapng", 2), two);
        assert_eq!(names("a.b/out", 2), ["a.b/out-w0", "a.b/out-w1"]);
        assert_eq!(names(".hidden", 2), [".hidden-w0", ".hidden-w1"]);
        assert_eq!(names("%H.x.pcapng", 64)[63], "%H.x-w63.pcapng");
    }
}
