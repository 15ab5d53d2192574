//! Text in lines of limited width.

/// Breaks `text`, each line of which begins in column `start`, before each word that
/// would end beyond `width`. A word that is longer stays whole.
pub(crate) fn fold(text: &str, start: usize, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    let mut column = start;
    for word in text.split(' ') {
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
            lines.push(word.to_owned());
            column = start + length;
        }
    }
    lines
}
