//! What a capture tells of itself while it runs.

use std::fmt;

use serde::Serialize;

use super::live_link::LiveLink;
use super::summary::{FilterSummary, InterfaceSummary};
use super::writers::Writers;
use tscap_clock::StampSource;
use tscap_file::accounting::Directed;
use tscap_file::pcapng::Hooks;

/// One interface as its capture begins.
#[derive(Clone, Debug, Serialize)]
pub struct ReadyInterface {
    /// Its name.
    pub name: String,
    /// The network namespace that it is in, if that is not tscap's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Index of the interface in its network namespace (`ip link` shows it).
    pub ifindex: u32,
    /// Where frames are stamped.
    pub hooks: Hooks,
}

impl ReadyInterface {
    pub(super) fn of(live: &LiveLink) -> Self {
        Self {
            name: live.name.clone(),
            namespace: live.namespace.clone(),
            ifindex: live.ifindex(),
            hooks: live.hooks(),
        }
    }
}

impl ReadyInterface {
    /// Its name, with its namespace's if that is another than tscap's.
    pub fn whole_name(&self) -> String {
        match &self.namespace {
            None => self.name.clone(),
            Some(namespace) => format!("{} in {namespace}", self.name),
        }
    }
}

impl fmt::Display for ReadyInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.whole_name(), self.hooks)
    }
}

/// One of several writers as the capture begins.
#[derive(Clone, Debug, Serialize)]
pub struct ReadyWriter {
    /// Its file, or what several are named after.
    pub file: String,
    /// CPU of its converter thread.
    pub converter_cpu: u32,
    /// The CPUs whose frames it writes.
    pub cpus: Vec<u32>,
}

impl ReadyWriter {
    pub(super) fn all(writers: &Writers) -> Vec<Self> {
        let each = writers.each.iter().enumerate();
        let each = each.map(|(index, writer)| Self {
            file: writer.target.to_string(),
            converter_cpu: writer.cpu,
            cpus: writers.shares.cpus(index).to_vec(),
        });
        match writers.each.len() {
            ..=1 => Vec::new(),
            _ => each.collect(),
        }
    }
}

/// The capture as it begins.
#[derive(Clone, Debug, Serialize)]
pub struct Ready {
    /// Each interface, in the file's order.
    pub interfaces: Vec<ReadyInterface>,
    /// The clock of the stamps.
    pub clock: StampSource,
    /// The function that reads it.
    pub path: &'static str,
    /// Whether the read is ordered (fenced).
    pub ordered: bool,
    /// Greatest error of a stamp against the host's clock, or the one that follows the
    /// reference, ns.
    pub host_bound_ns: u64,
    /// The reference that the times are by, if not the host's clock.
    pub reference: Option<String>,
    /// Whether frames end in tscap's programs, so that the network stack sees none of them.
    pub tap: bool,
    /// The filter that frames have to match.
    pub filter: Option<FilterSummary>,
    /// Rings, one a CPU.
    pub rings: usize,
    /// Length of each, bytes.
    pub ring_bytes: usize,
    /// How the output is written: "direct", "buffered" or "stream".
    pub io: &'static str,
    /// CPU of the converter thread, or of the first one.
    pub converter_cpu: u32,
    /// Real-time priority of the converter threads; `None` for the normal policy.
    pub priority: Option<u32>,
    /// Where there are several writers: each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<ReadyWriter>,
    /// With `--rx-cpu`: where frames are meant to come in.
    pub rx_cpus: Option<Vec<u32>>,
}

/// The state once a second.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    /// Since the start, s.
    pub seconds: f64,
    /// Frames that entered the programs.
    pub seen: u64,
    /// Frames that are in files so far.
    pub written: u64,
    /// Length of all files so far, bytes, with headers and statistics.
    pub bytes: u64,
    /// Frames that the programs lost.
    pub drops: u64,
    /// Frames written per second, since the last progress.
    pub rate: f64,
    /// Fullest that a ring was found since the last progress, 0 to 1.
    pub ring_fill: f64,
    /// Greatest error of a stamp against the host's clock, ns.
    pub host_bound_ns: u64,
    /// Whether frames end in tscap's programs; not in JSON, where `ready` says it.
    #[serde(skip)]
    pub tap: bool,
    /// The parts of this; not in JSON, as they may be thousands.
    #[serde(skip)]
    pub account: Account,
}

/// What has become of the frames so far. The frames that are on their way to the file are
/// `seen` and have no outcome yet.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Frames that entered the programs.
    pub seen: Directed<u64>,
    /// Each interface, in the file's order, as of the latest tenth of a second: its `seen` is the number of
    /// frames that have an outcome.
    pub interfaces: Vec<InterfaceSummary>,
    /// Most that the clock of the times is off UTC, ns; `None` while nothing bounds it.
    pub utc_bound_ns: Option<u64>,
}
