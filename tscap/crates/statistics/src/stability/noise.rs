//! Which noise rules a scale, and how many degrees of freedom a deviation has in it.

/// Fewer phases than this tell no noise.
const FEWEST: usize = 30;

/// The power laws of frequency noise, S_y(f) ∝ f^α, the whitest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PowerLaw {
    /// α = 2.
    WhitePhase,
    /// α = 1.
    FlickerPhase,
    /// α = 0.
    WhiteFrequency,
    /// α = −1.
    FlickerFrequency,
    /// α = −2.
    WalkOfFrequency,
}

impl PowerLaw {
    /// By the lag-1 autocorrelation of the phases on this scale (Riley & Greenhall: Power
    /// law noise identification using the lag 1 autocorrelation, EFTF 2004; SP 1065,
    /// section 5.5.6). `None` where the longest run of phases without a hole has fewer
    /// than 30 on this scale, or never varies.
    pub fn of<'a>(series: impl Iterator<Item = &'a [f64]>, factor: usize) -> Option<Self> {
        let runs = series.flat_map(|x| x.split(|x| x.is_nan()));
        let longest = runs.max_by_key(|run| run.len())?;
        let mut x: Vec<f64> = longest.iter().copied().step_by(factor).collect();
        let mut differences = 0.0;
        while x.len() >= FEWEST {
            let lag_1 = lag_1(&x)?;
            let delta = lag_1 / (1.0 + lag_1);
            if delta < 0.25 || differences >= 2.0 {
                return Some(Self::nearest(2.0 - 2.0 * (delta + differences)));
            }
            x = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
            differences += 1.0;
        }
        None
    }

    fn nearest(alpha: f64) -> Self {
        match alpha.round() {
            ..=-2.0 => Self::WalkOfFrequency,
            ..=-1.0 => Self::FlickerFrequency,
            ..=0.0 => Self::WhiteFrequency,
            ..=1.0 => Self::FlickerPhase,
            _ => Self::WhitePhase,
        }
    }

    /// Equivalent degrees of freedom of the overlapping Allan variance of n phases with
    /// the averaging factor m (Howe, Allan & Barnes: Properties of signal sources and
    /// measurement methods, 1981; SP 1065, section 5.4.1).
    pub fn freedom(self, n: f64, m: f64) -> f64 {
        match self {
            Self::WhitePhase => (n + 1.0) * (n - 2.0 * m) / (2.0 * (n - m)),
            Self::FlickerPhase => {
                let spans = ((n - 1.0) / (2.0 * m)).ln();
                (spans * ((2.0 * m + 1.0) * (n - 1.0) / 4.0).ln())
                    .sqrt()
                    .exp()
            }
            Self::WhiteFrequency => {
                let spans = 3.0 * (n - 1.0) / (2.0 * m) - 2.0 * (n - 2.0) / n;
                spans * 4.0 * m * m / (4.0 * m * m + 5.0)
            }
            Self::FlickerFrequency if m < 2.0 => 2.0 * (n - 2.0).powi(2) / (2.3 * n - 4.9),
            Self::FlickerFrequency => 5.0 * n * n / (4.0 * m * (n + 3.0 * m)),
            Self::WalkOfFrequency => {
                let squares = (n - 1.0).powi(2) - 3.0 * m * (n - 1.0) + 4.0 * m * m;
                (n - 2.0) / m * squares / (n - 3.0).powi(2)
            }
        }
    }
}

/// `None` of values that never vary. A constant skew is no noise: a line is taken out.
fn lag_1(x: &[f64]) -> Option<f64> {
    let n = x.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = x.iter().sum::<f64>() / n;
    let places = || (0..x.len()).map(|index| index as f64 - middle);
    let slope = x
        .iter()
        .zip(places())
        .map(|(x, t)| (x - mean) * t)
        .sum::<f64>()
        / places().map(|t| t * t).sum::<f64>();
    let rest: Vec<f64> = x
        .iter()
        .zip(places())
        .map(|(x, t)| x - mean - slope * t)
        .collect();
    let squares: f64 = rest.iter().map(|rest| rest * rest).sum();
    let products: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let lag_1 = products / squares;
    (squares > 1e-20 * mean.abs().max(1.0)).then_some(lag_1)
}

#[cfg(test)]
mod tests;
