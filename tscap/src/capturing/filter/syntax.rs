//! Where an expression is wrong: libpcap says that it is, and seldom where.

use super::names::host_words;
use super::words::words;

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

/// Where the first word stands behind which no expression can be correct, bytes; the end
/// of the expression if something is missing there. `parses` says whether one could be
/// parsed.
pub(super) fn place(expression: &str, parses: impl Fn(&str) -> bool) -> usize {
    let names = host_words(expression);
    let mut prefix = String::new();
    let mut closers = String::new();
    for word in words(expression) {
        let text = if names.contains(&word) {
            AN_ADDRESS
        } else {
            word.text
        };
        match text {
            "(" => closers.insert_str(0, " )"),
            "[" => closers.insert_str(0, " ]"),
            ")" | "]" if closers.ends_with(text) || closers.starts_with(&format!(" {text}")) => {
                closers.drain(..2);
            }
            _ => {}
        }
        prefix.push_str(text);
        prefix.push(' ');
        let closed_test = closers.replacen(']', "] = 1", 1);
        let ways = [closers.clone(), format!("{closers} = 1"), closed_test];
        let viable = TAILS.iter().any(|tail| {
            let mut ways = ways.iter();
            ways.any(|closers| parses(&format!("{prefix}{tail}{closers}")))
        });
        if !viable {
            return word.at;
        }
    }
    expression.len()
}
