//! Sizes, durations, rates and CPUs as people write them.

use std::time::Duration;

use crate::generator::{LineRate, Rate};

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

/// Size of a file in bytes: millions of them (`2`), or with a letter in powers of
/// 1024 (`64K`, `2M`, `1G`), as tcpdump 5 has it.
pub(super) fn file_size(text: &str) -> Result<u64, String> {
    const FORM: &str = "a size is millions of bytes such as 2, or with a letter such as 512K or 1G";
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1_000_000,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(FORM.into()),
    };
    let number: u64 = digits.parse().map_err(|_| FORM.to_owned())?;
    match number.checked_mul(unit) {
        Some(0) => Err("no file is as small".into()),
        Some(size) => Ok(size),
        None => Err("no file is as large".into()),
    }
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
        return Err("nothing lasts longer than 100 years".into());
    }
    if duration.is_zero() {
        return Err("in no time nothing can be done".into());
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

/// Sizes of a sweep, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub Vec<u32>);

/// Numbers: `64`, `64,512,1500`, `64-1500/100` or `64..1500/100` (from 64 in steps
/// of 100 up to 1500).
pub(super) fn steps(text: &str) -> Result<Steps, String> {
    const FORM: &str = "sizes are numbers and ranges with a step, such as 64,512 or 64-1500/100";
    let number = |digits: &str| digits.parse::<u16>().map_err(|_| FORM.to_owned());
    let mut steps = Vec::new();
    for part in text.split(',') {
        let Some((range, step)) = part.split_once('/') else {
            steps.push(number(part)?.into());
            continue;
        };
        let ends = range.split_once("..").or_else(|| range.split_once('-'));
        let (first, last) = ends.ok_or(FORM)?;
        let (first, last, step) = (number(first)?, number(last)?, number(step)?);
        if first > last || step == 0 {
            return Err(format!("the range {part} goes nowhere"));
        }
        steps.extend((first..=last).step_by(step.into()).map(u32::from));
    }
    Ok(Steps(steps))
}

/// Between two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    ByteTimes(u64),
    Ns(u64),
}

/// Gaps of a sweep, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gaps(pub Vec<Gap>);

/// Gaps: byte times (`12`), durations with a unit (`10us`), or a list of them.
pub(super) fn gaps(text: &str) -> Result<Gaps, String> {
    let gap = |text: &str| {
        if let Ok(byte_times) = text.parse() {
            return Ok(Gap::ByteTimes(byte_times));
        }
        let gap = humantime::parse_duration(text).map_err(|_| {
            "a gap is a number of byte times, or a duration such as 10us".to_owned()
        })?;
        let ns = u64::try_from(gap.as_nanos());
        ns.map(Gap::Ns)
            .map_err(|_| "that gap is too long".to_owned())
    };
    text.split(',').map(gap).collect::<Result<_, _>>().map(Gaps)
}

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
pub(super) fn rate(text: &str) -> Result<Rate, String> {
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
pub(super) fn line_rate(text: &str) -> Result<LineRate, String> {
    const FORM: &str = "a line rate is bits a second, such as 1G or 2.5G";
    let rate = whole(text, &["", "bit", "bit/s", "bps"]).map(LineRate);
    rate.ok_or_else(|| FORM.into())
}

/// Bytes a second: `200M`, `1.5GB/s` (powers of 1000, as disks are sold).
pub(super) fn byte_rate(text: &str) -> Result<u64, String> {
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

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mac(pub [u8; 6]);

/// A MAC address: `02:00:00:00:00:01`.
pub(super) fn mac(text: &str) -> Result<Mac, String> {
    let byte = |part: &str| match part.len() {
        1 | 2 if part.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u8::from_str_radix(part, 16).ok()
        }
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split([':', '-']).map(byte).collect();
    let mac = bytes.and_then(|bytes| bytes.try_into().ok());
    mac.map(Mac)
        .ok_or_else(|| "a MAC address is six bytes, such as 02:00:00:00:00:01".into())
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
    fn sizes_of_files() {
        assert_eq!(file_size("2"), Ok(2_000_000));
        assert_eq!(file_size("64k"), Ok(65_536));
        assert_eq!(file_size("3M"), Ok(3 << 20));
        assert_eq!(file_size("1G"), Ok(1 << 30));
        for bad in [
            "",
            "0",
            "0k",
            "K",
            "1.5",
            "-1",
            "1T",
            "1MiB",
            "1 M",
            "99999999999999G",
        ] {
            assert!(file_size(bad).is_err(), "{bad}");
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

    #[test]
    fn sweeps() {
        let good = |text| steps(text).map(|steps| steps.0);
        assert_eq!(good("64"), Ok(vec![64]));
        assert_eq!(good("64,1500,128"), Ok(vec![64, 1500, 128]));
        assert_eq!(good("72-100/8,1500"), Ok(vec![72, 80, 88, 96, 1500]));
        assert_eq!(good("64,256..384/64"), Ok(vec![64, 256, 320, 384]));
        for bad in [
            "",
            "64-1500",
            "64-1500/0",
            "9-8/1",
            "1e3",
            "70000",
            "64,",
            "a/1",
        ] {
            assert!(steps(bad).is_err(), "{bad}");
        }
        assert_eq!(
            gaps("12,10us,1ms").map(|gaps| gaps.0),
            Ok(vec![
                Gap::ByteTimes(12),
                Gap::Ns(10_000),
                Gap::Ns(1_000_000)
            ])
        );
        for bad in ["", "-1", "1.5", "soon", "1us,,2us"] {
            assert!(gaps(bad).is_err(), "{bad}");
        }
    }

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

    #[test]
    fn mac_addresses() {
        assert_eq!(mac("02:0:00:00:ab:CD"), Ok(Mac([2, 0, 0, 0, 0xab, 0xcd])));
        for bad in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:100",
            "02:00:00:00:00:+1",
            "x:0:0:0:0:0",
        ] {
            assert!(mac(bad).is_err(), "{bad}");
        }
    }
}
