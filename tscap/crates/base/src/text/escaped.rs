//! Text from outside, as a terminal may see it: names in files and of files, answers of
//! devices, what other programs say.

use std::borrow::Cow;
pub use std::fmt::Write as _;

/// A word or a line with each character that a terminal would obey, or that would turn
/// round the text after it, written as JSON writes it: `\u001b`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, steers)
}

/// The same for text that has been laid out in lines.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| steers(character) && character != '\n')
}

/// Control characters of Unicode, ESC and CSI among them, and those that set the direction
/// of text (UAX 9).
fn steers(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_bad(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        let hostile = "a\u{1b}[2J\u{9b}31m\u{202e}b\nc\u{7f}é–";
        assert_eq!(
            escaped(hostile),
            r"a\u001b[2J\u009b31m\u202eb\u000ac\u007fé–"
        );
        assert_eq!(
            escaped_lines(hostile),
            "a\\u001b[2J\\u009b31m\\u202eb\nc\\u007fé–"
        );
        assert!(matches!(escaped("eth0"), Cow::Borrowed("eth0")));
    }

    /// So that whatever is printed can go through it.
    #[test]
    fn json_says_the_same_afterwards() {
        let value = serde_json::json!({"name": "ve\u{1b}\u{9b}\u{202e}\n"});
        let escaped = escaped_lines(&value.to_string()).into_owned();
        assert!(!escaped.contains('\u{9b}'));
        let read: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(read, value);
    }
}
