//! Sizes, durations and CPUs as people write them.

use std::time::Duration;

/// Bytes: `1048576`, `1024K`, `1M`, `1MiB` (powers of 1024).
pub(super) fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err("a size is a number of bytes, or with K, M or G".into()),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "a size is a number of bytes, or with K, M or G".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "that size does not fit this machine's addresses".to_owned())
}

/// Longest duration: adding it to the clock must not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// A duration: seconds (`10`, `0.5`), or with units (`1m30s`, `500ms`).
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?,
        Err(_) => humantime::parse_duration(text).map_err(|error| error.to_string())?,
    };
    if duration > LONGEST {
        return Err("no capture lasts longer than 100 years".into());
    }
    if duration.is_zero() {
        return Err("a capture of no time holds no frames".into());
    }
    Ok(duration)
}

/// CPUs that are meant to be distinct, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus(pub Vec<u32>);

/// CPUs: `0`, `2-3`, `0,2`. Whether the machine has them is found out later.
pub(super) fn cpus(text: &str) -> Result<Cpus, String> {
    // The kernel has at most 8192 (`NR_CPUS` of x86-64).
    let number = |digits: &str| digits.parse::<u16>().map(u32::from);
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Ok(first), Ok(last)) = (number(first), number(last)) else {
            return Err("CPUs are numbers and ranges, such as 0 or 2-3 or 0,2".into());
        };
        if first > last {
            return Err(format!("the range {range} goes backwards"));
        }
        if let Some(twice) = cpus.iter().find(|cpu| (first..=last).contains(*cpu)) {
            return Err(format!("CPU {twice} is given twice"));
        }
        cpus.extend(first..=last);
    }
    Ok(Cpus(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(bytes("131072"), Ok(131_072));
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("16MiB"), Ok(16 << 20));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        for bad in [
            "",
            "M",
            "-1",
            "1.5M",
            "64X",
            "99999999999999999999",
            "17179869184G",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_of_cpus() {
        let good = |text| cpus(text).map(|cpus| cpus.0);
        assert_eq!(good("0"), Ok(vec![0]));
        assert_eq!(good("2-3"), Ok(vec![2, 3]));
        assert_eq!(good("0,2"), Ok(vec![0, 2]));
        assert_eq!(good("4-5,0,8191"), Ok(vec![4, 5, 0, 8191]));
        for (bad, why) in [
            ("", "numbers and ranges"),
            ("all", "numbers and ranges"),
            ("1,", "numbers and ranges"),
            ("1-", "numbers and ranges"),
            ("-1", "numbers and ranges"),
            ("0 1", "numbers and ranges"),
            ("1.5", "numbers and ranges"),
            ("0-99999999", "numbers and ranges"),
            ("3-2", "backwards"),
            ("1,1", "CPU 1 is given twice"),
            ("0-3,2", "CPU 2 is given twice"),
        ] {
            let error = cpus(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "0", "-1", "soon", "nan", "inf", "1e19", "200years"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
