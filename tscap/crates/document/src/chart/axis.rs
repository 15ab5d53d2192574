//! Axes: which range, which ticks.

use tscap_base::text::numbers::grouped;

/// Greater values are shown nowhere, and less than one over it not on a
/// logarithmic axis: differences of them would be noise.
const MOST: f64 = 1e15;
/// About so many ticks.
const TICKS: f64 = 5.0;

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Values from 0 down can't be shown.
    Log,
}

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    scale: Scale,
    /// The value at its lower end.
    pub low: f64,
    /// The value at its upper end; greater than `low`.
    pub high: f64,
    /// A value that has a name rather than a figure.
    pub named: Option<(f64, &'static str)>,
}

impl Axis {
    /// An axis on which all `values` have room, from one tick to another.
    pub fn over(
        label: impl Into<String>,
        scale: Scale,
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let values = values.into_iter().filter(|value| scale.shows(*value));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match scale {
            _ if low > high => (1.0, 10.0),
            Scale::Linear if high - low <= 1e-6 * high.abs().max(low.abs()) => {
                let room = if high == 0.0 { 1.0 } else { 0.05 * high.abs() };
                (low - room, high + room)
            }
            Scale::Log if high / low < 1.5 => (low / 3.0, high * 3.0),
            _ => (low, high),
        };
        let (low, high) = match scale {
            Scale::Linear => {
                let step = linear_step(low, high);
                ((low / step).floor() * step, (high / step).ceil() * step)
            }
            Scale::Log => (
                10f64.powf(low.log10().floor()),
                10f64.powf(high.log10().ceil()),
            ),
        };
        Self {
            label: label.into(),
            scale,
            low,
            high,
            named: None,
        }
    }

    /// An axis of so many rows, each of which is one high; it has no label.
    pub(super) fn rows(rows: usize) -> Self {
        Self {
            low: 0.0,
            high: rows.max(1) as f64,
            ..Self::over("", Scale::Linear, [])
        }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub fn place(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            _ if !self.scale.shows(value) => return None,
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        (-1e-6..=1.0 + 1e-6)
            .contains(&share)
            .then(|| share.clamp(0.0, 1.0))
    }

    /// The tick nearest to a value.
    pub fn round(&self, value: f64) -> f64 {
        let step = linear_step(self.low, self.high);
        (value / step).round() * step
    }

    /// Round values and their texts.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks = match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => self.decades(),
        };
        if let Some((named, name)) = self.named {
            ticks.retain(|(value, _)| *value != named);
            ticks.push((named, name.to_owned()));
        }
        ticks
    }

    fn linear_ticks(&self) -> Vec<(f64, String)> {
        let step = linear_step(self.low, self.high);
        let decade = (step.log10() + 1e-9).floor() as i32;
        let first = (self.low / step - 1e-6).ceil() as i64;
        let last = (self.high / step + 1e-6).floor() as i64;
        let tick = |index: i64| {
            let value = index as f64 * step;
            (value, text(value, decade))
        };
        (first..=last).map(tick).collect()
    }

    fn decades(&self) -> Vec<(f64, String)> {
        let first = self.low.log10().round() as i32;
        let last = self.high.log10().round() as i32;
        // Not more than eight figures in a row.
        let stride = ((last - first) / 8 + 1) as usize;
        let figures: &[f64] = match last - first {
            0..=2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let ticks = (first..=last).step_by(stride).flat_map(|decade| {
            figures.iter().map(move |figure| {
                let value = figure * 10f64.powi(decade);
                (value, text(value, decade))
            })
        });
        ticks
            .filter(|(value, _)| self.place(*value).is_some())
            .collect()
    }
}

impl Scale {
    fn shows(self, value: f64) -> bool {
        let least = match self {
            Self::Linear => -MOST,
            Self::Log => 1.0 / MOST,
        };
        (least..=MOST).contains(&value)
    }
}

/// 1, 2 or 5 times a power of ten.
fn linear_step(low: f64, high: f64) -> f64 {
    let rough = (high - low) / TICKS;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|figure| figure * decade);
    let step = steps.into_iter().find(|step| *step >= rough * 0.999);
    step.unwrap_or(10.0 * decade)
}

/// A round value down to the figure of this decade.
fn text(value: f64, decade: i32) -> String {
    let magnitude = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if value == 0.0 || (decade >= -4 && magnitude < 1e9) {
        let decimals = if value == 0.0 && decade < -4 {
            0
        } else {
            -decade.min(0) as usize
        };
        let text = format!("{magnitude:.decimals$}");
        let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
        let whole = grouped(whole.parse().unwrap_or(0));
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{whole}{point}{rest}");
    }
    let digits = (magnitude.log10().floor() as i32 - decade).max(0) as usize;
    let text = format!("{magnitude:.digits$e}");
    let (figures, power) = text.split_once('e').unwrap_or((&text, "0"));
    let raised = power.chars().map(|c| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    });
    let raised: String = raised.collect();
    match figures {
        "1" => format!("{sign}10{raised}"),
        _ => format!("{sign}{figures}·10{raised}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::over("ns", Scale::Linear, [23.0, 117.0]);
        assert_eq!(texts(&axis), ["20", "40", "60", "80", "100", "120"]);
        let axis = Axis::over("%", Scale::Linear, [-0.02, 0.01]);
        assert_eq!(texts(&axis), ["−0.02", "−0.01", "0.00", "0.01"]);
        let axis = Axis::over("B", Scale::Log, [12.0, 250_000.0]);
        assert_eq!(
            texts(&axis),
            ["10", "100", "1,000", "10,000", "100,000", "1,000,000"]
        );
        let axis = Axis::over("B", Scale::Linear, [0.0, 2e-5]);
        assert_eq!(texts(&axis)[..3], ["0", "5·10⁻⁶", "1.0·10⁻⁵"]);
        let axis = Axis::over("ns", Scale::Linear, [-3.1e9, -2.0e9]);
        assert_eq!(texts(&axis)[..2], ["−3.5·10⁹", "−3.0·10⁹"]);
        let axis = Axis::over("ns", Scale::Linear, [19.1e6, 21e6]);
        assert_eq!(texts(&axis)[..2], ["19,000,000", "19,500,000"]);
        let axis = Axis::over("x", Scale::Log, [0.2, 0.9]);
        assert_eq!(texts(&axis), ["0.1", "0.2", "0.5", "1"]);
    }

    #[test]
    fn what_can_not_be_shown_has_no_place() {
        let axis = Axis::over(
            "x",
            Scale::Log,
            [f64::NAN, f64::INFINITY, -1.0, 0.0, 1.0, 100.0],
        );
        assert_eq!((axis.low, axis.high), (1.0, 100.0));
        for value in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e6] {
            assert_eq!(axis.place(value), None, "{value}");
        }
        assert_eq!(axis.place(10.0), Some(0.5));
    }

    proptest! {
        /// Whatever the values: a range, some ticks in it, each value at a place.
        #[test]
        fn every_axis_is_drawn(
            values in prop::collection::vec(
                prop_oneof![any::<f64>(), -1e15f64..1e15, -1.0f64..1.0, Just(5.0)], 0..5),
            log: bool,
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis::over("x", scale, values.iter().copied());
            prop_assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite());
            let ticks = axis.ticks();
            prop_assert!((2..=27).contains(&ticks.len()), "{ticks:?}");
            let mut texts: Vec<_> = ticks.iter().map(|(_, text)| text).collect();
            texts.dedup();
            prop_assert_eq!(texts.len(), ticks.len(), "{:?}", ticks);
            for value in values.into_iter().filter(|value| scale.shows(*value)) {
                prop_assert!(axis.place(value).is_some(), "{value} on {axis:?}");
            }
        }
    }
}
