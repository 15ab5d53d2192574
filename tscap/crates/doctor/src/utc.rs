//! Who bounds the host's clock against UTC.

use super::check::{Check, Topic, advice};
use tscap_base::text::numbers::span;
use tscap_utc::{UtcBounds, UtcSource};

const UTC: Topic = Topic {
    id: "utc_sources",
    why: "The narrowest bound to UTC is the one that files and results state; where sources \
          contradict each other it is the widest.",
};

/// Which sources there are, which is used, and whether they contradict each other.
pub(super) fn sources(utc: &UtcBounds, unreadable: &[(UtcSource, String)]) -> Check {
    let all = utc.readings.iter().map(|it| {
        let name = it.parts.source().name();
        match (it.bound_ns, &it.unknown) {
            (Some(bound), _) => format!("{name} ±{}", span(bound)),
            (None, Some(why)) => format!("{name}: no bound, as {why}"),
            (None, None) => format!("{name}: no bound"),
        }
    });
    let unread = unreadable
        .iter()
        .map(|(source, why)| format!("{}: {why}", source.name()));
    let all: Vec<_> = all.chain(unread).collect();
    let believed = match (utc.source, utc.bound_ns) {
        (Some(source), Some(bound)) => format!("±{} by {}", span(bound), source.name()),
        (_, Some(bound)) => format!("only ±{}, as sources contradict each other", span(bound)),
        (_, None) => "none bounds this clock".into(),
    };
    let found = format!("{believed}; {}", all.join("; "));
    if let Some([one, other]) = utc.contradictions.first() {
        let (one, other) = (one.name(), other.name());
        let remedy = format!(
            "by {one} and by {other} the clock can't both be right: find which of them is wrong, \
             and end or mend it"
        );
        UTC.warning(found, advice(remedy))
    } else if let Some((source, _)) = unreadable.first() {
        let remedy = format!("find out why {} can't be read", source.name());
        UTC.warning(found, advice(remedy))
    } else {
        UTC.good(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_time::MonoNs;
    use tscap_utc::{Leap, Parts, UtcBound, UtcInterval};

    fn kernel(interval: Result<UtcInterval, String>) -> UtcBound {
        let parts = Parts::Kernel {
            max_error_ns: 0,
            est_error_ns: 0,
            device_error_ns: 0,
        };
        UtcBound::new(parts, MonoNs(0), interval)
    }

    fn vmclock(ends: [i64; 2]) -> UtcBound {
        let parts = Parts::VmClock {
            offset_ns: 0,
            reading_ns: 0,
            max_error_ns: 0,
            growth_ns: 0,
            disruption_marker: 0,
            leap: Leap::None,
        };
        UtcBound::new(parts, MonoNs(0), Ok(UtcInterval(ends)))
    }

    #[test]
    fn each_source_is_named_and_a_contradiction_is_a_warning() {
        let check = |readings| sources(&UtcBounds::of(readings), &[]);
        let within = Ok(UtcInterval::within(900_000));
        check(vec![kernel(Err("it is not synchronised".into()))]).is(
            Good,
            "none bounds this clock; the kernel: no bound, as it is not synchronised",
        );
        check(vec![kernel(within.clone()), vmclock([-10_000, 20_000])]).is(
            Good,
            "±20.0 µs by VMClock; the kernel ±900.0 µs; VMClock ±20.0 µs",
        );
        check(vec![
            kernel(within.clone()),
            vmclock([1_000_000, 2_000_000]),
        ])
        .is(Warning, "only ±2.0 ms, as sources contradict each other")
        .advises("by the kernel and by VMClock");
        let unreadable = [(UtcSource::ClockBound, "the segment is cut".to_owned())];
        sources(&UtcBounds::of(vec![kernel(within)]), &unreadable)
            .is(Warning, "ClockBound: the segment is cut")
            .advises("ClockBound");
    }
}
