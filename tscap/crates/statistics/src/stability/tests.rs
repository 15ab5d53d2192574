use super::*;
use tscap_clock::scripted::Random;

/// Nearly normally distributed, of variance 1: twelve uniform ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
}

fn of(phases: &[f64]) -> Vec<Allan> {
    allan([phases].into_iter(), 0.1)
}

/// Where it must be within a few parts in a hundred: 100 terms that do not overlap.
fn well_known(scales: &[Allan]) -> impl Iterator<Item = &Allan> {
    let known = |scale: &&Allan| scale.terms >= 100 * scale.factor as u64;
    scales.iter().filter(known)
}

#[test]
fn it_is_the_formula() {
    // x of y = 1, 3, 2, 5 ns a step, five times.
    let y = [1.0, 3.0, 2.0, 5.0].repeat(5);
    let mut x = vec![0.0];
    x.extend(y.iter().scan(0.0, |x, y| {
        *x += y;
        Some(*x)
    }));
    let scales = of(&x);
    // m = 1: second differences 2, −1, 3 five times, and −4 between: 70 + 64.
    let expected = (134.0f64 / 38.0).sqrt() * 1e-9 / 0.1;
    assert!((scales[0].deviation - expected).abs() < 1e-20, "{scales:?}");
    assert_eq!((scales[0].factor, scales[0].terms), (1, 19));
}

/// White phase noise of σ_x: σ_y = √3 σ_x / τ .
#[test]
fn white_phase_noise_falls_by_its_scale() {
    let mut random = Random(7);
    let phases: Vec<f64> = (0..40_000).map(|_| 20.0 * normal(&mut random)).collect();
    let scales = of(&phases);
    assert!(well_known(&scales).count() >= 8, "{scales:?}");
    for scale in well_known(&scales) {
        let expected = 3f64.sqrt() * 20e-9 / scale.tau_s;
        let ratio = scale.deviation / expected;
        assert!((0.9..1.1).contains(&ratio), "{scale:?} {expected}");
    }
}

/// White frequency noise, a random walk of the phase: σ_y = σ_x₀ / √(τ τ₀).
#[test]
fn a_random_walk_of_the_phase_falls_by_the_root() {
    let mut random = Random(8);
    let mut phase = 0.0;
    let walk = (0..40_000).map(|_| {
        phase += 5.0 * normal(&mut random);
        phase
    });
    let scales = of(&walk.collect::<Vec<_>>());
    for scale in well_known(&scales) {
        let expected = 5e-9 / (scale.tau_s * 0.1).sqrt();
        let ratio = scale.deviation / expected;
        assert!((0.85..1.15).contains(&ratio), "{scale:?} {expected}");
    }
}

/// A random walk of the frequency: σ_y grows by the root of its scale.
#[test]
fn a_random_walk_of_the_frequency_grows() {
    let mut random = Random(9);
    let (mut phase, mut rate) = (0.0, 0.0);
    let walk = (0..40_000).map(|_| {
        rate += normal(&mut random);
        phase += rate;
        phase
    });
    let scales = of(&walk.collect::<Vec<_>>());
    let known: Vec<_> = well_known(&scales).collect();
    for pair in known.windows(2).skip(2) {
        let ratio = pair[1].deviation / pair[0].deviation;
        assert!((1.3..1.55).contains(&ratio), "{ratio} {pair:?}");
    }
}

#[test]
fn a_constant_skew_is_stable() {
    let phases: Vec<f64> = (0..1000).map(|i| 1e4 * f64::from(i)).collect();
    assert!(of(&phases).iter().all(|scale| scale.deviation == 0.0));
}

/// Terms over a hole, or over the end of a series, are left out.
#[test]
fn holes_are_no_noise() {
    let mut random = Random(10);
    let mut phases: Vec<f64> = (0..4_000).map(|_| 20.0 * normal(&mut random)).collect();
    let whole = of(&phases)[0];
    for at in (0..4_000).step_by(97) {
        phases[at] = f64::NAN;
    }
    let holed = of(&phases)[0];
    assert!(holed.terms < whole.terms);
    assert!((holed.deviation / whole.deviation - 1.0).abs() < 0.05);
    // The second one is far off the first.
    let shifted: Vec<f64> = phases.iter().map(|x| x + 1e9).collect();
    let two = allan([&phases[..], &shifted].into_iter(), 0.1);
    assert!((two[0].deviation / holed.deviation - 1.0).abs() < 1e-6);
}

#[test]
fn no_scale_has_too_few_terms() {
    assert_eq!(of(&[]), []);
    assert_eq!(of(&[1.0, 2.0, 3.0, 5.0]), []);
    let scales = of(&vec![0.0; 1001]);
    let longest = scales.last().unwrap();
    // 142 would be a seventh.
    assert_eq!((longest.factor, scales.len()), (128, 8));
}

/// The next phase, by a state that lasts.
type Noise = fn(&mut Random, &mut [f64; 2]) -> f64;
/// The true deviation by the factor of the interval.
type Deviation = fn(f64) -> f64;

/// A chi-squared interval with the right degrees of freedom holds the truth in 95 of 100
/// series, whatever the noise: of 400, 362 are 4 standard deviations less.
#[test]
fn the_bars_hold_the_truth() {
    let white_phase = |random: &mut Random, _: &mut [f64; 2]| normal(random);
    let white_frequency = |random: &mut Random, state: &mut [f64; 2]| {
        state[0] += normal(random);
        state[0]
    };
    let walk_of_frequency = |random: &mut Random, state: &mut [f64; 2]| {
        state[1] += normal(random);
        state[0] += state[1];
        state[0]
    };
    // σ_y(m), of phases in ns 1 s apart.
    let truths: [(Noise, Deviation); 3] = [
        (white_phase, |m| 3f64.sqrt() / m),
        (white_frequency, |m| 1.0 / m.sqrt()),
        (walk_of_frequency, |m| {
            ((2.0 * m * m + 1.0) / (6.0 * m)).sqrt()
        }),
    ];
    for (kind, (noise, truth)) in truths.into_iter().enumerate() {
        for factor in [4usize, 32] {
            let held = (0..400).filter(|seed| {
                let mut random = Random(1_000 + seed);
                let mut state = [0.0; 2];
                let x: Vec<f64> = (0..300).map(|_| noise(&mut random, &mut state)).collect();
                let scales = allan([&x[..]].into_iter(), 1.0);
                let scale = scales.iter().find(|scale| scale.factor == factor).unwrap();
                let [low, high] = scale.interval;
                (low..high).contains(&(1e-9 * truth(factor as f64)))
            });
            let held = held.count();
            assert!(
                (362..=399).contains(&held),
                "{held} of 400, noise {kind}, m = {factor}"
            );
        }
    }
}

#[test]
fn no_point_rests_on_fewer_than_five_degrees_of_freedom() {
    let mut random = Random(11);
    let mut phase = 0.0;
    let walk = (0..1_000).map(|_| {
        phase += normal(&mut random);
        phase
    });
    let scales = of(&walk.collect::<Vec<_>>());
    assert!(
        scales.iter().all(|scale| scale.freedom >= 5.0),
        "{scales:?}"
    );
    let width = |scale: &Allan| scale.interval[1] / scale.interval[0];
    let (first, last) = (&scales[0], scales.last().unwrap());
    assert!(width(last) > 1.5 * width(first), "{scales:?}");
}

/// Of N phases, and by the quantiles of χ² for ten degrees of freedom, 3.24697 and 20.4832.
#[test]
fn degrees_of_freedom_and_interval_are_by_the_formula() {
    let mut random = Random(7);
    let phases: Vec<f64> = (0..1_000).map(|_| 20.0 * normal(&mut random)).collect();
    for scale in of(&phases).iter().take(4) {
        let expected = PowerLaw::WhitePhase.freedom(1_000.0, scale.factor as f64);
        assert!((scale.freedom - expected).abs() < 1e-9, "{scale:?}");
    }
    let [low, high] = interval(1.0, 10.0).unwrap();
    assert!((low - 0.69872).abs() < 1e-4 && (high - 1.75494).abs() < 1e-4);
}
