//! What was done, for people.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::ntp::ByServer;
use super::stamp::Stamped;
use super::unconverted::Span;
use super::with::ByPeer;
use super::{Converted, Filtered};
use tscap_base::text::numbers::{counted, grouped, signed, span};
use tscap_cli::ConvertPlan;
use tscap_clock::RealNs;

/// Spans that are told.
const SPANS: usize = 8;

pub(super) fn text(converted: &Converted, plan: &ConvertPlan) -> String {
    let mut text = String::new();
    let output = plan.output.display();
    if let Some(Filtered { filter, filtered }) = &converted.filtered {
        let _ = writeln!(
            text,
            "{output}: {} of {} match {:?}, {} left out",
            grouped(converted.packets),
            counted(converted.packets + filtered, "packet"),
            filter.expression,
            grouped(*filtered)
        );
    }
    if let Some(stamped) = &converted.stamped {
        tell_times(stamped, plan, &mut text);
    }
    if let Some(by_server) = &converted.by_server {
        tell_server(by_server, plan, &mut text);
    }
    if let Some(by_peer) = &converted.by_peer {
        tell_peer(by_peer, plan, &mut text);
    }
    if converted.damage.is_torn_end() {
        text += "  the capture ends within a block: what comes before it was converted\n";
    } else if !converted.is_whole {
        text += "  not in the copy: ";
        text += &converted.damage.lines().join("\n    ");
        text += "\n";
    }
    text
}

fn tell_server(by: &ByServer, plan: &ConvertPlan, text: &mut String) {
    let _ = writeln!(
        text,
        "{}: {} by the clock of NTP server {}, of {}",
        plan.output.display(),
        counted(by.timed, "packet"),
        by.server,
        counted(by.exchanges as u64, "exchange")
    );
    let quantile = |value: Option<i64>| value.map_or("–".into(), |ns| format!("{ns} ns"));
    if let Some(moved) = &by.moved_ns {
        let [least, most] = [moved.min, moved.max].map(signed);
        let _ = writeln!(text, "  moved by {least} to {most} ns");
    }
    let bounds = [
        ("the server's clock", &by.bound_ns),
        (
            "UTC, as far as the server is right about itself",
            &by.utc_bound_ns,
        ),
    ];
    for (clock, bound) in bounds {
        if let Some(bound) = bound {
            let _ = writeln!(
                text,
                "  off {clock}, by at most {} (p50), {} (p99), {} (all)",
                quantile(bound.p50),
                quantile(bound.p99),
                span(bound.max.unsigned_abs())
            );
        }
    }
    if by.ambiguous > 0 {
        let _ = writeln!(
            text,
            "  {} may be off by more: the server's clock was set between two exchanges",
            counted(by.ambiguous, "packet")
        );
    }
    if by.is_log_torn {
        *text += TORN;
    }
}

fn tell_peer(by: &ByPeer, plan: &ConvertPlan, text: &mut String) {
    let [there, back] = by.exchanged;
    let _ = writeln!(
        text,
        "{}: {} by the clock of the host of {}, by {} there and {} back that both captures have",
        plan.output.display(),
        counted(by.timed, "packet"),
        by.with,
        counted(there, "packet"),
        grouped(back)
    );
    if let Some(moved) = &by.moved_ns {
        let [least, most] = [moved.min, moved.max].map(signed);
        let _ = writeln!(text, "  moved by {least} to {most} ns");
    }
    let _ = writeln!(text, "  off that clock by at most {}", span(by.bound_ns));
    if let Some(ns) = by.utc_bound_ns {
        let _ = writeln!(
            text,
            "  off UTC by at most {}, by that host's account",
            span(ns)
        );
    }
    for warning in &by.warnings {
        let _ = writeln!(text, "  {warning}");
    }
}

const TORN: &str = "  the last line of the log is torn: what comes before it was used\n";

fn tell_times(stamped: &Stamped, plan: &ConvertPlan, text: &mut String) {
    let _ = writeln!(
        text,
        "{}: {} {} by {} of the clock in {}",
        plan.output.display(),
        counted(stamped.timed - stamped.left, "packet"),
        if stamped.stamps_again {
            "stamped again"
        } else {
            "turned into another clock's time"
        },
        counted(stamped.samples as u64, "sample"),
        counted(stamped.segments as u64, "segment")
    );
    let quantile = |value: Option<i64>| value.map_or("–".into(), |ns| format!("{ns} ns"));
    if let Some(moved) = &stamped.moved_ns {
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
    if let Some(bound) = &stamped.bound_ns {
        let _ = writeln!(
            text,
            "  off {} by at most {} (p50), {} (p99), {} (all)",
            match &stamped.reference {
                None => "the host's clock".to_owned(),
                Some(reference) => format!("the clock that followed {reference}"),
            },
            quantile(bound.p50),
            quantile(bound.p99),
            span(bound.max.unsigned_abs())
        );
    }
    if stamped.is_rebased {
        let base = stamped.time_base.name();
        let _ = match stamped.leap_table {
            None => writeln!(text, "  all times are of {base} now"),
            Some(table) => writeln!(
                text,
                "  all times are of {base} now: {table}, as the kernel had no TAI offset"
            ),
        };
    }
    if stamped.left > 0 {
        tell_left(stamped, plan, text);
    }
    if stamped.is_log_torn {
        *text += TORN;
    }
}

/// Which packets keep their times, and why.
fn tell_left(stamped: &Stamped, plan: &ConvertPlan, text: &mut String) {
    let how = if stamped.is_rebased {
        "not stamped again"
    } else {
        "left as they were"
    };
    let by = match &plan.clock_log {
        None => "the history".into(),
        Some(log) => log.display().to_string(),
    };
    let _ = writeln!(
        text,
        "  {} {how}: {by} does not tell their time better",
        grouped(stamped.left)
    );
    for left in stamped.left_spans.iter().take(SPANS) {
        let _ = writeln!(text, "    {}", span_left(left));
    }
    if stamped.beyond_bound > 0 {
        let _ = writeln!(
            text,
            "    {} of them would have moved by more than the bound of their live times",
            grouped(stamped.beyond_bound)
        );
    }
    if stamped.left_spans.len() > SPANS {
        *text += "    and more: --json lists them\n";
    }
}

fn span_left(left: &Span) -> String {
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
