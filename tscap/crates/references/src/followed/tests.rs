use super::*;
use tscap_clock::scripted::{EPOCH, Host, Random};
use tscap_clock::{Observation, RawStamp, StampSource, StepCause, Tracker};

mod device;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const AHEAD_NS: u64 = 1_500 * MS;
const TAI_NS: u64 = 37 * S;

fn host() -> Host {
    Host {
        hertz: 2_596_130_000,
        slews: vec![(0, 0)],
    }
}

fn at(t: u64) -> TscCycles {
    host().cycles(t)
}

/// The reference's true time.
fn truth(t: u64) -> u64 {
    EPOCH + t + AHEAD_NS
}

/// What is known of it, off by `off_ns`, with a rate that is off by `ppb`.
fn known(t: u64, off_ns: i64, ppb: i64, turn: u64) -> Known {
    let rate = NsPerCycle::of(S, host().hertz).unwrap();
    let rate = i128::from(rate.0) * (1_000_000_000 + i128::from(ppb)) / 1_000_000_000;
    Known {
        at: at(t),
        real: RealNs(truth(t).wrapping_add_signed(off_ns)),
        rate: NsPerCycle(u64::try_from(rate).unwrap()),
        bound_ns: off_ns.unsigned_abs() + 1_000,
        growth_ppb: ppb.unsigned_abs() + 100,
        own_bound_ns: Some(22_889),
        own_growth_ppb: 15_000,
        used_at: at(t),
        host_ahead_ns: 0,
        turn,
        set_after: None,
        doubt_ns: 0,
    }
}

fn steered(known: Known) -> Steered {
    Steered::new(known, known.at, MonoNs(5 * S))
}

fn believed(bounds: ReferenceBounds) -> FollowedBounds {
    FollowedBounds {
        bounds,
        doubt_ns: 0,
    }
}

/// How far the clock is off the truth, ns.
fn off(steered: &Steered, t: u64) -> u64 {
    steered.piece.at(at(t)).0.abs_diff(truth(t))
}

/// It learns: ten times a second something else is known, by up to 200 µs.
#[test]
fn times_never_jump_and_are_within_the_bound() {
    let mut random = Random(5);
    let mut steered = steered(known(0, 200_000, 400, 0));
    let first = steered.cross([at(0), at(40)], TAI_NS);
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    let offset_ns = steered.offset_ns;
    let mut last = RealNs(0);
    let (mut latest, mut worst) = (ReferenceBounds::default(), 0);
    for t in (10 * MS..60 * S).step_by(10 * MS as usize) {
        let before = steered.piece.at(at(t));
        if t % (100 * MS) == 0 {
            let [off_ns, ppb] = [200_000.0, 1_000.0].map(|most| {
                let share = 2.0 * random.uniform() - 1.0;
                (most * share * (10 * S).min(S + t) as f64 / (10 * S) as f64) as i64
            });
            steered.steer(known(t, off_ns, ppb, 0), at(t));
        }
        assert!(
            before.0.abs_diff(steered.piece.at(at(t)).0) <= 1,
            "a jump at {t}"
        );
        assert!(steered.piece.at(at(t)) > last);
        last = steered.piece.at(at(t));
        let bounds = steered.bounds_at(at(t));
        assert!(off(&steered, t) <= bounds.bound_ns, "{t}: {bounds:?}");
        latest = bounds;
        let cross = steered.cross([at(t + 10), at(t + 50)], TAI_NS);
        assert_eq!(tracker.observe(&cross), Observation::Agrees, "{t}");
        tracker.observe_reference(believed(bounds));
        if tracker.is_settled() {
            // A stamp between two readings, as the file has it.
            let stamp = RawStamp(at(t - 5 * MS).0);
            let time = tracker.conversion().to_real(stamp).0;
            worst = worst.max(time.abs_diff(truth(t - 5 * MS)));
        }
    }
    assert_eq!(steered.offset_ns, offset_ns);
    // 15 ppm of the 90 ms since it was told.
    assert_eq!(latest.own_bound_ns, Some(22_889 + 1_351));
    let greatest = tracker.reference().unwrap();
    assert!(worst <= greatest.bound_ns + tracker.host_bound_ns());
    // It bends by 50 ppm at most, in 10 ms.
    assert!(
        tracker.host_bound_ns() < 1_100,
        "{}",
        tracker.host_bound_ns()
    );
    assert_eq!(tracker.segments().len(), 1);
    let samples = tracker.take_samples();
    assert!(
        samples
            .iter()
            .filter(|it| it.reference_bound_ns.is_some())
            .count()
            >= 59
    );
}

#[test]
fn it_comes_near_what_is_known() {
    let mut steered = steered(known(0, 300_000, 0, 0));
    for t in (100 * MS..100 * S).step_by(100 * MS as usize) {
        steered.steer(known(t, 0, 0, 0), at(t));
        if t == 10 * S {
            // e^-½ of it is left.
            let left = off(&steered, t);
            assert!((175_000..190_000).contains(&left), "{left}");
        }
    }
    assert!(off(&steered, 100 * S) < 3_000, "{}", off(&steered, 100 * S));
}

#[test]
fn a_reference_that_falls_silent_has_a_bound_that_grows() {
    let steered = steered(known(0, 0, 1_000, 0));
    let mut before = ReferenceBounds::default();
    for t in (S..1_000 * S).step_by(S as usize) {
        let bounds = steered.bounds_at(at(t));
        assert!(bounds.bound_ns > before.bound_ns && bounds.utc_ns() > before.utc_ns());
        assert!(off(&steered, t) <= bounds.bound_ns);
        before = bounds;
    }
}

/// A turn is a segment of its own, like a clock that was set.
#[test]
fn a_reference_that_was_set_is_a_step_and_nothing_else_is() {
    let mut steered = steered(known(0, 0, 0, 0));
    let first = steered.cross([at(0), at(40)], TAI_NS);
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    tracker.observe_reference(believed(steered.bounds_at(at(0))));
    let mut stepped = Vec::new();
    for t in (20 * MS..2 * S).step_by(10 * MS as usize) {
        let mono = steered.mono_at(at(t));
        let turn = u64::from(t >= S);
        steered.steer(known(t, turn.cast_signed() * 700_000_000, 0, turn), at(t));
        assert!(steered.mono_at(at(t)).0.abs_diff(mono.0) <= 1);
        let cross = steered.cross([at(t + 10), at(t + 50)], TAI_NS);
        if let Observation::Stepped { step_ns, cause, .. } = tracker.observe(&cross) {
            stepped.push((t, cause));
            assert!(step_ns.abs_diff(700_000_000) <= 2, "{step_ns}");
        }
    }
    assert_eq!(stepped, [(S, StepCause::Reference)]);
}

/// The counter goes back to 0 after a second, and another clock tells that 5 ms are over.
#[test]
fn time_goes_on_over_a_jump_of_the_counter() {
    let mut steered = steered(known(0, 0, 0, 0));
    let before = steered.piece.at(at(S));
    let mono = steered.mono_at(at(S));
    steered.jump(before, 5 * MS, TscCycles(77));
    assert_eq!(steered.piece.at(TscCycles(77)).0, before.0 + 5 * MS);
    assert_eq!(steered.mono_at(TscCycles(77)).0, mono.0 + 5 * MS);
    let bound_ns = steered.bounds_at(TscCycles(77)).bound_ns;
    assert!((OVER_JUMP_NS..OVER_JUMP_NS + MS).contains(&bound_ns));
}

#[test]
fn the_machines_counter_drives_it() {
    let now = tsc::read();
    let known = Known {
        at: now,
        real: RealNs(RealNs::now().0 + AHEAD_NS),
        ..known(0, 0, 0, 0)
    };
    let followed = Followed::new("ntp:test", known);
    let mut clocks = FollowedClocks::new(&followed);
    let first: CrossTimestamp = clocks.read();
    let second: CrossTimestamp = clocks.read();
    assert!(first.real[0] < second.real[0] && first.mono[1] <= second.mono[0]);
    assert_eq!(first.offset, second.offset);
    let ahead_ns = second.real[0].0.wrapping_sub(RealNs::now().0);
    assert!(ahead_ns.abs_diff(AHEAD_NS) < 100 * MS, "{ahead_ns}");
    assert!(Reference::<CrossTimestamp>::followed(&mut clocks).is_some());
    assert_eq!(followed, clocks.followed);
    assert_ne!(followed, Followed::new("ntp:test", known));
}

#[test]
fn what_is_known_goes_on_and_back() {
    let known = known(10 * S, 0, 0, 0);
    for t in [9 * S, 10 * S, 12 * S] {
        assert!(known.real_at(at(t)).0.abs_diff(truth(t)) <= 2, "{t}");
    }
    assert_eq!(known.bounds(), known.bounds_at(known.at));
    assert_eq!(known.bounds().own_bound_ns, Some(22_889));
}

#[test]
fn a_reading_is_of_the_middle_of_its_counter_values() {
    let steered = steered(known(0, 0, 0, 0));
    let cross = steered.cross([at(S), at(S + 1_000)], TAI_NS);
    assert!(cross.real[0].0.abs_diff(truth(S + 500)) <= 2);
    assert_eq!(cross.tai.0, cross.real[0].0 + TAI_NS);
}

#[test]
fn an_offset_to_tai_is_of_whole_seconds() {
    for (ns, expected_s) in [(0, 0), (37 * S - 400 * MS, 37), (37 * S + 1_000, 37)] {
        assert_eq!(whole_seconds_ns(ns), expected_s * S);
    }
}

/// On the machine's own counter.
fn clocks() -> (Followed, FollowedClocks) {
    let now = tsc::read();
    let known = Known {
        at: now,
        real: RealNs(RealNs::now().0),
        ..known(0, 0, 0, 0)
    };
    let followed = Followed::new("ntp:test", known);
    assert_eq!(followed.name(), "ntp:test");
    let clocks = FollowedClocks::new(&followed);
    (followed, clocks)
}

fn read(clocks: &mut FollowedClocks) -> CrossTimestamp {
    clocks.read()
}

#[test]
fn what_is_published_is_gone_by() {
    let (followed, mut clocks) = clocks();
    let before = read(&mut clocks);
    let mono: MonoNs = clocks.read();
    assert!(mono >= before.mono[1] && mono < read(&mut clocks).mono[0]);
    assert!(Reference::<CrossTimestamp>::raw(&mut clocks).is_some());
    let bounds = Reference::<CrossTimestamp>::followed(&mut clocks);
    assert!(bounds.is_some_and(|it| it.bounds.bound_ns >= 1_000));
    let known = followed.known();
    followed.publish(Known {
        real: RealNs(known.real.0 + S),
        turn: known.turn + 1,
        ..known
    });
    let set_ns = read(&mut clocks).offset.unwrap().0 - before.offset.unwrap().0;
    assert!(set_ns.abs_diff(S.cast_signed()) <= 2, "{set_ns}");
}

#[test]
fn a_jump_of_the_counter_is_told_from_a_slew() {
    // (seconds by the counter, by CLOCK_BOOTTIME, whether that is a jump)
    for (counted_ms, gone_ms, jumps) in [
        (1_000, 1_100, false),
        (1_100, 1_000, false),
        (1_000, 2_000, true),
        (2_000, 1_000, true),
    ] {
        let (followed, mut clocks) = clocks();
        let rate = clocks.steered.piece.rate;
        let counted = rate.cycles_in((counted_ms * MS).cast_signed());
        let (at, boot) = clocks.latest;
        clocks.latest = (
            TscCycles(at.0.wrapping_add_signed(-counted)),
            boot - gone_ms * MS,
        );
        let before = clocks.steered.piece.at(clocks.latest.0);
        let real = read(&mut clocks).real[0];
        let gone = real.0 - before.0;
        let expected_ms = if jumps { gone_ms } else { counted_ms };
        assert!(
            gone.abs_diff(expected_ms * MS) < 20 * MS,
            "{gone} {gone_ms}"
        );
        assert_eq!(clocks.adrift.is_some(), jumps, "{counted_ms} {gone_ms}");
        // Until it is known again; what was published before the jump is not.
        followed.publish(Known {
            bound_ns: 7_000,
            ..followed.known()
        });
        read(&mut clocks);
        let bound_ns = clocks.steered.known.bound_ns;
        assert_eq!(bound_ns >= OVER_JUMP_NS, jumps, "{bound_ns}");
        followed.publish(Known {
            turn: 1,
            ..followed.known()
        });
        read(&mut clocks);
        assert_eq!(
            (clocks.adrift, clocks.steered.known.bound_ns),
            (None, 7_000)
        );
    }
}
