//! What fits the width of a terminal.

use std::os::fd::AsFd;

use terminal_size::{Height, Width, terminal_size_of};

/// Of a terminal that does not say.
const USUAL_WIDTH: usize = 80;

/// Lines of a terminal that does not say.
const USUAL_HEIGHT: usize = 24;

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
}
