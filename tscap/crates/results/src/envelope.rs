//! What every saved measurement begins with.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use tscap_base::text::escaped::escaped;
use tscap_clock::RealNs;
use tscap_file::pcapng::Origin;
use tscap_references::ReferenceSummary;

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
    /// Where it ran; of a capture file, where that was analysed.
    pub machine: Machine,
    /// Of a capture file: where it was captured, as its sections say, each answer once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured: Option<Vec<Origin>>,
    /// The reference that the times were by, or that was followed beside the host's clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

impl Envelope {
    /// CPU and kernel of the machine that was measured, as far as that is known.
    pub fn measured_machine(&self) -> String {
        let Some(captured) = &self.captured else {
            return format!("{}, {}", self.machine.cpu, self.machine.kernel);
        };
        let reported = captured.iter().filter_map(|origin| {
            let parts = [&origin.hardware, &origin.os].into_iter().flatten();
            let parts: Vec<_> = parts.map(|part| escaped(part)).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        });
        match reported.collect::<Vec<_>>() {
            reported if reported.is_empty() => "a machine that the file does not name".into(),
            reported => reported.join("; "),
        }
    }
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
    /// Where the capture was made that is analysed.
    pub captured: Option<Vec<Origin>>,
    /// The reference of the times.
    pub reference: Option<ReferenceSummary>,
}

impl Circumstances {
    /// The same of a capture: its time, and where it was captured. How this machine is does not
    /// matter to the result.
    #[must_use]
    pub fn of_capture(
        mut self,
        started: Option<RealNs>,
        seconds: f64,
        captured: Vec<Origin>,
    ) -> Self {
        self.machine.mitigations.clear();
        self.machine.utc = None;
        Self {
            started_ns: started.map_or(self.started_ns, |started| started.0),
            seconds,
            captured: Some(captured),
            ..self
        }
    }

    /// The envelope of what this tscap saves.
    pub fn envelope(self, kind: Kind, v: u32, partial: bool) -> Envelope {
        Envelope {
            kind,
            v,
            command: self.command,
            tscap: env!("CARGO_PKG_VERSION").into(),
            started_ns: self.started_ns,
            seconds: self.seconds,
            partial,
            machine: self.machine,
            captured: self.captured,
            reference: self.reference,
        }
    }
}
