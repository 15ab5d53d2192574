//! What is known of the clock at the end, in sentences.

use tscap_base::text::numbers::{counted, grouped, span};
use tscap_clock::Status;
use tscap_utc::UtcBounds;

/// Of the clock after so many seconds; `references` are the sentences on other clocks.
pub(super) fn conclusion(
    seconds: f64,
    status: &Status,
    utc: &UtcBounds,
    references: Vec<String>,
) -> String {
    let hertz = status.counter.ns_per_cycle_2_58.cycles_in(1_000_000_000);
    let mut lines = vec![
        format!("Conclusion after {seconds:.1} s:"),
        format!(
            "  tsc stamps are within ±{} of this host's clock: the TSC runs at {} Hz ±{:.3} ppm",
            span(status.host_bound_ns),
            grouped(hertz.unsigned_abs()),
            status.counter.rate_bound_ppb as f64 / 1e3
        ),
        match status.utc_bound_ns.map(span) {
            Some(bound) => {
                format!(
                    "  this host's clock is within ±{bound} of UTC, {}",
                    utc.says()
                )
            }
            None => "  this host's clock is not synchronised: no bound to UTC".to_owned(),
        },
    ];
    lines.extend(utc.sentences().iter().map(|it| format!("    {it}")));
    if status.steps > 0 {
        let times = counted(status.steps, "time");
        lines.push(format!("  this host's clock was set {times} meanwhile"));
    }
    lines.extend(references.iter().map(|sentence| format!("  {sentence}")));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::scripted::Host;
    use tscap_clock::{StampSource, Tracker};
    use tscap_utc::UtcSource;

    #[test]
    fn each_bound_has_a_sentence() {
        let host = Host {
            hertz: 2_000_000_000,
            slews: vec![],
        };
        let gaps = [20, 40, 20];
        let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, gaps)).unwrap();
        tracker.observe(&host.cross(100_000_000, gaps));
        let tsc = host.cycles(100_000_000);
        let mut status = Status::of(&tracker, tsc, None, None).unwrap();
        let text = conclusion(12.04, &status, &UtcBounds::default(), Vec::new());
        assert!(
            text.starts_with("Conclusion after 12.0 s:\n  tsc stamps are within ±"),
            "{text}"
        );
        assert!(
            text.contains("the TSC runs at 2,000,000,000 Hz ±"),
            "{text}"
        );
        assert!(
            text.ends_with("not synchronised: no bound to UTC\n"),
            "{text}"
        );
        (status.utc_bound_ns, status.steps) = (Some(2_100_000), 1);
        let utc = UtcBounds {
            source: Some(UtcSource::Kernel),
            bound_ns: status.utc_bound_ns,
            ..UtcBounds::default()
        };
        let text = conclusion(12.04, &status, &utc, vec!["beside it".into()]);
        let end = "within ±2.1 ms of UTC, as the kernel says\n  \
                   this host's clock was set 1 time meanwhile\n  beside it\n";
        assert!(text.ends_with(end), "{text}");
    }
}
