//! What `tscap loss --json` writes and `tscap report` reads: one object, of the kind
//! "loss", version [`VERSION`]. Fields are only added within a version; readers ignore
//! those that they don't know.

use serde::{Deserialize, Serialize};

use super::fit::Probes;
use super::grid::Arrival;
use super::model::Costs;
use tscap_clock::StampSource;
use tscap_results::envelope::Envelope;
use tscap_traffic::load::{Point as Run, Tool};

/// Version of the object.
pub const VERSION: u32 = 1;

/// A sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// Of the kind [`Kind::Loss`], [`VERSION`]. Partial are the points that were whole at
    /// the end.
    ///
    /// [`Kind::Loss`]: tscap_results::envelope::Kind::Loss
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// What the stages cost, for each stamp and arrival.
    pub calibrations: Vec<Calibration>,
    /// The points, in the order in which they were measured.
    pub points: Vec<Point>,
    /// How good the model was; absent without points that it predicted.
    pub accuracy: Option<Accuracy>,
    /// What a reader must know before the figures.
    pub warnings: Vec<String>,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Number of the CPU that sent the bursts.
    pub sender_cpu: u32,
    /// CPU that received; the sender's, as usual on a veth pair, which then can lose
    /// nothing before the program.
    pub receive_cpu: u32,
    /// CPUs that the captures could run on.
    pub capture_cpus: Vec<u32>,
    /// CPUs with a ring: other programs had so many times the memory of one.
    pub rings: u32,
    /// How long frames were sent at each point, s; less where the files would have
    /// become too long.
    pub point_seconds: f64,
    /// Where the captures were written.
    pub folder: String,
    /// Most bytes that the file took a second, if it was slowed down.
    pub file_bytes_per_s: Option<u64>,
    /// The other programs, as they call themselves.
    pub peers: Vec<String>,
}

/// What the stages cost with one stamp, and frames that come in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The stamp.
    pub clock: StampSource,
    /// How frames came.
    pub arrival: Arrival,
    /// The costs.
    pub costs: Costs,
    /// The runs that they were found out by; none of them is a point.
    pub probes: Probes,
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Who captured.
    pub tool: Tool,
    /// With which stamp, if it was tscap.
    pub clock: Option<StampSource>,
    /// Frame size, bytes.
    pub size: u32,
    /// From the end of a frame to the start of the next, byte times on the line; null
    /// if that was not asked for.
    pub gap: Option<u64>,
    /// Bit rate of that line; null without one.
    pub line: Option<u64>,
    /// Frames a second asked for; null flat out.
    pub rate_asked: Option<f64>,
    /// How frames came; absent from an earlier tscap, which sent all that had a rate
    /// singly.
    #[serde(default)]
    pub arrival: Option<Arrival>,
    /// Most bytes of a frame that were kept; 0 for all.
    pub snaplen: u32,
    /// Length of a ring, bytes.
    pub ring_bytes: u64,
    /// What became of the frames.
    #[serde(flatten)]
    pub run: Run,
    /// What the model says would, at the rate that was really sent unless flat out;
    /// null for other programs.
    #[serde(rename = "foretold")]
    pub predicted: Option<PredictedLoss>,
}

/// Least share of the rate asked for that counts as reached.
const REACHED: f64 = 0.99;

impl Point {
    /// Frames a second that were sent, also those that the other end refused; 0 of fewer
    /// than two.
    pub fn rate_sent(&self) -> f64 {
        if self.run.seconds > 0.0 {
            self.run.sent.saturating_sub(1) as f64 / self.run.seconds
        } else {
            0.0
        }
    }

    /// Whether at least 99 % of the rate asked for was sent: a point that was not reached
    /// is about another rate, and no part of a curve. Flat out no rate is asked for.
    pub fn is_reached(&self) -> bool {
        self.rate_asked
            .is_none_or(|asked| self.run.sent < 2 || self.rate_sent() >= REACHED * asked)
    }

    /// Bytes of a frame that were kept.
    pub fn caplen(&self) -> u32 {
        kept(self.size, self.snaplen)
    }
}

/// Bytes of a frame that are kept.
pub(super) fn kept(size: u32, snaplen: u32) -> u32 {
    match snaplen {
        0 => size,
        snaplen => size.min(snaplen),
    }
}

/// Shares of the frames sent, 0 to 1; the rest is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PredictedLoss {
    /// Lost before the program.
    pub before: f64,
    /// Lost in the ring.
    pub ring: f64,
}

impl PredictedLoss {
    /// All that is lost.
    pub fn lost(&self) -> f64 {
        self.before + self.ring
    }
}

/// How good the model was, over the points that it predicted. None of these was used
/// to find out the costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// How many they are.
    pub points: u32,
    /// Share of them that lost 5 to 60 %: elsewhere it is easy to be right.
    pub between: f64,
    /// Mean of |predicted − measured|, points of loss (0 to 100).
    pub error: f64,
    /// The same of the best constant guess, the median of the measured losses.
    pub error_of_constant: f64,
}
