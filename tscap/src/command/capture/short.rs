//! The account at the end in a line, and a line for each thing that is not as one may expect.

use crate::command::capture::account::{
    DOES_NOT_ADD_UP, STACK_SAW_NOTHING, merged, missed, off_cpu, on_disk,
};
use tscap_base::text::numbers::{counted, grouped, size, span};
use tscap_capture::{ClockSummary, Stop, Summary};

/// `is_view`: the frames were only looked at.
pub(super) fn short(summary: &Summary, is_view: bool) -> String {
    let mut lines = vec![first(summary, is_view)];
    for (outcome, number) in summary.outcomes.entries() {
        if outcome.is_loss && number > 0 {
            let (name, meaning) = (outcome.name, outcome.meaning);
            lines.push(format!("  lost: {} {name} ({meaning})", grouped(number)));
        }
    }
    if !summary.adds_up {
        lines.push(DOES_NOT_ADD_UP.into());
    }
    if summary.tap {
        lines.push(STACK_SAW_NOTHING.into());
    }
    lines.extend(summary.off_cpu.filter(|it| *it > 0).map(off_cpu));
    lines.extend(summary.interfaces.iter().filter_map(missed));
    lines.extend(merged(summary));
    let commands = summary.files.and_then(|files| files.commands);
    if let Some(commands) = commands.filter(|it| it.failed + it.unfinished > 0) {
        lines.push(format!(
            "  -z: {} failed, {} not ended",
            grouped(commands.failed),
            grouped(commands.unfinished)
        ));
    }
    lines.extend(of_clock(&summary.clock));
    lines.join("\n")
}

/// The equation of the account, how much was written, and the bounds.
fn first(summary: &Summary, is_view: bool) -> String {
    let kept = if is_view { "counted" } else { "written" };
    let mut line = if is_view {
        String::new()
    } else {
        format!("{}: ", summary.file)
    };
    line += &format!(
        "{} seen = {} {kept}{}",
        grouped(summary.seen),
        grouped(summary.written),
        on_disk(summary)
    );
    for (outcome, number) in summary.outcomes.entries() {
        if number > 0 {
            line += &format!(" + {} {}", grouped(number), outcome.name);
        }
    }
    if let Some(files) = summary.files {
        line += &format!(" in {}", counted(files.written, "file"));
    }
    if !is_view {
        line += &format!(", {}", size(summary.bytes_written));
    }
    line += &format!(" in {:.1} s", summary.seconds);
    if !summary.stopped_by.is_wanted() || summary.stopped_by == Stop::ReaderGone {
        line += &format!(", {}", summary.stopped_by.reason());
    }
    line + &if is_view {
        "; none was kept".to_owned()
    } else {
        format!("; {}", bounds(&summary.clock))
    }
}

/// How far stamps may be off the host's clock, and that clock off UTC.
fn bounds(clock: &ClockSummary) -> String {
    let bound = |ns: Option<u64>| ns.map_or("unknown".into(), |ns| format!("±{}", span(ns)));
    match &clock.reference {
        Some(reference) => format!(
            "stamps by {}, UTC {}",
            reference.name,
            bound(reference.stamp_utc_bound_ns)
        ),
        None => format!(
            "stamps ±{} ns, UTC {}",
            grouped(clock.host_bound_ns),
            bound(clock.utc_bound_ns)
        ),
    }
}

fn of_clock(clock: &ClockSummary) -> Vec<String> {
    let mut lines = Vec::new();
    if clock.steps > 0 {
        let times = counted(clock.steps, "time");
        lines.push(format!(
            "  the clock was set {times}: the file has a segment for each"
        ));
    }
    if clock.ambiguous > 0 {
        let stamps = counted(clock.ambiguous, "stamp");
        lines.push(format!(
            "  {stamps} without a bound: at a step or a jump, or after a stall"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use tscap_capture::FilesSummary;
    use tscap_file::accounting::{Outcome, Outcomes};

    fn summary() -> Summary {
        let clock = json!({
            "source": "ktime", "path": "bpf_ktime_get_ns", "ordered": true, "host_bound_ns": 1,
            "synchronised": false, "utc_bound_ns": null, "segments": [], "steps": 0,
            "stamp_decreases": 0, "largest_decrease_ns": 0, "late": 0, "largest_lateness_ns": 0,
            "ambiguous": 0,
        });
        let summary = json!({
            "file": "out.pcapng", "seconds": 3.66, "seen": 42, "written": 42,
            "bytes_written": 8_000, "outcomes": Outcomes::default(), "off_cpu": null,
            "directions": [], "adds_up": true, "interfaces": [], "clock": clock,
            "stopped_by": "signal",
        });
        serde_json::from_value(summary).expect("a summary")
    }

    #[test]
    fn what_is_as_it_should_be_is_one_line() {
        let line = "out.pcapng: 42 seen = 42 written, 8.0 kB in 3.7 s; stamps ±1 ns, UTC unknown";
        assert_eq!(short(&summary(), false), line);
        assert!(line.chars().count() < 80);
        let mut of = summary();
        of.clock.utc_bound_ns = Some(2_100_000);
        of.files = Some(FilesSummary {
            written: 3,
            ..FilesSummary::default()
        });
        (of.seen, of.outcomes[Outcome::Filtered]) = (1_042, 1_000);
        assert_eq!(
            short(&of, false),
            "out.pcapng: 1,042 seen = 42 written + 1,000 filtered in 3 files, 8.0 kB in 3.7 s; \
             stamps ±1 ns, UTC ±2.1 ms"
        );
    }

    #[test]
    fn each_loss_and_each_warning_has_a_line() {
        let mut of = summary();
        (of.outcomes[Outcome::RingFull], of.adds_up) = (7, false);
        (of.clock.steps, of.clock.ambiguous, of.off_cpu) = (1, 2, Some(5));
        (of.stopped_by, of.tap) = (Stop::InterfaceGone, true);
        let text = short(&of, false);
        let starts = [
            "out.pcapng: 42 seen = 42 written + 7 ring_full, 8.0 kB in 3.7 s, the interface is gone;",
            "  lost: 7 ring_full (no room in the ring: raise --ring-size)",
            "  DOES NOT ADD UP",
            "  --tap: ",
            "  5 of them came in on other CPUs",
            "  the clock was set 1 time",
            "  2 stamps without a bound",
        ];
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), starts.len(), "{text}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{start:?}: {text}");
        }
        of.off_cpu = Some(0);
        assert!(!short(&of, false).contains("other CPUs"));
    }

    #[test]
    fn of_what_was_only_looked_at_nothing_is_called_written() {
        let mut of = summary();
        (of.file, of.stopped_by) = ("/dev/null".into(), Stop::Key);
        for text in [short(&of, true), super::super::account::whole(&of, true)] {
            assert!(
                !text.contains("written") && !text.contains("/dev/null"),
                "{text}"
            );
            assert!(text.contains("none was kept"), "{text}");
        }
        assert_eq!(
            short(&of, true),
            "42 seen = 42 counted in 3.7 s; none was kept"
        );
    }
}
