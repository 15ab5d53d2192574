//! What the sources and the documents say to people: string literals, comments that become
//! help, paragraphs of pages.

use std::fs;
use std::path::{Path, PathBuf};

/// A text with the place where it begins.
#[derive(Clone, Debug)]
pub struct Text {
    /// The file, from the root of the checkout.
    pub file: PathBuf,
    /// The line.
    pub line: usize,
    /// What is said. A place that is filled in later is `{…}`.
    pub text: String,
}

/// Files below `folder` with one of these endings, by their names.
pub fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let ending = path.extension().and_then(|it| it.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if ending.is_some_and(|it| endings.contains(&it)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The string literals and comments of Rust code, tests apart.
pub fn of_code(file: &Path, code: &str) -> Vec<Text> {
    let end = code.find("#[cfg(test)]").unwrap_or(code.len());
    let mut texts = Vec::new();
    let mut rest = Code {
        chars: code[..end].chars().collect(),
        at: 0,
        line: 1,
        counted: 0,
    };
    let mut comment: Option<Text> = None;
    while rest.at < rest.chars.len() {
        let line = rest.line();
        let found = rest.next();
        match (found, &mut comment) {
            // Lines of a comment are one text.
            (Found::Comment(more), Some(before)) => before.text += &format!(" {more}"),
            (Found::Comment(text), None) => {
                comment = Some(Text {
                    file: file.to_owned(),
                    line,
                    text,
                });
            }
            (Found::Blank, _) => {}
            (found, _) => {
                texts.extend(comment.take());
                if let Found::Literal(text) = found {
                    texts.push(Text {
                        file: file.to_owned(),
                        line,
                        text,
                    });
                }
            }
        }
    }
    texts.extend(comment);
    texts
}

/// What stands at a place of the code.
#[derive(Debug)]
enum Found {
    Comment(String),
    Literal(String),
    Blank,
    Other,
}

struct Code {
    chars: Vec<char>,
    at: usize,
    /// The line of the character that was counted up to.
    line: usize,
    counted: usize,
}

impl Code {
    fn line(&mut self) -> usize {
        let since = &self.chars[self.counted..self.at];
        self.line += since.iter().filter(|it| **it == '\n').count();
        self.counted = self.at;
        self.line
    }

    fn starts(&self, with: &str) -> bool {
        let here = self.chars[self.at..].iter().copied();
        here.take(with.len()).eq(with.chars())
    }

    fn next(&mut self) -> Found {
        let first = self.chars[self.at];
        if self.starts("//") {
            let rest = self.chars[self.at..].iter();
            let text: String = rest.take_while(|it| **it != '\n').collect();
            self.at += text.chars().count();
            return Found::Comment(text.trim_start_matches(['/', '!']).trim().to_owned());
        }
        if self.starts("r\"") || self.starts("r#\"") {
            let hashes = if self.starts("r#") { "#" } else { "" };
            self.at += 2 + hashes.len();
            let end = format!("\"{hashes}");
            let start = self.at;
            while self.at < self.chars.len() && !self.starts(&end) {
                self.at += 1;
            }
            let text = self.chars[start..self.at.min(self.chars.len())]
                .iter()
                .collect();
            self.at += end.len();
            return Found::Literal(text);
        }
        self.at += 1;
        match first {
            '"' => Found::Literal(self.literal()),
            // A character, not a lifetime.
            '\'' if self.starts("\"'") || self.starts("\\\"'") => {
                self.at += if self.starts("\\") { 3 } else { 2 };
                Found::Other
            }
            it if it.is_whitespace() => Found::Blank,
            _ => Found::Other,
        }
    }

    /// The literal whose opening quote has been read.
    fn literal(&mut self) -> String {
        let mut text = String::new();
        while let Some(&next) = self.chars.get(self.at) {
            self.at += 1;
            match next {
                '"' => break,
                '\\' => {
                    let escaped = self.chars.get(self.at).copied();
                    self.at += 1;
                    match escaped {
                        // The line goes on, behind the blanks that begin the next one.
                        Some('\n') => {
                            while self.chars.get(self.at).is_some_and(|it| it.is_whitespace()) {
                                self.at += 1;
                            }
                        }
                        Some('n' | 't' | 'r') => text.push('\n'),
                        Some(other) => text.push(other),
                        None => break,
                    }
                }
                other => text.push(other),
            }
        }
        text
    }
}

/// The paragraphs of a page or script, without its blocks, whose commands run elsewhere.
pub fn of_page(file: &Path, page: &str) -> Vec<Text> {
    let mut texts: Vec<Text> = Vec::new();
    let mut is_open = false;
    let mut is_fenced = false;
    for (number, line) in page.lines().enumerate() {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        if is_fenced || is_fence {
            is_open = false;
            continue;
        }
        let is_row = line.starts_with('|') || line.starts_with("- ");
        let line = line.trim();
        match texts.last_mut() {
            Some(last) if is_open && !is_row && !line.is_empty() => {
                last.text += &format!("\n{line}")
            }
            _ => texts.push(Text {
                file: file.to_owned(),
                line: number + 1,
                text: line.to_owned(),
            }),
        }
        is_open = !line.is_empty();
    }
    texts
}

#[test]
fn texts_of_code_are_literals_and_comments() {
    let code = r##"
        /// The first
        /// and the second.
        fn f() { say("one \
            \"two\" {x}", '"', r#"raw "it" \n"#); } // last
        #[cfg(test)] mod tests { "not here" }"##;
    let texts = of_code(Path::new("f.rs"), code);
    let texts: Vec<_> = texts.iter().map(|it| (it.line, &*it.text)).collect();
    let expected = [
        (2, "The first and the second."),
        (4, "one \"two\" {x}"),
        (5, "raw \"it\" \\n"),
        (5, "last"),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn texts_of_pages_are_paragraphs_and_rows() {
    let texts = of_page(
        Path::new("p.md"),
        "a\nb\n\nc\n```sh\nx\n```\n- d\n  e\n| f |\n| g |\n",
    );
    let texts = texts.iter().map(|it| &*it.text).filter(|it| !it.is_empty());
    assert_eq!(
        texts.collect::<Vec<_>>(),
        ["a\nb", "c", "- d\ne", "| f |", "| g |"]
    );
}
