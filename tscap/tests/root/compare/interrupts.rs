//! Stamps with interrupts off, where programs can turn them off.

use nix::sys::utsname::uname;
use tscap_clock::StampSource;
use tscap_testkit::command::run;
use tscap_testkit::root::alone;

use super::{LIMIT, MEASURES, compare, fails, median, whole};

/// Since Linux 6.14: by its version, whatever tscap finds.
pub fn can_be_turned_off() -> bool {
    let kernel = uname().expect("a kernel");
    let release = kernel.release().to_str().expect("a version of Linux");
    let numbers = release.split(['.', '-']);
    let version: Vec<u32> = numbers.map_while(|number| number.parse().ok()).collect();
    assert!(version.len() >= 2, "{release} is no version of Linux");
    version[..] >= [6, 14][..]
}

#[test]
fn both_ways_take_their_turns_or_it_is_refused() {
    let Some(_lock) = alone(MEASURES) else { return };
    if !can_be_turned_off() {
        let done = run(&mut compare(&["--quick", "--irqs-off"]), LIMIT);
        return fails(&done, &["interrupts off", "6.14", "--irqs-off"]);
    }
    let (_, comparison) = whole();
    let is_tsc = |source| source == StampSource::Tsc;
    let subjects = comparison.subjects.iter().flat_map(|it| it.source);
    let has_tsc = subjects.clone().any(is_tsc);
    let both_ways = &comparison.interrupts_off;
    assert_eq!(both_ways.len(), if has_tsc { 2 } else { 1 });
    assert_eq!(both_ways[0].source, StampSource::Ktime);
    assert!(both_ways[1..].iter().all(|it| is_tsc(it.source)));
    for of in both_ways {
        for way in [&of.on, &of.off] {
            assert_eq!((way.read_ns.len(), way.p99_ns.len()), (40, 40), "{of:?}");
            assert_eq!(way.all.n, 40_000, "every frame's value is kept");
            assert!(way.all.p99_9.is_some());
        }
        let mut subjects = comparison.subjects.iter();
        let subject = subjects.find(|it| it.path == of.path);
        let subject = subject.expect("it is a subject as usual");
        assert_eq!(subject.read_ns.as_ref(), Some(&of.on.read_ns));
        assert_eq!(subject.frame.as_ref().map(|it| &it.all), Some(&of.on.all));
        // It is not for nothing, on whatever machine.
        let (on, off) = (median(&of.on.read_ns), median(&of.off.read_ns));
        assert!(off > on, "{off} {on}");
    }
    // Nothing else is measured so.
    let paths = comparison.subjects.iter().map(|it| &it.path);
    let count = paths.clone().count();
    assert_eq!(
        paths.collect::<std::collections::BTreeSet<_>>().len(),
        count
    );
}
