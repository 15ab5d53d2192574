//! Text in lines of limited width.

/// Units that stay with their number.
const UNITS: [&str; 7] = ["%", "ns", "µs", "ms", "s", "B", "Hz"];

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', ':', '.', ')']);
    UNITS.contains(&word)
}

/// The words of a text; a number with its unit is one.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(last) if is_unit(word) && last.ends_with(|it: char| it.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Breaks `text`, each line of which begins in column `start`, before each word that
/// would end beyond `width`. A word that is longer stays whole.
pub fn fold(text: &str, start: usize, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    let mut column = start;
    for word in &words(text) {
        let length = word.chars().count();
        let line = lines.last_mut().expect("there is a line");
        if column == start {
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
    fn a_number_keeps_its_unit() {
        let lines = fold("an interval (1.43–1.46, 99 %; of 12 ns each", 0, Some(27));
        assert_eq!(lines, ["an interval (1.43–1.46,", "99 %; of 12 ns each"]);
        assert_eq!(fold("of 12 ns", 0, Some(5)), ["of", "12 ns"]);
        assert_eq!(fold("a % of it", 0, Some(3)), ["a %", "of", "it"]);
    }
}
