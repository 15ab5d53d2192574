//! A made-up comparison for tests.

use super::Stamp;
use super::schema::{
    Cause, CauseCount, Checkpoint, Comparison, FrameCost, InterruptMode, InterruptsOff, Method,
    Metric, Outliers, Subject, VERSION,
};
use super::statistics::{Allowance, Density, autocorrelation, ratio, verdict};
use tscap_clock::{StampPath, TscPath};
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_statistics::Summary;

const ROUNDS: u32 = 5;

/// A comparison of two stamps with an empty program.
pub fn comparison() -> Comparison {
    let floor = subject(None, 22.0);
    let ktime = subject(Some(StampPath::Ktime), 54.0);
    let tsc = subject(Some(StampPath::Tsc(TscPath::Perf)), 68.0);
    let verdicts = [&floor, &tsc].map(|subject| {
        let costs = &subject.program_ns;
        let stamp = StampPath::by_function(&subject.path);
        verdict(
            Metric::Program,
            stamp,
            costs,
            &ktime.program_ns,
            Allowance::NONE,
        )
    });
    Comparison {
        about: about("compare").envelope(Kind::Comparison, VERSION, false),
        method: Method {
            rounds: ROUNDS,
            frames: 2_000,
            frame_bytes: Some(140),
            cpu: 0,
            checkpoint: Checkpoint {
                path: StampPath::Ktime.function().into(),
                own: Summary::of(costs(32)).expect("there are values"),
                resolution_ns: 1.0,
            },
            causes_unknown: None,
            loss: None,
        },
        kernel_stamp: None,
        subjects: vec![floor, ktime, tsc],
        verdicts: verdicts.into(),
        interrupts_off: vec![interrupts_off()],
        warnings: Vec::new(),
    }
}

fn subject(stamp: Stamp, program_ns: f64) -> Subject {
    let source = stamp.map(StampPath::source);
    Subject {
        source,
        path: stamp.map_or("", StampPath::function).into(),
        ordered: stamp.is_some_and(StampPath::is_ordered),
        read_ns: source.map(|_| vec![program_ns - 22.0; ROUNDS as usize]),
        frame: source.map(|_| frame_cost()),
        program_ns: vec![program_ns; ROUNDS as usize],
        lossless_rate: vec![4e6; ROUNDS as usize],
        precision: Vec::new(),
        loss_by_size: Vec::new(),
        loss_by_gap: Vec::new(),
    }
}

fn frame_cost() -> FrameCost {
    let costs: Vec<i64> = costs(40).collect();
    let density = Density::of(&costs);
    FrameCost {
        outliers: Some(outliers()),
        all: Summary::of(costs.iter().copied()).expect("there are values"),
        rounds: vec![41.0; ROUNDS as usize],
        histogram: density.buckets,
        bucket_ns: density.width,
        autocorrelation: autocorrelation(&costs),
    }
}

fn outliers() -> Outliers {
    let counts = [(1, 0), (36, 12), (2, 300), (1, 5_648)];
    let causes = Cause::ALL.into_iter().zip(counts);
    let causes = causes.map(|(cause, (outliers, others))| CauseCount {
        cause,
        outliers,
        share: Some(outliers as f64 / 40.0),
        others,
    });
    Outliers {
        over_ns: 410,
        frames: 40,
        of: 6_000,
        causes: causes.collect(),
    }
}

fn interrupts_off() -> InterruptsOff {
    let way = |read_ns: f64, p99_ns: f64, over_1_us| {
        let costs = costs(40).chain((0..over_1_us).map(|index| 20_000 + index));
        InterruptMode {
            read_ns: vec![read_ns; ROUNDS as usize],
            all: Summary::of(costs).expect("there are values"),
            p99_ns: vec![p99_ns; ROUNDS as usize],
            over_1_us: over_1_us.unsigned_abs(),
        }
    };
    let (on, off) = (way(32.0, 48.0, 12), way(40.0, 48.5, 0));
    InterruptsOff {
        source: StampPath::Ktime.source(),
        path: StampPath::Ktime.function().into(),
        read: ratio(&off.read_ns, &on.read_ns, Allowance::NONE),
        p99: ratio(&off.p99_ns, &on.p99_ns, Allowance::NONE),
        on,
        off,
    }
}

fn costs(least: i64) -> impl Iterator<Item = i64> {
    (0..6_000).map(move |index| least + index % 3)
}
