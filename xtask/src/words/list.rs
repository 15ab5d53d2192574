//! The list of words: what it says, and where a text has one of them.

use anyhow::{Result, bail};

/// What a line begins with whose words are banned in documents only.
const OF_DOCUMENTS: &str = "docs: ";
/// What a line of the list may write for any of several words.
const NUMBER: &str = "<n>";
const UNIT: &str = "<unit>";
const UNITS: [&str; 5] = ["ns", "us", "µs", "ms", "s"];

/// The words, each with a better one.
pub struct List {
    phrases: Vec<Phrase>,
    /// Identifiers, as they are written.
    names: Vec<(String, String)>,
}

struct Phrase {
    words: Vec<String>,
    better: String,
    /// Sources may have it.
    of_documents: bool,
}

impl List {
    /// Reads `words => better words`, one a line.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut phrases, mut names) = (Vec::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((words, better)) = line.split_once(" => ") else {
                bail!("line {}: write `words => better words`", at + 1);
            };
            let better = better.trim().to_owned();
            if let Some(name) = quoted(words.trim()) {
                names.push((name.to_owned(), better));
            } else {
                let of_documents = words.strip_prefix(OF_DOCUMENTS);
                let words = of_documents.unwrap_or(words);
                phrases.push(Phrase {
                    words: words.split_whitespace().map(str::to_lowercase).collect(),
                    better,
                    of_documents: of_documents.is_some(),
                });
            }
        }
        Ok(Self { phrases, names })
    }

    /// What is wrong in a document, each with its line.
    pub fn in_document(&self, text: &str) -> Vec<(usize, String)> {
        in_text(&self.phrases.iter().collect::<Vec<_>>(), 1, text)
    }

    /// What is wrong in a comment or literal that begins in `line`, each with its line.
    pub fn in_source(&self, line: usize, text: &str) -> Vec<(usize, String)> {
        let phrases = self.phrases.iter().filter(|it| !it.of_documents);
        in_text(&phrases.collect::<Vec<_>>(), line, text)
    }

    /// What is wrong with an identifier.
    pub fn of_name(&self, name: &str) -> Option<String> {
        let (name, better) = self.names.iter().find(|(banned, _)| banned == name)?;
        Some(format!("`{name}`: better {better}"))
    }
}

fn in_text(phrases: &[&Phrase], line: usize, text: &str) -> Vec<(usize, String)> {
    let words = words(line, text);
    let mut found = Vec::new();
    for at in 0..words.len() {
        for phrase in phrases {
            if phrase.begins(&words[at..]) {
                found.push((words[at].line, phrase.fault()));
            }
        }
    }
    found
}

impl Phrase {
    fn begins(&self, words: &[Word]) -> bool {
        self.words.len() <= words.len()
            && self
                .words
                .iter()
                .zip(words)
                .enumerate()
                .all(|(at, (wanted, word))| {
                    (at == 0 || word.follows) && is_one_of(wanted, &word.text)
                })
    }

    fn fault(&self) -> String {
        format!("\"{}\": better {}", self.words.join(" "), self.better)
    }
}

fn is_one_of(wanted: &str, word: &str) -> bool {
    match wanted {
        NUMBER => word
            .chars()
            .all(|it| it.is_ascii_digit() || ",._".contains(it)),
        UNIT => UNITS.contains(&word),
        _ => wanted == word,
    }
}

fn quoted(words: &str) -> Option<&str> {
    words.strip_prefix('`')?.strip_suffix('`')
}

struct Word {
    line: usize,
    text: String,
    /// Only blanks, and the marks of a folded comment, lie between it and the word before.
    follows: bool,
}

/// The words of a text, in lower case. Those of code (between backquotes) are none.
fn words(line: usize, text: &str) -> Vec<Word> {
    let mut found = Vec::new();
    let (mut is_block, mut is_code) = (false, false);
    let mut follows = false;
    for (at, text) in text.lines().enumerate() {
        if text.trim_start().starts_with("```") {
            is_block = !is_block;
            continue;
        }
        // A backquote that is alone ends with its paragraph.
        is_code &= !text.trim().is_empty();
        if is_block {
            continue;
        }
        let mut rest = text.trim_start_matches([' ', '/', '!', '*']);
        while let Some(first) = rest.chars().next() {
            if !is_part(first) {
                is_code ^= first == '`';
                follows &= first.is_whitespace();
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let end = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
            let word = rest[..end].trim_end_matches(['.', ',', '-']);
            if !is_code && !word.is_empty() {
                let text = word.to_lowercase();
                let line = line + at;
                found.push(Word {
                    line,
                    text,
                    follows,
                });
            }
            follows = !is_code && word.len() == end;
            rest = &rest[end..];
        }
    }
    found
}

/// Whether a word can have it. A point or a comma is taken off at its end.
fn is_part(it: char) -> bool {
    it.is_alphanumeric() || "'’-_.,".contains(it)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let list = "# gone\nfor gizmo => for good\ngizmo <n> <unit> => x\n";
        List::parse(list).unwrap().in_source(10, text)
    }

    fn lines(text: &str) -> Vec<usize> {
        found(text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_phrase_is_found_in_whatever_case_and_across_a_fold() {
        let faults = found("It stays\nFor gizmo.");
        assert_eq!(faults, [(11, "\"for gizmo\": better for good".to_owned())]);
        assert_eq!(lines("/// It stays for\n/// gizmo, there."), [10]);
    }

    #[test]
    fn a_phrase_is_whole_words_of_one_sentence() {
        assert_eq!(
            lines("for gizmos; before gizmo; for, gizmo; for. Gizmo"),
            [0; 0]
        );
    }

    #[test]
    fn a_number_and_a_unit_stand_for_any() {
        assert_eq!(lines("a gizmo 20 ms, and Gizmo 1,000 s."), [10, 10]);
        assert_eq!(lines("gizmo 20 frames; 20 gizmo s"), [0; 0]);
    }

    #[test]
    fn code_is_not_read() {
        assert_eq!(lines("`for gizmo` is\n```sh\nfor gizmo\n```\n"), [0; 0]);
        assert_eq!(lines("```sh\n```\nfor gizmo"), [12]);
        assert_eq!(lines("a ` alone\n\nfor gizmo"), [12]);
    }

    #[test]
    fn words_of_documents_are_none_of_sources() {
        let list = List::parse("docs: gizmo => device\n").unwrap();
        assert_eq!(list.in_document("One\ngizmo.").len(), 1);
        assert_eq!(list.in_source(1, "One\ngizmo."), []);
    }

    #[test]
    fn a_line_without_a_better_word_is_refused() {
        let error = List::parse("\nfor gizmo\n").err().unwrap();
        assert!(error.to_string().starts_with("line 2"), "{error}");
    }

    #[test]
    fn a_name_is_found_as_it_is_written() {
        let list = List::parse("`Gadget` => Device").unwrap();
        assert_eq!(list.of_name("Gadget").unwrap(), "`Gadget`: better Device");
        assert!(list.of_name("gadget").is_none());
    }
}
