//! A PTP clock that is set while a capture follows it.

use super::*;
use crate::{DeviceDrift, PhcClock, PhcOutcome};
use tscap_time::ptp::PtpError;
use tscap_time::{PhcNs, PhcReading};

/// As a follower and a capture do.
const READ_EVERY: u64 = 10 * MS;
const LOOK_EVERY: u64 = 100 * MS;
const END: u64 = 6 * S;

/// A device that is set at times by so much, ns. It counts TAI, or UTC.
struct Device {
    tai_s: u64,
    set: Vec<(u64, i64)>,
    now: u64,
}

impl Device {
    /// UTC as it shows it.
    fn utc(&self, t: u64) -> u64 {
        let set = self.set.iter().filter(|(at, _)| *at <= t);
        let set_ns: i64 = set.map(|(_, by_ns)| by_ns).sum();
        (EPOCH + t).wrapping_add_signed(set_ns)
    }
}

impl Reference<Result<PhcReading, PtpError>> for Device {
    fn read(&mut self) -> Result<PhcReading, PtpError> {
        let [start, first, latch, last, end] = [0, 600, 900, 1_300, 1_900].map(|it| self.now + it);
        Ok(PhcReading {
            tsc: [at(start), at(end)],
            real: [first, last].map(|t| RealNs(host().real(t))),
            phc: PhcNs(self.utc(latch) + self.tai_s * S),
        })
    }
}

/// What a capture said, and how far it was off.
struct Followed {
    /// Each drain: when, and how far off.
    off: Vec<(u64, u64)>,
    /// The bound of all stamps so far, ns, of each drain.
    stated: Vec<(u64, u64)>,
    jumps: u64,
}

fn follow(mut device: Device) -> Followed {
    let host = host();
    let cross_at = |t: u64| {
        let mut cross = host.cross(t, [20, 40, 20]);
        cross.tai = TaiNs(cross.real[0].0 + TAI_NS);
        cross
    };
    let mut tracker = Tracker::new(StampSource::Tsc, &cross_at(0)).unwrap();
    let (mut clock, mut course) = (PhcClock::default(), DeviceDrift::default());
    let mut steered: Option<Steered> = None;
    let (mut turn, mut set_after) = (0, None);
    let mut capture: Option<Tracker> = None;
    let mut found = Followed {
        off: Vec::new(),
        stated: Vec::new(),
        jumps: 0,
    };
    for t in (READ_EVERY..END).step_by(READ_EVERY as usize) {
        tracker.observe(&cross_at(t));
        let mut known = None;
        if t % LOOK_EVERY == 0 {
            device.now = t + 1_000;
            let was_set = matches!(clock.look(&mut device, &tracker), PhcOutcome::Jumped { .. });
            if was_set {
                course.was_set();
                turn += 1;
                set_after = steered.as_ref().map(|it| it.known.used_at);
                found.jumps += 1;
            }
            known = match (clock.doubt_ns(), &steered) {
                (doubt_ns @ 1.., Some(steered)) => Some(Known {
                    doubt_ns,
                    ..steered.known
                }),
                _ => course.known(&clock, at(t + 5_000), &tracker, (turn, set_after)),
            };
        }
        let now = t + 6_000;
        let Some(steered) = &mut steered else {
            steered = known.map(|known| Steered::new(known, at(now), MonoNs(now)));
            continue;
        };
        // Stamps of the last drain, by the piece of then.
        for stamp in (t - READ_EVERY + 7_000..now).step_by(1_000_000) {
            let off_ns = steered.piece.at(at(stamp)).0.abs_diff(device.utc(stamp));
            found.off.push((stamp, off_ns));
        }
        let mut bounds = steered.bounds_at(at(now));
        if let Some(missed) = known.and_then(|known| steered.steer(known, at(now))) {
            bounds = bounds.or_greater(missed);
        }
        let bounds = bounds.or_greater(steered.bounds_at(at(now)));
        let cross = steered.cross([at(now), at(now + 40)], TAI_NS);
        let capture =
            capture.get_or_insert_with(|| Tracker::new(StampSource::Tsc, &cross).unwrap());
        capture.observe_reference(FollowedBounds {
            bounds,
            doubt_ns: steered.known.doubt_ns,
        });
        let stated = capture.reference().unwrap();
        found.stated.push((t, stated.bound_ns));
    }
    found
}

/// Forward and back, of a device that counts TAI and of one that counts UTC.
#[test]
fn a_device_that_is_set_is_followed_and_bounded() {
    for tai_s in [0, 37] {
        for by_ns in [
            50_000,
            1_000_000,
            101_000_000,
            499_000_000,
            501_000_000,
            1_000_000_000,
            20_000_000_000,
            41_000_000_000,
            939_000_000_000,
            1_000_000_000_000,
        ] {
            for by_ns in [by_ns, -by_ns] {
                let set_at = 3 * S + 37 * MS;
                let found = follow(Device {
                    tai_s,
                    set: vec![(set_at, by_ns)],
                    now: 0,
                });
                let case = format!("{tai_s} s, set by {by_ns} ns");
                // From the look on that shows it, what is stated holds for all until then.
                let shown = set_at / LOOK_EVERY * LOOK_EVERY + LOOK_EVERY;
                for (t, stated_ns) in &found.stated {
                    if *t >= set_at && *t < shown {
                        continue;
                    }
                    let worst = found.off.iter().filter(|(at, _)| at <= t);
                    let worst = worst.map(|(_, off_ns)| *off_ns).max().unwrap_or(0);
                    assert!(worst <= *stated_ns, "{case}: {worst} > {stated_ns} at {t}");
                }
                let (_, last_ns) = *found.stated.last().unwrap();
                let step_ns = by_ns.unsigned_abs();
                assert!(last_ns < step_ns + 100_000, "{case}: {last_ns}");
                // Once it is believed its time is that of the stamps.
                let later = found.off.iter().filter(|(at, _)| *at > set_at + S);
                let off_ns = later.map(|(_, off_ns)| *off_ns).max().unwrap();
                assert!(off_ns < 51_000, "{case}: {off_ns}");
            }
        }
    }
}

/// A device that is switched from TAI to UTC shows the same time.
#[test]
fn a_device_may_count_another_scale_from_then_on() {
    for (tai_s, by_ns) in [(37, -37_000_000_000), (0, 37_000_000_000)] {
        let device = Device {
            tai_s,
            set: vec![(3 * S + 37 * MS, by_ns)],
            now: 0,
        };
        let found = follow(device);
        assert_eq!(found.jumps, 1);
        let later = found.off.iter().filter(|(at, _)| *at > 4 * S + 37 * MS);
        for (_, off_ns) in later {
            assert!(off_ns.abs_diff(by_ns.unsigned_abs()) < 10_000, "{off_ns}");
        }
    }
}

/// A register that is read while the device resets: what is not believed widens no bound for good.
#[test]
fn a_reading_that_is_wrong_once_leaves_the_bound_as_it_was() {
    let glitch = [
        (3 * S + 99 * MS, 5 * S.cast_signed()),
        (3 * S + 101 * MS, -5 * S.cast_signed()),
    ];
    let found = follow(Device {
        tai_s: 37,
        set: glitch.to_vec(),
        now: 0,
    });
    assert_eq!(found.jumps, 0);
    let stated = |at: u64| found.stated.iter().find(|(t, _)| *t == at).unwrap().1;
    assert!(stated(3 * S + 100 * MS) > 5 * S - MS);
    assert!(stated(3 * S + 250 * MS) < MS);
    assert!(found.stated.last().unwrap().1 < MS);
}
