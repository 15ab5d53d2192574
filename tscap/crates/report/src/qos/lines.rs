//! Flows as lines of a terminal.

use crate::words::{LEAST, NOTHING, Unit, maybe, number, time};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped};
use tscap_base::text::table::{Side, Table, row};
use tscap_flows::schema::{Figures, FlowReport, Ipdv};

/// Widths of the columns of a flow's figures, and their heads.
const COLUMNS: [(&str, usize); 8] = [
    ("packets", 10),
    ("Mbit/s", 8),
    ("gap", 9),
    ("jitter", 9),
    ("delay", 9),
    ("lost", 8),
    ("copies", 6),
    ("late", 6),
];
const SPACE: &str = " ";

/// What stands above [`flow_lines`].
pub(super) fn head() -> String {
    row(
        COLUMNS.map(|(head, width)| (head, width, Side::Right)),
        SPACE,
    )
}

/// A flow: its name, and its figures under [`head`].
pub(super) fn flow_lines(flow: &FlowReport) -> [String; 2] {
    let mean = |figures: Option<Figures>| maybe(figures.map(|it| it.mean_ns), time);
    let lost = match (flow.loss, flow.retransmissions) {
        (Some(loss), _) => grouped(loss.lost),
        (None, Some(again)) if again.segments > 0 => format!("{} B*", grouped(again.bytes)),
        _ => NOTHING.to_owned(),
    };
    let cells = [
        grouped(flow.packets),
        maybe(flow.bits_per_s.map(|bits| bits / 1e6), number),
        mean(flow.inter_arrival),
        maybe(flow.jitter.map(|jitter| jitter.last_ns), time),
        mean(flow.delay),
        lost,
        maybe(flow.loss.map(|loss| loss.duplicates), grouped),
        maybe(flow.reordering.map(|it| it.reordered), grouped),
    ];
    let widths = COLUMNS.map(|(_, width)| width);
    let cells = cells.iter().zip(widths);
    let cells = cells.map(|(cell, width)| (cell.as_str(), width, Side::Right));
    [name(flow), row(cells, SPACE)]
}

/// A flow's name with its VLAN tags, and what became of it.
pub(super) fn name(flow: &FlowReport) -> String {
    let mut name = escaped(&flow.name).into_owned();
    if !flow.vlans.is_empty() {
        let tags: Vec<_> = flow.vlans.iter().map(u16::to_string).collect();
        name = format!("{name} vlan {}", tags.join("."));
    }
    if flow.inner {
        name += " (inner)";
    }
    if flow.evicted {
        name += " (ended: made room)";
    }
    name
}

/// What sequence numbers tell of a flow, in sentences.
pub(super) fn sentences(flow: &FlowReport) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(loss) = flow.loss {
        let expected = loss.distinct + loss.lost;
        let share = 100.0 * loss.lost as f64 / expected.max(1) as f64;
        let mut sentence = format!(
            "lost {} of {} ({} %)",
            grouped(loss.lost),
            grouped(expected),
            number(share)
        );
        if loss.lost > 0 {
            sentence += &format!(
                " in {}, the longest of {}",
                counted(loss.loss_periods, "period"),
                grouped(loss.longest_loss)
            );
        }
        let counts = [
            (loss.duplicates, "copies"),
            (loss.too_late, "too late to be told from copies"),
        ];
        for (count, what) in counts {
            if count > 0 {
                sentence += &format!("; {} {what}", grouped(count));
            }
        }
        sentences.push(sentence);
    }
    if let Some(reordering) = flow.reordering
        && let Some(extent) = reordering.extent
    {
        sentences.push(format!(
            "reordered {}: extent mean {}, greatest {}{}",
            counted(reordering.reordered, "packet"),
            number(extent.mean),
            if extent.cut > 0 { "at least " } else { "" },
            grouped(extent.max)
        ));
    }
    if let Some(negative) = flow.delay.map(|it| it.negative).filter(|it| *it > 0) {
        sentences.push(format!(
            "negative: {}: the clocks of sender and receiver disagree",
            counted(negative, "delay")
        ));
    }
    sentences.extend(flow.ipdv.map(intervals));
    if let Some(rtp) = flow.rtp {
        let clock = match rtp.clock_hz {
            Some(rate) => format!("clock {} Hz", grouped(rate.into())),
            None => "no jitter: its clock rate is not known (--rtp-clock)".to_owned(),
        };
        let mut sentence = format!("payload type {}, {clock}", rtp.payload_type);
        if rtp.jumped > 0 {
            sentence += &format!("; {} out of sequence", counted(rtp.jumped, "packet"));
        }
        if rtp.restarts > 0 {
            sentence += &format!("; the source began anew {} times", grouped(rtp.restarts));
        }
        sentences.push(sentence);
    }
    if let Some(again) = flow.retransmissions.filter(|again| again.segments > 0) {
        sentences.push(format!(
            "seen again: {} in {}",
            counted(again.bytes, "byte"),
            counted(again.segments, "segment")
        ));
    }
    if flow.went_back > 0 {
        sentences.push(format!(
            "the clock went back {} times: those gaps are in no figure",
            grouped(flow.went_back)
        ));
    }
    sentences
}

/// How the intervals of neighbours were found.
fn intervals(ipdv: Ipdv) -> String {
    let by_tsc = "one TSC on both sides";
    let by_tai = "the stamps here and the sender's CLOCK_TAI";
    match (ipdv.tsc_pairs, ipdv.tai_pairs) {
        (0, _) => format!("IPDV by {by_tai}"),
        (_, 0) => format!("IPDV by {by_tsc}"),
        (tsc, tai) => format!(
            "IPDV: {} by {by_tsc}, {} by {by_tai}",
            grouped(tsc),
            grouped(tai)
        ),
    }
}

/// Times of a flow, each with its number and bound: a row in the unit that fits its median.
pub(super) fn times(flow: &FlowReport, title: impl Into<String>) -> Option<Table> {
    let figures = [
        ("gap", flow.inter_arrival),
        ("delay", flow.delay),
        ("PDV", flow.pdv),
        ("IPDV", flow.ipdv.map(|it| it.figures)),
        ("|IPDV|", flow.interval_error),
    ];
    // Of a stream with delays also where their tail begins, and how far it reaches.
    let quantiles: &[&str] = match flow.delay {
        Some(_) => &["median", "p90", "p99", "p99.9"],
        None => &["median", "p99"],
    };
    // Far less than the others, or the same of all: it has a unit of its own.
    let bound = |ns: Option<u64>| maybe(ns, |ns| time(ns as f64));
    let rows = figures.iter().filter_map(|(name, figures)| {
        let figures = (*figures)?;
        let middle = figures.p50_ns.map_or(figures.mean_ns, |ns| ns as f64);
        let unit = Unit::fitting(middle, LEAST);
        let of = |ns: Option<i64>| maybe(ns, |ns| unit.figure(ns as f64));
        let mut row = vec![
            format!("{name}, {}", unit.name),
            grouped(figures.n),
            of(Some(figures.min_ns)),
            unit.figure(figures.mean_ns),
            unit.figure(figures.sd_ns),
        ];
        row.extend(quantiles.iter().map(|name| match *name {
            "p90" => of(figures.p90_ns),
            "p99" => of(figures.p99_ns),
            "p99.9" => of(figures.p99_9_ns),
            _ => of(figures.p50_ns),
        }));
        row.extend([of(Some(figures.max_ns)), bound(figures.bound_ns)]);
        Some(row)
    });
    let mut rows: Vec<_> = rows.collect();
    if let Some(jitter) = flow.jitter {
        let unit = Unit::fitting(jitter.mean_ns, LEAST);
        let mut row = vec![
            format!("jitter, {}", unit.name),
            grouped(jitter.n),
            NOTHING.to_owned(),
            unit.figure(jitter.mean_ns),
            NOTHING.to_owned(),
        ];
        row.extend(quantiles.iter().map(|_| NOTHING.to_owned()));
        row.extend([unit.figure(jitter.max_ns), bound(jitter.bound_ns)]);
        rows.push(row);
    }
    let head = [
        &["time", "n", "min", "mean", "sd"],
        quantiles,
        &["max", "±"],
    ]
    .concat();
    Table::figures(title, &head, rows).if_any()
}
