//! Figures and names as people read them.

use tscap_base::text::numbers::grouped;
use tscap_statistics::Spread;

/// So much of a unit the median of a row in it is at least.
pub const LEAST: f64 = 0.1;

/// Stands where there is no figure.
pub const NOTHING: &str = "–";

/// A measured figure: as many decimals as are worth reading.
pub fn number(value: f64) -> String {
    let text = unsigned(value.abs());
    if value < 0.0 && text.contains(|digit| ('1'..='9').contains(&digit)) {
        format!("−{text}")
    } else {
        text
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

/// A whole number, with a comma between thousands.
pub fn whole(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", grouped(value.unsigned_abs()))
}

/// A figure that may be absent.
pub fn maybe<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NOTHING.to_owned(), text)
}

/// Median and range of the rounds.
pub fn rounds(values: &[f64]) -> String {
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
pub fn loss_percent(lost: u64, sent: u64) -> Option<f64> {
    (sent > 0).then(|| 100.0 * lost as f64 / sent as f64)
}

/// Words as a shell takes them.
pub fn command(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
        if !word.is_empty() && word.bytes().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A time with the unit that fits it: "2.13 µs", "−5 ns".
pub fn time(ns: f64) -> String {
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
pub struct Unit {
    /// "ns", "µs", "ms" or "s".
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
