//! Which figures of delays are told in which table.

use std::time::{Duration, SystemTime};

use super::paper;
use super::sentences::{account, conditions, method, percent, spot};
use super::sessions;
use super::view::{QUEUEING, View, passage_names, views};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::grouped;
use tscap_delay::schema::{Certificate, Delays, How, Measurement, Passage, PeerSession, Slow};
use tscap_document::words::{NOTHING, maybe, number, whole};
use tscap_document::{Table, columns, facts};

const BOUND: &str = "±: greatest error of any delay: that of both stamps, and of the clock's rate";
const SESSION_BOUND: &str = "±: greatest error of any delay: that of the stamps at both hosts, and each \
                             way that of the alignment of both clocks";
const UNBOUNDED: &str = "without ±: nothing bounds how far delays are off";
const RFC8219: &str = "typical, worst case, PDV: latency and its variation by RFC 8219, sections 7.2 \
                       and 7.3.1";
const CORRECTED: &str = "corrected: less the mean of a measurement without the device (Eq. 2 of the \
                         paper)";

/// Where, under what conditions and how it was measured.
pub(super) fn environment(measurement: &Measurement) -> Table {
    let mut table = facts(&measurement.about, method(measurement));
    let conditions = conditions(measurement).into_iter();
    let conditions = conditions.map(|(name, fact)| vec![name.to_owned(), fact]);
    let at = table.rows.iter().position(|row| row[0] == "method");
    let at = at.map_or(0, |at| at + 1);
    table.rows.splice(at..at, conditions);
    table
}

/// The most important statistics of all delays: a row each.
pub(super) fn briefly(measurements: &[&Measurement]) -> Option<Table> {
    let views = views(measurements);
    let mut passages: Vec<&str> = views.iter().map(|view| view.passage.as_str()).collect();
    passages.dedup();
    let (title, is_only) = match passages[..] {
        [only] => (format!("{only}: delay, ns"), true),
        _ => ("Delay, ns".to_owned(), false),
    };
    let row = |name: String, cells: &[String; ROWS.len()], bound: Option<u64>| {
        let cells = BRIEF.iter().map(|&(index, _)| cells[index].clone());
        let name = std::iter::once(name).chain(cells);
        name.chain([maybe(bound, grouped)]).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for view in &views {
        let name = if is_only {
            view.point.to_owned()
        } else {
            view.name()
        };
        let cells = statistics(view.delays, false);
        rows.push(row(name, &cells, view.delays.bound_ns));
        let corrected = corrected_cells(view.measurement, view.delays);
        if let Some(cells) = corrected.filter(|_| view.is_first) {
            rows.push(row("corrected".to_owned(), &cells, None));
        }
    }
    let names = BRIEF.iter().map(|(_, name)| *name);
    let has_exits = measurements.iter().any(|it| !it.passages.is_empty());
    let first = if has_exits { "exit" } else { "way" };
    let head: Vec<_> = std::iter::once(first).chain(names).chain(["±"]).collect();
    Table::figures(title, &head, rows).if_any()
}

/// Statistics of a passage in an upright table, which fits a terminal.
pub(super) fn upright(measurement: &Measurement, passage: &Passage) -> Option<Table> {
    let exits = passage.exits.iter();
    let exits = exits.filter_map(|exit| Some((column(&exit.point), exit.delays.as_ref()?)));
    let queueing = passage.queueing.iter().map(|delays| (QUEUEING, delays));
    let mut cells: Vec<_> = exits
        .chain(queueing)
        .map(|(name, delays)| (name, statistics(delays, true)))
        .collect();
    if let Some(delays) = passage.exits.first().and_then(|exit| exit.delays.as_ref())
        && let Some(corrected) = corrected_cells(measurement, delays)
    {
        cells.insert(1, ("corrected", corrected));
    }
    if cells.is_empty() {
        return None;
    }
    let has_corrected = cells.iter().any(|(name, _)| *name == "corrected");
    let table = |cells: &[(&'static str, [String; ROWS.len()])]| {
        let names: Vec<_> = cells.iter().map(|(name, _)| *name).collect();
        let row = |(index, name): (usize, &&str)| {
            let cells = cells.iter().map(|(_, cells)| cells[index].clone());
            [vec![(*name).to_owned()], cells.collect()].concat()
        };
        let rows = ROWS.iter().enumerate().map(row).collect();
        let head = [&["exit"], &names[..]].concat();
        Table::figures("Delay, ns", &head, rows)
    };
    let corrected = has_corrected.then_some(CORRECTED);
    let mut delays = passage.exits.iter().filter_map(|it| it.delays.as_ref());
    let is_bounded = delays.any(|it| it.bound_ns.is_some());
    let bound = if !is_bounded {
        UNBOUNDED
    } else if measurement.alignment.is_some() {
        SESSION_BOUND
    } else {
        BOUND
    };
    let notes = [Some(bound), Some(RFC8219), corrected];
    let notes = notes.into_iter().flatten();
    Some(table(&cells).notes(notes.map(str::to_owned)))
}

/// Statistics of a session in an upright table.
pub(super) fn session(session: &PeerSession) -> Option<Table> {
    let cells = sessions::delays(session);
    let cells: Vec<_> = cells
        .map(|(name, delays)| (name, statistics(delays, true)))
        .collect();
    let rows = ROWS.iter().enumerate().map(|(index, name)| {
        let cells = cells.iter().map(|(_, cells)| cells[index].clone());
        [vec![(*name).to_owned()], cells.collect()].concat()
    });
    let head: Vec<_> = std::iter::once("way")
        .chain(cells.iter().map(|it| it.0))
        .collect();
    let table = Table::figures("Delay, ns", &head, rows.collect());
    let notes = [SESSION_BOUND, RFC8219].map(str::to_owned);
    (!cells.is_empty()).then(|| table.notes(notes))
}

/// The columns of [`briefly`], of [`ROWS`], with their names.
const BRIEF: [(usize, &str); 6] = [
    (0, "n"),
    (1, "min"),
    (2, "mean"),
    (4, "median"),
    (6, "p99"),
    (8, "max"),
];

/// The rows of [`upright`].
const ROWS: [&str; 12] = [
    "n",
    "min",
    "mean",
    "sd",
    "median",
    "p90",
    "p99",
    "p99.9",
    "max",
    "typical",
    "worst case",
    "PDV",
];

/// So many of the slowest packets are told in brief.
const BRIEFLY: usize = 3;

/// Those of [`ROWS`] that are not of RFC 8219.
const QUANTILES: usize = 9;

/// An exit's name where it is the head of a column.
fn column(point: &str) -> &'static str {
    let known = ["tap", "egress", "peer", "mirror", "xdp"];
    known.into_iter().find(|it| *it == point).unwrap_or("exit")
}

/// Figures in the order of [`ROWS`], with their bound if that is wanted.
fn statistics(delays: &Delays, is_bounded: bool) -> [String; ROWS.len()] {
    let of = &delays.summary;
    let bounded = |text: String, bound: Option<u64>| match bound {
        Some(bound) if is_bounded && text != NOTHING => format!("{text} ±{}", grouped(bound)),
        _ => text,
    };
    let exact = |value: i64| bounded(whole(value), delays.bound_ns);
    // Deviations of the errors are the greatest where half of them are at either end.
    let of_sd = (of.n as f64 / of.n.saturating_sub(1).max(1) as f64).sqrt();
    let of_sd = delays.bound_ns.map(|it| (it as f64 * of_sd).ceil() as u64);
    let rfc = delays.rfc8219;
    [
        grouped(of.n),
        exact(of.min),
        bounded(number(of.mean), delays.bound_ns),
        bounded(number(of.sd), of_sd),
        maybe(of.p50, exact),
        maybe(of.p90, exact),
        maybe(of.p99, exact),
        maybe(of.p99_9, exact),
        exact(of.max),
        maybe(rfc.map(|rfc| rfc.typical_ns), exact),
        maybe(rfc.map(|rfc| rfc.worst_case_ns), exact),
        // A difference of two.
        maybe(rfc.map(|rfc| rfc.pdv_ns), |pdv| {
            bounded(whole(pdv), delays.bound_ns.map(|it| it.saturating_mul(2)))
        }),
    ]
}

/// The same less the correction's mean; spreads don't change.
fn corrected_cells(measurement: &Measurement, delays: &Delays) -> Option<[String; ROWS.len()]> {
    let correction = measurement.method.correction.as_ref()?;
    let of = &delays.summary;
    let less = |value: i64| number(value as f64 - correction.mean_ns);
    let rfc = delays.rfc8219;
    Some([
        grouped(of.n),
        less(of.min),
        number(of.mean - correction.mean_ns),
        number(of.sd),
        maybe(of.p50, less),
        maybe(of.p90, less),
        maybe(of.p99, less),
        maybe(of.p99_9, less),
        less(of.max),
        maybe(rfc.map(|rfc| rfc.typical_ns), less),
        maybe(rfc.map(|rfc| rfc.worst_case_ns), less),
        maybe(rfc.map(|rfc| rfc.pdv_ns), whole),
    ])
}

/// Statistics of all delays, a row each.
pub(super) fn delays(measurements: &[&Measurement]) -> Option<Table> {
    let row = |view: &View<'_>| {
        let cells = statistics(view.delays, false).into_iter().take(QUANTILES);
        let bound = maybe(view.delays.bound_ns, grouped);
        let name = std::iter::once(view.name());
        name.chain(cells).chain([bound]).collect()
    };
    let rows = views(measurements).iter().map(row).collect();
    let head = columns("passage, exit | n | min | mean | sd | p50 | p90 | p99 | p99.9 | max | ±");
    Table::figures("Delay, ns", &head, rows)
        .note(BOUND)
        .if_any()
}

/// Latency and its variation as benchmarks tell them.
pub(super) fn rfc8219(measurements: &[&Measurement]) -> Option<Table> {
    let row = |view: &View<'_>| {
        view.delays.rfc8219?;
        let cells = statistics(view.delays, true).into_iter().skip(QUANTILES);
        Some(std::iter::once(view.name()).chain(cells).collect())
    };
    let rows = views(measurements).iter().filter_map(row).collect();
    let head = columns("passage, exit | typical | worst case | PDV");
    let table = Table::figures(
        "Latency and packet delay variation by RFC 8219, ns",
        &head,
        rows,
    );
    table.note("sections 7.2 and 7.3.1").if_any()
}

/// Those less the mean of a correction.
pub(super) fn corrected(measurements: &[&Measurement]) -> Option<Table> {
    let row = |view: &View<'_>| {
        let cells = corrected_cells(view.measurement, view.delays)?;
        let correction = view.measurement.method.correction.as_ref()?;
        let name = [view.name(), number(correction.mean_ns)].into_iter();
        Some(name.chain(cells.into_iter().skip(1).take(8)).collect())
    };
    let views = views(measurements).into_iter();
    let views = views.filter(|view| view.is_first);
    let rows = views.filter_map(|view| row(&view)).collect();
    let head =
        columns("passage, exit | correction | min | mean | sd | p50 | p90 | p99 | p99.9 | max");
    let table = Table::figures("Corrected delay, ns", &head, rows);
    table.note(CORRECTED).if_any()
}

/// Mean and deviation beside the paper's.
pub(super) fn beside_paper(measurements: &[&Measurement]) -> Option<Table> {
    let micros = |ns: f64| format!("{:.3}", ns / 1e3).replace('-', "−");
    let row = |view: &View<'_>| {
        let of = &view.delays.summary;
        let pair = if of.mean.is_finite() && of.sd.is_finite() {
            format!("{} / {}", micros(of.mean), micros(of.sd))
        } else {
            NOTHING.to_owned()
        };
        let paper = paper::beside(&view.measurement.method);
        vec![view.name(), pair, paper.to_owned()]
    };
    let views = views(measurements).into_iter();
    let rows = views.filter(|view| view.is_first && view.measurement.method.how != How::Sessions);
    let rows = rows.map(|view| row(&view));
    Table::figures(
        "Beside the paper: mean / standard deviation, µs",
        &["passage, exit", "measured", "paper"],
        rows.collect(),
    )
    .words(&[0, 1, 2])
    .note(format!(
        "paper: the setting that comes nearest, on other hardware ({}); no target",
        paper::DEVICE
    ))
    .if_any()
}

/// What is known of each maximum.
pub(super) fn certificates(measurements: &[&Measurement]) -> Option<Table> {
    let row = |view: &View<'_>| {
        let cells = match &view.delays.certificate {
            Certificate::None { .. } => [const { NOTHING }; 6].map(str::to_owned),
            Certificate::Holds {
                n,
                max_ns,
                bound_ns,
                exceeding,
                blocks,
                block_packets,
                correlation,
            } => [
                grouped(*n),
                format!("{} ± {}", whole(*max_ns), grouped(*bound_ns)),
                percent(*exceeding),
                grouped(*blocks),
                grouped(*block_packets),
                number(*correlation),
            ],
        };
        std::iter::once(view.name()).chain(cells).collect()
    };
    let rows = views(measurements).iter().map(row).collect();
    let head = columns(
        "passage, exit | packets | greatest, ns | slower, at most | blocks | packets in one | correlation",
    );
    Table::figures("Certificates, at 99 % confidence", &head, rows).if_any()
}

/// What became of every frame and packet.
pub(super) fn accounts(measurements: &[&Measurement]) -> Option<Table> {
    let mut rows = Vec::new();
    for (measurement, names) in measurements.iter().zip(passage_names(measurements)) {
        for (passage, name) in measurement.passages.iter().zip(names) {
            let row = |place: &str, fact: String| vec![format!("{name}, {place}"), fact];
            rows.push(row("entry", spot(&passage.entry)));
            for exit in &passage.exits {
                rows.push(row(&exit.point, spot(&exit.spot)));
                rows.extend(account(&exit.account).map(|it| row(&exit.point, it)));
            }
        }
    }
    let table = Table::figures("", &["passage, place", "equation"], rows);
    table.words(&[0, 1]).if_any()
}

pub(super) fn slowest(title: String, delays: &Delays) -> Option<Table> {
    let row = |slow: &Slow| {
        vec![
            time(slow.entered_ns),
            whole(slow.delay_ns),
            format!("{} → {}", cpu(slow.cpu_in), cpu(slow.cpu_out)),
            grouped(slow.length.into()),
            packet(slow),
        ]
    };
    let rows = delays.slowest.iter().map(row).collect();
    let head = columns("entered | delay, ns | CPU | B | packet");
    Table::figures(title, &head, rows).words(&[0, 4]).if_any()
}

/// The slowest of them, without date and CPUs.
pub(super) fn slowest_briefly(title: String, delays: &Delays) -> Option<Table> {
    let row = |slow: &Slow| {
        let time = time(slow.entered_ns);
        let clock = time.split_once('T').map_or(&*time, |(_, clock)| clock);
        vec![clock.to_owned(), whole(slow.delay_ns), packet(slow)]
    };
    let rows = delays.slowest.iter().take(BRIEFLY).map(row).collect();
    let head = columns("entered (UTC) | delay, ns | packet");
    let table = Table::figures(title, &head, rows);
    table.words(&[0, 2]).if_any()
}

/// What a packet is told by: its addresses, or else what it was matched by.
fn packet(slow: &Slow) -> String {
    let flow = slow.flow.as_deref();
    flow.map_or_else(
        || format!("key {}", slow.key),
        |flow| escaped(flow).into_owned(),
    )
}

/// A time in ns since the epoch.
fn time(ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    humantime::format_rfc3339_nanos(time).to_string()
}

/// A file does not say on which CPU a packet was seen.
fn cpu(number: Option<u32>) -> String {
    number.map_or("–".into(), |number| number.to_string())
}
