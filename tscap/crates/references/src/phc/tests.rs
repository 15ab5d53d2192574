use std::io;

use super::*;
use tscap_clock::scripted::{EPOCH, Host};
use tscap_clock::{CrossTimestamp, StampSource, TaiNs};
use tscap_time::ptp::Method;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const TEN_YEARS: u64 = 10 * 365 * 86_400 * S;
/// Between the start of the system call and the first reading of CLOCK_REALTIME, and
/// between the last one and its end, ns.
const CALL_NS: u64 = 600;

/// A device that answers by a script, at a true time.
struct Script<'a> {
    host: &'a Host,
    t: u64,
    /// From CLOCK_REALTIME to the device's latch, and back, ns.
    ways: [u64; 2],
    phc: &'a dyn Fn(u64) -> Result<u64, PtpError>,
    /// CLOCK_REALTIME at a true time.
    real: &'a dyn Fn(u64) -> u64,
}

impl Reference<Result<PhcReading, PtpError>> for Script<'_> {
    fn read(&mut self) -> Result<PhcReading, PtpError> {
        let first = self.t + CALL_NS;
        let latch = first + self.ways[0];
        let last = latch + self.ways[1];
        Ok(PhcReading {
            tsc: [self.host.cycles(self.t), self.host.cycles(last + CALL_NS)],
            real: [first, last].map(|t| RealNs((self.real)(t))),
            phc: PhcNs((self.phc)(latch)?),
        })
    }
}

/// A host, its device and the clocks that follow both.
struct Run {
    host: Host,
    tracker: Tracker,
    clock: PhcClock,
    t: u64,
    ways: [u64; 2],
    /// How far CLOCK_REALTIME was set, ns, and TAI − REALTIME, s.
    set_ns: i64,
    tai_offset_s: i64,
}

impl Run {
    fn new(slew_ppb: i64, tai_offset_s: i64, ways: [u64; 2]) -> Self {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![(0, slew_ppb)],
        };
        let cross = Self::cross(&host, 0, 0, tai_offset_s);
        Self {
            tracker: Tracker::new(StampSource::Tsc, &cross).unwrap(),
            clock: PhcClock::default(),
            host,
            t: 0,
            ways,
            set_ns: 0,
            tai_offset_s,
        }
    }

    fn cross(host: &Host, t: u64, set_ns: i64, tai_offset_s: i64) -> CrossTimestamp {
        let mut cross = host.cross(t, [20, 40, 20]);
        for real in &mut cross.real {
            real.0 = real.0.wrapping_add_signed(set_ns);
        }
        let tai = cross.real[0].0.wrapping_add_signed(tai_offset_s * NS_PER_S);
        cross.tai = TaiNs(tai);
        cross
    }

    /// Runs on until `end`, with a look at the host's clock every 10 ms and at the device
    /// every 100 ms.
    fn until(&mut self, end: u64, phc: impl Fn(u64) -> Result<u64, PtpError>) -> Vec<PhcOutcome> {
        self.until_by(10 * MS, end, phc)
    }

    /// The same with a look at the host's clock each `step`.
    fn until_by(
        &mut self,
        step: u64,
        end: u64,
        phc: impl Fn(u64) -> Result<u64, PtpError>,
    ) -> Vec<PhcOutcome> {
        let mut looked = Vec::new();
        while self.t < end {
            self.t += step;
            let cross = Self::cross(&self.host, self.t, self.set_ns, self.tai_offset_s);
            self.tracker.observe(&cross);
            if self.t.is_multiple_of(100 * MS) {
                let host = &self.host;
                let set_ns = self.set_ns;
                let mut device = Script {
                    host,
                    t: self.t + 1_000,
                    ways: self.ways,
                    phc: &phc,
                    real: &|t| host.real(t).wrapping_add_signed(set_ns),
                };
                looked.push(self.clock.look(&mut device, &self.tracker));
            }
        }
        looked
    }

    fn status(&self) -> PhcStatus {
        let at = self.host.cycles(self.t);
        self.clock.status(at, &self.tracker).expect("it has begun")
    }

    /// Holds the device's clock and its distance against the truth.
    #[track_caller]
    fn is_right(&self, phc: impl Fn(u64) -> Result<u64, PtpError>) -> PhcStatus {
        let status = self.status();
        let truth = phc(self.t).unwrap();
        let off = status.phc.0.abs_diff(truth);
        assert!(off <= status.bound_ns, "{off}: {status:?}");
        let host = self.host.real(self.t).wrapping_add_signed(self.set_ns);
        let seconds = match status.base {
            PhcBase::Tai => 37 * NS_PER_S,
            _ => 0,
        };
        let ahead = host.wrapping_sub(truth).cast_signed() + seconds;
        let off = status.host_ahead_ns.abs_diff(ahead);
        assert!(off <= status.bound_ns, "{off} of {ahead}: {status:?}");
        status
    }
}

/// In TAI, 5 µs ahead and 3 ppm slow.
fn tai(t: u64) -> Result<u64, PtpError> {
    Ok(EPOCH + 37 * S + 5_000 + t - t * 3 / 1_000_000)
}

fn failed(errno: i32) -> PtpError {
    PtpError::Read {
        path: "/dev/ptp0".into(),
        method: Method::Extended,
        source: io::Error::from_raw_os_error(errno),
    }
}

/// Wherever the device latches its time, which nobody can see.
#[test]
fn any_asymmetry_is_within_the_bound() {
    for ways in [[800, 800], [1_600, 0], [0, 1_600], [100, 9_000], [0, 0]] {
        let mut run = Run::new(700, 37, ways);
        run.until(5 * S, tai);
        let status = run.is_right(tai);
        assert_eq!(status.base, PhcBase::Tai);
        let width = ways[0] + ways[1];
        // Its own reading, and the host's clock before and after it.
        assert!(status.bound_ns <= width + 350, "{ways:?}: {status:?}");
        // As precise as the host's clock where both are latched at once.
        assert!(
            (width..=width + 250).contains(&status.least_width_ns),
            "{status:?}"
        );
        let rate = status.host_rate_ppb - 3_700;
        assert!(rate.unsigned_abs() <= status.rate_bound_ppb, "{status:?}");
    }
}

/// TAI has no leap seconds, so nothing moves but CLOCK_REALTIME.
#[test]
fn a_leap_second_of_the_host_is_none_of_the_devices() {
    for (leap_s, reported) in [(-1, true), (1, true), (-1, false)] {
        let mut run = Run::new(0, if reported { 37 } else { 0 }, [500, 700]);
        run.until(3 * S, tai);
        let before = run.is_right(tai);
        run.set_ns = leap_s * NS_PER_S;
        run.tai_offset_s -= if reported { leap_s } else { 0 };
        run.until(6 * S, tai);
        let after = run.status();
        assert_eq!((run.tracker.steps(), after.readings.jumps), (1, 0));
        assert_eq!(after.base, PhcBase::Tai);
        // 9 µs of 3 ppm.
        let moved = after.host_ahead_ns - before.host_ahead_ns - 9_000;
        let bound = before.bound_ns + after.bound_ns;
        assert!(moved.unsigned_abs() <= bound, "{moved} {after:?}");
    }
}

#[test]
fn what_it_counts_is_told() {
    let utc = |t: u64| Ok(EPOCH + t);
    let since_boot = |t: u64| Ok(77 * S + t);
    for (tai_offset_s, phc, expected) in [
        (37, &tai as &dyn Fn(u64) -> _, PhcBase::Tai),
        (0, &tai, PhcBase::Tai),
        (37, &utc, PhcBase::Utc),
        (0, &utc, PhcBase::Utc),
        (37, &since_boot, PhcBase::Unknown),
    ] {
        let mut run = Run::new(0, tai_offset_s, [500, 500]);
        run.until(2 * S, phc);
        assert_eq!(run.is_right(phc).base, expected);
    }
}

/// Unplugged for two hours: carried on, within a bound that grows; and back at once.
#[test]
fn a_device_that_goes_away_is_carried_on() {
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(10 * S, tai);
    let mut bound = 0;
    for minutes in [1, 10, 60, 120] {
        let gone = |_| Err(failed(libc::ENODEV));
        let looked = run.until_by(100 * MS, minutes * 60 * S, gone);
        let all_gone = looked
            .iter()
            .all(|looked| matches!(looked, PhcOutcome::Failed(error) if error.is_gone()));
        assert!(all_gone);
        let status = run.is_right(tai);
        assert!(status.bound_ns > bound, "{minutes} min: {status:?}");
        let age = (minutes * 60 - 10) * S;
        // By the device, which is 3 ppm slow.
        assert!(status.age_ns.abs_diff(age) < 25 * MS, "{status:?}");
        bound = status.bound_ns;
    }
    run.until(run.t + 100 * MS, tai);
    let status = run.is_right(tai);
    assert!(status.bound_ns < 2_000, "{status:?}");
    assert_eq!(status.readings.jumps, 0);
}

/// As QEMU's e1000e does from the start.
#[test]
fn a_device_that_stands_is_carried_on() {
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(3 * S, tai);
    let bound = run.is_right(tai).bound_ns;
    let stopped = |_| tai(3 * S);
    let looked = run.until(4 * S, stopped);
    let stood = looked.iter().filter(|it| matches!(it, PhcOutcome::Stands));
    assert_eq!(stood.count(), 9, "{looked:?}");
    let status = run.is_right(tai);
    assert!(status.stood == 9 && status.bound_ns > bound, "{status:?}");
    run.until(5 * S, tai);
    assert_eq!(run.is_right(tai).readings.jumps, 0);
}

/// The first p̂ is of the first two readings: neither must be nonsense.
#[test]
fn a_device_that_stands_or_is_set_at_first_gets_its_rate() {
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(10 * S, |_| tai(0));
    assert!(run.clock.model.is_none());
    run.until(13 * S, tai);
    assert_eq!(run.is_right(tai).readings.jumps, 0);

    let mut run = Run::new(0, 37, [500, 500]);
    let set = |t| tai(t).map(|ns| ns - if t < 150 * MS { 500 * MS } else { 0 });
    run.until(3 * S, set);
    assert_eq!(run.is_right(tai).readings.jumps, 0);
}

/// A register that is read while the device resets; a device that is set for good.
#[test]
fn nonsense_is_passed_over_and_a_step_is_believed() {
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(3 * S, tai);
    let back = |t| tai(t).map(|ns| ns - TEN_YEARS);
    for nonsense in [|_| Ok(0), |_| Ok(u64::MAX), back] {
        let looked = run.until(run.t + 100 * MS, nonsense);
        let used = looked
            .iter()
            .filter(|it| !matches!(it, PhcOutcome::PassedOver | PhcOutcome::Stands));
        assert!(used.count() == 0 && looked.len() == 1, "{looked:?}");
        run.is_right(tai);
        run.until(run.t + 200 * MS, tai);
        assert!(run.is_right(tai).bound_ns < 2_000);
    }
    let looked = run.until(run.t + 500 * MS, back);
    let jumps: Vec<_> = looked
        .iter()
        .filter_map(|looked| match looked {
            PhcOutcome::Jumped { by_ns } => Some(*by_ns),
            _ => None,
        })
        .collect();
    let [by_ns] = jumps[..] else {
        panic!("{looked:?}");
    };
    assert!(by_ns.abs_diff(-TEN_YEARS.cast_signed()) < 10_000, "{by_ns}");
    let status = run.is_right(back);
    assert_eq!(status.base, PhcBase::Unknown);
}

/// Set while it was read: the readings of it contradict the counter.
#[test]
fn a_host_set_during_the_call_tells_nothing() {
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(3 * S, tai);
    for (turn, set_at) in [(1, 100), (2, 800), (3, 1_900)] {
        let host = &run.host;
        let start = run.t + turn * 10_000;
        let mut device = Script {
            host,
            t: start,
            ways: [500, 500],
            phc: &tai,
            real: &|t| host.real(t) + if t > start + set_at { S } else { 0 },
        };
        let looked = run.clock.look(&mut device, &run.tracker);
        let is_used = matches!(looked, PhcOutcome::Used);
        // Between the readings it leaves the end of the call as a bound, and after
        // them it is no matter.
        assert_eq!(is_used, set_at > CALL_NS, "{set_at}: {looked:?}");
    }
    assert_eq!(run.status().torn, 1);
    run.is_right(tai);
}

/// As a daemon does several times a second.
#[test]
fn slews_of_the_device_are_followed_at_once() {
    let slewed = |t: u64| {
        let seconds = t / S;
        // 20 ppm each other second.
        let ahead = (0..seconds).map(|s| (s % 2) * 20_000).sum::<u64>();
        let here = (seconds % 2) * (t % S) / 50_000;
        Ok(EPOCH + 37 * S + t + ahead + here)
    };
    let mut run = Run::new(0, 37, [500, 500]);
    run.until(2 * S, slewed);
    for _ in 0..20 {
        let looked = run.until(run.t + 500 * MS, slewed);
        assert!(
            looked.iter().all(|it| matches!(it, PhcOutcome::Used)),
            "{looked:?}"
        );
        run.is_right(slewed);
    }
    assert!(run.status().readings.bends > 3);
}

/// The kernel tells the offset to TAI, or not: then any that there can be will do, if the
/// device is as near to it as one that follows TAI is.
#[test]
fn what_a_device_counts_is_told_by_its_distance() {
    const HALF: i64 = NS_PER_S / 2;
    const TENTH: i64 = NS_PER_S / 10;
    let tai = -37 * NS_PER_S;
    for (ahead_ns, reported_s, expected) in [
        (0, 37, (PhcBase::Utc, 0)),
        (HALF - 1, 37, (PhcBase::Utc, 0)),
        (1 - HALF, 0, (PhcBase::Utc, 0)),
        (HALF, 37, (PhcBase::Unknown, 0)),
        (NS_PER_S, 0, (PhcBase::Unknown, 0)),
        (tai + HALF - 1, 37, (PhcBase::Tai, 37)),
        (tai - HALF + 1, 37, (PhcBase::Tai, 37)),
        (tai + HALF, 37, (PhcBase::Unknown, 0)),
        (tai - HALF, 37, (PhcBase::Unknown, 0)),
        (tai, 36, (PhcBase::Unknown, 0)),
        (tai + TENTH - 1, 0, (PhcBase::Tai, 37)),
        (tai - TENTH + 1, 0, (PhcBase::Tai, 37)),
        (tai + TENTH, 0, (PhcBase::Unknown, 0)),
        (-9 * NS_PER_S, 0, (PhcBase::Unknown, 0)),
        (-10 * NS_PER_S, 0, (PhcBase::Tai, 10)),
        (-60 * NS_PER_S, 0, (PhcBase::Tai, 60)),
        (-61 * NS_PER_S, 0, (PhcBase::Unknown, 0)),
    ] {
        let found = PhcBase::of(ahead_ns, reported_s);
        assert_eq!(found, expected, "{ahead_ns} {reported_s}");
    }
}

#[test]
fn a_look_is_told_as_it_was_seen() {
    let mut run = Run::new(0, 37, [500, 500]);
    assert_eq!(run.clock.sighting(&run.tracker), None);
    run.until(3 * S, tai);
    let seen = run.clock.sighting(&run.tracker).unwrap();
    let looked = 3 * S + 1_000 + CALL_NS + 500;
    let near = seen.at.0.abs_diff(run.host.cycles(looked).0);
    assert!(near < 3_000, "{near} cycles");
    // 5 µs and 37 s behind the device, which is 3 ppm slow.
    let ahead_ns = -37 * NS_PER_S - 5_000 + 9_000;
    let off_ns = seen.ahead_ns.abs_diff(ahead_ns);
    assert!(off_ns <= seen.bound_ns, "{seen:?} {ahead_ns}");
    assert!((500..800).contains(&seen.bound_ns), "{seen:?}");
    let there = run.clock.estimate(seen.at).unwrap();
    assert!(there.real.0.abs_diff(tai(looked).unwrap()) <= there.bound_ns);

    run.until(4 * S, |_| Err(failed(libc::EIO)));
    let status = run.status();
    assert_eq!(status.failed, 10);
    let counter = run.tracker.counter().unwrap().rate_bound_ppb();
    let model = run.clock.model.as_ref().unwrap().rate_bound_ppb();
    assert_eq!(status.rate_bound_ppb, counter + model + 1);
}
