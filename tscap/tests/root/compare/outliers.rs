//! Frames whose stamp cost far more than others, and why.

use std::path::Path;

use tscap_document::Layout;
use tscap_lab::compare::schema::Cause;
use tscap_report::saved::Kind as _;
use tscap_testkit::root::alone;

use super::{MEASURES, whole};

/// What programs must get at, by the names of the kernel.
const VARIABLES: [&str; 3] = ["kstat", "irq_stat", "kernel_cpustat"];

#[test]
fn each_has_one_cause_or_it_is_said_why_not() {
    let Some(_lock) = alone(MEASURES) else { return };
    let (_, comparison) = whole();
    let symbols = std::fs::read_to_string("/proc/kallsyms").expect("the kernel's symbols");
    let has = |name: &str| {
        symbols
            .lines()
            .any(|line| line.split(' ').nth(2) == Some(name))
    };
    let missing: Vec<_> = VARIABLES.into_iter().filter(|name| !has(name)).collect();
    let has_types = Path::new("/sys/kernel/btf/vmlinux").exists();
    let unknown = comparison.method.causes_unknown.as_deref();
    let is_known = has_types && missing.is_empty();
    assert_eq!(unknown.is_none(), is_known, "{unknown:?}");
    for name in missing.into_iter().filter(|_| has_types) {
        assert!(unknown.is_some_and(|why| why.contains(name)), "{unknown:?}");
    }
    let frames = comparison
        .subjects
        .iter()
        .filter_map(|it| it.frame.as_ref());
    for frame in frames {
        // A stamp that costs nothing has no multiple.
        let Some(outliers) = &frame.outliers else {
            continue;
        };
        assert_eq!(outliers.of, frame.all.n);
        assert!(outliers.over_ns >= 10 && outliers.frames < outliers.of);
        let causes: Vec<_> = outliers.causes.iter().map(|it| it.cause).collect();
        if unknown.is_some() {
            assert_eq!(causes, []);
            continue;
        }
        assert_eq!(causes, Cause::ALL);
        let reported: u64 = outliers.causes.iter().map(|it| it.outliers).sum();
        let others: u64 = outliers.causes.iter().map(|it| it.others).sum();
        assert_eq!(
            (reported, reported + others),
            (outliers.frames, outliers.of)
        );
    }
    let all = Layout {
        columns: 100,
        is_whole: true,
    };
    let text = comparison.document().text(all);
    assert!(text.contains("Frames whose stamp cost more than 10 times the median"));
    assert_eq!(text.contains("causes are unknown: "), unknown.is_some());
}
