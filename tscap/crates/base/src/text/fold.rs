//! Text in lines of limited width.

/// Units that stay with their number.
const UNITS: [&str; 7] = ["%", "ns", "µs", "ms", "s", "B", "Hz"];

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', ':', '.', ')']);
    UNITS.contains(&word)
}

/// The words of a text; a number with its unit is one, and so is a command in backquotes.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // One that nothing closes opens nothing.
    let quotes = text.matches('`').count() / 2 * 2;
    let mut seen = 0;
    for word in text.split(' ') {
        let is_open = seen % 2 == 1 && seen < quotes;
        seen += word.matches('`').count();
        match words.last_mut() {
            Some(last)
                if is_open || is_unit(word) && last.ends_with(|it: char| it.is_ascii_digit()) =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// A command of several words, which can be copied where it stands on a line of its own:
/// without backquotes.
fn command(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('`')?;
    let (command, behind) = rest.split_once('`')?;
    let is_alone = command.contains(' ') && behind.chars().all(|it| ",;:.".contains(it));
    is_alone.then_some(command)
}

/// Breaks `text`, each line of which begins in column `start`, before each word that
/// would end beyond `width`. A word that is longer stays whole, and so does a command: one
/// that would end beyond has a line of its own.
pub fn fold(text: &str, start: usize, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    let mut column = start;
    let mut is_closed = false;
    for word in &words(text) {
        let length = word.chars().count();
        let line = lines.last_mut().expect("there is a line");
        let fits = column == start && start + length <= width || column + 1 + length <= width;
        if let Some(command) = command(word).filter(|_| !fits) {
            if column == start {
                line.push_str(command)
            } else {
                lines.push(command.to_owned())
            }
            column = start + length;
            is_closed = true;
            continue;
        }
        if std::mem::take(&mut is_closed) {
            lines.push(word.clone());
            column = start + length;
        } else if column == start {
            line.push_str(word);
            column += length;
        } else if column + 1 + length <= width {
            line.push(' ');
            line.push_str(word);
            column += 1 + length;
        } else {
            lines.push(word.clone());
            column = start + length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_never_folded() {
        let text = "it takes a clock: `tscap convert in.pcapng -w out.pcapng`; or another file";
        let lines = fold(text, 0, Some(40));
        let expected = [
            "it takes a clock:",
            "tscap convert in.pcapng -w out.pcapng",
            "or another file",
        ];
        assert_eq!(lines, expected);
        // However narrow; and as it is where it fits.
        assert_eq!(
            fold("`tscap -D -v` lists", 6, Some(10)),
            ["tscap -D -v", "lists"]
        );
        assert_eq!(fold(text, 0, Some(80)), [text]);
        // A word in backquotes is a word.
        assert_eq!(fold("the field `clocks_ns` of it", 0, Some(12)).len(), 3);
        // One that never ends is text.
        assert_eq!(fold("a ` b c d", 0, Some(4)), ["a `", "b c", "d"]);
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let lines = fold("an interval (1.43–1.46, 99 %; of 12 ns each", 0, Some(27));
        assert_eq!(lines, ["an interval (1.43–1.46,", "99 %; of 12 ns each"]);
        assert_eq!(fold("of 12 ns", 0, Some(5)), ["of", "12 ns"]);
        assert_eq!(fold("a % of it", 0, Some(3)), ["a %", "of", "it"]);
    }
}
