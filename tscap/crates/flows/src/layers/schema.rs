//! What `tscap qos --layers --json` writes at its end and `tscap report` reads: one object, of
//! the kind "layers", version [`VERSION`]. Fields are only added within a version; readers
//! ignore those that they don't know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::{Bin, Figures, FlowBy};
use tscap_programs::hook::Layer;
use tscap_results::envelope::Envelope;

/// Version of the object.
pub const VERSION: u32 = 1;

/// How long packets were between layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residences {
    /// Of the kind [`Kind::Layers`], [`VERSION`].
    ///
    /// [`Kind::Layers`]: tscap_results::envelope::Kind::Layers
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// The layers, in the order in which packets get there.
    pub layers: Vec<LayerReport>,
    /// Those that could not be had.
    pub absent: Vec<MissingLayer>,
    /// All packets together.
    pub all: FlowResidences,
    /// The flows, that of the most packets first.
    pub flows: Vec<FlowResidences>,
    /// Packets of flows that came when the table was full, and those that are of no flow.
    pub others: FlowResidences,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Method {
    /// The interface that received the packets.
    pub interface: String,
    /// The function that reads the clock of all stamps.
    pub clock: String,
    /// What a flow is.
    pub flow: FlowBy,
    /// Whether flows inside VXLAN and GRE were looked for.
    pub inner: bool,
    /// So many flows, the first ones, are shown.
    pub top: u64,
    /// Flows that the table holds at most; packets of others count together.
    pub max_flows: u64,
    /// A packet is looked for so long after it was first seen, ns.
    pub window_ns: u64,
    /// Memory that packets and flows take at most, bytes.
    pub memory_bytes: u64,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerReport {
    /// It.
    pub layer: Layer,
    /// Where exactly.
    pub hook: String,
    /// What became of the packets there.
    pub account: LayerAccount,
    /// What its own program costs; null where it has none (`hw`), or the kernel did not tell.
    pub cost: Option<Cost>,
}

/// What became of the packets of a layer: `seen` = `keyed` + `unkeyed` + all of `unrecorded`;
/// `keyed` = `first` + `came` + `ambiguous` + `untracked`; `first` + `came` = `went_on` +
/// `ended` + `pending`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerAccount {
    /// Packets that its program saw.
    pub seen: u64,
    /// Without what packets are told by: not IP.
    pub unkeyed: u64,
    /// Not recorded, by reason.
    pub unrecorded: BTreeMap<String, u64>,
    /// Recorded with a key.
    pub keyed: u64,
    /// Seen at no layer before.
    pub first: u64,
    /// Of these, aggregates that the stack made of several packets.
    pub aggregates: u64,
    /// Packets that those were made of.
    pub segments: u64,
    /// Seen at a layer before.
    pub came: u64,
    /// With the key of another packet within the window.
    pub ambiguous: u64,
    /// Not remembered: too many packets at a time.
    pub untracked: u64,
    /// Seen at a layer after.
    pub went_on: u64,
    /// Seen at no layer after.
    pub ended: u64,
    /// The same, less than the window before the end: nobody knows.
    pub pending: u64,
    /// Not seen here, but at layers before and after; not among `seen`.
    pub passed_by: u64,
    /// Runs of the program that the kernel left out; not among `seen`.
    pub missed: u64,
}

impl LayerAccount {
    /// Whether each record has an outcome.
    pub fn adds_up(&self) -> bool {
        let Self { first, came, .. } = self;
        self.keyed == first + came + self.ambiguous + self.untracked
            && first + came == self.went_on + self.ended + self.pending
    }

    /// Of those that ended here, as many as became parts of the aggregates that the `next` layer
    /// saw first.
    pub fn merged(&self, next: &Self) -> u64 {
        next.segments.min(self.ended)
    }
}

/// What the program of a layer costs, by the kernel's own statistics. They were on in turns, in
/// which no residence was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Turns in which it ran.
    pub turns: u64,
    /// How often it ran in them.
    pub runs: u64,
    /// Mean of a run, ns: the stamp, the key and the record.
    pub mean_ns: f64,
    /// Least mean of a turn, ns.
    pub least_ns: f64,
    /// Greatest mean of a turn, ns.
    pub greatest_ns: f64,
}

/// A layer that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingLayer {
    /// It.
    pub layer: Layer,
    /// Why.
    pub why: String,
}

/// How long the packets of a flow were between layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResidences {
    /// What it is called.
    pub name: String,
    /// Packets, of which each was seen at one layer at least. Aggregates are further ones.
    pub packets: u64,
    /// Of these, those that were first seen in a turn in which costs were measured: they are in
    /// no figure.
    pub in_cost_turns: u64,
    /// Between each layer and the next one, then between the first and the last.
    pub residences: Vec<Residence>,
}

/// What tscap's own programs took of the times of packets: those that ran on the packet's CPU
/// meanwhile, for other packets too, each from its stamp until its record was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnPrograms {
    /// Mean over the packets, ns.
    pub mean_ns: f64,
    /// Greatest of one packet, ns.
    pub greatest_ns: u64,
}

/// How long packets were between two layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residence {
    /// The earlier layer.
    pub from: Layer,
    /// The later one.
    pub to: Layer,
    /// Of the packets that were seen at both; null of none. In their bound is what tscap's own
    /// programs took: without them each would have been shorter by that.
    pub figures: Option<Figures>,
    /// What of it tscap's own programs took.
    #[serde(default)]
    pub own_programs: Option<OwnPrograms>,
    /// Those whose stamps are the wrong way round: in no figure.
    pub went_back: u64,
    /// How many lie in which range; of all packets together only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<Bin>,
}
