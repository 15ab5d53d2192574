//! The result of a capture, for machines (JSON) and people.

use serde::{Deserialize, Serialize};

use tscap_clock::{CounterReport, Segment};
use tscap_engine::DelaySummary;
use tscap_file::accounting::{Direction, InterfaceFrames, Outcomes, StampOrder, Totals};
use tscap_file::pcapng::{HardwareOption, HardwareStatistics};
use tscap_filter::Filter;
use tscap_references::ReferenceSummary;
use tscap_utc::UtcBounds;

/// Why the capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// A signal.
    Signal,
    /// A key, where what is captured is only looked at.
    Key,
    /// As many frames as asked for.
    Count,
    /// The time asked for is over.
    Duration,
    /// As many files as asked for are complete.
    Files,
    /// The other end of the pipe is gone.
    ReaderGone,
    /// No interface is left.
    InterfaceGone,
    /// The output can't be written any more.
    WriteError,
    /// A fault inside tscap.
    InternalError,
}

impl Stop {
    /// The reason in words.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Signal => "stopped by a signal",
            Self::Key => "stopped by a key",
            Self::Count => "as many frames as asked for",
            Self::Duration => "the time asked for is over",
            Self::Files => "as many files as asked for",
            Self::ReaderGone => "the reader is gone",
            Self::InterfaceGone => "the interface is gone",
            Self::WriteError => "the output failed",
            Self::InternalError => "stopped by an internal error",
        }
    }

    /// The reason to end where `late` was found too: a fault outweighs what was wanted.
    pub(super) fn or_worse(self, late: Self) -> Self {
        if self.is_wanted() && !late.is_wanted() {
            late
        } else {
            self
        }
    }

    /// Whether the capture ended as the user wanted it to.
    pub fn is_wanted(self) -> bool {
        matches!(
            self,
            Self::Signal
                | Self::Key
                | Self::Count
                | Self::Duration
                | Self::Files
                | Self::ReaderGone
        )
    }
}

/// The hardware stamps of an interface's received frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareSummary {
    /// How it stamps.
    #[serde(flatten)]
    pub stamping: HardwareOption,
    /// Frames with and without.
    #[serde(flatten)]
    pub frames: HardwareStatistics,
    /// How much later than that tscap's own stamps were taken; null while nothing is known of
    /// it, as before the end.
    pub delay: Option<DelaySummary>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceSummary {
    /// Its name at the start.
    pub name: String,
    /// The network namespace that it was in, if that is not tscap's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its number, as last known.
    pub ifindex: u32,
    /// Frames that reached its programs.
    pub seen: u64,
    /// Frames in the file.
    pub written: u64,
    /// Frames not in the file, by reason.
    pub outcomes: Outcomes,
    /// The same by the way that they went.
    pub directions: Vec<DirectionSummary>,
    /// Frames that the device missed; null if it doesn't count them.
    pub ifdrop: Option<u64>,
    /// With `--hw-stamps`: the hardware stamps of its frames. Else null.
    #[serde(default)]
    pub hardware: Option<HardwareSummary>,
}

impl InterfaceSummary {
    /// Its name, with its namespace's if that was another than tscap's.
    pub fn whole_name(&self) -> String {
        match &self.namespace {
            None => self.name.clone(),
            Some(namespace) => format!("{} in {namespace}", self.name),
        }
    }
}

/// The account of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionSummary {
    /// "in" or "out".
    pub direction: String,
    /// Of one interface: where its frames were stamped, such as "native XDP".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Frames seen, written, and not written by reason.
    #[serde(flatten)]
    pub totals: Totals,
    /// Of one interface: what it counted itself, if its counters can be read.
    #[serde(flatten)]
    pub interface: Option<InterfaceFrames>,
}

impl DirectionSummary {
    /// What a direction is called: "in" or "out".
    pub fn name(direction: Direction) -> &'static str {
        match direction {
            Direction::In => "in",
            Direction::Out => "out",
        }
    }

    pub(super) fn of(direction: Direction, hook: Option<&str>, totals: Totals) -> Self {
        Self {
            direction: Self::name(direction).into(),
            hook: hook.map(str::to_owned),
            totals,
            interface: None,
        }
    }
}

/// Several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesSummary {
    /// Files of this capture.
    pub written: u64,
    /// Of these, those that are gone: removed, or replaced by a later one. Not those
    /// that somebody else has renamed or removed.
    pub removed: u64,
    /// Frames in those that are gone; they count as written all the same.
    pub frames_removed: u64,
    /// Files that were there before and were replaced.
    pub replaced: u64,
    /// Longest that frames had to wait in their rings for one file to end and the
    /// next to begin, ns.
    pub longest_cut_ns: u64,
    /// With `-z`: what became of its runs; else null.
    pub commands: Option<CommandsSummary>,
}

/// What became of the runs of `-z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandsSummary {
    /// Commands that ended with exit code 0.
    pub succeeded: u64,
    /// Failed, or could not be started.
    pub failed: u64,
    /// Not ended when the capture was.
    pub unfinished: u64,
}

/// Converter threads of real-time priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrioritySummary {
    /// Priority of SCHED_FIFO, 1 to 99.
    pub priority: u32,
    /// How often a thread was made to rest, so that its core has time for others.
    pub rests: u64,
    /// For how long in all, ns.
    pub rested_ns: u64,
}

/// The disk that the files are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSummary {
    /// Whether it is known to have all that was written: it was waited for, and said so.
    pub has_all: bool,
    /// The longest that it took for one write, of up to 8 MiB, ns.
    pub longest_pause_ns: u64,
    /// With `--io auto`: bytes that went by way of the page cache, because the rings would not have
    /// borne such pauses.
    pub spilled_bytes: u64,
}

/// One of several writers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterSummary {
    /// Its file, or what several are named after.
    pub file: String,
    /// The CPUs whose frames it wrote.
    pub cpus: Vec<u32>,
    /// Frames seen, written, and not written by reason.
    #[serde(flatten)]
    pub totals: Totals,
    /// Length of the file, or of all files, bytes.
    pub bytes_written: u64,
}

/// The clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockSummary {
    /// Which clock stamped.
    pub source: String,
    /// By which path.
    pub path: String,
    /// Whether the read was ordered (fenced).
    pub ordered: bool,
    /// The raw counter, where one stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<CounterReport>,
    /// Greatest error against the host's CLOCK_REALTIME, ns.
    pub host_bound_ns: u64,
    /// Whether anything bounds the host's clock against UTC.
    pub synchronised: bool,
    /// Most that the host's clock is off UTC, ns, by `utc`; null if nothing bounds it. With a
    /// reference: the greatest error of the times' clock against UTC,
    /// ns; null if the reference does not say how far it is off.
    pub utc_bound_ns: Option<u64>,
    /// Each source that bounds the host's clock against UTC, and which is used; null with a
    /// reference.
    #[serde(default)]
    pub utc: Option<UtcBounds>,
    /// With a reference: which, and how far the times are off it; `host_bound_ns` is against
    /// the clock that follows it then. Else null.
    #[serde(default)]
    pub reference: Option<ReferenceSummary>,
    /// The latest segments, 1,000 at most.
    pub segments: Vec<Segment>,
    /// How many there were before these.
    #[serde(default)]
    pub segments_forgotten: u64,
    /// How often the system clock was set.
    pub steps: u64,
    /// Stamps out of order.
    #[serde(flatten)]
    pub order: StampOrder,
    /// Stamps without a bound: taken while the clock was being set or its counter jumped, or
    /// in a stall that may hide changes of its rate.
    pub ambiguous: u64,
    /// How often the bound was raised for what interrupted readings may hide.
    #[serde(default)]
    pub bound_raised: u64,
}

/// The filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterSummary {
    /// As it was written; for a compiled filter, the file that it was read from.
    pub expression: String,
    /// Who compiled it: libpcap with its version, or "bytecode".
    pub compiler: String,
}

impl FilterSummary {
    /// Of this filter.
    pub fn of(filter: &Filter) -> Self {
        Self {
            expression: filter.expression.clone(),
            compiler: filter.compiler.clone(),
        }
    }
}

/// The result of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The file, or what several are named after.
    pub file: String,
    /// Where there were several writers: each, whose files are the parts of the capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<WriterSummary>,
    /// With `--priority`: which, and what it took to keep it from starving others; else null.
    #[serde(default)]
    pub priority: Option<PrioritySummary>,
    /// With several files: how many; else null.
    #[serde(default)]
    pub files: Option<FilesSummary>,
    /// With a filter: which; else null.
    #[serde(default)]
    pub filter: Option<FilterSummary>,
    /// Whether frames ended in tscap's programs, so that the network stack saw none of them.
    #[serde(default)]
    pub tap: bool,
    /// From readiness to the end, s.
    pub seconds: f64,
    /// Frames that entered the programs.
    pub seen: u64,
    /// Frames written to the file or files.
    pub written: u64,
    /// Length of the file, or of all files, bytes.
    pub bytes_written: u64,
    /// Bytes written past the page cache, some of them twice: what is in a disk's last block.
    #[serde(default)]
    pub bytes_direct: u64,
    /// The disk; null where there is none: a pipe, a device, a file in memory.
    #[serde(default)]
    pub disk: Option<DiskSummary>,
    /// Frames not in the file, by reason.
    pub outcomes: Outcomes,
    /// With `--rx-cpu`: of `seen`, those that came in on other CPUs; else null.
    pub off_cpu: Option<u64>,
    /// The same by the way that they went.
    pub directions: Vec<DirectionSummary>,
    /// Whether `seen` is `written` plus all `outcomes`, in each direction.
    pub adds_up: bool,
    /// Each interface, in the file's order.
    pub interfaces: Vec<InterfaceSummary>,
    /// The clock.
    pub clock: ClockSummary,
    /// Why it ended.
    pub stopped_by: Stop,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_outweighs_what_was_wanted() {
        assert_eq!(Stop::Signal.or_worse(Stop::WriteError), Stop::WriteError);
        assert_eq!(Stop::Signal.or_worse(Stop::Count), Stop::Signal);
        let first = Stop::InterfaceGone.or_worse(Stop::WriteError);
        assert_eq!(first, Stop::InterfaceGone);
    }
}
