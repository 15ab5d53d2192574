//! How wide a text is drawn.

/// Size of all letters of a chart, as in `figure.css`.
const SIZE: f64 = 13.0;

/// At most so wide, in a chart's units. The page takes the reader's font: these are the
/// widths of DejaVu Sans, which is wider than most, rounded up by class of letter.
pub fn width(text: &str) -> f64 {
    let em = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ' ' | '\'' | ':' | ';' | '|' => 0.34,
        'f' | 'r' | 't' | '-' | '(' | ')' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        'A'..='Z' | '−' | '+' | '=' | '±' => 0.84,
        _ if letter.is_ascii() => 0.65,
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * SIZE
}
