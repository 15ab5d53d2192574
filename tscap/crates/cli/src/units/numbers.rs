//! Whole numbers as people write them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A number of things, 1 or more.
pub(crate) fn positive<T: FromStr + From<u8> + PartialOrd>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or_else(|| {
        if text.bytes().all(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte > b'0') {
            "it is too large".into()
        } else {
            "it must be a whole number, 1 or more".into()
        }
    })
}

/// A whole number in a range.
pub(crate) fn within<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone
where
    RangeInclusive<T>: Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (first, last) = (range.start(), range.end());
        number.ok_or_else(|| format!("it must be a whole number from {first} to {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_things() {
        assert_eq!(positive("1"), Ok(1_u64));
        assert_eq!(positive("4294967295"), Ok(u32::MAX));
        for (bad, why) in [
            ("0", "1 or more"),
            ("-1", "1 or more"),
            ("", "1 or more"),
            ("1.5", "1 or more"),
            ("4294967296", "too large"),
        ] {
            let error = positive::<u32>(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn numbers_in_a_range() {
        let vlan = within(1..=4094_u16);
        assert_eq!(vlan("1"), Ok(1));
        assert_eq!(vlan("4094"), Ok(4094));
        for bad in ["0", "4095", "70000", "-1", "", "1.5", "x"] {
            let error = vlan(bad).unwrap_err();
            assert_eq!(error, "it must be a whole number from 1 to 4094", "{bad}");
        }
    }
}
