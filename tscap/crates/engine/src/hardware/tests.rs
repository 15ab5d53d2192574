use super::*;
use tscap_clock::PhcNs;
use tscap_clock::scripted::Host;
use tscap_references::NicReading;

const MS: u64 = 1_000_000;

/// The device of an interface: ahead of CLOCK_MONOTONIC by so much.
fn reading(mono: u64, ahead: u64) -> NicReading {
    NicReading {
        mono: [MonoNs(mono), MonoNs(mono + 1_000)],
        phc: PhcNs(mono + 500 + ahead),
    }
}

#[test]
fn a_converter_takes_each_reading_once() {
    let clock = PtpClock::default();
    let mut taken = 0;
    assert!(clock.since(&mut taken).is_empty() && !clock.has_baseline());
    for turn in 0..20 {
        clock.add(reading(turn * 20 * MS, 5));
    }
    assert!(clock.has_baseline());
    assert_eq!(clock.since(&mut taken).len(), 20);
    assert!(clock.since(&mut taken).is_empty());
    for turn in 20..500 {
        clock.add(reading(turn * 20 * MS, 5));
    }
    let latest = clock.since(&mut taken);
    assert_eq!(latest.len(), 256);
    assert_eq!(latest.last(), Some(&reading(499 * 20 * MS, 5)));
}

fn tracker() -> Tracker {
    let host = Host {
        hertz: 1_000_000_000,
        slews: vec![],
    };
    Tracker::new(StampSource::Ktime, &host.cross(0, [20, 40, 20])).unwrap()
}

#[test]
fn frames_before_a_step_of_the_device_was_seen_are_counted() {
    let tracker = tracker();
    let mut hardware = HardwareStamps::new(&tracker);
    let (shared, clock) = (Shared::default(), Arc::<PtpClock>::default());
    shared.stamps_by(None);
    shared.stamps_by(Some(Arc::clone(&clock)));
    let mut counts = vec![Directed::<Written>::default(); 2];
    hardware.update(&shared, &tracker, &mut counts);
    assert_eq!(hardware.bounds_ns(), [None, None]);
    for turn in 1..20 {
        clock.add(reading(turn * 20 * MS, 37));
    }
    hardware.update(&shared, &tracker, &mut counts);
    let bounds = hardware.bounds_ns();
    assert_eq!(bounds[0], None, "it has no clock");
    assert!(
        bounds[1].is_some_and(|bound| (500..2_000).contains(&bound)),
        "{bounds:?}"
    );
    let counter_ns = hardware.clocks[0].bound_ns().unwrap();
    assert_eq!(bounds[1], Some(counter_ns + tracker.host_bound_ns()));
    // Since a reading that agrees, and since one that does not.
    for (turn, ahead, ambiguous) in [(20, 37, 0), (21, 5_000_000_000, 7)] {
        hardware.interfaces[1].since_reading = 7;
        clock.add(reading(turn * 20 * MS, ahead));
        hardware.update(&shared, &tracker, &mut counts);
        let counted = [0, 1].map(|it: usize| counts[it][Direction::In].hardware.ambiguous);
        assert_eq!(counted, [0, ambiguous]);
        assert_eq!(hardware.interfaces[1].since_reading, 0);
    }
    // Of two readings the first one.
    hardware.interfaces[1].since_reading = 5;
    for turn in [60, 61] {
        clock.add(reading(turn * 20 * MS, 37));
    }
    hardware.update(&shared, &tracker, &mut counts);
    assert_eq!(counts[1][Direction::In].hardware.ambiguous, 12);
}

#[test]
fn interfaces_of_one_device_share_its_clock() {
    let tracker = tracker();
    let mut hardware = HardwareStamps::new(&tracker);
    let (shared, clock) = (Shared::default(), Arc::<PtpClock>::default());
    for it in [&clock, &Arc::default(), &clock] {
        shared.stamps_by(Some(Arc::clone(it)));
    }
    hardware.update(&shared, &tracker, &mut []);
    let clocks: Vec<_> = hardware.interfaces.iter().map(|it| it.clock).collect();
    assert_eq!(clocks, [Some(0), Some(1), Some(0)]);
    assert!(hardware.delays(2).is_some_and(|it| it.summary().is_none()));
    assert!(hardware.delays(3).is_none());
}
