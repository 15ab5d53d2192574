//! Sets of CPUs as the kernel writes them: lists ("0-3,5") and masks
//! ("00000000,0000002f").

use super::system::parse_cpu_list;

/// A list, which may be empty; ascending. `None` if it is none.
pub fn parse(list: &str) -> Option<Vec<u32>> {
    match list.trim() {
        "" => Some(Vec::new()),
        list => parse_cpu_list(list),
    }
}

/// CPUs as a list: ranges where there are any, ascending.
pub fn list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let ranges = sorted.chunk_by(|one, next| one + 1 == *next);
    let text = ranges.map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(u32::to_string).collect(),
    });
    text.collect::<Vec<_>>().join(",")
}

/// A mask: groups of 32 CPUs in hexadecimal, the highest first (`%*pb`,
/// lib/vsprintf.c). `None` if it is none.
pub fn parse_mask(mask: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (group, digits) in (0u32..).zip(mask.trim().rsplit(',')) {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let set = (0..u32::BITS).filter(|bit| bits >> bit & 1 != 0);
        cpus.extend(set.map(|bit| group * u32::BITS + bit));
    }
    Some(cpus)
}

/// CPUs as a mask.
pub fn mask(cpus: &[u32]) -> String {
    let groups = cpus.iter().map(|cpu| cpu / u32::BITS).max().unwrap_or(0) as usize + 1;
    let mut bits = vec![0u32; groups];
    for cpu in cpus {
        bits[(cpu / u32::BITS) as usize] |= 1 << (cpu % u32::BITS);
    }
    let text = bits.iter().rev().map(|bits| format!("{bits:08x}"));
    text.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (cpus, text) in [
            (&[][..], ""),
            (&[0], "0"),
            (&[0, 1], "0-1"),
            (&[0, 1, 2, 5], "0-2,5"),
            (&[1, 3, 5, 6], "1,3,5-6"),
        ] {
            assert_eq!(list(cpus), text);
            assert_eq!(parse(&format!("{text}\n")).as_deref(), Some(cpus), "{text}");
        }
        assert_eq!(list(&[3, 0, 2, 3]), "0,2-3");
        assert_eq!(parse("1-"), None);
    }

    #[test]
    fn masks() {
        for (cpus, text) in [
            (&[][..], "00000000"),
            (&[0, 1, 5], "00000023"),
            (&[32], "00000001,00000000"),
            (&[0, 95], "80000000,00000000,00000001"),
        ] {
            assert_eq!(mask(cpus), text);
            assert_eq!(parse_mask(text).as_deref(), Some(cpus), "{text}");
        }
        assert_eq!(parse_mask("3\n").as_deref(), Some(&[0, 1][..]));
        assert_eq!(parse_mask(""), None);
        assert_eq!(parse_mask("x"), None);
        assert_eq!(parse_mask("1,,0"), None);
    }
}
