//! How long the root tests took, as they wrote it down (`tscap/testkit/src/root.rs`).

/// So many of the slowest are named.
const NAMED: usize = 15;

/// One test.
#[derive(Debug, PartialEq, Eq)]
struct Taken<'a> {
    ms: u64,
    is_alone: bool,
    name: &'a str,
}

/// Prints the slowest, and what all took that ran alone or beside others.
pub fn tell(record: &str) {
    let mut all: Vec<_> = record.lines().filter_map(taken).collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|test| std::cmp::Reverse(test.ms));
    let sum = |is_alone| {
        let some = all.iter().filter(|test| test.is_alone == is_alone);
        let (tests, ms) = some.fold((0, 0), |(tests, ms), test| (tests + 1, ms + test.ms));
        (tests, ms / 1_000)
    };
    let ((alone, alone_s), (beside, beside_s)) = (sum(true), sum(false));
    println!(
        "\nroot tests: {alone} alone in {alone_s} s, {beside} beside others in {beside_s} s; the \
         slowest:"
    );
    for Taken { ms, is_alone, name } in all.iter().take(NAMED) {
        let how = if *is_alone { " (alone)" } else { "" };
        println!("{:>6.1} s {name}{how}", *ms as f64 / 1e3);
    }
}

/// A line such as "test alone 1234 delay::versus::tcpdump_sees_the_same".
fn taken(line: &str) -> Option<Taken<'_>> {
    let words: Vec<_> = line.split(' ').collect();
    let ["test", how, ms, name] = words[..] else {
        return None;
    };
    Some(Taken {
        ms: ms.parse().ok()?,
        is_alone: how == "alone",
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_read() {
        let expected = Taken {
            ms: 1_234,
            is_alone: true,
            name: "delay::versus",
        };
        assert_eq!(taken("test alone 1234 delay::versus"), Some(expected));
        assert_eq!(taken("namespace tscap-pin-77-0"), None);
        assert_eq!(taken("process 77"), None);
    }
}
