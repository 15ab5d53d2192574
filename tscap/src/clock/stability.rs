//! How stable a clock is on which scale: the Allan deviation of its phase.

/// The deviation on one scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allan {
    /// τ, s: the averaging factor times the time between two phases.
    pub tau_s: f64,
    /// m, the averaging factor.
    pub factor: usize,
    /// Differences of second order that it is of: they overlap.
    pub terms: u64,
    /// σ_y(τ), a relative frequency.
    pub deviation: f64,
}

/// A scale needs as many terms as so many intervals beside one another.
const LEAST_SPANS: u64 = 3;

/// The overlapping Allan deviation, for averaging factors of powers of two:
///
/// σ²_y(mτ₀) = 1 / (2 (mτ₀)² n) · Σ (x[i+2m] − 2 x[i+m] + x[i])²
///
/// over all n terms (IEEE Std 1139-2008; Riley: Handbook of Frequency
/// Stability Analysis, NIST SP 1065, 2008, section 5.2.4). `series` are phases x, ns, at every
/// `every_s`, NaN where there is none: a term with such a one is left out, and none
/// spans two series. A scale with less than 3 m terms is not told: with neither a hole
/// nor a second series that is one longer than a fifth of all.
pub fn allan<'a>(series: impl Iterator<Item = &'a [f64]> + Clone, every_s: f64) -> Vec<Allan> {
    let factors = (0..usize::BITS - 2).map(|power| 1usize << power);
    let scales = factors.map(|factor| {
        let (mut sum, mut terms) = (0.0, 0u64);
        for x in series.clone() {
            let ends = x.iter().skip(2 * factor);
            let middles = x.iter().skip(factor);
            for ((start, middle), end) in x.iter().zip(middles).zip(ends) {
                let difference = end - 2.0 * middle + start;
                if !difference.is_nan() {
                    sum += difference * difference;
                    terms += 1;
                }
            }
        }
        let tau_s = factor as f64 * every_s;
        Allan {
            tau_s,
            factor,
            terms,
            deviation: (sum / (2.0 * terms as f64)).sqrt() * 1e-9 / tau_s,
        }
    });
    let is_told = |scale: &Allan| scale.terms >= LEAST_SPANS * scale.factor as u64;
    scales.take_while(is_told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::scripted::Random;

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
        // x of y = 1, 3, 2, 5 ns a step.
        let x = [0.0, 1.0, 4.0, 6.0, 11.0];
        let scales = of(&x);
        // m = 1: second differences 2, −1, 3; m = 2 has one term only: 11 − 8 + 0.
        assert_eq!(scales.len(), 1);
        let expected = (14.0f64 / 6.0).sqrt() * 1e-9 / 0.1;
        assert!((scales[0].deviation - expected).abs() < 1e-20, "{scales:?}");
        assert_eq!((scales[0].factor, scales[0].terms), (1, 3));
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
        // 200 would be a fifth.
        assert_eq!((longest.factor, scales.len()), (128, 8));
    }
}
