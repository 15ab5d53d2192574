//! What was done, for people.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::Converted;
use super::unconverted::Span;
use crate::capturing::clock::RealNs;
use crate::cli::ConvertPlan;
use crate::text::numbers::{counted, grouped, span};

/// Spans that are told.
const SPANS: usize = 8;

pub(super) fn text(converted: &Converted, plan: &ConvertPlan, is_rebased: bool) -> String {
    let mut text = format!(
        "{}: {} {} by {} of the clock in {}\n",
        plan.output.display(),
        counted(converted.packets - converted.left, "packet"),
        match converted.stamps_again {
            true => "stamped again",
            false => "turned into another clock's time",
        },
        counted(converted.samples as u64, "sample"),
        counted(converted.segments as u64, "segment")
    );
    let quantile = |value: Option<i64>| value.map_or("–".into(), |ns| format!("{ns} ns"));
    if let Some(moved) = &converted.moved_ns {
        let farthest = moved.min.unsigned_abs().max(moved.max.unsigned_abs());
        let _ = writeln!(
            text,
            "  moved by p50 {}, p90 {}, p99 {}, at most {}",
            quantile(moved.p50),
            quantile(moved.p90),
            quantile(moved.p99),
            span(farthest)
        );
    }
    if let Some(bound) = &converted.bound_ns {
        let _ = writeln!(
            text,
            "  off the host's clock by at most {} (p50), {} (p99), {} (all)",
            quantile(bound.p50),
            quantile(bound.p99),
            span(bound.max.unsigned_abs())
        );
    }
    if is_rebased {
        let base = converted.time_base.name();
        let _ = match converted.leap_table {
            None => writeln!(text, "  all times are of {base} now"),
            Some(table) => writeln!(
                text,
                "  all times are of {base} now: {table}, as the kernel had no TAI offset"
            ),
        };
    }
    if converted.left > 0 {
        let how = match is_rebased {
            false => "left as they were",
            true => "not stamped again",
        };
        let by = match &plan.clock_log {
            None => "the history".into(),
            Some(log) => log.display().to_string(),
        };
        let _ = writeln!(
            text,
            "  {} {how}: {by} does not tell their time better",
            grouped(converted.left)
        );
        for left in converted.left_spans.iter().take(SPANS) {
            let _ = writeln!(text, "    {}", told(left));
        }
        if converted.beyond_bound > 0 {
            let _ = writeln!(
                text,
                "    {} of them would have moved by more than the bound of their live times",
                grouped(converted.beyond_bound)
            );
        }
        if converted.left_spans.len() > SPANS {
            text += "    and more: --json lists them\n";
        }
    }
    if converted.is_log_torn {
        text += "  the last line of the log is torn: what comes before it was used\n";
    }
    if !converted.is_whole {
        text += "  the capture ends within a block: what comes before it was converted\n";
    }
    text
}

fn told(left: &Span) -> String {
    let time = |time: RealNs| {
        let time = Timestamp::from_nanosecond(time.0.into());
        time.map_or_else(|_| "?".into(), |time| format!("{time:.3}"))
    };
    format!(
        "{} to {}: {}",
        time(left.from),
        time(left.until),
        counted(left.packets, "packet")
    )
}
