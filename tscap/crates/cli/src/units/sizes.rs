//! Sizes as people write them.

/// Bytes: `1048576`, `1024K`, `1M`, `1MiB` (powers of 1024).
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
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
pub(crate) fn file_size(text: &str) -> Result<u64, String> {
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
}
