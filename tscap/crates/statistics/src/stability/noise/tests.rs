use super::*;
use tscap_clock::scripted::Random;

const ALL: [PowerLaw; 5] = [
    PowerLaw::WhitePhase,
    PowerLaw::FlickerPhase,
    PowerLaw::WhiteFrequency,
    PowerLaw::FlickerFrequency,
    PowerLaw::WalkOfFrequency,
];

/// Phases of a power law: white noise through the filter (1 − z⁻¹)^(−a/2), a = 2 − α
/// (Kasdin: Discrete simulation of colored noise, Proc. IEEE 83, 1995).
fn phases(law: PowerLaw, count: usize, seed: u64) -> Vec<f64> {
    let half = f64::from(law as u8) / 2.0;
    let filter: Vec<f64> = (0..count)
        .scan(1.0, |h, k| {
            let here = *h;
            *h *= (half + k as f64) / (k as f64 + 1.0);
            Some(here)
        })
        .collect();
    let mut random = Random(seed);
    let white: Vec<f64> = (0..count)
        .map(|_| (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0)
        .collect();
    (1..=count)
        .map(|end| {
            let recent = white[..end].iter().rev();
            recent.zip(&filter).map(|(w, h)| w * h).sum()
        })
        .collect()
}

#[test]
fn each_noise_is_told_by_its_phases_whatever_their_skew() {
    for (law, skew) in ALL.into_iter().flat_map(|law| [(law, 0.0), (law, 10.0)]) {
        let found = (0..5).filter(|seed| {
            let mut x = phases(law, 600, 100 + seed);
            for (index, x) in x.iter_mut().enumerate() {
                *x += 1e3 + skew * index as f64;
            }
            PowerLaw::of([&x[..]].into_iter(), 1) == Some(law)
        });
        assert!(found.count() >= 4, "{law:?} {skew}");
    }
}

/// 1, −1, −1, 1 has neither a mean nor a slope; its lag-1 autocorrelation is −1/4.
#[test]
fn the_autocorrelation_is_that_of_what_a_line_leaves() {
    for (mean, slope) in [(0.0, 0.0), (5.0, 0.0), (0.0, 3.0), (-7.0, -2.0)] {
        let rest = [1.0, -1.0, -1.0, 1.0].into_iter().zip(0..);
        let x: Vec<f64> = rest.map(|(x, t)| x + mean + slope * f64::from(t)).collect();
        let lag_1 = lag_1(&x).unwrap();
        assert!((lag_1 + 0.25).abs() < 1e-12, "{mean} {slope}: {lag_1}");
    }
}

#[test]
fn thirty_phases_in_a_row_on_the_scale_are_needed() {
    let x = phases(PowerLaw::WhitePhase, 61, 5);
    let of = |x: &[f64], factor| PowerLaw::of([x].into_iter(), factor);
    assert_eq!(of(&x[..29], 1), None);
    assert!(of(&x[..30], 1).is_some());
    assert_eq!(of(&x[..58], 2), None);
    assert!(of(&x[..59], 2).is_some());
    let mut holed = x;
    holed[29] = f64::NAN;
    assert!(of(&holed, 1).is_some(), "by the 31 behind the hole");
    holed[59] = f64::NAN;
    assert_eq!(of(&holed, 1), None);
    assert_eq!(of(&[3.0; 100], 1), None);
}

/// The variogram of phases of a power law, negative, but for a scale.
fn variogram(law: PowerLaw, distance: f64) -> f64 {
    let t = distance.abs();
    match law {
        PowerLaw::WhitePhase => f64::from(u8::from(t == 0.0)),
        PowerLaw::FlickerPhase => -(1..=t as u32)
            .map(|step| 1.0 / (f64::from(step) - 0.5))
            .sum::<f64>(),
        PowerLaw::WhiteFrequency => -t,
        PowerLaw::FlickerFrequency if t == 0.0 => 0.0,
        PowerLaw::FlickerFrequency => t * t * t.ln(),
        PowerLaw::WalkOfFrequency => t.powi(3),
    }
}

/// Against (tr C)² / tr C² of the covariances C of all terms (Greenhall & Riley: Uncertainty
/// of stability variances based on finite differences, PTTI 2003).
#[test]
fn degrees_of_freedom_are_near_those_by_the_covariance_of_the_terms() {
    for (law, tolerance) in ALL.into_iter().zip([0.04, 0.08, 0.02, 0.1, 0.16]) {
        for (n, m) in [
            (40, 1),
            (40, 2),
            (40, 4),
            (300, 1),
            (300, 2),
            (300, 8),
            (300, 32),
        ] {
            let terms = n - 2 * m;
            let covariance = |distance: i32| {
                let lags = [(-2, 1.0), (-1, -4.0), (0, 6.0), (1, -4.0), (2, 1.0)];
                let lags = lags.into_iter();
                lags.map(|(lag, weight)| weight * variogram(law, f64::from(distance + lag * m)))
                    .sum::<f64>()
            };
            let trace = f64::from(terms) * covariance(0);
            let squares: f64 = (1 - terms..terms)
                .map(|distance| f64::from(terms - distance.abs()) * covariance(distance).powi(2))
                .sum();
            let ratio = law.freedom(f64::from(n), f64::from(m)) / (trace * trace / squares);
            let off = (ratio - 1.0).abs();
            assert!(off < tolerance, "{law:?}, n = {n}, m = {m}: {ratio}");
        }
    }
}

/// By the formulas of SP 1065, section 5.4.1, for n = 100, worked out by hand.
#[test]
fn degrees_of_freedom_are_by_the_formula() {
    for (law, m, expected) in [
        (PowerLaw::WhitePhase, 4.0, 48.395_833),
        (PowerLaw::FlickerPhase, 4.0, 39.956_921),
        (PowerLaw::WhiteFrequency, 4.0, 32.616_812),
        (PowerLaw::FlickerFrequency, 1.0, 85.330_964),
        (PowerLaw::FlickerFrequency, 4.0, 27.901_786),
        (PowerLaw::WalkOfFrequency, 4.0, 22.593_953),
    ] {
        let freedom = law.freedom(100.0, m);
        assert!((freedom - expected).abs() < 1e-5, "{law:?} {m}: {freedom}");
    }
}

/// A lag-1 autocorrelation of 0.3 is white to the nearest: δ = 0.3 / 1.3.
#[test]
fn a_little_correlation_is_white_still() {
    let mut random = Random(3);
    let mut x = 0.0;
    let phases: Vec<f64> = (0..4_000)
        .map(|_| {
            x = 0.3 * x + (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
            x
        })
        .collect();
    let found = PowerLaw::of([&phases[..]].into_iter(), 1);
    assert_eq!(found, Some(PowerLaw::WhitePhase));
}
