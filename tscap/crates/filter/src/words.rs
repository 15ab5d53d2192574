//! The words of a filter expression, as far as errors and names need them. libpcap
//! alone says what an expression means.

/// A word or an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// As it is written.
    pub text: &'a str,
    /// Where it begins in the expression, bytes.
    pub at: usize,
}

/// What stands by itself, longest first.
const OPERATORS: [&str; 22] = [
    "&&", "||", "<=", ">=", "!=", "==", "<<", ">>", "(", ")", "[", "]", "!", "<", ">", "=", "+",
    "*", "/", "&", "|", "^",
];

/// Splits an expression at white space and operators. Addresses, ranges and what stands
/// between brackets as `6:2` stay whole.
pub(super) fn words(expression: &str) -> Vec<Word<'_>> {
    let operator = |rest: &str| OPERATORS.into_iter().find(|it| rest.starts_with(it));
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = expression[at..].chars().next() {
        let rest = &expression[at..];
        let length = if let Some(operator) = operator(rest) {
            operator.len()
        } else if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else {
            let mut ends = rest.char_indices().map(|(end, _)| end);
            let ends_here = |end: &usize| {
                let rest = &rest[*end..];
                rest.starts_with(char::is_whitespace) || operator(rest).is_some()
            };
            ends.find(ends_here).unwrap_or(rest.len())
        };
        words.push(Word {
            text: &rest[..length],
            at,
        });
        at += length;
    }
    words
}
