//! Which figures are told in which table.

use super::paper::{self, PATTERNS};
use super::table::Table;
use super::words::{NOTHING, command, loss_percent, maybe, number, rounds, stamp, whole};
use crate::compare::schema::{Comparison, LossPoint, Precision, Subject};
use crate::measure::Summary;
use crate::numbers::grouped;

/// The columns of [`summary`].
const SUMMARY: [&str; 8] = ["n", "mean", "sd", "min", "p50", "p99", "p99.9", "max"];

/// What a stamp costs by the round.
pub(super) fn costs(comparison: &Comparison) -> Table {
    let row = |subject: &Subject| {
        let rates: Vec<f64> = subject
            .lossless_rate
            .iter()
            .map(|rate| rate / 1e6)
            .collect();
        vec![
            stamp(subject.source).to_owned(),
            rounds(subject.read_ns.as_deref().unwrap_or_default()),
            rounds(&subject.program_ns),
            rounds(&rates),
        ]
    };
    let stamps = comparison
        .subjects
        .iter()
        .filter(|subject| subject.source.is_some());
    let paths = stamps.map(|subject| {
        let order = if subject.ordered {
            "ordered"
        } else {
            "not ordered"
        };
        format!("{} by {} ({order})", stamp(subject.source), subject.path)
    });
    let paths: Vec<String> = paths.collect();
    Table {
        title: format!(
            "Cost of a stamp: median and range of {} rounds",
            comparison.method.rounds
        ),
        head: vec!["stamp", "read, ns", "program, ns", "lossless, Mpps"],
        rows: comparison.subjects.iter().map(row).collect(),
        words: &[0],
        notes: vec![
            paths.join("; "),
            "read: one of many unrolled calls, the empty run subtracted; program: the whole \
             capture of a frame; lossless: the highest rate of which no frame was lost"
                .to_owned(),
        ],
    }
}

/// What a stamp costs on each frame.
pub(super) fn frame_costs(comparison: &Comparison) -> Table {
    let checkpoint = &comparison.method.checkpoint;
    let ours = comparison.subjects.iter().filter_map(|subject| {
        let frame = subject.frame.as_ref()?;
        let lag = frame.autocorrelation.first().copied();
        let name = stamp(subject.source).to_owned();
        Some(row(name, Some(&frame.all), maybe(lag, number)))
    });
    let own = "checkpoint alone".to_owned();
    let own = row(own, Some(&checkpoint.own), NOTHING.to_owned());
    Table {
        title: "Cost of a stamp on each frame in the softirq, ns".to_owned(),
        head: head("stamp", "lag 1"),
        rows: ours.chain([own]).collect(),
        words: &[0],
        notes: vec![format!(
            "between two checkpoints ({}, resolution {} ns), less the mean of a checkpoint alone, \
             whose noise is its sd; lag 1: autocorrelation",
            checkpoint.path,
            number(checkpoint.resolution_ns)
        )],
    }
}

/// What a stamp costs on the paper's traffic, here and there.
pub(super) fn beside_paper(comparison: &Comparison) -> Table {
    let machine = &comparison.machine;
    let rows = PATTERNS.iter().flat_map(|pattern| {
        let ours = comparison.subjects.iter().flat_map(|subject| {
            let of = subject.precision.iter();
            let of = of.filter(|precision| precision.pattern == pattern.name);
            of.filter_map(|precision| {
                let name = format!("{}, {}", pattern.name, stamp(subject.source));
                Some(row(
                    name,
                    Some(precision.cost_ns.as_ref()?),
                    "here".to_owned(),
                ))
            })
        });
        let theirs = pattern.rows.iter().map(|figures| {
            let name = format!("{}, {}", pattern.name, figures.stamp);
            let mut row = row(name, None, "paper".to_owned());
            row[2] = number(figures.mean);
            row[3] = number(figures.deviation);
            row
        });
        ours.chain(theirs)
    });
    let patterns = PATTERNS.each_ref();
    let patterns = patterns.map(|pattern| format!("{}: {}", pattern.name, pattern.traffic));
    Table {
        title: "Cost of a stamp on the paper's traffic, ns".to_owned(),
        head: head("traffic, stamp", "from"),
        rows: rows.collect(),
        words: &[0, 9],
        notes: vec![format!(
            "{}; here: {}, {}, {}; paper: Orosz & Skopkó 2013, tables I and II, {}; what they call \
             variance, in ns, stands under sd",
            patterns.join("; "),
            machine.cpu,
            machine.driver,
            machine.kernel,
            paper::MACHINE,
        )],
    }
}

/// Receive stamp less send stamp.
pub(super) fn delays(comparison: &Comparison) -> Option<Table> {
    precision(comparison, |name, precision| {
        row(name, precision.delay_ns.as_ref(), grouped(precision.lost))
    })
    .map(|rows| Table {
        title: "Delay: receive stamp less send stamp, ns".to_owned(),
        head: head("traffic, stamp", "lost"),
        rows,
        words: &[0],
        notes: Vec::new(),
    })
}

/// |inter-arrival − inter-send|.
pub(super) fn interval_errors(comparison: &Comparison) -> Option<Table> {
    let rows = precision(comparison, |name, precision| {
        let correlation = maybe(precision.correlation, number);
        row(name, precision.interval_error_ns.as_ref(), correlation)
    })?;
    let all = comparison.subjects.iter();
    let mut from: Vec<String> = all
        .flat_map(|subject| {
            let each = subject.precision.iter();
            each.map(|precision| format!("{} {}", stamp(subject.source), precision.intervals_from))
        })
        .collect();
    from.dedup();
    Some(Table {
        title: "|inter-arrival − inter-send|, ns".to_owned(),
        head: head("traffic, stamp", "corr"),
        rows,
        words: &[0],
        notes: vec![format!(
            "corr: correlation with the cost of the frame's stamp; intervals from: {}",
            from.join(", ")
        )],
    })
}

/// Loss over each sweep.
pub(super) fn losses(comparison: &Comparison) -> Option<Table> {
    let sweeps = comparison.subjects.iter().flat_map(|subject| {
        [
            ("size", &subject.loss_by_size),
            ("gap", &subject.loss_by_gap),
        ]
        .map(|(over, points)| (stamp(subject.source), over, points))
    });
    let rows = sweeps.filter(|(.., points)| !points.is_empty());
    let rows: Vec<_> = rows
        .map(|(name, over, points)| {
            let (sent, lost) = points.iter().fold((0u64, 0u64), |(sent, lost), point| {
                (
                    sent.saturating_add(point.sent),
                    lost.saturating_add(point.lost),
                )
            });
            let loss = |point: &&LossPoint| loss_percent(point.lost, point.sent).unwrap_or(0.0);
            let worst = points.iter().max_by(|a, b| loss(a).total_cmp(&loss(b)));
            let worst = worst.filter(|point| point.lost > 0);
            vec![
                name.to_owned(),
                over.to_owned(),
                points.len().to_string(),
                grouped(sent),
                grouped(lost),
                maybe(worst.as_ref().map(loss), number),
                maybe(worst, |point| {
                    format!("{} B, {}", point.size, at_gap(point.gap))
                }),
            ]
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "Loss against frame size and gap".to_owned(),
        head: vec!["stamp", "over", "steps", "sent", "lost", "most, %", "at"],
        rows,
        words: &[0, 1, 6],
        notes: Vec::new(),
    })
}

/// Each point of a sweep.
pub(super) fn loss_points(
    comparison: &Comparison,
    points: impl Fn(&Subject) -> &[LossPoint],
) -> Table {
    let rows = comparison.subjects.iter().flat_map(|subject| {
        points(subject).iter().map(|point| {
            vec![
                stamp(subject.source).to_owned(),
                grouped(point.size.into()),
                gap(point.gap),
                grouped(point.sent),
                grouped(point.received),
                grouped(point.lost),
                maybe(loss_percent(point.lost, point.sent), |loss| {
                    format!("{loss:.3}")
                }),
            ]
        })
    });
    Table {
        title: "Each point".to_owned(),
        head: vec![
            "stamp",
            "size, B",
            "gap, byte times",
            "sent",
            "received",
            "lost",
            "lost, %",
        ],
        rows: rows.collect(),
        words: &[0],
        notes: Vec::new(),
    }
}

/// Autocorrelation of the cost, a row a lag.
pub(super) fn autocorrelation(comparison: &Comparison) -> Table {
    let series: Vec<(&'static str, &[f64])> = comparison
        .subjects
        .iter()
        .filter_map(|subject| {
            let frame = subject.frame.as_ref()?;
            Some((stamp(subject.source), frame.autocorrelation.as_slice()))
        })
        .collect();
    let lags = series.iter().map(|(_, values)| values.len()).max();
    let row = |lag: usize| {
        let values = series.iter().map(|(_, values)| values.get(lag - 1));
        let values = values.map(|value| maybe(value, |value| format!("{value:.3}")));
        std::iter::once(lag.to_string()).chain(values).collect()
    };
    Table {
        title: "Each lag".to_owned(),
        head: std::iter::once("lag")
            .chain(series.iter().map(|(name, _)| *name))
            .collect(),
        rows: (1..=lags.unwrap_or(0)).map(row).collect(),
        words: &[],
        notes: Vec::new(),
    }
}

/// The figures of the verdicts.
pub(super) fn verdicts(comparison: &Comparison) -> Table {
    let rows = comparison.verdicts.iter().map(|of| {
        vec![
            stamp(of.source).to_owned(),
            of.metric.to_string(),
            maybe(of.ratio, |ratio| format!("{ratio:.3}")),
            maybe(of.interval, |[low, high]| format!("{low:.3}–{high:.3}")),
            format!("±{:.3}", of.margin),
        ]
    });
    Table {
        title: "Cost over that of ktime".to_owned(),
        head: vec!["stamp", "cost", "ratio", "99 % interval", "margin"],
        rows: rows.collect(),
        words: &[0, 1],
        notes: vec!["geometric mean over the rounds with its t interval".to_owned()],
    }
}

/// Where and how it was measured.
pub(super) fn environment(comparison: &Comparison) -> Table {
    let (machine, method) = (&comparison.machine, &comparison.method);
    let [one, five, fifteen] = machine.load.map(number);
    let frames = maybe(method.frame_bytes, |bytes| format!(" of {bytes} B"));
    let facts = [
        ("kernel", machine.kernel.clone()),
        ("CPU", format!("{}, {} online", machine.cpu, machine.cpus)),
        ("clock source", machine.clocksource.clone()),
        (
            "virtualisation",
            machine.virtualisation.clone().unwrap_or("none".to_owned()),
        ),
        (
            "governor",
            machine.governor.clone().unwrap_or("none".to_owned()),
        ),
        ("load", format!("{one} {five} {fifteen} (1, 5, 15 min)")),
        (
            "steal",
            format!("{} % of the CPUs' time", number(machine.steal_percent)),
        ),
        (
            "interface",
            format!("{} ({})", machine.interface, machine.driver),
        ),
        (
            "method",
            format!(
                "{} rounds, {} frames{} of each stamp in each, on CPU {}",
                method.rounds,
                grouped(method.frames.into()),
                match method.frame_bytes {
                    Some(_) => frames,
                    None => " of live traffic".to_owned(),
                },
                method.cpu
            ),
        ),
        (
            "ran",
            format!(
                "{}, for {} s",
                started(comparison),
                number(comparison.seconds)
            ),
        ),
        ("tscap", comparison.tscap.clone()),
        ("command", command(&comparison.command)),
    ];
    Table {
        title: String::new(),
        head: Vec::new(),
        rows: facts.map(|(name, fact)| vec![name.to_owned(), fact]).into(),
        words: &[0, 1],
        notes: Vec::new(),
    }
}

/// What the kernel does about the CPU's vulnerabilities.
pub(super) fn mitigations(comparison: &Comparison) -> Table {
    let each = comparison.machine.mitigations.iter();
    Table {
        title: "Mitigations".to_owned(),
        head: vec!["vulnerability", "the kernel's answer"],
        rows: each
            .map(|(name, answer)| vec![name.clone(), answer.clone()])
            .collect(),
        words: &[0, 1],
        notes: Vec::new(),
    }
}

/// When it began.
fn started(comparison: &Comparison) -> String {
    let since_epoch = std::time::Duration::from_nanos(comparison.started_ns);
    let time = std::time::SystemTime::UNIX_EPOCH + since_epoch;
    humantime::format_rfc3339_seconds(time).to_string()
}

fn at_gap(gap: Option<u64>) -> String {
    match gap {
        None => "flat out".to_owned(),
        Some(gap) => format!("gap {}", grouped(gap)),
    }
}

fn gap(gap: Option<u64>) -> String {
    gap.map_or("flat out".to_owned(), grouped)
}

/// A row for each stamp of each pattern, patterns together.
fn precision(
    comparison: &Comparison,
    row: impl Fn(String, &Precision) -> Vec<String>,
) -> Option<Vec<Vec<String>>> {
    let rows = patterns(comparison).into_iter().flat_map(|pattern| {
        let row = &row;
        comparison.subjects.iter().flat_map(move |subject| {
            let of = subject.precision.iter();
            let of = of.filter(move |precision| precision.pattern == pattern);
            of.map(move |precision| row(format!("{pattern}, {}", stamp(subject.source)), precision))
        })
    });
    Some(rows.collect()).filter(|rows: &Vec<_>| !rows.is_empty())
}

/// The traffic patterns, in the order in which they come.
pub(super) fn patterns(comparison: &Comparison) -> Vec<&str> {
    let mut patterns = Vec::new();
    for precision in comparison
        .subjects
        .iter()
        .flat_map(|subject| &subject.precision)
    {
        if !patterns.contains(&precision.pattern.as_str()) {
            patterns.push(&precision.pattern);
        }
    }
    patterns
}

fn head(first: &'static str, last: &'static str) -> Vec<&'static str> {
    std::iter::once(first)
        .chain(SUMMARY)
        .chain([last])
        .collect()
}

/// A distribution, between the name of the row and what else there is to say.
fn row(name: String, summary: Option<&Summary>, last: String) -> Vec<String> {
    let cells = match summary {
        None => [const { NOTHING }; SUMMARY.len()].map(str::to_owned),
        Some(of) => [
            grouped(of.n),
            number(of.mean),
            number(of.sd),
            whole(of.min),
            maybe(of.p50, whole),
            maybe(of.p99, whole),
            maybe(of.p99_9, whole),
            whole(of.max),
        ],
    };
    std::iter::once(name).chain(cells).chain([last]).collect()
}
