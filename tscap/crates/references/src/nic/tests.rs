use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// A device that counts TAI, 37 s ahead of UTC.
const EPOCH: u64 = 1_700_000_037 * NS_PER_S;

/// A device that runs `ppb` faster than CLOCK_MONOTONIC, from a bend on by `bend_ppb` more.
#[derive(Clone, Copy)]
struct Device {
    ppb: i64,
    bend: (u64, i64),
    step_ns: i64,
}

impl Device {
    fn at(self, mono: u64) -> PhcNs {
        let off = |ns: u64, ppb: i64| i128::from(ns) * i128::from(ppb);
        let (bent_at, bend_ppb) = self.bend;
        let off = off(mono, self.ppb) + off(mono.saturating_sub(bent_at), bend_ppb);
        // Truncated once, as a device's time is.
        let off = off.div_euclid(1_000_000_000) as i64;
        PhcNs(
            (EPOCH + mono)
                .wrapping_add_signed(off)
                .wrapping_add_signed(self.step_ns),
        )
    }

    /// Latched `way` after CLOCK_MONOTONIC was `mono`, and so long before it was read again.
    fn reading(self, mono: u64, [way, back]: [u64; 2]) -> NicReading {
        NicReading {
            mono: [MonoNs(mono), MonoNs(mono + way + back)],
            phc: self.at(mono + way),
        }
    }
}

fn straight(ppb: i64) -> Device {
    Device {
        ppb,
        bend: (0, 0),
        step_ns: 0,
    }
}

/// A clock of the device by readings every 20 ms until `end`.
fn clock_of(device: Device, end: u64) -> NicClock {
    let mut clock = NicClock::default();
    for turn in 1..=end / (20 * MS) {
        assert!(!clock.observe(&device.reading(turn * 20 * MS, [700, 900])));
    }
    clock
}

proptest! {
    /// Whatever the rate, the ways to the device and one bend of 50 ppm in between.
    #[test]
    fn stamps_lie_within_the_bound(
        ppb in -200_000i64..200_000,
        bend in (300u64..2_000, -50_000i64..50_000),
        reads in prop::collection::vec((5u64..25, 0u64..3_000, 0u64..3_000, 0.0..1.0), 1..100),
    ) {
        let device = Device { bend: (bend.0 * MS, bend.1), ..straight(ppb) };
        let mut clock = clock_of(device, 300 * MS);
        let (mut t, mut unknown_until) = (300 * MS, 0);
        for (gap, way, back, part) in reads {
            let stamp = t + ((gap * MS) as f64 * part) as u64;
            let live = clock.conversion().unwrap();
            t += gap * MS;
            let unknown = clock.observe(&device.reading(t, [way, back]));
            if unknown {
                unknown_until = t + way + back + LONGEST_WAY_NS;
            }
            let after = clock.conversion().unwrap();
            let received = MonoNs(stamp + 5_000);
            let bound = clock.bound_ns().unwrap();
            for conversion in [live, after] {
                let Some(time) = conversion.to_mono(device.at(stamp), received) else {
                    prop_assert!(received.0 < unknown_until);
                    continue;
                };
                let error = time.0.abs_diff(stamp);
                prop_assert!(unknown || error <= bound, "{error} > {bound}");
            }
        }
    }
}

#[test]
fn it_begins_when_the_rate_is_known() {
    assert_eq!(clock_of(straight(20_000), 180 * MS).conversion(), None);
    let clock = clock_of(straight(20_000), 220 * MS);
    let bound = clock.bound_ns().unwrap();
    assert!((800..3_000).contains(&bound), "{bound}");
    // A device that was set meanwhile has no such rate, and is looked at anew.
    let mut clock = clock_of(straight(0), 100 * MS);
    let set = Device {
        step_ns: 5_000_000_000,
        ..straight(0)
    };
    for turn in 6..150 {
        clock.observe(&set.reading(turn * 20 * MS, [700, 900]));
    }
    let conversion = clock.conversion().unwrap();
    let time = conversion.to_mono(set.at(2_990 * MS), MonoNs(2_990 * MS + 1_000));
    assert!(time.unwrap().0.abs_diff(2_990 * MS) < 3_000);
}

#[test]
fn frames_about_a_step_have_no_time() {
    for step_ns in [37_000_000_000, -37_000_000_000, 1_000_000] {
        let device = straight(20_000);
        let mut clock = clock_of(device, 1_000 * MS);
        let set = Device { step_ns, ..device };
        assert!(
            clock.observe(&set.reading(1_020 * MS, [700, 900])),
            "{step_ns}"
        );
        let conversion = clock.conversion().unwrap();
        for (device, received_ms, is_known) in [
            (device, 1_010, false),
            (set, 1_010, false),
            (set, 1_025, false),
            (set, 1_040, true),
        ] {
            let received = received_ms * MS;
            let time = conversion.to_mono(device.at(received - 2_000), MonoNs(received));
            assert_eq!(time.is_some(), is_known, "{step_ns} {received_ms}");
            let off = time.map_or(0, |time| time.0.abs_diff(received - 2_000));
            assert!(off < 10_000, "{off}");
        }
    }
}

#[test]
fn a_device_that_is_not_read_any_more_gives_no_time() {
    let device = straight(0);
    let conversion = clock_of(device, 1_000 * MS).conversion().unwrap();
    let is_known = |ms: u64| {
        let received = MonoNs(ms * MS);
        conversion
            .to_mono(device.at(ms * MS - 500), received)
            .is_some()
    };
    assert!(is_known(1_199));
    assert!(!is_known(1_201));
}

#[test]
fn what_the_kernel_read_inside_of_the_call_is_what_counts() {
    let reading = PhcReading {
        tsc: [TscCycles(0), TscCycles(1)],
        real: [RealNs(5_000_000_100), RealNs(5_000_000_900)],
        phc: PhcNs(7),
    };
    let whole = [MonoNs(0), MonoNs(10_000)];
    let within = |offset| NicReading::within(whole, &reading, offset).mono;
    assert_eq!(within(None), whole);
    let inner = [MonoNs(100), MonoNs(901)];
    assert_eq!(within(Some(OffsetNs(5_000_000_000))), inner);
    // The clock was set in between, so that these do not meet.
    assert_eq!(within(Some(OffsetNs(1_000_000_000))), whole);
}

/// At the middle the device was between the two, however late it was latched.
#[test]
fn a_bracket_holds_the_device() {
    for way in [0, 400, 1_600] {
        let device = straight(-900_000);
        let bracket = device.reading(MS, [way, 1_600 - way]).bracket();
        let at = device.at(bracket.real[0].0).0;
        assert!((bracket.tsc[0].0..=bracket.tsc[1].0).contains(&at), "{way}");
        assert_eq!(bracket.tsc[1].0 - bracket.tsc[0].0, 1_604);
    }
}

/// A device that takes long to be read, but for the readings of CLOCK_REALTIME beside it.
struct Slow;

const SLOW_MS: u64 = 5;

impl Reference<Result<PhcReading, PtpError>> for Slow {
    fn read(&mut self) -> Result<PhcReading, PtpError> {
        let pause = std::time::Duration::from_millis(SLOW_MS);
        std::thread::sleep(pause);
        let real = [RealNs::now(), RealNs::now()];
        std::thread::sleep(pause);
        Ok(PhcReading {
            tsc: [TscCycles(0); 2],
            real,
            phc: PhcNs(1),
        })
    }
}

#[test]
fn a_reading_is_as_narrow_as_the_kernels_own() {
    // One may be wide on a busy machine, and where somebody sets the clock.
    let width_ns = (0..5).map(|_| {
        let [first, last] = NicReading::take(&mut Slow).unwrap().mono;
        last.0 - first.0
    });
    assert!(width_ns.min().unwrap() < SLOW_MS * MS);
}

#[test]
fn its_bound_covers_what_is_truncated_and_rounded() {
    let clock = clock_of(straight(20_000), 400 * MS);
    let counter = clock.clock.as_ref().unwrap().bound_ns();
    assert_eq!(clock.bound_ns(), Some(counter + 2));
}

/// By 40 µs, while the reading that could show it was interrupted for 100.
#[test]
fn a_step_that_hides_in_a_wide_reading_is_within_the_bound() {
    let device = straight(20_000);
    let mut clock = clock_of(device, 1_000 * MS);
    assert!(clock.bound_ns().unwrap() < 3_000);
    let set = Device {
        step_ns: 40_000,
        ..device
    };
    let stamp = 1_020 * MS - 5_000;
    assert!(!clock.observe(&set.reading(1_020 * MS, [700, 100_000])));
    let time = clock.conversion().unwrap();
    let time = time.to_mono(set.at(stamp), MonoNs(stamp + 5_000)).unwrap();
    let (off, bound) = (time.0.abs_diff(stamp), clock.bound_ns().unwrap());
    assert!((39_000..=bound).contains(&off), "{off} {bound}");
}
