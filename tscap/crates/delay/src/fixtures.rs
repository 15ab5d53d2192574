//! Made-up measurements for tests.

use super::schema::{
    Account, Bin, Certificate, Correction, Delays, Exit, First, How, Interval, Match, Measurement,
    MeasuringPoint, Method, Passage, Rfc8219, Slow, VERSION,
};
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_statistics::Summary;

/// Packets, one every 100 µs.
const PACKETS: u64 = 20_000;
const APART_NS: u64 = 100_000;
/// Greatest error of a delay, ns.
const BOUND_NS: u64 = 41;
/// Those that were not matched at either end.
const LOST: u64 = 7;
const ORIGINATED: u64 = 3;

/// By programs at both ends of a router, with what the queueing discipline takes.
pub fn hooks() -> Measurement {
    let through = inside(1_600, 1);
    let queue = inside(300, 2);
    let behind: Vec<i64> = through.iter().zip(&queue).map(|(a, b)| a + b).collect();
    let passage = Passage {
        name: "in0 → out0".into(),
        entry: spot("in0", "native XDP", PACKETS + LOST),
        exits: vec![
            exit("tap", "packet socket", &behind),
            exit("egress", "tcx egress", &through),
        ],
        queueing: Some(delays(&queue)),
    };
    measurement(How::Hooks, Match::Route, Some("hooks"), passage)
}

/// The same with both ends mirrored to a port, less what mirroring takes.
pub fn mirror() -> Measurement {
    let passage = Passage {
        name: "in0 → out0".into(),
        entry: spot("mirror0", "native XDP", PACKETS + LOST),
        exits: vec![exit("mirror", "native XDP", &inside(4_200, 3))],
        queueing: None,
    };
    let mut measurement = measurement(How::Mirror, Match::Route, None, passage);
    measurement.method.correction = Some(Correction {
        file: "cable.json".into(),
        mean_ns: 812.5,
    });
    measurement
}

/// End to end, under load.
pub fn rtt() -> Measurement {
    let passage = Passage {
        name: "src0 → echo → src0".into(),
        entry: spot("src0", "tcx egress", PACKETS + LOST),
        exits: vec![exit("xdp", "native XDP", &inside(48_000, 4))],
        queueing: None,
    };
    let mut measurement = measurement(How::Rtt, Match::Reply, Some("end to end"), passage);
    measurement.method.load = Some("paper on CPU 1".into());
    measurement.method.parallel = Some("25 Mbit/s of 192-byte frames on p0".into());
    measurement.warnings = vec!["noisy machine: a hypervisor took 3.1 % of the CPUs' time".into()];
    measurement
}

/// Ended before a packet was matched.
pub fn nothing() -> Measurement {
    let mut nothing = hooks();
    nothing.about.partial = true;
    for passage in &mut nothing.passages {
        passage.queueing = None;
        for exit in &mut passage.exits {
            exit.account = Account::default();
            exit.delays = None;
        }
    }
    nothing
}

/// Numbers that nothing should measure.
pub fn odd() -> Measurement {
    let mut odd = rtt();
    odd.about.seconds = f64::NAN;
    odd.about.started_ns = u64::MAX;
    odd.method.correction = Some(Correction {
        file: "odd.json".into(),
        mean_ns: f64::INFINITY,
    });
    let delays = odd.passages[0].exits[0].delays.as_mut().expect("delays");
    let summary = &mut delays.summary;
    (summary.n, summary.mean, summary.sd) = (0, f64::NAN, f64::INFINITY);
    (summary.min, summary.max) = (i64::MIN, i64::MAX);
    delays.bound_ns = Some(u64::MAX);
    delays.slowest[0].entered_ns = 0;
    let bin = |from_ns, to_ns, n| Bin { from_ns, to_ns, n };
    delays.histogram = vec![
        bin(i64::MIN, i64::MAX, u64::MAX),
        bin(9, 3, 0),
        bin(i64::MAX, i64::MAX, 1),
    ];
    delays.series = vec![Interval {
        at_s: f64::NAN,
        n: 0,
        min_ns: i64::MAX,
        mean_ns: f64::NEG_INFINITY,
        max_ns: i64::MIN,
    }];
    delays.certificate = Certificate::Holds {
        n: 0,
        max_ns: i64::MIN,
        bound_ns: u64::MAX,
        exceeding: f64::NAN,
        blocks: 0,
        block_packets: 0,
        correlation: f64::NAN,
    };
    odd
}

fn measurement(how: How, matched_by: Match, label: Option<&str>, passage: Passage) -> Measurement {
    Measurement {
        about: about("delay").envelope(Kind::Delay, VERSION, false),
        method: Method {
            how,
            matched_by,
            label: label.map(str::to_owned),
            clock: "bpf_ktime_get_ns".into(),
            file: None,
            window_ns: 1_000_000_000,
            capacity: 1 << 20,
            memory_bytes: 64 << 20,
            load: None,
            parallel: None,
            correction: None,
        },
        passages: vec![passage],
        sessions: Vec::new(),
        alignment: None,
        warnings: Vec::new(),
    }
}

/// Frames at an end, ten of which say nothing and two of which a filter did not want.
fn spot(interface: &str, hook: &str, keyed: u64) -> MeasuringPoint {
    MeasuringPoint {
        interface: interface.into(),
        hook: hook.into(),
        seen: keyed + 12,
        unkeyed: 10,
        unrecorded: [("filtered".to_owned(), 2)].into(),
        keyed,
    }
}

fn exit(point: &str, hook: &str, values: &[i64]) -> Exit {
    Exit {
        point: point.into(),
        spot: spot("out0", hook, PACKETS + ORIGINATED),
        account: Account {
            entered: PACKETS + LOST,
            left: PACKETS + ORIGINATED,
            matched: PACKETS,
            lost_inside: LOST,
            originated: ORIGINATED,
            ..Account::default()
        },
        delays: Some(delays(values)),
        variation: None,
    }
}

/// Delays about a middle: most near to it, few much longer, fewer in the first 200 ms.
fn inside(middle: i64, seed: u64) -> Vec<i64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..PACKETS)
        .map(|number| {
            let cold = if number < 500 { middle / 2 } else { 0 };
            let usual = middle - middle / 8 + random.i64(0..=middle / 4);
            match random.u64(0..1_000) {
                0 => usual + random.i64(0..=30 * middle),
                _ => usual + cold,
            }
        })
        .collect()
}

fn delays(values: &[i64]) -> Delays {
    let summary = Summary::of(values.iter().copied()).expect("there are values");
    let quantile = |value: Option<i64>| value.expect("there are enough");
    Delays {
        bound_ns: Some(BOUND_NS),
        rfc8219: Some(Rfc8219 {
            typical_ns: quantile(summary.p50),
            worst_case_ns: quantile(summary.p99_9),
            pdv_ns: quantile(summary.p99_9) - summary.min,
        }),
        certificate: Certificate::Holds {
            n: summary.n,
            max_ns: summary.max,
            bound_ns: BOUND_NS,
            exceeding: 100f64.ln() / (summary.n / 20) as f64,
            blocks: summary.n / 20,
            block_packets: 10,
            correlation: 0.031,
        },
        slowest: slowest(values),
        histogram: histogram(values),
        series: series(values),
        first: first(values),
        summary,
    }
}

fn slowest(values: &[i64]) -> Vec<Slow> {
    let mut sorted: Vec<_> = values.iter().zip(0u64..).collect();
    sorted.sort_unstable_by_key(|(value, _)| -**value);
    let slow = sorted.into_iter().take(10);
    slow.map(|(value, number)| Slow {
        delay_ns: *value,
        entered_ns: about("").started_ns + number * APART_NS,
        cpu_in: Some(0),
        cpu_out: Some(1),
        length: 192,
        key: format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        flow: (number != 1).then(|| format!("10.0.0.1:{number} → 10.0.0.2:7 udp")),
    })
    .collect()
}

/// In ranges of a thousandth or less, as histograms of so many digits have them.
fn histogram(values: &[i64]) -> Vec<Bin> {
    let mut bins: std::collections::BTreeMap<i64, Bin> = Default::default();
    for value in values {
        let width = 1 << (value.max(&1).ilog2().saturating_sub(9));
        let from_ns = value / width * width;
        let bin = bins.entry(from_ns).or_insert(Bin {
            from_ns,
            to_ns: from_ns + width - 1,
            n: 0,
        });
        bin.n += 1;
    }
    bins.into_values().collect()
}

fn series(values: &[i64]) -> Vec<Interval> {
    let chunks = values.chunks(100).zip(0u32..);
    let interval = |(chunk, number): (&[i64], u32)| Interval {
        at_s: f64::from(number) * 0.01,
        n: chunk.len() as u64,
        min_ns: *chunk.iter().min().expect("values"),
        mean_ns: chunk.iter().sum::<i64>() as f64 / chunk.len() as f64,
        max_ns: *chunk.iter().max().expect("values"),
    };
    chunks.map(interval).collect()
}

fn first(values: &[i64]) -> Vec<First> {
    let first = values.iter().zip(0u64..).take(2_000);
    first
        .map(|(delay_ns, number)| First {
            at_ns: number * APART_NS,
            delay_ns: *delay_ns,
        })
        .collect()
}
