use super::*;

fn reading(parts: Parts, interval: Result<UtcInterval, String>) -> UtcBound {
    UtcBound::new(parts, MonoNs(1), interval)
}

fn kernel(bound_ns: u64) -> UtcBound {
    let parts = Parts::Kernel {
        max_error_ns: bound_ns,
        est_error_ns: 0,
        device_error_ns: 0,
    };
    reading(parts, Ok(UtcInterval::within(bound_ns)))
}

fn clockbound(bound_ns: u64) -> UtcBound {
    let parts = Parts::ClockBound {
        version: 2,
        published_ns: bound_ns,
        growth_ns: 0,
        max_drift_ppb: 0,
        status: ClockBoundStatus::Synchronized,
        disruption_marker: None,
    };
    reading(parts, Ok(UtcInterval::within(bound_ns)))
}

fn vmclock(ends: [i64; 2]) -> UtcBound {
    let parts = Parts::VmClock {
        offset_ns: ends[0].midpoint(ends[1]),
        reading_ns: 0,
        max_error_ns: 0,
        growth_ns: 0,
        disruption_marker: 7,
        leap: Leap::None,
    };
    reading(parts, Ok(UtcInterval(ends)))
}

#[test]
fn the_narrowest_that_is_valid_is_believed_and_all_are_listed() {
    let mut none = kernel(1);
    none.refuse("it is not synchronised");
    for (readings, bound_ns, source) in [
        (vec![], None, None),
        (vec![none.clone()], None, None),
        (vec![kernel(500)], Some(500), Some(UtcSource::Kernel)),
        (
            vec![kernel(500), clockbound(90), vmclock([-400, 100])],
            Some(90),
            Some(UtcSource::ClockBound),
        ),
        (
            vec![none, clockbound(900), vmclock([-400, 100])],
            Some(400),
            Some(UtcSource::VmClock),
        ),
    ] {
        let all = UtcBounds::of(readings.clone());
        assert_eq!((all.bound_ns, all.source), (bound_ns, source));
        assert_eq!(all.used().and_then(|it| it.bound_ns), bound_ns);
        assert_eq!((all.contradictions.len(), &all.readings), (0, &readings));
    }
}

#[test]
fn sources_that_contradict_each_other_give_the_union_and_are_named() {
    // By VMClock the host is 1 µs off, by the others 500 ns at most.
    let all = UtcBounds::of(vec![kernel(500), clockbound(90), vmclock([1_000, 1_200])]);
    assert_eq!(all.bound_ns, Some(1_200));
    assert_eq!((all.source, all.used()), (None, None));
    let pairs = [UtcSource::Kernel, UtcSource::ClockBound].map(|it| [it, UtcSource::VmClock]);
    assert_eq!(all.contradictions, pairs);
    let words = all.sentences().join("\n");
    assert!(
        words.contains("the kernel and VMClock contradict each other"),
        "{words}"
    );
    assert!(all.says().contains("contradict"), "{}", all.says());
    // One that says nothing contradicts nobody.
    let mut silent = vmclock([1_000, 1_200]);
    silent.refuse("it is of another counter");
    let all = UtcBounds::of(vec![kernel(500), silent]);
    assert_eq!(
        (all.bound_ns, all.source),
        (Some(500), Some(UtcSource::Kernel))
    );
    assert!(all.sentences()[1].contains("no bound, as it is of another counter"));
}

proptest::proptest! {
    /// Wherever UTC is, the bound holds if one of the sources is right where they contradict each
    /// other, and if all are where they don't.
    #[test]
    fn a_bound_holds_wherever_utc_is(
        utc in -1_000_i64..1_000,
        widths in proptest::collection::vec((0_i64..500, 0_i64..500, 0_i64..400), 1..5),
    ) {
        let all = |is_right: fn(usize) -> bool| {
            let readings = widths.iter().enumerate().map(|(index, (below, above, off))| {
                let off = if is_right(index) { 0 } else { 500 + off };
                vmclock([utc - below + off, utc + above + off])
            });
            UtcBounds::of(readings.collect())
        };
        let right = all(|_| true);
        proptest::prop_assert!(right.contradictions.is_empty());
        proptest::prop_assert!(right.bound_ns.unwrap() >= utc.unsigned_abs());
        // The first is right, and the others are so far off that they exclude it.
        let one = all(|index| index == 0);
        if widths.len() > 1 && widths[1..].iter().all(|(below, _, off)| 500 + off - below > widths[0].1) {
            proptest::prop_assert!(!one.contradictions.is_empty());
            proptest::prop_assert!(one.bound_ns.unwrap() >= utc.unsigned_abs());
        }
    }
}

#[test]
fn a_result_is_read_back_as_it_was() {
    let mut refused = kernel(9);
    refused.refuse("why");
    let all = UtcBounds::of(vec![refused, clockbound(90), vmclock([-1, 4])]);
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(
        serde_json::from_str::<UtcBounds>(&text).unwrap(),
        all,
        "{text}"
    );
    for part in [
        r#""bound_ns":4,"source":"vmclock""#,
        r#"{"source":"kernel","max_error_ns":9"#,
        r#""bound_ns":null,"unknown":"why""#,
        r#""utc_less_host_ns":[-1,4]"#,
        r#""status":"synchronized""#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
