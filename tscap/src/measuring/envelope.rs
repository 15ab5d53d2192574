//! What every saved measurement begins with.

use serde::{Deserialize, Serialize};

use super::machine::Machine;

/// What a saved object is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A comparison of stamps. An earlier tscap saved it without a kind.
    #[default]
    Comparison,
    /// A sweep of loss.
    Loss,
    /// Delays between two places.
    Delay,
    /// What captures do to traffic that passes.
    Observer,
    /// The quality of flows.
    Qos,
    /// How long packets are between the layers of the network stack.
    Layers,
    /// What counters are like.
    Counters,
}

/// The first fields of a saved object: what it is, and how it came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// What the object is.
    #[serde(default)]
    pub kind: Kind,
    /// Version of that kind.
    pub v: u32,
    /// The command that gave it, word by word.
    pub command: Vec<String>,
    /// tscap's version.
    pub tscap: String,
    /// When the measurement began, CLOCK_REALTIME, ns since the epoch.
    pub started_ns: u64,
    /// How long it took, s.
    pub seconds: f64,
    /// Whether a signal or an error ended it early.
    pub partial: bool,
    /// Where it ran.
    pub machine: Machine,
}

/// How a measurement came about.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// The command, word by word.
    pub command: Vec<String>,
    /// When it began, ns since the epoch.
    pub started_ns: u64,
    /// How long it took, s.
    pub seconds: f64,
    /// Where it ran.
    pub machine: Machine,
}

impl Circumstances {
    /// The envelope of what this tscap saves.
    pub(crate) fn envelope(self, kind: Kind, v: u32, partial: bool) -> Envelope {
        Envelope {
            kind,
            v,
            command: self.command,
            tscap: env!("CARGO_PKG_VERSION").into(),
            started_ns: self.started_ns,
            seconds: self.seconds,
            partial,
            machine: self.machine,
        }
    }
}
