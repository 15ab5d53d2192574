//! How stable a clock is on which scale: the Allan deviation of its phase.

mod noise;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use noise::PowerLaw;

/// The deviation on one scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allan {
    /// τ, s: the averaging factor times the time between two phases.
    pub tau_s: f64,
    /// m, the averaging factor.
    pub factor: usize,
    /// Differences of second order that it is of: they overlap.
    pub terms: u64,
    /// Equivalent degrees of freedom of the deviation's square, for the kind of noise
    /// found on this scale.
    pub freedom: f64,
    /// σ_y(τ), a relative frequency.
    pub deviation: f64,
    /// 95 % confidence interval of it, by chi squared with `freedom` degrees.
    pub interval: [f64; 2],
}

/// A scale needs as many terms as so many intervals beside one another, and so many
/// degrees of freedom.
const FEWEST: u64 = 5;
/// Of the intervals, so many hold the true deviation.
const CONFIDENCE: f64 = 0.95;

/// The overlapping Allan deviation, for averaging factors of powers of two:
///
/// σ²_y(mτ₀) = 1 / (2 (mτ₀)² n) · Σ (x[i+2m] − 2 x[i+m] + x[i])²
///
/// over all n terms (IEEE Std 1139-2008; Riley: Handbook of Frequency
/// Stability Analysis, NIST SP 1065, 2008, section 5.2.4). `series` are phases x, ns, at every
/// `every_s`, NaN where there is none: a term with such a one is left out, and none
/// spans two series. A scale with less than 5 m terms or 5 degrees of freedom is left out:
/// with neither a hole nor a second series that is one longer than a seventh of all.
pub fn allan<'a>(series: impl Iterator<Item = &'a [f64]> + Clone, every_s: f64) -> Vec<Allan> {
    let factors = (0..usize::BITS - 2).map(|power| 1usize << power);
    // Too few phases on a long scale tell no noise: it is that of the scale before. Nor is
    // it whiter, since what falls slower with τ rules the longer scales.
    let mut noise = PowerLaw::WhitePhase;
    let scales = factors.map_while(|factor| {
        let (sum, terms) = squares(series.clone(), factor);
        if terms < FEWEST * factor as u64 {
            return None;
        }
        noise = PowerLaw::of(series.clone(), factor).map_or(noise, |found| noise.max(found));
        let tau_s = factor as f64 * every_s;
        let deviation = (sum / (2.0 * terms as f64)).sqrt() * 1e-9 / tau_s;
        let freedom = noise.freedom(terms as f64 + 2.0 * factor as f64, factor as f64);
        Some(Allan {
            tau_s,
            factor,
            terms,
            freedom,
            deviation,
            interval: interval(deviation, freedom)?,
        })
    });
    let is_known = |scale: &Allan| scale.freedom >= FEWEST as f64;
    scales.take_while(is_known).collect()
}

/// The sum of the squared terms, ns², and their number.
fn squares<'a>(series: impl Iterator<Item = &'a [f64]>, factor: usize) -> (f64, u64) {
    let (mut sum, mut terms) = (0.0, 0u64);
    for x in series {
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
    (sum, terms)
}

/// SP 1065, section 5.3.2: σ²·ν/χ²(p, ν). `None` without a positive ν.
fn interval(deviation: f64, freedom: f64) -> Option<[f64; 2]> {
    let squared = ChiSquared::new(freedom).ok()?;
    let outside = (1.0 - CONFIDENCE) / 2.0;
    let end = |share| deviation * (freedom / squared.inverse_cdf(share)).sqrt();
    Some([end(1.0 - outside), end(outside)])
}

#[cfg(test)]
mod tests;
