//! Numbers as people read them.

/// With a comma every three digits: "1,234,567".
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many things of a kind whose plural has an s: "1 frame", "1,000 frames".
pub fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", grouped(number))
}

/// With its sign, and commas: "+1,234".
pub fn signed(number: i64) -> String {
    let sign = if number < 0 { '−' } else { '+' };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

/// A number as `format!` makes it, with the minus sign of the other numbers.
pub fn minus(number: &str) -> String {
    number.replace('-', "−")
}

/// Length of a file: powers of 1000, as of `-C` and of disks.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Memory, as of a ring: powers of 1024; in MiB if it is a whole number of
/// these, or 64 and more.
pub fn ring(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) || bytes >= 64 << 20 {
        format!("{} MiB", grouped(bytes >> 20))
    } else {
        format!("{} KiB", grouped(bytes >> 10))
    }
}

/// A time in the unit that fits: "1.5 ms".
pub fn span(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(0, "frame"), "0 frames");
        assert_eq!(counted(1, "frame"), "1 frame");
        assert_eq!(counted(1_000, "file"), "1,000 files");
        assert_eq!(signed(-1_000_000_000), "−1,000,000,000");
        assert_eq!(minus("-0.02"), "−0.02");
        assert_eq!(size(1_500), "1.5 kB");
        assert_eq!(ring(512 << 10), "512 KiB");
        assert_eq!(ring(1536 << 10), "1,536 KiB");
        assert_eq!(ring(64 << 20), "64 MiB");
        assert_eq!(span(16_000_000_000), "16.0 s");
        assert_eq!(span(512), "512 ns");
    }
}
