//! `tscap capture`.

mod plan;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{ArgAction, Args};
use tscap_common::ring::{MAX_RING_BYTES, MIN_RING_BYTES, is_valid_ring_bytes};

pub use self::plan::{CapturePlan, no_file};
use super::filter::{FilterArgs, ShowFilterArgs};
use super::foreign::{ANSWERED, ForeignArgs, OfCapture};
use super::reference::ReferenceArgs;
use super::rotation::RotationArgs;
use super::stamp_clock::StampClock;
use super::units;
use tscap_base::text::numbers::ring;
use tscap_capture::{DirectionChoice, HardwareStamps, MAX_WRITERS, Offloads, Tap};
use tscap_engine::Io;
use tscap_host::scheduling::PRIORITIES;
use tscap_network::namespaces;
use tscap_programs::hook::{EgressPoint, HookChoice};

/// tcpdump's and Wireshark's default and maximum snaplen, bytes: taken, but no frame is
/// recorded beyond [`MAX_CAPLEN`](tscap_common::block::MAX_CAPLEN).
const MAX_SNAPLEN: u32 = 262_144;

/// Capture frames into a pcapng file
///
/// A program in the kernel stamps each frame before it does anything else. What an
/// interface receives is stamped in the driver's receive path. That is later than the
/// frame's arrival at the interface, by interrupt moderation and polling. What it sends
/// is stamped before it is queued.
///
/// `tscap -i eth0 ...` is `tscap capture -i eth0 ...`. Options of tcpdump, tshark and
/// dumpcap that change nothing here (-n, -e, -l, -U...) are accepted. The others
/// are answered by a sentence that says what to use. A link in Wireshark's extcap folder
/// offers the capture there (docs/wireshark.md).
///
/// While it runs, SIGUSR1 has it tell the counts so far. SIGUSR2 has it write all that was
/// captured by then, and begin the next file where there are several (-C, -G, -b). Each
/// signal that ends other programs, such as SIGINT (Ctrl-C), SIGTERM, SIGHUP, SIGQUIT and
/// SIGALRM, ends it in order. What was ignored when it began stays so (nohup).
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("capture", ""))]
pub struct CaptureArgs {
    /// Interface to capture on, or any for all; may be given several times
    ///
    /// It is given by its name, its number in the list of -D, or a pattern such as 'veth*'.
    /// With a pattern or any, interfaces that come up later join the capture, each with a
    /// description of its own in the file. any leaves promiscuous mode as it is.
    #[arg(
        short,
        long,
        value_name = "NAME",
        required_unless_present_any = [
            "list_interfaces", "dump", "dump_ebpf", "netns", "container", "pod", ANSWERED
        ]
    )]
    pub(super) interface: Vec<String>,

    /// Capture in this network namespace: a name of ip netns, a path, or the number of a
    /// process; may be given several times
    ///
    /// -i then counts there, in each of the namespaces [default: any].
    #[arg(long, value_name = "NAME|PATH|PID")]
    netns: Vec<String>,

    /// Capture in the network namespace of this container: its name, or its id or the
    /// beginning of that (Docker, Podman, containerd, CRI-O); may be given several times
    #[arg(long, value_name = "NAME|ID")]
    container: Vec<String>,

    /// Capture in the network namespace of this pod of Kubernetes on this node; may be given
    /// several times
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = super::scope::pod)]
    pod: Vec<namespaces::Target>,

    /// List the interfaces and what they can do
    ///
    /// Then it exits. With --netns, --container or --pod it lists those that are there.
    #[arg(short = 'D', long)]
    list_interfaces: bool,

    /// File to write, or - for standard output; without it, a live view on a terminal
    ///
    /// The view has the frames of each interface by outcome, once a second, and keeps none:
    /// snaplen is 64 then. The key q ends it.
    #[arg(short, long, value_name = "FILE")]
    pub(super) write: Option<PathBuf>,

    /// Most bytes to capture of each frame; 0 for the default [default: 65428; without -w 64]
    ///
    /// 65428 is the most that is recorded.
    #[arg(short, long = "snaplen", alias = "snapshot-length", value_name = "BYTES",
          default_value_t = 0, hide_default_value = true,
          value_parser = units::within(0..=MAX_SNAPLEN))]
    snapshot_length: u32,

    /// Stop after this many frames
    #[arg(short, long, value_name = "FRAMES",
          value_parser = units::positive::<u64>)]
    count: Option<u64>,

    /// Stop after this time: seconds, or with units (1m30s)
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// dumpcap's conditions to stop: duration:SECONDS is --duration, packets:COUNT is
    /// --count
    #[arg(short = 'a', long, value_name = "KEY:VALUE", value_parser = autostop)]
    autostop: Vec<Autostop>,

    /// Don't put the interface into promiscuous mode
    #[arg(short = 'p', long)]
    no_promiscuous_mode: bool,

    /// No live line, and at the end the account alone
    ///
    /// Of several files nothing is said when each begins.
    #[arg(short, long, conflicts_with = "verbose")]
    quiet: bool,

    /// Also print what was prepared, and all of the summary
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,

    /// Write one JSON object a line to standard output (to standard error with
    /// -w -): ready, progress every second, steps of the clock, summary
    #[arg(long)]
    json: bool,

    /// Write the counters to FILE every 10 s and at the end, in Prometheus's text format,
    /// for node_exporter's textfile collector: FILE must end in .prom
    ///
    /// FILE is replaced as a whole, readable by everybody, and stays after the end with
    /// tscap_up 0 and the final account. The name of FILE without .prom is the label
    /// `capture` of every sample, so that captures can run beside each other.
    #[arg(long, value_name = "FILE", value_parser = units::metrics_file)]
    metrics_file: Option<PathBuf>,

    /// Clock to stamp frames with
    ///
    /// tsc:PATH takes this way to the TSC only. The module's plain read is not ordered: it may
    /// happen some tens of nanoseconds before the program's first instruction.
    #[arg(long, value_enum, default_value_t, value_name = "CLOCK")]
    clock: StampClock,

    #[command(flatten)]
    reference: ReferenceArgs,

    /// Which frames to take: received or sent ones, or both
    ///
    /// Neither tscap nor tcpdump sees what is sent round the network stack: by AF_XDP
    /// sockets, by XDP programs that send (XDP_TX) or redirect, by sockets with
    /// PACKET_QDISC_BYPASS, by netpoll and by pktgen. The interface counts these frames: the
    /// summary of --json has its counts beside tscap's. Of the loopback interface only what it
    /// receives is taken, which is all that it sends.
    #[arg(
        short = 'Q',
        long,
        value_enum,
        default_value_t,
        default_value_if("tap", ArgPredicate::IsPresent, "in"),
        value_name = "WHICH",
        overrides_with = "direction"
    )]
    direction: DirectionChoice,

    /// A port that only listens (mirror, SPAN, tap): every frame ends in tscap's program, and
    /// the network stack sees nothing of the interface
    ///
    /// That is cheaper than passing frames on. Frames that the filter rejects end there too, and
    /// those that could not be recorded. Takes received frames at native or generic XDP, in
    /// promiscuous mode. Refused on an interface that has an address, a route or a VLAN, or is a
    /// port of a bridge or bond, except with --tap=force. When tscap ends, however it ends, the
    /// network stack has the frames again.
    #[arg(
        long,
        value_enum,
        value_name = "WHERE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "unused"
    )]
    tap: Option<Tap>,

    /// Where received frames are stamped
    ///
    /// To attach native XDP, and to detach it, many drivers build their queues anew: frames
    /// are lost meanwhile, for up to seconds. tcx leaves the driver alone. A warning comes
    /// before attaching where the driver is known to do it and the default route goes through
    /// the interface; `tscap doctor -i` tells it without attaching.
    #[arg(long, value_enum, default_value_t, value_name = "HOOK")]
    hook: HookChoice,

    /// Where sent frames are stamped
    ///
    /// At qdisc the stamp is earlier than the frame on the wire by the time in the queue, and
    /// the file can hold frames that the queueing discipline drops. At driver only frames
    /// that left the queue are captured. That takes a program which runs for each frame that
    /// any device of the machine sends, in every network namespace, and it ends for an
    /// interface that moves to another one. docs/directions.md has more.
    #[arg(long, value_enum, default_value_t, value_name = "POINT")]
    egress_point: EgressPoint,

    /// What to do with receive offloads that hide how frames arrived (VLAN tag
    /// stripping, GRO, LRO)
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    offloads: Offloads,

    /// Take the stamp that the interface's own clock gave a received frame too, beside tscap's,
    /// where the driver tells it
    ///
    /// tscap's stamp stays the frame's time. The file has the hardware stamp as it is, and how
    /// much later tscap's was taken: the delay from the interface to its driver. A frame without
    /// a hardware stamp has neither, and is counted. Takes native XDP. Which frames an interface
    /// stamps is set by its receive filter; read leaves that as it is.
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "read"
    )]
    hw_stamps: Option<HardwareStamps>,

    /// Keep each frame's raw stamp beside its time, so that the file can be
    /// stamped again later
    #[arg(long)]
    keep_raw: bool,

    /// Stamp with the TSC even where its rate is not known to be constant; the file
    /// says so
    #[arg(long)]
    force: bool,

    /// Record direction and receive queue with each frame
    #[arg(long)]
    packet_meta: bool,

    /// Ring of each CPU: a power of two, 128K to 256M [default: 64M with up to
    /// 8 CPUs, less with more]
    #[arg(long, value_name = "BYTES", value_parser = ring_bytes)]
    ring_size: Option<usize>,

    /// CPU for the converter thread [default: the last allowed CPU that is not in
    /// --rx-cpu; without --rx-cpu, the last one that takes no interrupt of the
    /// interface's receive queues]
    ///
    /// With --writers one CPU for each, such as 2-3.
    #[arg(long, value_name = "CPU", value_parser = units::cpus)]
    converter_cpu: Option<units::Cpus>,

    /// Run the converter thread in real time (SCHED_FIFO), at this priority from 1 to 99: before
    /// every thread of the normal policy [default: normal; 1 without a number]
    ///
    /// For machines on which other programs take the converter's CPU. Takes CAP_SYS_NICE, and a
    /// CPU that does not receive. A twentieth of the CPU's time is left to others in any case.
    #[arg(
        long,
        value_name = "PRIORITY",
        value_parser = units::within(PRIORITIES),
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1"
    )]
    priority: Option<u32>,

    /// Converter threads, each of which writes the frames of its share of the CPUs to a file
    /// of its own, a part of the capture: out-w0.pcapng, out-w1.pcapng... of -w out.pcapng
    ///
    /// For more frames than one thread can write. `tscap merge` joins the parts by time. Each
    /// has the account of its own frames; the summary has that of the whole capture.
    #[arg(long, value_name = "NUMBER", default_value_t = 1,
          value_parser = units::within(1..=MAX_WRITERS))]
    writers: u32,

    /// Receive on these CPUs (0, 2-3, 0,2): spread the interface's queue
    /// interrupts over them for the capture, its poll threads where NAPI is
    /// threaded, and RPS in generic mode; count the frames that arrive elsewhere
    ///
    /// For root only. The capture restores everything at its end. If it is killed
    /// (kill -9), a process of its own does; if that is killed too, `tscap restore` does.
    #[arg(long, value_name = "CPUS", value_parser = units::cpus)]
    rx_cpu: Option<units::Cpus>,

    /// Once everything is open, go on as this user [default: tscap, if there is one; root
    /// stays root with -Z root]
    ///
    /// For root only. The files are the user's. Next files are made, and commands of -z run,
    /// by the user. Whoever runs tscap, it gives up all capabilities that it does not need
    /// any more.
    #[arg(short = 'Z', long, value_name = "USER")]
    relinquish_privileges: Option<String>,

    /// Let this group read the files (mode 0640) [default: their owner alone]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,

    /// How to write files
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    io: Io,

    #[command(flatten)]
    pub(super) filter: FilterArgs,

    #[command(flatten)]
    show_filter: ShowFilterArgs,

    #[command(flatten)]
    rotation: RotationArgs,

    #[command(flatten)]
    foreign: ForeignArgs<OfCapture>,
}

/// One `-a`.
#[derive(Clone, Copy, Debug)]
enum Autostop {
    Duration(Duration),
    Frames(u64),
}

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Errors, and at the end what was lost.
    Errors,
    /// The summary in one line.
    Quiet,
    /// A live line and the summary.
    Normal,
    /// Also what was prepared and how.
    Verbose,
}

impl Verbosity {
    /// From --quiet and --verbose.
    pub(super) fn of(quiet: bool, verbose: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (_, true) => Self::Verbose,
            _ => Self::Normal,
        }
    }
}

pub(super) fn ring_bytes(text: &str) -> Result<usize, String> {
    let bytes = units::bytes(text)?;
    if is_valid_ring_bytes(bytes) {
        Ok(bytes)
    } else {
        Err(format!(
            "a ring is a power of two from {} to {}",
            ring(MIN_RING_BYTES as u64),
            ring(MAX_RING_BYTES as u64)
        ))
    }
}

fn autostop(text: &str) -> Result<Autostop, String> {
    match text.split_once(':') {
        Some(("duration", time)) => units::duration(time).map(Autostop::Duration),
        Some(("packets", count)) => units::positive(count).map(Autostop::Frames),
        Some(("filesize" | "files", _)) => Err(
            "tscap has no limit by size or files: -b begins the next file by them, and -G \
             SECONDS -W COUNT ends after so many files"
                .into(),
        ),
        _ => Err("the conditions are duration:SECONDS and packets:COUNT".into()),
    }
}
