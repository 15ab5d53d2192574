//! What is lost.

use super::{Table, columns};
use crate::compare::words::{interval_percent, stamp};
use tscap_base::text::numbers::{counted, grouped, ring};
use tscap_document::words::{loss_percent, maybe, number};
use tscap_host::cpu_list;
use tscap_lab::compare::schema::{Comparison, LossPoint, Subject};
use tscap_statistics::median;

/// Loss over each sweep.
pub(crate) fn losses(comparison: &Comparison) -> Option<Table> {
    let sweeps = comparison.subjects.iter().flat_map(|subject| {
        [
            ("size", &subject.loss_by_size),
            ("gap", &subject.loss_by_gap),
        ]
        .map(|(over, points)| (stamp(subject.source, &subject.path), over, points))
    });
    let rows = sweeps.filter(|(.., points)| !points.is_empty());
    let rows = rows.map(|(name, over, points)| {
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
    });
    let head = ["stamp", "over", "steps", "sent", "lost", "most, %", "at"];
    Table::figures("Loss against frame size and gap", &head, rows.collect())
        .words(&[0, 1, 6])
        .note(bursts(comparison))
        .if_any()
}

/// Each point of a sweep.
pub(crate) fn loss_points(
    comparison: &Comparison,
    points: impl Fn(&Subject) -> &[LossPoint],
) -> Table {
    let rows = comparison.subjects.iter().flat_map(|subject| {
        points(subject).iter().map(|point| {
            vec![
                stamp(subject.source, &subject.path).to_owned(),
                grouped(point.size.into()),
                gap(point.gap) + if point.is_reached() { "" } else { "*" },
                grouped(point.sent),
                grouped(point.received),
                grouped(point.lost),
                maybe(loss_percent(point.lost, point.sent), |loss| {
                    format!("{loss:.3}")
                }),
                maybe(interval_percent(point), |[low, high]| {
                    format!("{low:.3}–{high:.3}")
                }),
                maybe(median(&point.rates), |rate| number(rate / 1e6)),
            ]
        })
    });
    Table::figures(
        "Each point",
        &columns("stamp | size, B | gap, byte times | sent | received | lost | lost, % | interval | Mpps"),
        rows.collect(),
    )
    .note(bursts(comparison))
    .note("interval: 95 % of the mean of the rounds; *: the sender did not reach 99 % of the rate of \
           this gap, and the curve leaves the point out")
}

/// How loss was measured.
fn bursts(comparison: &Comparison) -> String {
    let Some(method) = &comparison.method.loss else {
        return "captured with a ring of 1 MiB: it holds 10,922 frames of 64 B, or 8,192 longer ones"
            .to_owned();
    };
    format!(
        "bursts of {} frames in {}; sent from CPU {}, received on CPU {}, captured on CPU {} with a \
         ring of {}, which holds them all",
        grouped(method.frames.into()),
        counted(method.rounds.into(), "round"),
        method.sender_cpu,
        method.receive_cpu,
        cpu_list::list(&method.capture_cpus),
        ring(method.ring_bytes),
    )
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
