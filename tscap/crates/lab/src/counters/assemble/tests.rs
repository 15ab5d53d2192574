use super::super::fixtures::{by_ptp, characteristics, request, results};
use super::*;
use crate::counters::CountersError;
use tscap_base::recorded::Recorded;
use tscap_results::fixtures::about;
use tscap_traffic::load::Stopped;

fn of(characteristics: &Characteristics, counter: Counter) -> &Subject {
    let mut all = characteristics.counters.iter();
    all.find(|it| it.counter == counter).expect("it was read")
}

#[test]
fn latencies_are_without_the_bracket() {
    let of_all = characteristics();
    for (counter, cycles) in [
        (Counter::Tsc, 2),
        (Counter::Ktime, 75),
        (Counter::Hpet, 1_900),
    ] {
        for latency in &of(&of_all, counter).latency {
            assert_eq!(latency.unwrap().p50, Some(cycles), "{counter:?}");
        }
    }
}

#[test]
fn latencies_have_a_course_and_histograms() {
    let of_all = characteristics();
    let hpet = of(&of_all, Counter::Hpet);
    assert!(
        hpet.latency_course.len() > 100,
        "{}",
        hpet.latency_course.len()
    );
    assert!(hpet.latency_course.iter().all(|it| it.cycles == 1_900));
    assert_eq!(hpet.latency_histogram.len(), of_all.phases.len());
    for (bars, latency) in hpet.latency_histogram.iter().zip(&hpet.latency) {
        let n: u64 = bars.iter().map(|bar| bar.n).sum();
        let all = latency.unwrap().n;
        assert!((all * 998 / 1_000..all).contains(&n), "{n} of {all}");
        assert_eq!(bars[0].from_cycles, latency.unwrap().min);
    }
}

/// A clock by the HPET is worse than one by a clock that counts nanoseconds.
#[test]
fn a_clock_of_each_counter_has_an_error() {
    let of_all = characteristics();
    let iqr = |counter| {
        let clock = of(&of_all, counter).clock.unwrap();
        assert!(clock.n > 200 && clock.poll_s > 0.0, "{clock:?}");
        clock.p75_ns - clock.p25_ns
    };
    assert!(iqr(Counter::Hpet) > iqr(Counter::RawVdso));
    assert_eq!(of(&of_all, Counter::Tsc).clock, None, "rates are by it");
}

/// Through the interface less the TSC alone, which programs here can't read.
#[test]
fn the_interface_is_what_it_takes_more() {
    let of_all = characteristics();
    let median = |counter| {
        let interface = &of(&of_all, counter).interface;
        interface.first().map(|it| it.unwrap().p50.unwrap())
    };
    assert_eq!(median(Counter::RawVdso), Some(40));
    assert_eq!(median(Counter::RawSyscall), Some(580));
    assert_eq!(median(Counter::Ktime), None);
    assert_eq!(median(Counter::Hpet), None);

    let mut circumstances = about("counters");
    circumstances.machine.clocksource = "hpet".into();
    let files = Recorded::veth().files;
    let of_all = assemble(results(), &request(), circumstances, &files);
    let raw = of(&of_all, Counter::RawVdso);
    assert!(raw.interface.is_empty(), "that is another counter");
}

#[test]
fn table_i_is_that_of_each_counter() {
    let of_all = characteristics();
    let hpet = of(&of_all, Counter::Hpet);
    assert_eq!((hpet.bits, hpet.hertz), (32, 14_318_180.0));
    assert!((hpet.wraps_seconds - 299.97).abs() < 0.01, "{hpet:?}");
    assert!((hpet.step_ns - 69.84).abs() < 0.01, "{hpet:?}");
    assert_eq!(of(&of_all, Counter::Tsc).hertz, 2.5e9);
}

/// A load that makes the HPET slower by 0.2 ppm, beside the TSC, and by another oscillator.
#[test]
fn a_load_that_changes_a_rate_is_told() {
    for of_all in [characteristics(), by_ptp("igb")] {
        let hpet = of(&of_all, Counter::Hpet);
        for (phase, rate) in of_all.phases.iter().zip(&hpet.rate) {
            let rate = rate.expect("a rate");
            let expected = if phase.stress == Stress::Cpu {
                -0.2
            } else {
                0.0
            };
            // The ticks of the fixture are whole ones: 14 ppb of a phase.
            assert!((rate.ppm - expected).abs() < 0.04, "{phase:?}: {rate:?}");
        }
        assert!(!hpet.course.is_empty());
    }
}

/// Only another oscillator says how well a counter keeps its rate.
#[test]
fn deviations_take_an_independent_reference() {
    let scales = |of_all: &Characteristics| {
        let counters = of_all.counters.iter();
        counters.filter(|it| !it.scales.is_empty()).count()
    };
    assert_eq!(scales(&characteristics()), 0);
    assert_eq!(scales(&by_ptp("KVM virtual PTP")), 0);
    let independent = by_ptp("igb");
    // The TSC, the raw clock and the HPET; the device has none against itself.
    assert_eq!(scales(&independent), 3);
    assert!(of(&independent, Counter::Ptp).rate.is_empty());
    assert_eq!(of(&independent, Counter::Tsc).rate.len(), 7);
}

#[test]
fn what_is_not_as_it_should_be_is_said() {
    assert!(characteristics().warnings.is_empty());
    let mut results = results();
    results.phases[1].busy[1] = 0.5;
    results.phases[2].busy[1] = 0.8;
    results.taken[0].failed = 3;
    results.ended_by = Some(CountersError::Stopped(Stopped));
    let of_all = assemble(
        results,
        &request(),
        about("counters"),
        &Recorded::veth().files,
    );
    let reported = of_all.warnings.join("\n");
    for part in [
        "CPU 1 was busy for 50 % of a phase with its load only",
        "CPU 1 was busy for 80 % of a phase that was to be idle",
        "tsc: 3 readings failed",
        "partial",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    assert!(of_all.about.partial);
}
