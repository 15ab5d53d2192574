use super::*;
use tscap_clock::scripted::Random;
use tscap_references::Sighting;
use tscap_time::TscCycles;

const TSC_HERTZ: f64 = 1e9;
const EVERY_S: f64 = 0.1;

/// What a counter of 1 GHz shows in each of `turns`, seen with brackets of 40 cycles: it goes by
/// `ppm` of the turn faster than the TSC, and is `noise` off.
fn course(
    turns: usize,
    ppm: impl Fn(usize) -> f64,
    mut noise: impl FnMut() -> f64,
) -> CounterTrend {
    let mut course = CounterTrend::new(64, 1e9, TSC_HERTZ);
    let mut ahead = 0.0;
    for turn in 0..turns {
        let at = 1_000_000_000 + turn as u64 * 100_000_000;
        ahead += ppm(turn) * 100.0;
        let tsc = [at - 20, at + 20].map(TscCycles);
        let value = at.wrapping_add_signed((ahead + noise()) as i64);
        course.take(turn, Sighting { tsc, value });
    }
    course
}

fn quiet() -> f64 {
    0.0
}

fn rates(held: Seen<'_>, against: Seen<'_>, phases: &[usize]) -> Rates {
    Rates::new(held, against, [1e9, TSC_HERTZ], phases)
}

/// Idle, loaded and faster by 0.4 ppm, idle.
fn phases() -> Vec<usize> {
    [[0; 100], [1; 100], [2; 100]].concat()
}

#[test]
fn a_rate_that_a_load_changes_is_found_within_its_bound() {
    let phases = phases();
    let ppm = |turn: usize| 25.0 + if phases[turn] == 1 { 0.4 } else { 0.0 };
    let counter = course(300, ppm, quiet);
    let of = rates(Seen::Other(&counter), Seen::Tsc, &phases).by_phase(3, &[0, 2]);
    for (rate, expected) in of.iter().zip([0.0, 0.4, 0.0]) {
        let rate = rate.expect("a rate");
        assert!((rate.ppm - expected).abs() <= rate.bound_ppm, "{rate:?}");
        assert!(rate.bound_ppm < 0.02, "{rate:?}");
        assert!((rate.hertz - 1_000_025_000.0).abs() < 500.0, "{rate:?}");
    }
    // The TSC by the other one goes the other way.
    let of = rates(Seen::Tsc, Seen::Other(&counter), &phases).by_phase(3, &[0, 2]);
    let rate = of[1].expect("a rate");
    assert!((rate.ppm + 0.4).abs() <= rate.bound_ppm, "{rate:?}");
    // Two that go alike, by each other.
    let alike = course(300, ppm, quiet);
    let of = rates(Seen::Other(&counter), Seen::Other(&alike), &phases);
    assert!(of.by_phase(3, &[0, 2])[1].unwrap().ppm.abs() < 0.001);
    assert!(
        of.over_time(&[0])
            .iter()
            .all(|point| point.ppm.abs() < 0.001)
    );
}

#[test]
fn over_time_the_change_is_where_it_was() {
    let phases = phases();
    let ppm = |turn: usize| if phases[turn] == 1 { -3.0 } else { 0.0 };
    let counter = course(300, ppm, quiet);
    let of = rates(Seen::Other(&counter), Seen::Tsc, &phases).over_time(&[0, 2]);
    assert!(of.len() > 250);
    for point in of {
        let expected = match point.seconds {
            10.0..19.9 => -3.0,
            10.0..20.1 => continue,
            _ => 0.0,
        };
        assert!((point.ppm - expected).abs() < 0.05, "{point:?}");
    }
}

/// A white phase noise of σ ns: the deviation is √3·σ/τ (SP 1065, table 3).
#[test]
fn the_deviation_is_that_of_the_noise() {
    let mut random = Random(5);
    // Uniform within ±100 ns.
    let noise = || (random.uniform() - 0.5) * 200.0;
    let counter = course(2_000, |_| 17.0, noise);
    let scales = rates(Seen::Other(&counter), Seen::Tsc, &[0; 2_000]).scales(EVERY_S);
    let sigma_s = 200e-9 / 12f64.sqrt();
    for scale in &scales[..4] {
        let expected = 3f64.sqrt() * sigma_s / scale.tau_s;
        let ratio = scale.deviation / expected;
        assert!((0.8..1.25).contains(&ratio), "{scale:?}: {expected}");
        assert!(scale.interval[0] < scale.deviation && scale.deviation < scale.interval[1]);
    }
}

/// No rate spans the moment at which a clock was set, and none is of one look.
#[test]
fn a_clock_that_was_set_has_a_rate_all_the_same() {
    let mut counter = CounterTrend::new(64, 1e9, TSC_HERTZ);
    for turn in 0..100u64 {
        let at = (turn + 10) * 100_000_000;
        let step = if turn < 30 { 0 } else { 7_000_000_000 };
        let tsc = [at; 2].map(TscCycles);
        let value = at + step;
        counter.take(turn as usize, Sighting { tsc, value });
    }
    let of = rates(Seen::Other(&counter), Seen::Tsc, &[0; 100]);
    let rate = of.by_phase(1, &[0])[0].unwrap();
    assert!((rate.hertz - 1e9).abs() < 1.0, "{rate:?}");
    assert!(
        of.over_time(&[0])
            .iter()
            .all(|point| point.ppm.abs() < 0.01)
    );
    assert!(
        of.scales(EVERY_S)
            .iter()
            .all(|scale| scale.deviation < 1e-12)
    );

    let one = course(1, |_| 0.0, quiet);
    let of = rates(Seen::Other(&one), Seen::Tsc, &[0]);
    assert_eq!(of.by_phase(1, &[0]), [None]);
    assert!(of.scales(EVERY_S).is_empty() && of.over_time(&[0]).is_empty());
}
