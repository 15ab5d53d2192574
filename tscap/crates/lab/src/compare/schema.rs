//! What `tscap compare --json` writes and `tscap report` reads: one object, version
//! [`VERSION`]. Fields are only added within a version; readers ignore those that
//! they don't know. Times and costs are in nanoseconds.

use serde::{Deserialize, Serialize};

use tscap_clock::StampSource;
use tscap_results::envelope::Envelope;
use tscap_statistics::{Summary, median};
use tscap_traffic::generator::{LineRate, Period};
use tscap_traffic::load::Point as Run;

/// Version of the object.
pub const VERSION: u32 = 1;

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Of the kind [`Kind::Comparison`], [`VERSION`]. Partial are the rounds and the
    /// points of the loss curves that were whole at the end.
    ///
    /// [`Kind::Comparison`]: tscap_results::envelope::Kind::Comparison
    #[serde(flatten)]
    pub about: Envelope,
    /// How it was done.
    pub method: Method,
    /// One for each stamp, the floor ("none") first, then `ktime`.
    pub subjects: Vec<Subject>,
    /// The stamp that the kernel's own stack makes, on the same traffic: the paper's baseline.
    /// Absent on live traffic, and from an earlier tscap.
    #[serde(default)]
    pub kernel_stamp: Option<KernelStamp>,
    /// Each stamp against `ktime`, by metric.
    pub verdicts: Vec<Verdict>,
    /// Stamps with interrupts off beside the same ones with interrupts on; empty unless
    /// it was asked for.
    #[serde(default)]
    pub interrupts_off: Vec<InterruptsOff>,
    /// What a reader must know before the figures: a noisy machine, a path that
    /// is not there, loss where none belongs.
    pub warnings: Vec<String>,
}

/// How it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Rounds in which every stamp took its turn.
    pub rounds: u32,
    /// Frames of each stamp in each round, for the cost per frame.
    pub frames: u32,
    /// Length of these frames, bytes; `None` for live traffic.
    pub frame_bytes: Option<u32>,
    /// CPU that received, and stamped.
    pub cpu: u32,
    /// What the cost per frame was measured with.
    pub checkpoint: Checkpoint,
    /// Why nobody knows what the outliers' causes are ([`Outliers::causes`]); absent where it
    /// is known, and from an earlier tscap.
    #[serde(default)]
    pub causes_unknown: Option<String>,
    /// How loss was measured; absent where it was not. An earlier tscap sent one burst of
    /// 60,000 frames a point, received on the sender's CPU, into rings of 1 MiB.
    #[serde(default)]
    pub loss: Option<LossMethod>,
}

/// The checkpoint: a clock read before and after the stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The helper that was read.
    pub path: String,
    /// One checkpoint after another with nothing between: its own cost, which is
    /// subtracted (its mean), and its noise.
    pub own: Summary,
    /// Usual step from one value of that to the next greater one, ns.
    pub resolution_ns: f64,
}

/// One stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// `None` for the floor: no stamp at all.
    pub source: Option<StampSource>,
    /// The function that read the clock, which tells two stamps of one source apart;
    /// "" for the floor.
    pub path: String,
    /// Whether the read was ordered (fenced).
    pub ordered: bool,
    /// One read, by unrolled calls, by round, the empty run subtracted. Absent for
    /// the floor.
    pub read_ns: Option<Vec<f64>>,
    /// Cost per frame in the softirq; absent for the floor.
    pub frame: Option<FrameCost>,
    /// The whole capture program per frame, by round.
    pub program_ns: Vec<f64>,
    /// Highest rate at which a capture with a ring of 1 MiB (10,922 frames of 64
    /// bytes) lost nothing of a burst of 300,000 of them, frames/s, by round; empty
    /// on live traffic.
    pub lossless_rate: Vec<f64>,
    /// Precision by traffic pattern; empty on live traffic and for the floor.
    pub precision: Vec<Precision>,
    /// Loss against frame size.
    pub loss_by_size: Vec<LossPoint>,
    /// Loss against the gap.
    pub loss_by_gap: Vec<LossPoint>,
}

/// What the kernel's stack stamps received frames with, as a packet socket is told it
/// (`SO_TIMESTAMPNS`): CLOCK_REALTIME, when a frame comes to the stack (`net_timestamp_check`,
/// net/core/dev.c). tcpdump and dumpcap have this stamp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelStamp {
    /// By traffic pattern. The cost is not known: no code of tscap is around it.
    pub precision: Vec<Precision>,
}

/// Cost of a stamp on real frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameCost {
    /// Of all frames of all rounds.
    pub all: Summary,
    /// Mean of each round without its 1 % least and greatest costs, less that of
    /// the checkpoint alone.
    pub rounds: Vec<f64>,
    /// For a density plot: bucket's lower end, ns, and share of the frames in it.
    /// What the shares lack of 1 is the outermost frames on either side, which
    /// are left out: 0.2 %, and a few more where they lie far away.
    pub histogram: Vec<(f64, f64)>,
    /// Width of these buckets, ns.
    pub bucket_ns: f64,
    /// Autocorrelation of the series at lags 1 to 20; empty with fewer than 80
    /// frames or when the cost never varies.
    pub autocorrelation: Vec<f64>,
    /// Frames that cost far more than others; absent where the median is less than 1 ns, and
    /// from an earlier tscap.
    #[serde(default)]
    pub outliers: Option<Outliers>,
}

/// Frames whose stamp cost more than ten times the median, and why, as far as the kernel's
/// counters of that CPU tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outliers {
    /// Those that cost more than this, ns: ten times the median, less the median of the
    /// checkpoint alone.
    pub over_ns: i64,
    /// How many there were.
    pub frames: u64,
    /// Frames of the stamp, these among them.
    pub of: u64,
    /// Each of [`Cause::ALL`] once, in the order of precedence: each frame is in the first one
    /// that there is evidence of, so that they add up. Empty where programs can't read the
    /// counters: see [`Method::causes_unknown`].
    pub causes: Vec<CauseCount>,
}

/// Frames with a cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseCount {
    /// The cause.
    pub cause: Cause,
    /// Frames among the outliers that had this cause.
    pub outliers: u64,
    /// Their share of all outliers, 0 to 1; absent where there are none.
    pub share: Option<f64>,
    /// Frames that were no outliers, with the same evidence: how often it is there by chance.
    pub others: u64,
}

/// What a CPU did while, or before, a frame was stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The host of a virtual machine took time, half to twice as much as the stamp took more
    /// than the median, between the ticks around it.
    Steal,
    /// An interrupt came between.
    Interrupt,
    /// Softirqs of other kinds ran since the frame before.
    Softirq,
    /// The counters tell of nothing.
    None,
}

impl Cause {
    /// All of them, in the order of precedence.
    pub const ALL: [Self; 4] = [Self::Steal, Self::Interrupt, Self::Softirq, Self::None];
}

/// Precision on one traffic pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// "voip" or "hd".
    pub pattern: String,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Frames lost; sent = received + lost.
    pub lost: u64,
    /// Cost of the stamp on these frames.
    pub cost_ns: Option<Summary>,
    /// The same for a density plot, as in [`FrameCost::histogram`]; empty from an earlier
    /// tscap.
    #[serde(default)]
    pub cost_histogram: Vec<(f64, f64)>,
    /// Width of these buckets, ns.
    #[serde(default)]
    pub cost_bucket_ns: f64,
    /// Autocorrelation of the costs at lags 1 to 20, of the rounds together, each about its
    /// own mean; empty with fewer than 80 frames or when the cost never varies.
    #[serde(default)]
    pub cost_autocorrelation: Vec<f64>,
    /// Receive stamp less send stamp.
    pub delay_ns: Option<Summary>,
    /// |inter-arrival − inter-send|.
    pub interval_error_ns: Option<Summary>,
    /// How the intervals were had: "raw stamps" (p̂·ΔN) or "stamps".
    pub intervals_from: String,
    /// Inter-arrival times for a density plot, as in [`FrameCost::histogram`].
    pub inter_arrival: Vec<(f64, f64)>,
    /// Width of these buckets, ns.
    pub bucket_ns: f64,
    /// Correlation of the frames' interval errors with their stamps' cost, over
    /// all frames, large values limited to what ten others exceed; absent with
    /// fewer than 30 frames or when one of both doesn't vary.
    pub correlation: Option<f64>,
}

/// How loss was measured: by bursts into captures with snaplen 96.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossMethod {
    /// Frames of a burst.
    pub frames: u32,
    /// Rounds in which each stamp took its turn at each point.
    pub rounds: u32,
    /// Number of the CPU that sent the bursts.
    pub sender_cpu: u32,
    /// CPU that received; the sender's only where there is no other.
    pub receive_cpu: u32,
    /// CPUs that the captures could run on.
    pub capture_cpus: Vec<u32>,
    /// Ring of each CPU, bytes: it holds a whole burst.
    pub ring_bytes: u64,
}

/// Loss at one point of a sweep, see [`Method::loss`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossPoint {
    /// Length of each frame, bytes, without Ethernet's checksum.
    pub size: u32,
    /// From the end of a frame to the start of the next, byte times at 1 Gbit/s;
    /// `None` flat out.
    pub gap: Option<u64>,
    /// Frames sent.
    pub sent: u64,
    /// Frames received.
    pub received: u64,
    /// Frames lost; sent = received + lost.
    pub lost: u64,
    /// Of these, frames lost before the capture saw them: the CPU did not keep up.
    #[serde(default)]
    pub before: u64,
    /// Frames a second asked for; `None` flat out.
    #[serde(default)]
    pub rate_asked: Option<f64>,
    /// Frames a second that were sent, by round.
    #[serde(default)]
    pub rates: Vec<f64>,
    /// Share of the frames lost, 0 to 1, by round; empty from an earlier tscap.
    #[serde(default)]
    pub rounds: Vec<f64>,
}

/// Least share of the rate asked for that counts as reached.
const REACHED: f64 = 0.99;

impl LossPoint {
    /// Of nothing yet, at a gap or flat out.
    pub(super) fn new(size: u32, gap: Option<u64>) -> Self {
        let period = gap.and_then(|gap| LineRate::GIGABIT.period(size, gap));
        Self {
            size,
            gap,
            rate_asked: period.map(Period::rate),
            ..Self::default()
        }
    }

    /// Takes in a burst.
    pub(super) fn take(&mut self, run: &Run) {
        self.sent += run.sent;
        self.received += run.written;
        self.lost += run.lost.total();
        self.before += run.lost.before;
        self.rounds.push(run.loss());
        let rate = run.sent.saturating_sub(1) as f64 / run.seconds;
        self.rates.push(if rate.is_finite() { rate } else { 0.0 });
    }

    /// Whether at least 99 % of the rate asked for was sent in most rounds: else the point
    /// is about another rate. Always of an earlier tscap, which did not look.
    pub fn is_reached(&self) -> bool {
        let asked = self.rate_asked.zip(median(&self.rates));
        asked.is_none_or(|(asked, sent)| sent >= REACHED * asked)
    }
}

/// A stamp with the CPU's interrupts on and off around it, in turns of the same rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptsOff {
    /// The clock.
    pub source: StampSource,
    /// The function that read it, as [`Subject::path`].
    pub path: String,
    /// Interrupts as they are.
    pub on: InterruptMode,
    /// Interrupts off.
    pub off: InterruptMode,
    /// [`InterruptMode::read_ns`] of `off` over that of `on`.
    pub read: Ratio,
    /// [`InterruptMode::p99_ns`] of `off` over that of `on`.
    pub p99: Ratio,
}

/// One of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterruptMode {
    /// One read, as [`Subject::read_ns`]; with interrupts off each read turns them off
    /// and on again.
    pub read_ns: Vec<f64>,
    /// Cost on frames, of all rounds. Interrupts are off from before the first
    /// checkpoint until after the second one. Less the mean of the checkpoint alone with
    /// interrupts on, for both.
    pub all: Summary,
    /// What 99 % of the frames of a round cost at most, less that of the checkpoint
    /// alone as in `all`; rounds in which either way has fewer than 10 frames beyond it
    /// are left out.
    pub p99_ns: Vec<f64>,
    /// Frames that cost 1 µs or more: something came between.
    pub over_1_us: u64,
}

/// One cost over another in the same rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Geometric mean over the rounds; absent if a round's cost was 0 or less.
    pub ratio: Option<f64>,
    /// Interval of the ratio, see `confidence`: it allows for rounds that correlate with
    /// the next by up to 0.97. Absent without a ratio, with fewer than five rounds and
    /// with a `lag_1` above 0.9.
    pub interval: Option<[f64; 2]>,
    /// Ratios from 1 less this to 1 plus this are equal for all purposes:
    /// max(3 %, 1 ns as a share of the cost below).
    pub margin: f64,
    /// What follows.
    pub outcome: Outcome,
    /// Share of such intervals that hold the true ratio: 1 − 1 %/n of n comparisons in
    /// the run, so that all hold together in 99 % of runs. Absent from an earlier tscap,
    /// whose intervals were 99 % each and took correlated rounds for less noisy than
    /// they are.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Correlation of the ratio of a round with that of the next round; absent if the
    /// ratio never varies.
    #[serde(default)]
    pub lag_1: Option<f64>,
    /// A true ratio of this, or one over it, would be found to differ by more than the
    /// margin in 80 of 100 runs like this.
    #[serde(default)]
    pub detectable: Option<f64>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`Subject::read_ns`].
    Read,
    /// [`FrameCost::rounds`].
    Frame,
    /// [`Subject::program_ns`].
    Program,
}

/// What the rounds say of a stamp against `ktime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is compared.
    pub metric: Metric,
    /// The stamp; `None` for the floor.
    pub source: Option<StampSource>,
    /// The function that read the clock, as [`Subject::path`].
    #[serde(default)]
    pub path: String,
    /// Its cost over that of `ktime`.
    #[serde(flatten)]
    pub over_ktime: Ratio,
}

/// What follows from the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole interval is below 1 less the margin.
    Cheaper,
    /// The whole interval is above 1 plus the margin.
    Dearer,
    /// The whole interval is within the margin.
    WithinMargin,
    /// None of these: run longer.
    Undecided,
}
