//! The account at the end as fields of the journal's entry.

use tscap_capture::Summary;
use tscap_host::journald::Field;

/// By which `journalctl MESSAGE_ID=…` finds the ends of captures.
const SUMMARY: &str = "8eae17fdc1a8403f97b1e25711999a7f";

pub(super) fn of(summary: &Summary) -> Vec<Field> {
    let clock = &summary.clock;
    let mut fields = vec![
        ("MESSAGE_ID".into(), SUMMARY.into()),
        ("TSCAP_FILE".into(), summary.file.clone()),
        ("TSCAP_SECONDS".into(), summary.seconds.to_string()),
        ("TSCAP_SEEN".into(), summary.seen.to_string()),
        ("TSCAP_WRITTEN".into(), summary.written.to_string()),
        (
            "TSCAP_BYTES_WRITTEN".into(),
            summary.bytes_written.to_string(),
        ),
        (
            "TSCAP_ADDS_UP".into(),
            u8::from(summary.adds_up).to_string(),
        ),
        (
            "TSCAP_STOPPED_BY".into(),
            summary.stopped_by.reason().into(),
        ),
        ("TSCAP_CLOCK".into(), clock.source.clone()),
        ("TSCAP_CLOCK_STEPS".into(), clock.steps.to_string()),
        (
            "TSCAP_HOST_BOUND_NS".into(),
            clock.host_bound_ns.to_string(),
        ),
    ];
    let utc = clock.utc_bound_ns;
    fields.extend(utc.map(|bound| ("TSCAP_UTC_BOUND_NS".into(), bound.to_string())));
    for (outcome, count) in summary.outcomes.entries() {
        let name = format!("TSCAP_{}", outcome.name.to_uppercase());
        fields.push((name, count.to_string()));
    }
    fields
}
