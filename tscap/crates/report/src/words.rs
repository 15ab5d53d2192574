//! Figures and names as people read them.

use tscap_base::text::numbers::{counted, grouped};
use tscap_clock::{StampPath, StampSource};
use tscap_lab::compare::schema::{Comparison, LossPoint, Metric};
use tscap_lab::compare::statistics::{
    advice, family_sentence, interrupt_sentences, mean_interval, power_sentence,
};
use tscap_statistics::Spread;

/// So much of a unit the median of a row in it is at least.
pub(super) const LEAST: f64 = 0.1;

/// Stands where there is no figure.
pub(super) const NOTHING: &str = "–";

/// A stamp by the function that read its clock; the floor is none.
pub(super) fn stamp(source: Option<StampSource>, path: &str) -> &'static str {
    match StampPath::by_function(path) {
        Some(path) => path.name(),
        None => source.map_or("none", StampSource::name),
    }
}

/// What is compared, where there is little room.
pub(super) fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::Read => "read",
        Metric::Frame => "frame",
        Metric::Program => "program",
    }
}

/// A measured figure: as many decimals as are worth reading.
pub(super) fn number(value: f64) -> String {
    let text = unsigned(value.abs());
    match value < 0.0 && text.contains(|digit| ('1'..='9').contains(&digit)) {
        true => format!("−{text}"),
        false => text,
    }
}

fn unsigned(value: f64) -> String {
    if !value.is_finite() {
        NOTHING.to_owned()
    } else if value < 9.995 {
        format!("{value:.2}")
    } else if value < 999.95 {
        format!("{value:.1}")
    } else if value < 1e15 {
        whole(value.round() as i64)
    } else {
        format!("{value:.1e}")
    }
}

pub(super) fn whole(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", grouped(value.unsigned_abs()))
}

/// A figure that may be absent.
pub(super) fn maybe<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), text)
}

/// Median and range of the rounds.
pub(super) fn rounds(values: &[f64]) -> String {
    let spread = Spread::of(values.to_vec());
    match values.len() {
        0 => NOTHING.to_owned(),
        1 => number(spread.median),
        _ => format!(
            "{} ({}–{})",
            number(spread.median),
            number(spread.min),
            number(spread.max)
        ),
    }
}

/// Share of frames lost, %.
pub(super) fn loss_percent(lost: u64, sent: u64) -> Option<f64> {
    (sent > 0).then(|| 100.0 * lost as f64 / sent as f64)
}

/// The 95 % interval of the mean loss of the rounds, %; `None` of too few.
pub(super) fn interval_percent(point: &LossPoint) -> Option<[f64; 2]> {
    let ends = mean_interval(&point.rounds)?;
    Some(ends.map(|end| 100.0 * end.clamp(0.0, 1.0)))
}

/// What the rounds say; with all of it how sure that is, and what to do about it.
pub(super) fn verdicts(comparison: &Comparison, is_whole: bool) -> Vec<String> {
    let verdicts = comparison.verdicts.iter();
    let sentences = verdicts.map(|verdict| format!("{}: {verdict}", verdict.metric));
    let advice = is_whole.then(|| advice(&comparison.verdicts)).flatten();
    let advice = advice.map(str::to_owned);
    let interrupts = comparison.interrupts_off.iter();
    let interrupts = interrupts.flat_map(interrupt_sentences);
    let of_all = match is_whole {
        true => [family_sentence(comparison), power_sentence(comparison)],
        false => [None, None],
    };
    sentences
        .chain(interrupts)
        .chain(of_all.into_iter().flatten())
        .chain(advice)
        .collect()
}

/// What must be known before any figure.
pub(super) fn notices(comparison: &Comparison) -> Vec<String> {
    let partial = comparison.about.partial.then(|| {
        format!(
            "partial: ended early, after {}",
            counted(comparison.method.rounds.into(), "whole round")
        )
    });
    let warnings = comparison.warnings.iter().cloned();
    warnings.chain(partial).collect()
}

/// Words as a shell takes them.
pub(super) fn command(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
        match !word.is_empty() && word.bytes().all(is_plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A time with the unit that fits it: "2.13 µs", "−5 ns".
pub(super) fn time(ns: f64) -> String {
    let unit = Unit::fitting(ns, 1.0);
    format!("{} {}", unit.figure(ns), unit.name)
}

/// A figure with three digits however small it is.
fn fine(value: f64) -> String {
    let magnitude = value.abs();
    if !(1e-9..0.1).contains(&magnitude) {
        return number(value);
    }
    let decimals = (2.0 - magnitude.log10().floor()) as usize;
    let text = format!("{magnitude:.decimals$}");
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", text.trim_end_matches('0'))
}

/// What an axis of times is in.
pub(super) struct Unit {
    pub name: &'static str,
    /// One of it, ns.
    pub ns: f64,
}

impl Unit {
    /// For times up to `most` ns.
    pub fn of(most: f64) -> Self {
        let (name, ns) = match most {
            ..2e4 => ("ns", 1.0),
            ..1e6 => ("µs", 1e3),
            _ => ("ms", 1e6),
        };
        Self { name, ns }
    }

    /// The greatest of which there are `least` or more in so many ns.
    pub fn fitting(ns: f64, least: f64) -> Self {
        let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
        let unit = units.into_iter().find(|(_, unit)| ns.abs() >= least * unit);
        let (name, ns) = unit.unwrap_or(("ns", 1.0));
        Self { name, ns }
    }

    /// So many ns in this unit; whole ones if they are its unit.
    pub fn figure(&self, ns: f64) -> String {
        match self.name {
            "ns" => whole(ns.round() as i64),
            _ => fine(ns / self.ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [-0.001, 3.456, -31.96, 999.96, 20_130.4, 4_012_345.0, 1e18];
        let texts = texts.map(number);
        assert_eq!(
            texts,
            [
                "0.00",
                "3.46",
                "−32.0",
                "1,000",
                "20,130",
                "4,012,345",
                "1.0e18"
            ]
        );
        assert_eq!(number(f64::NAN), NOTHING);
        assert_eq!(number(f64::NEG_INFINITY), NOTHING);
        assert_eq!(whole(-1_234), "−1,234");
    }

    #[test]
    fn a_time_has_the_unit_that_fits_it() {
        let times = [0.0, -5.4, 999.0, 2_130.0, 1_500_000.0, 61e9, 12_345e9];
        let texts = [
            "0 ns", "−5 ns", "999 ns", "2.13 µs", "1.50 ms", "61.0 s", "12,345 s",
        ];
        assert_eq!(times.map(time), texts);
        // In a row all are in the unit of its median, and none is 0 that is not.
        let ms = Unit::fitting(130_000.0, 0.1);
        assert_eq!(
            (ms.name, &*ms.figure(2_000.0), &*ms.figure(-12.0)),
            ("ms", "0.002", "−0.000012")
        );
        assert_eq!((&*ms.figure(0.0), &*ms.figure(2e9)), ("0.00", "2,000"));
        assert_eq!(Unit::fitting(920.0, 0.1).name, "µs");
        assert_eq!(Unit::fitting(92.0, 0.1).name, "ns");
    }

    #[test]
    fn rounds_are_median_and_range() {
        assert_eq!(rounds(&[]), NOTHING);
        assert_eq!(rounds(&[5.0]), "5.00");
        assert_eq!(rounds(&[3.0, 1.0, 2.0]), "2.00 (1.00–3.00)");
        assert_eq!(rounds(&[4.0, 1.0, 2.0, 3.0]), "2.50 (1.00–4.00)");
    }

    #[test]
    fn a_command_can_be_pasted() {
        let words = ["tscap", "compare", "-i", "my veth", "", "it's"];
        let words = words.map(str::to_owned);
        assert_eq!(command(&words), r"tscap compare -i 'my veth' '' 'it'\''s'");
    }
}
