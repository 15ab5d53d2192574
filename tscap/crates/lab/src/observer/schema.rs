//! What `tscap compare --observer --json` writes and `tscap report` reads: one object of the
//! kind "observer", version [`VERSION`]. Fields are only added within a version.

use serde::{Deserialize, Serialize};

use super::Watcher;
use crate::compare::schema::Ratio;
use tscap_results::envelope::Envelope;
use tscap_statistics::Summary;

/// Version of the object.
pub const VERSION: u32 = 1;

/// What captures did to traffic that passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Of the kind [`Kind::Observer`], [`VERSION`]. Partial are the rounds that were whole.
    ///
    /// [`Kind::Observer`]: tscap_results::envelope::Kind::Observer
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// Each watcher, nobody first.
    pub subjects: Vec<Subject>,
    /// Each other one against nobody, by metric.
    pub verdicts: Vec<Verdict>,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Rounds in which every watcher took its turn.
    pub rounds: u32,
    /// Round trips of 64 bytes over UDP in each turn, one after the other.
    pub exchanges: u32,
    /// How long a TCP stream was sent in each turn, s.
    pub stream_seconds: f64,
    /// CPU of the program that asks and sends.
    pub sender_cpu: u32,
    /// CPU of the program that answers and takes. Its frames are received in softirqs on the
    /// sender's, as usual on a veth pair.
    pub receive_cpu: u32,
    /// CPUs that the captures could run on.
    pub capture_cpus: Vec<u32>,
    /// Most bytes of a frame that were kept.
    pub snaplen: u32,
    /// The other programs, as they call themselves.
    pub programs: Vec<String>,
}

/// One watcher.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Who captured.
    pub watcher: Watcher,
    /// Round trips of all rounds, ns.
    pub round_trip_ns: Option<Summary>,
    /// Questions that were not answered within a second.
    pub unanswered: u64,
    /// Median round trip of each round, ns.
    pub median_ns: Vec<f64>,
    /// What 99 % of the round trips of each round took at most, ns.
    pub p99_ns: Vec<f64>,
    /// What a KiB of the stream took in each round, ns: from 1 GiB/s on less than 954.
    pub stream_ns_per_kib: Vec<f64>,
    /// CPU time of a KiB of the stream in each round, ns: of both programs with the softirqs of
    /// its frames, and of the capture.
    pub cpu_ns_per_kib: Vec<f64>,
}

/// What is compared: more is worse of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`Subject::median_ns`].
    Median,
    /// [`Subject::p99_ns`].
    P99,
    /// [`Subject::stream_ns_per_kib`].
    Stream,
    /// [`Subject::cpu_ns_per_kib`].
    Cpu,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Median, Self::P99, Self::Stream, Self::Cpu];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Median => "round trip, median",
            Self::P99 => "round trip, p99",
            Self::Stream => "time of the stream",
            Self::Cpu => "CPU time of the stream",
        }
    }
}

impl Subject {
    /// A metric by round.
    pub fn rounds(&self, metric: Metric) -> &[f64] {
        match metric {
            Metric::Median => &self.median_ns,
            Metric::P99 => &self.p99_ns,
            Metric::Stream => &self.stream_ns_per_kib,
            Metric::Cpu => &self.cpu_ns_per_kib,
        }
    }
}

/// What the rounds say of a watcher against nobody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is compared.
    pub metric: Metric,
    /// Who captured.
    pub watcher: Watcher,
    /// Its figure over that without a capture.
    #[serde(flatten)]
    pub over_nobody: Ratio,
}
