//! Rates as people write them.

use tscap_traffic::generator::{LineRate, Rate};

/// A decimal number with a power of ten by its letter: `1.5M` is 15 and 5. What
/// follows the letter is left over.
fn decimal(text: &str) -> Option<(u64, i32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let (whole, behind_point) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{behind_point}").parse().ok()?;
    let power = [('k', 3), ('K', 3), ('M', 6), ('G', 9)];
    let power = power.iter().find(|(letter, _)| rest.starts_with(*letter));
    let behind_point = i32::try_from(behind_point.len()).ok()?;
    Some(match power {
        Some((_, power)) => (digits, power - behind_point, &rest[1..]),
        None => (digits, -behind_point, rest),
    })
}

/// Frames a second (`100k`, `1.5M`, `25pps`), or bits (`8Mbit`, `1Gbit/s`).
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    const FORM: &str = "a rate is frames a second such as 100k, or bits a second such as 8Mbit";
    let (digits, exponent, unit) = decimal(text).ok_or(FORM)?;
    let is_bits = match unit {
        "" | "pps" => false,
        "bit" | "bit/s" | "bps" => true,
        _ => return Err(FORM.into()),
    };
    if digits == 0 {
        return Err("at that rate no frame is ever sent".into());
    }
    Ok(Rate {
        digits,
        exponent,
        is_bits,
    })
}

/// Bits a second: `1G`, `2.5G`, `100Mbit`.
pub(crate) fn line_rate(text: &str) -> Result<LineRate, String> {
    const FORM: &str = "a line rate is bits a second, such as 1G or 2.5G";
    let rate = whole(text, &["", "bit", "bit/s", "bps"]).map(LineRate);
    rate.ok_or_else(|| FORM.into())
}

/// Bytes a second: `200M`, `1.5GB/s` (powers of 1000, as disks are sold).
pub(crate) fn byte_rate(text: &str) -> Result<u64, String> {
    const FORM: &str = "a file's rate is bytes a second, such as 200M or 1.5GB/s";
    whole(text, &["", "B", "B/s"]).ok_or_else(|| FORM.into())
}

/// A whole number greater than 0, in one of these units.
fn whole(text: &str, units: &[&str]) -> Option<u64> {
    let (digits, exponent, unit) = decimal(text)?;
    let power = 10u64.checked_pow(u32::try_from(exponent).ok()?)?;
    let number = power.checked_mul(digits)?;
    (number > 0 && units.contains(&unit)).then_some(number)
}

/// A difference of rates of clocks, parts per million.
pub fn drift(text: &str) -> Result<f64, String> {
    let ppm: Option<f64> = text.parse().ok();
    ppm.filter(|it| (0.0..=1_000.0).contains(it))
        .ok_or_else(|| "0 to 1000 ppm".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let good = |text| rate(text).map(|rate| (rate.digits, rate.exponent, rate.is_bits));
        assert_eq!(good("100k"), Ok((100, 3, false)));
        assert_eq!(good("1.25Mpps"), Ok((125, 4, false)));
        assert_eq!(good("0.5"), Ok((5, -1, false)));
        assert_eq!(good("8Mbit"), Ok((8, 6, true)));
        assert_eq!(good("1Gbit/s"), Ok((1, 9, true)));
        for bad in ["", "0", "0.0k", "-1", "k", "1T", "1 k", "1.2.3", "1kk"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        assert_eq!(line_rate("2.5G"), Ok(LineRate(2_500_000_000)));
        assert_eq!(line_rate("100Mbit/s"), Ok(LineRate(100_000_000)));
        for bad in ["", "0", "0.5", "fast", "99999999999G", "1Gpps"] {
            assert!(line_rate(bad).is_err(), "{bad}");
        }
        assert_eq!(byte_rate("200M"), Ok(200_000_000));
        assert_eq!(byte_rate("1.5GB/s"), Ok(1_500_000_000));
        assert_eq!(byte_rate("512kB"), Ok(512_000));
        for bad in ["", "0", "0.5", "slow", "1MiB", "8Mbit", "99999999999GB/s"] {
            assert!(byte_rate(bad).is_err(), "{bad}");
        }
    }
}
