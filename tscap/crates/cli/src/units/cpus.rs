//! CPUs as people write them.

/// CPUs that are meant to be distinct, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub Vec<u32>);

/// One CPU. Whether the machine has it is found out later.
pub(crate) fn cpu(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| "a CPU is a number, such as 0 or 3".into())
}

/// CPUs: `0`, `2-3`, `0,2`. Whether the machine has them is found out later.
pub(crate) fn cpus(text: &str) -> Result<Cpus, String> {
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
    fn single_cpus() {
        assert_eq!(cpu("3"), Ok(3));
        for bad in ["", "-1", "0-1", "all", "4294967296"] {
            let error = cpu(bad).unwrap_err();
            assert!(error.contains("a CPU is a number"), "{bad}: {error}");
        }
    }
}
