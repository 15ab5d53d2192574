//! What fits the width of a terminal.

use std::os::fd::AsFd;

use terminal_size::{Height, Width, terminal_size_of};

use tscap_base::text::fold::fold;

/// Of a terminal that does not say.
const USUAL_WIDTH: usize = 80;

/// Lines of a terminal that does not say.
const USUAL_HEIGHT: usize = 24;

/// By which the rest of a folded line stands further to the right.
const HANGING: usize = 2;

/// Columns of the terminal that a stream goes to; `None` where it goes to none.
pub(super) fn width(stream: impl AsFd + std::io::IsTerminal) -> Option<usize> {
    let columns = |Width(columns)| usize::from(columns);
    let width = || terminal_size_of(&stream).map(|(width, _)| columns(width));
    stream
        .is_terminal()
        .then(|| width().filter(|width| *width > 0).unwrap_or(USUAL_WIDTH))
}

/// Lines of that terminal, where it goes to one.
pub(super) fn height(stream: impl AsFd) -> usize {
    let size = terminal_size_of(&stream).map(|(_, Height(lines))| usize::from(lines));
    size.filter(|lines| *lines > 0).unwrap_or(USUAL_HEIGHT)
}

/// Text whose lines are folded between words where they do not fit the terminal that
/// `stream` goes to; as it is where that goes to none. What is folded goes on two columns
/// further to the right.
pub(super) fn fitted(text: &str, stream: impl AsFd + std::io::IsTerminal) -> String {
    match width(stream) {
        None => text.to_owned(),
        Some(width) => within(text, width),
    }
}

/// The same for a terminal of `width` columns, the last of which stays free.
fn within(text: &str, width: usize) -> String {
    let fits = width.saturating_sub(1);
    let lines = text.split('\n').flat_map(|line| {
        if cells(line) <= fits {
            return vec![line.to_owned()];
        }
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        let mut lines = fold(words, indent + HANGING, Some(fits));
        for (index, line) in lines.iter_mut().enumerate() {
            let by = if index == 0 { indent } else { indent + HANGING };
            line.insert_str(0, &" ".repeat(by));
        }
        lines
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As much of a line as does not fill the last column.
pub(super) fn cut(line: &str, width: usize) -> String {
    line.chars().take(width.saturating_sub(1)).collect()
}

/// The first of `parts` that fit on one line together; the line does not fill the last
/// column, where some terminals wrap.
pub(super) fn line(parts: &[String], width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { "  " };
        if cells(&line) + gap.len() + cells(part) >= width {
            break;
        }
        line = line + gap + part;
    }
    line
}

fn cells(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_fits() {
        let parts = ["one", "two µs", "three"].map(str::to_owned);
        assert_eq!(line(&parts, 80), "one  two µs  three");
        assert_eq!(line(&parts, 19), "one  two µs  three");
        assert_eq!(line(&parts, 18), "one  two µs");
        assert_eq!(line(&parts, 4), "one");
        assert_eq!(line(&parts, 3), "");
    }

    #[test]
    fn a_line_that_does_not_fit_is_folded_between_words() {
        let text = "ready: capturing on eth0\n  a second line of words\nshort";
        assert_eq!(within(text, 80), text);
        let expected = "ready: capturing\n  on eth0\n  a second line\n    of words\nshort";
        assert_eq!(within(text, 19), expected);
        // A word is never broken, however long.
        let path = format!("cannot write /tmp/{}", "x".repeat(60));
        let folded = within(&path, 40);
        assert_eq!(
            folded.split_whitespace().collect::<Vec<_>>().join(" "),
            path
        );
        for width in 0..40 {
            let folded = within("one two three four", width);
            let longest = folded.lines().map(str::len).max();
            assert!(longest < Some(width.max(8)), "{width}: {folded}");
        }
    }
}
