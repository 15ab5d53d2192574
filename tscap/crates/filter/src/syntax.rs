//! Where an expression is wrong: libpcap says that it is, and seldom where.

use std::collections::HashSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::names::host_words;
use super::words::{Word, words};

/// What could follow the beginning of a correct expression, with spaces between.
const TAILS: [&str; 11] = [
    "",
    "1",
    "ip",
    "1.2.3.4",
    "port 1",
    "1-2",
    "= 1",
    "1 = 1",
    "0 ] = 1",
    "] = 1",
    "01:02:03:04:05:06",
];
/// Stands in the place of a name of a host: nobody is to be asked for it again.
const AN_ADDRESS: &str = "1.2.3.4";

/// Between which places the first word stands behind which no expression can be correct,
/// bytes: twice the same, unless the search took longer than `longest`; the end of the
/// expression if something is missing there. `parses` says whether one could be parsed.
///
/// What follows a word that is wrong makes no expression correct, so that the words are
/// searched by halves.
pub(super) fn place(
    expression: &str,
    parses: impl Fn(&str) -> bool,
    longest: Duration,
) -> Range<usize> {
    let began = Instant::now();
    let words = words(expression);
    let names: HashSet<_> = host_words(expression).iter().map(|it| it.at).collect();
    let at = |count: usize| words.get(count).map_or(expression.len(), |it| it.at);
    // So many words are the beginning of an expression, and so many are not.
    let (mut right, mut wrong) = (0, words.len() + 1);
    while wrong - right > 1 {
        if began.elapsed() > longest {
            return at(right)..at(wrong - 1);
        }
        let middle = right.midpoint(wrong);
        if Beginning::of(&words[..middle], &names).is_viable(&parses) {
            right = middle;
        } else {
            wrong = middle;
        }
    }
    at(right)..at(right)
}

/// The first words of an expression.
struct Beginning {
    text: String,
    /// What closes the brackets that are open behind them.
    closers: String,
}

impl Beginning {
    /// Those words, of which names of hosts stand at `names`.
    fn of(words: &[Word<'_>], names: &HashSet<usize>) -> Self {
        let (mut text, mut closers) = (String::new(), String::new());
        for word in words {
            let written = if names.contains(&word.at) {
                AN_ADDRESS
            } else {
                word.text
            };
            match written {
                "(" => closers.insert_str(0, " )"),
                "[" => closers.insert_str(0, " ]"),
                ")" | "]" if closers.starts_with(&format!(" {written}")) => {
                    closers.drain(..2);
                }
                _ => {}
            }
            text.push_str(written);
            text.push(' ');
        }
        Self { text, closers }
    }

    /// Whether an expression can begin so.
    fn is_viable(&self, parses: impl Fn(&str) -> bool) -> bool {
        let Self { text, closers, .. } = self;
        let closed_test = closers.replacen(']', "] = 1", 1);
        let ways = [closers.clone(), format!("{closers} = 1"), closed_test];
        TAILS.iter().any(|tail| {
            let mut ways = ways.iter();
            ways.any(|closers| parses(&format!("{text}{tail}{closers}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// An expression is wrong from its first "!" on; how many were tried.
    fn searched(words: usize, wrong: Option<usize>, longest: Duration) -> (Range<usize>, usize) {
        let word = |number| if Some(number) == wrong { "!" } else { "a" };
        let all: Vec<_> = (0..words).map(word).collect();
        let tried = Cell::new(0);
        let parses = |text: &str| {
            tried.set(tried.get() + 1);
            !text.contains('!')
        };
        (place(&all.join(" "), parses, longest), tried.get())
    }

    #[test]
    fn words_are_searched_by_halves() {
        for wrong in [0, 1, 700, 998, 999] {
            let (place, tried) = searched(1_000, Some(wrong), LONG);
            assert_eq!(place, wrong * 2..wrong * 2);
            assert!(tried < 400, "{tried} for {wrong}");
        }
        assert_eq!(searched(5, None, LONG).0, 9..9);
        assert_eq!(place("", |_| false, LONG), 0..0);
    }

    #[test]
    fn a_search_ends_in_time() {
        let (place, tried) = searched(1_000, Some(700), Duration::ZERO);
        assert!(place.contains(&1_400) && tried < 400, "{place:?}");
    }
}
