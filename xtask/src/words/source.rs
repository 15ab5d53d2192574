//! Rust code cut into comments, literals and identifiers.

/// A part of a source.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// A comment; of line comments that follow each other, all.
    Comment(String),
    /// What stands between the quotes of a string.
    Literal(String),
    /// An identifier or a keyword.
    Name(String),
}

/// The parts, each with the line in which it begins.
pub fn parts(text: &str) -> Vec<(usize, Part)> {
    let mut cutter = Cutter {
        rest: text,
        line: 1,
        found: Vec::new(),
    };
    while cutter.step() {}
    cutter.found
}

struct Cutter<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<(usize, Part)>,
}

impl Cutter<'_> {
    /// Takes the next part; false at the end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        if self.rest.starts_with("//") {
            self.comment(line_comments(self.rest));
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment(self.rest));
        } else if let Some((open, close, end)) = raw_string(self.rest) {
            self.literal(open, close, end);
        } else if first == '"' {
            let close = string(self.rest);
            self.literal(1, close, close + 1);
        } else if first == '\'' {
            self.skip(character(self.rest));
        } else if first.is_alphabetic() || first == '_' {
            let end = self
                .rest
                .find(|it: char| !(it.is_alphanumeric() || it == '_'))
                .unwrap_or(self.rest.len());
            let name = self.rest[..end].to_owned();
            self.found.push((self.line, Part::Name(name)));
            self.skip(end);
        } else {
            self.skip(first.len_utf8());
        }
        true
    }

    fn comment(&mut self, end: usize) {
        let text = self.rest[..end].to_owned();
        self.found.push((self.line, Part::Comment(text)));
        self.skip(end);
    }

    /// A string that begins behind `open` bytes, ends before `close`, and takes `end` bytes.
    fn literal(&mut self, open: usize, close: usize, end: usize) {
        let (end, close) = (end.min(self.rest.len()), close.min(self.rest.len()));
        let text = self.rest[open.min(close)..close].to_owned();
        self.found.push((self.line, Part::Literal(text)));
        self.skip(end);
    }

    fn skip(&mut self, bytes: usize) {
        let (gone, rest) = self.rest.split_at(bytes);
        self.line += gone.matches('\n').count();
        self.rest = rest;
    }
}

/// The end of line comments, of which each next one begins its line.
fn line_comments(text: &str) -> usize {
    let mut end = text.find('\n').unwrap_or(text.len());
    while let Some(next) = text[end..].strip_prefix('\n') {
        let indented = next.trim_start_matches([' ', '\t']);
        if !indented.starts_with("//") {
            break;
        }
        let begin = text.len() - indented.len();
        end = begin + indented.find('\n').unwrap_or(indented.len());
    }
    end
}

/// The end of a block comment, others inside included.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(step) = text[at..].find(['/', '*']) {
        at += step;
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Where the text of a raw string begins and ends, and where the string ends.
fn raw_string(text: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "r"]
        .into_iter()
        .find(|it| text.starts_with(it))?;
    let marks = text[prefix.len()..]
        .bytes()
        .take_while(|it| *it == b'#')
        .count();
    let open = prefix.len() + marks + 1;
    if text.as_bytes().get(open - 1) != Some(&b'"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(marks));
    let end = open + text[open..].find(&close)?;
    Some((open, end, end + close.len()))
}

/// The closing quote of a string.
fn string(text: &str) -> usize {
    let mut is_escaped = true; // The opening quote.
    for (at, it) in text.char_indices() {
        match it {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The end of a character, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let inside = &text[1..];
    if let Some(escaped) = inside.strip_prefix('\\') {
        // An escaped quote is no end.
        let from = escaped.chars().next().map_or(0, char::len_utf8);
        return match escaped[from..].find('\'') {
            Some(end) => 2 + from + end + 1,
            None => text.len(),
        };
    }
    let length = inside.chars().next().map_or(0, char::len_utf8);
    if inside[length..].starts_with('\'') {
        return 1 + length + 1;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        parts(text)
            .into_iter()
            .filter_map(|(line, part)| match part {
                Part::Comment(text) | Part::Literal(text) => Some((line, text)),
                Part::Name(_) => None,
            })
            .collect()
    }

    #[test]
    fn comments_of_lines_that_follow_are_one() {
        let found = texts("a();\n// one\n    // two\nb(); // three\n\n// four");
        let wanted = [(2, "// one\n    // two"), (4, "// three"), (6, "// four")];
        assert_eq!(found, wanted.map(|(line, it)| (line, it.to_owned())));
    }

    #[test]
    fn a_string_ends_at_its_own_quote() {
        let found = texts(r###"say("a \" // b", r#"c " d"#, b"e", '"', '\'', 'x', "f\\");"###);
        let wanted = ["a \\\" // b", "c \" d", "e", "f\\\\"];
        assert_eq!(found, wanted.map(|it| (1, it.to_owned())));
    }

    #[test]
    fn a_lifetime_is_no_character() {
        assert_eq!(
            texts("fn a<'b>(c: &'b str) { \"d\" }"),
            [(1, "d".to_owned())]
        );
    }

    #[test]
    fn a_block_comment_has_others_inside() {
        let found = texts("/* a /* b */\n c */ \"d\"");
        assert_eq!(found[0], (1, "/* a /* b */\n c */".to_owned()));
        assert_eq!(found[1], (2, "d".to_owned()));
    }

    #[test]
    fn names_stand_with_their_lines() {
        let found = parts("let a =\n r_b;");
        let names = [(1, "let"), (1, "a"), (2, "r_b")];
        assert_eq!(
            found,
            names.map(|(line, it)| (line, Part::Name(it.to_owned())))
        );
    }
}
