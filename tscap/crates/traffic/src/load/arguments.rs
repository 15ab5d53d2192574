//! What a program is told.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::tool::Tool;
use tscap_clock::{StampSource, TscPath};
use tscap_file::accounting::Direction;
use tscap_programs::hook::HookChoice;

/// Events after which xdpdump is woken, and a count of frames of which it leaves
/// none lying.
pub(super) const PERF_WAKEUP: &str = "128";
/// Largest snaplen that xdpdump takes: the rest of it goes through 16 bits.
const XDPDUMP_LONGEST: u32 = 65_535;
/// Magic number of a pcap file with nanoseconds (draft-ietf-opsawg-pcap).
const PCAP_NANOSECONDS: &str = "0xa1b23c4d";

/// How a program is to capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Most bytes of a frame that are kept; 0 for all.
    pub snaplen: u32,
    /// Memory for frames between kernel and program, all CPUs together, bytes.
    /// xdpdump's can't be set: it has 1 MiB a CPU.
    pub buffer_bytes: u64,
    /// Those that the receiving end receives, or those that the sending end sends; tscap and
    /// tcpdump take the latter.
    pub direction: Direction,
    /// Where tscap takes received frames.
    pub hook: HookChoice,
    /// Whether the receiving end only listens: tscap ends the frames at XDP. The others have
    /// no such option.
    pub tap: bool,
    /// Frames that are asked for, in pcap-filter(7)'s language; all without one. tscap,
    /// tcpdump and dumpcap take it.
    pub expression: Option<String>,
    /// What tscap stamps with; the others have one clock only.
    pub clock: StampSource,
    /// By which path, if that is the TSC, whose constancy the caller answers for;
    /// `None` for the best.
    pub tsc_path: Option<TscPath>,
    /// The file.
    pub output: PathBuf,
    /// The CPUs that it may run on.
    pub cpus: Vec<u32>,
    /// tscap and dumpcap end by themselves after so long, should we be killed.
    pub longest: Duration,
}

impl Setup {
    /// tscap's ring of each of `rings` CPUs: a power of two, within the total.
    pub fn ring_bytes(&self, rings: usize) -> u64 {
        let each = self.buffer_bytes / rings.max(1) as u64;
        1 << each.max(1).ilog2()
    }

    /// The program's arguments to capture on `interface`; `rings` CPUs are online.
    pub(super) fn arguments(&self, tool: Tool, interface: &str, rings: usize) -> Vec<OsString> {
        let seconds = self.longest.as_secs().max(1);
        let (kib, mib) = (self.buffer_bytes >> 10, self.buffer_bytes >> 20);
        let snaplen = self.snaplen;
        let (direction, of_tcpdump) = match self.direction {
            Direction::In => ("in", ""),
            Direction::Out => ("out", "-Q out"),
        };
        let (text, output) = match tool {
            Tool::Tscap => {
                let (ring, clock) = (self.ring_bytes(rings), self.clock.name());
                let path = self.tsc_path;
                let path = path.map(|path| format!(":{} --force", path.name()));
                let hook = self.hook.to_possible_value();
                let hook = hook.map(|hook| format!("--hook {}", hook.get_name()));
                let tap = if self.tap { "--tap" } else { "" };
                let text = format!(
                    "capture --json {tap} -Q {direction} --snapshot-length {snaplen} --ring-size {ring} \
                     --clock {clock}{} {} --duration {seconds} -i {interface}",
                    path.unwrap_or_default(),
                    hook.unwrap_or_default()
                );
                (text, "-w")
            }
            // As root also when writing: by default it becomes another user.
            Tool::Tcpdump => {
                let text = format!(
                    "-Z root -n -s {snaplen} -B {} --time-stamp-precision nano {of_tcpdump} \
                     -i {interface}",
                    kib.max(1)
                );
                (text, "-w")
            }
            Tool::Dumpcap => {
                let text = format!(
                    "-q -s {snaplen} -B {} -a duration:{seconds} -i {interface}",
                    mib.max(1)
                );
                (text, "-w")
            }
            // The machine's settings and interrupts stay as they are.
            Tool::NetsniffNg => {
                let text = format!(
                    "--silent --no-sock-mem --notouch-irq --magic {PCAP_NANOSECONDS} \
                     --ring-size {}KiB --in {interface}",
                    kib.max(1)
                );
                (text, "--out")
            }
            Tool::Xdpdump => {
                let longest = match snaplen {
                    0 => XDPDUMP_LONGEST,
                    snaplen => snaplen.min(XDPDUMP_LONGEST),
                };
                let text = format!(
                    "--load-xdp-program --load-xdp-mode native --perf-wakeup {PERF_WAKEUP} \
                     -s {longest} -i {interface}"
                );
                (text, "-w")
            }
        };
        let mut words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        words.extend([output.into(), self.output.clone().into()]);
        if tool == Tool::Dumpcap && self.expression.is_some() {
            words.push("-f".into());
        }
        words.extend(self.expression.iter().map(OsString::from));
        words
    }

    /// The filter that makes netsniff-ng keep so much of each frame, in bpfc's
    /// notation: it has no snaplen, but keeps what its filter returns (`tpacket_rcv`,
    /// net/packet/af_packet.c).
    pub(super) fn filter(&self) -> Option<String> {
        const RETURN: u16 = 0x6;
        let snaplen = self.snaplen;
        (snaplen > 0).then(|| format!("{{ {RETURN:#x}, 0, 0, {snaplen:#010x} }},\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(snaplen: u32, buffer_bytes: u64) -> Setup {
        Setup {
            snaplen,
            buffer_bytes,
            direction: Direction::In,
            hook: HookChoice::Auto,
            tap: false,
            expression: None,
            clock: StampSource::Ktime,
            tsc_path: None,
            output: "/dev/shm/with space".into(),
            cpus: vec![1],
            longest: Duration::from_secs(60),
        }
    }

    fn reported(tool: Tool, setup: &Setup) -> String {
        let words = setup.arguments(tool, "rx", 2);
        let (file, words) = words.split_last().unwrap();
        assert_eq!(file, "/dev/shm/with space");
        words
            .iter()
            .map(|word| word.to_str().unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn all_get_the_same_memory() {
        let setup = setup(128, 64 << 20);
        let [tscap, tcpdump, dumpcap, netsniff, xdpdump] =
            Tool::ALL.map(|tool| reported(tool, &setup));
        assert!(tscap.contains("--ring-size 33554432 "), "{tscap}");
        assert!(tcpdump.contains("-B 65536 "), "{tcpdump}");
        assert!(dumpcap.contains("-B 64 "), "{dumpcap}");
        assert!(netsniff.contains("--ring-size 65536KiB "), "{netsniff}");
        assert!(xdpdump.contains("--perf-wakeup 128 -s 128 "), "{xdpdump}");
    }

    #[test]
    fn the_path_to_the_tsc_reaches_tscap() {
        let mut setup = setup(128, 64 << 20);
        assert!(!reported(Tool::Tscap, &setup).contains("--clock tsc:"));
        setup.clock = StampSource::Tsc;
        setup.tsc_path = Some(TscPath::ModuleOrdered);
        let reported = reported(Tool::Tscap, &setup);
        assert!(
            reported.contains("--clock tsc:module-ordered --force "),
            "{reported}"
        );
    }

    #[test]
    fn what_is_sent_is_asked_for() {
        let sent = Setup {
            direction: Direction::Out,
            hook: HookChoice::Tcx,
            ..setup(0, 1 << 20)
        };
        for tool in [Tool::Tscap, Tool::Tcpdump] {
            assert!(reported(tool, &sent).contains(" -Q out "), "{tool:?}");
            assert!(!reported(tool, &setup(0, 1 << 20)).contains(" -Q out "));
        }
        assert!(reported(Tool::Tscap, &sent).contains(" --hook tcx "));
    }

    #[test]
    fn tscap_alone_is_told_that_the_port_only_listens() {
        let tap = Setup {
            tap: true,
            ..setup(0, 1 << 20)
        };
        for tool in Tool::ALL {
            let is_reported = reported(tool, &tap).contains("--tap ");
            assert_eq!(is_reported, tool == Tool::Tscap, "{tool:?}");
            assert!(!reported(tool, &setup(0, 1 << 20)).contains("--tap"));
        }
    }

    #[test]
    fn an_expression_is_the_last_argument() {
        let setup = Setup {
            expression: Some("udp port 9".to_owned()),
            ..setup(0, 1 << 20)
        };
        for (tool, before) in [
            (Tool::Tscap, "/dev/shm/with space"),
            (Tool::Tcpdump, "/dev/shm/with space"),
            (Tool::Dumpcap, "-f"),
        ] {
            let words = setup.arguments(tool, "rx", 2);
            assert_eq!(words[words.len() - 2..], [before, "udp port 9"], "{tool:?}");
        }
    }

    #[test]
    fn rings_are_powers_of_two_within_the_total() {
        for (total, rings, each) in [
            (64 << 20, 2, 32 << 20),
            (64 << 20, 3, 16 << 20),
            (1 << 20, 1, 1 << 20),
            ((1 << 20) - 1, 1, 1 << 19),
        ] {
            assert_eq!(setup(0, total).ring_bytes(rings), each);
        }
    }

    #[test]
    fn the_snaplen_reaches_every_program() {
        let (short, whole) = (setup(128, 1 << 20), setup(0, 1 << 20));
        assert_eq!(short.filter().unwrap(), "{ 0x6, 0, 0, 0x00000080 },\n");
        assert_eq!(whole.filter(), None);
        for tool in [Tool::Tcpdump, Tool::Dumpcap] {
            assert!(reported(tool, &short).contains("-s 128 "));
            assert!(reported(tool, &whole).contains("-s 0 "));
        }
        assert!(reported(Tool::Tscap, &short).contains("--snapshot-length 128 "));
        assert!(reported(Tool::Xdpdump, &whole).contains("-s 65535 "));
    }
}
