//! What can happen to a host's clocks, with TSC stamps: detected, written down, and
//! right on both sides.

use super::*;

const TEN_YEARS: i64 = 10 * 365 * 86_400 * NS_PER_S;
const TWO_HOURS: i64 = 2 * 3_600 * NS_PER_S;
/// When it happens, by CLOCK_MONOTONIC.
const THEN: u64 = 100_000 * MS;

/// A host with a TSC of 3 GHz.
#[derive(Clone, Copy, Debug)]
struct Host {
    mono_to_real: i64,
    tai_offset_s: i64,
    suspended_ns: u64,
    /// The TSC less three times CLOCK_MONOTONIC.
    tsc: i64,
}

impl Host {
    const START: Self = Self {
        mono_to_real: 1_700_000_000_000_000_000,
        tai_offset_s: 37,
        suspended_ns: 5_000_000_000,
        tsc: 70_000_000_000,
    };

    fn real(self, mono: u64) -> RealNs {
        RealNs(mono.wrapping_add_signed(self.mono_to_real))
    }

    fn counter(self, mono: u64) -> u64 {
        (3 * mono).wrapping_add_signed(self.tsc)
    }

    fn cross(self, at: u64) -> CrossTimestamp {
        let tai = self.real(at + 40).0;
        CrossTimestamp {
            mono: [MonoNs(at), MonoNs(at + 80)],
            tsc: Some([10, 70].map(|ns| TscCycles(self.counter(at + ns)))),
            real: [20, 60].map(|ns| self.real(at + ns)),
            tai: TaiNs(tai.wrapping_add_signed(self.tai_offset_s * NS_PER_S)),
            boot: Some(BootNs(at + 90 + self.suspended_ns)),
            offset: None,
        }
    }

    /// As it is set by so many ns.
    fn set(self, ns: i64) -> Self {
        Self {
            mono_to_real: self.mono_to_real + ns,
            ..self
        }
    }

    fn with_tai_step(self, s: i64) -> Self {
        Self {
            tai_offset_s: self.tai_offset_s + s,
            ..self
        }
    }

    /// After two hours of suspend with a TSC that is then here.
    fn suspended(self, tsc: i64) -> Self {
        Self {
            suspended_ns: self.suspended_ns + TWO_HOURS.cast_unsigned(),
            tsc,
            ..self.set(TWO_HOURS)
        }
    }
}

fn step(step_ns: i64, cause: StepCause) -> Observation {
    Observation::Stepped {
        step_ns,
        cause,
        counter_jump_ns: None,
    }
}

#[test]
fn whatever_happens_to_the_clocks() {
    let host = Host::START;
    let restarted = 1_000 - 3 * THEN.cast_signed();
    for (after, expected) in [
        (host.set(-TEN_YEARS), step(-TEN_YEARS, StepCause::Set)),
        (host.set(TEN_YEARS), step(TEN_YEARS, StepCause::Set)),
        (host.set(400), step(400, StepCause::Set)),
        (
            host.set(-NS_PER_S).with_tai_step(1),
            step(-NS_PER_S, StepCause::Leap),
        ),
        (
            host.set(NS_PER_S).with_tai_step(-1),
            step(NS_PER_S, StepCause::Leap),
        ),
        // Set by a second, by somebody who leaves TAI as it was.
        (host.set(-NS_PER_S), step(-NS_PER_S, StepCause::Set)),
        (
            host.suspended(host.tsc + 3 * TWO_HOURS),
            step(TWO_HOURS, StepCause::Suspend),
        ),
        (
            host.suspended(restarted),
            step(TWO_HOURS, StepCause::Suspend),
        ),
        // Stood with the machine.
        (
            host.suspended(host.tsc),
            step(TWO_HOURS, StepCause::Suspend),
        ),
        (host.with_tai_step(1), Observation::Agrees),
    ] {
        happens(host, after, expected);
    }
}

fn happens(host: Host, after: Host, expected: Observation) {
    let start = THEN - 2_000 * MS;
    let mut tracker = followed(StampSource::Tsc, 0..2_000, |at| host.cross(start + at));
    let seen = tracker.observe(&after.cross(THEN));
    match (seen, expected) {
        (
            Observation::Stepped { step_ns, cause, .. },
            Observation::Stepped {
                step_ns: wanted,
                cause: why,
                ..
            },
        ) => assert!(
            step_ns.abs_diff(wanted) <= 80 && cause == why,
            "{seen:?} {expected:?}"
        ),
        _ => assert_eq!(seen, expected),
    }
    for at in (THEN + MS..THEN + 10 * MS).step_by(1_000_000) {
        assert_eq!(tracker.observe(&after.cross(at)), Observation::Agrees);
    }
    let conversion = tracker.conversion();
    let bound = tracker.host_bound_ns();
    assert!(bound < 200, "{bound}: {expected:?}");
    let is_step = expected != Observation::Agrees;
    for ago in [3 * MS, 2 * MS + MS / 2, MS + MS / 4] {
        let stamp = RawStamp(host.counter(THEN - ago));
        let off = conversion
            .to_real(stamp)
            .0
            .abs_diff(host.real(THEN - ago).0);
        assert!(off <= bound, "{off} {ago} before {expected:?}");
        assert!(!conversion.is_ambiguous(stamp));
    }
    for later in [MS / 2, 3 * MS, 9 * MS + MS / 2] {
        let stamp = RawStamp(after.counter(THEN + later));
        let off = conversion.to_real(stamp).0;
        let off = off.abs_diff(after.real(THEN + later).0);
        assert!(off <= bound, "{off} {later} after {expected:?}");
        assert!(!conversion.is_ambiguous(stamp));
    }
    let between = RawStamp(host.counter(THEN - MS / 2));
    assert_eq!(conversion.is_ambiguous(between), is_step, "{expected:?}");
    // Written down.
    let [_, segment] = tracker.segments() else {
        panic!("{:?}", tracker.segments());
    };
    let cause = match expected {
        Observation::Stepped { cause, .. } => Some(cause),
        _ => None,
    };
    assert_eq!(segment.cause, cause);
    assert_eq!(segment.tai_offset_s, after.tai_offset_s);
    assert_eq!(tracker.steps(), u64::from(is_step));
}

/// A counter that stands tells no time: the bound says so, and it is back at once.
#[test]
fn a_counter_that_stands_still() {
    let host = Host::START;
    let mut tracker = followed(StampSource::Tsc, 0..1_000, |at| host.cross(THEN + at));
    let stopped = host.counter(THEN + 1_000 * MS);
    let mut observations = Vec::new();
    for ms in 1_000..2_000 {
        let mut cross = host.cross(THEN + ms * MS);
        cross.tsc = Some([TscCycles(stopped); 2]);
        observations.push(tracker.observe(&cross));
        let real = tracker.conversion().to_real(RawStamp(stopped));
        let off = real.0.abs_diff(host.real(THEN + ms * MS).0);
        assert!(off <= tracker.host_bound_ns(), "{off} at {ms}");
    }
    // As it goes on, it is a counter that has jumped.
    let on = Host {
        tsc: host.tsc - 3 * (1_000 * MS).cast_signed(),
        ..host
    };
    for ms in 2_000..2_100 {
        observations.push(tracker.observe(&on.cross(THEN + ms * MS)));
    }
    let jumps = observations
        .iter()
        .filter(|seen| matches!(seen, Observation::CounterJumped { .. }));
    assert!(jumps.count() >= 1);
    let late = THEN + 2_099 * MS + MS / 2;
    let real = tracker.conversion().to_real(RawStamp(on.counter(late)));
    assert!(real.0.abs_diff(on.real(late).0) < 100);
}

/// As when a virtual machine moves to a host whose TSC has another frequency: p̂ is
/// learned again.
#[test]
fn a_counter_that_runs_at_another_rate() {
    for megahertz in [200, 2_000, 2_600, 3_400, 5_000] {
        let host = Host::START;
        let mut tracker = followed(StampSource::Tsc, 0..1_000, |at| host.cross(THEN + at));
        let moved = THEN + 1_000 * MS;
        let counter = |mono| host.counter(moved) + (mono - moved) * megahertz / 1_000;
        let mut jumps = 0;
        for ms in 0..1_000 {
            let at = moved + ms * MS;
            let seen = tracker.observe(&CrossTimestamp {
                tsc: Some([10, 70].map(|ns| TscCycles(counter(at + ns)))),
                real: [host.real(at + 40); 2],
                ..host.cross(at)
            });
            jumps += u64::from(seen != Observation::Agrees);
            if ms < 400 {
                continue;
            }
            let conversion = tracker.conversion();
            for ago in [MS / 4, MS / 2, 3 * MS] {
                let stamp = RawStamp(counter(at - ago));
                let real = conversion.to_real(stamp).0;
                let off = real.abs_diff(host.real(at - ago).0);
                assert!(off <= 60, "{off} at {ms} of {megahertz} MHz");
                assert!(!conversion.is_ambiguous(stamp));
            }
        }
        // A second reading may be after another jump as well: the third one tells.
        assert!(jumps <= 2, "{jumps} of {megahertz} MHz");
        let second = tracker.counter().unwrap().rate().cycles_in(NS_PER_S);
        let off = second.unsigned_abs().abs_diff(megahertz * 1_000_000);
        assert!(off < 1_000, "{off} Hz");
    }
}

/// A host whose clock is set again and again.
#[test]
fn segments_are_forgotten_and_counted() {
    for source in [StampSource::Ktime, StampSource::Tsc] {
        let mut host = Host::START;
        let mut tracker = Tracker::new(source, &host.cross(THEN)).unwrap();
        // The widest reading, of a segment that will be forgotten.
        let mut wide = host.cross(THEN + MS);
        wide.mono[0].0 -= 1_000;
        tracker.observe(&wide);
        for turn in 1..=2_500u64 {
            host = host.set(5_000_000);
            let at = THEN + turn * 100 * MS;
            let seen = tracker.observe(&host.cross(at));
            assert!(matches!(seen, Observation::Stepped { .. }));
            tracker.observe(&host.cross(at + 50 * MS));
            tracker.take_samples();
        }
        let kept = tracker.segments().len() as u64;
        assert!((500..=1_000).contains(&kept), "{kept}");
        assert_eq!(tracker.segments_forgotten() + kept, 2_501);
        for already in [0, 1_200, 2_400] {
            let mut settled = already;
            let (rest, lost) = tracker.unsettled_segments(&mut settled);
            assert_eq!(already + lost + rest.len() as u64, 2_501, "{already}");
            assert_eq!(settled, 2_500);
        }
        assert_eq!(tracker.steps(), 2_500);
        let at = THEN + 250_000 * MS + 40 * MS;
        let stamp = match source {
            StampSource::Tsc => host.counter(at),
            _ => at,
        };
        let off = tracker.conversion().to_real(RawStamp(stamp)).0;
        let off = off.abs_diff(host.real(at).0);
        assert!(off <= tracker.host_bound_ns(), "{off}");
    }
}

/// Readings given one after the other.
struct Readings(std::vec::IntoIter<CrossTimestamp>);

impl Reference for Readings {
    fn read(&mut self) -> CrossTimestamp {
        self.0.next().expect("not more than there are")
    }
}

/// CLOCK_BOOTTIME is read where the clocks moved first: a reading that is repeated for
/// being interrupted is no suspend.
#[test]
fn a_reading_that_is_repeated_knows_of_suspend() {
    let host = Host::START;
    let mut tracker = followed(StampSource::Tsc, 0..100, |at| host.cross(THEN + at));
    let after = host.set(TEN_YEARS);
    let mut interrupted = after.cross(THEN + 100 * MS);
    let late = after.cross(THEN + 100 * MS + MS / 2);
    interrupted.mono[1] = late.mono[1];
    interrupted.boot = late.boot;
    let again = CrossTimestamp {
        boot: None,
        ..after.cross(THEN + 150 * MS)
    };
    let cross = tracker.read(&mut Readings(vec![interrupted, again].into_iter()));
    assert_eq!(cross.mono, again.mono);
    assert_eq!(cross.suspended_ns(), interrupted.suspended_ns());
    assert_eq!(cross.suspended_ns().map(|ns| ns / MS), Some(5_000));
}
