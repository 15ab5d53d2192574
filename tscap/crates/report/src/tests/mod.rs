//! Comparisons to be shown.

pub(super) mod drawings;
mod page;
pub(super) mod papers;
mod screen;
mod terminal;

use tscap_clock::StampSource;
use tscap_lab::compare::fixtures;
use tscap_lab::compare::schema::Comparison;

/// In the shape of a recording: four stamps, both patterns, loss, warnings.
fn recorded() -> Comparison {
    crate::saved::read::<Comparison>(include_str!("../../../../tests/data/comparison.json"))
        .unwrap()
}

/// As recorded on live traffic.
fn live() -> Comparison {
    let mut live = recorded();
    live.method.frame_bytes = None;
    for subject in &mut live.subjects {
        subject.precision.clear();
        subject.lossless_rate.clear();
        subject.loss_by_size.clear();
        subject.loss_by_gap.clear();
    }
    live
}

/// Where there is no way to the TSC.
fn without_tsc() -> Comparison {
    let mut comparison = recorded();
    let is_tsc = |source| source == Some(StampSource::Tsc);
    comparison
        .subjects
        .retain(|subject| !is_tsc(subject.source));
    comparison
        .verdicts
        .retain(|verdict| !is_tsc(verdict.source));
    comparison
}

/// With a stamp measured with interrupts off too.
fn both_ways() -> Comparison {
    let mut comparison = recorded();
    comparison.interrupts_off = fixtures::comparison().interrupts_off;
    comparison
}

/// Ended before anything was measured.
fn empty() -> Comparison {
    let mut empty = live();
    empty.about.partial = true;
    empty.method.rounds = 0;
    empty.verdicts.clear();
    empty.warnings.clear();
    for subject in &mut empty.subjects {
        subject.read_ns = None;
        subject.frame = None;
        subject.program_ns.clear();
    }
    empty
}

/// Numbers that nothing should measure.
fn odd() -> Comparison {
    let mut odd = recorded();
    odd.about.seconds = f64::NAN;
    odd.about.started_ns = u64::MAX;
    odd.about.machine.load = [f64::INFINITY; 3];
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e300, 0.0];
    for subject in &mut odd.subjects {
        subject.program_ns = numbers.to_vec();
        subject.lossless_rate = numbers.to_vec();
        for point in &mut subject.loss_by_gap {
            (point.gap, point.sent, point.lost) = (Some(u64::MAX), u64::MAX, u64::MAX);
        }
        for point in &mut subject.loss_by_size {
            point.sent = 0;
        }
        for precision in &mut subject.precision {
            precision.inter_arrival = vec![(1e15, 0.5), (f64::NAN, 0.5), (-1e300, 1.0)];
            precision.bucket_ns = 0.0;
        }
        if let Some(frame) = &mut subject.frame {
            frame.all.n = 0;
            (frame.all.min, frame.all.max) = (i64::MIN, i64::MAX);
            frame.histogram = numbers.iter().map(|number| (*number, *number)).collect();
            frame.bucket_ns = f64::MIN_POSITIVE;
            frame.autocorrelation = numbers.to_vec();
        }
    }
    for verdict in &mut odd.verdicts {
        verdict.over_ktime.ratio = Some(f64::NAN);
        verdict.over_ktime.interval = Some([f64::NEG_INFINITY, f64::INFINITY]);
        verdict.over_ktime.margin = f64::NAN;
    }
    odd
}

fn all() -> [Comparison; 6] {
    [
        recorded(),
        both_ways(),
        live(),
        without_tsc(),
        empty(),
        odd(),
    ]
}
