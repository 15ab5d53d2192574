use super::*;
use crate::capturing::clock::scripted::{EPOCH, Host, Random};
use crate::capturing::clock::{Observation, RawStamp, StampSource, StepCause, Tracker};

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
    }
}

fn steered(known: Known) -> Steered {
    Steered::new(known, known.at, MonoNs(5 * S))
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
        tracker.observe_reference(bounds);
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
    tracker.observe_reference(steered.bounds_at(at(0)));
    let mut stepped = Vec::new();
    for t in (20 * MS..2 * S).step_by(10 * MS as usize) {
        let mono = steered.mono_at(at(t));
        let turn = u64::from(t >= S);
        steered.steer(known(t, turn.cast_signed() * 700_000_000, 0, turn), at(t));
        assert!(steered.mono_at(at(t)).0.abs_diff(mono.0) <= 1);
        let cross = steered.cross([at(t + 10), at(t + 50)], TAI_NS);
        if let Observation::Stepped { step_ns, cause } = tracker.observe(&cross) {
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
    assert!(steered.bounds_at(TscCycles(77)).bound_ns >= OVER_JUMP_NS);
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
