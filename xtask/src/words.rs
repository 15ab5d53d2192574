//! Words that stay out of documents, comments and messages (`xtask/words.txt`), and comments that
//! cite an issue of a tracker that a reader can't open.

mod list;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use list::List;
use source::Part;

use crate::paths;

/// Where the list lies in the checkout.
const LIST: &str = "xtask/words.txt";
/// The folders with sources.
const SOURCES: [&str; 4] = ["tscap", "tscap-common", "tscap-ebpf", "xtask"];

/// Fails if a document or a source has one of the words, and names each place with the better word.
pub fn check() -> Result<()> {
    let root = paths::root();
    let list = fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list = List::parse(&list).context(LIST)?;
    let mut found = Vec::new();
    for file in files(&root)? {
        let name = file.strip_prefix(&root).unwrap_or(&file).display();
        let text = fs::read_to_string(&file).with_context(|| name.to_string())?;
        let faults = if file.extension().is_some_and(|it| it == "rs") {
            of_source(&list, &text)
        } else {
            list.in_document(&text)
        };
        found.extend(
            faults
                .into_iter()
                .map(|(line, fault)| format!("{name}:{line}: {fault}")),
        );
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "{}\n{} to mend; the list is {LIST}",
        found.join("\n"),
        found.len()
    );
}

/// What is wrong in a source, each with its line.
fn of_source(list: &List, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, part) in source::parts(text) {
        match part {
            Part::Comment(text) => {
                found.extend(list.in_source(line, &text));
                found.extend(issues(line, &text));
            }
            Part::Literal(text) => found.extend(list.in_source(line, &text)),
            Part::Name(name) => found.extend(list.of_name(&name).map(|fault| (line, fault))),
        }
    }
    found
}

/// Citations of an issue by its number only.
fn issues(line: usize, text: &str) -> Vec<(usize, String)> {
    let words: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .flat_map(|(at, text)| text.split_whitespace().map(move |word| (line + at, word)))
        .map(|(line, word)| (line, word.trim_matches(is_punctuation)))
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let cited = words.iter().enumerate().filter(|(at, (_, word))| {
        let before = at.checked_sub(1).map_or("", |before| words[before].1);
        let is_named = ["issue", "issues"].contains(&before.to_lowercase().as_str());
        is_number(word) && is_named || is_cited(word)
    });
    let fault = "an issue that a reader can't open: give the reason in words";
    cited
        .map(|(_, (line, _))| (*line, fault.to_owned()))
        .collect()
}

fn is_punctuation(it: char) -> bool {
    !it.is_alphanumeric() && it != '#'
}

/// A hash sign and a number; 1 stands in the version of many kernels.
fn is_cited(word: &str) -> bool {
    word.strip_prefix('#')
        .is_some_and(|it| is_number(it) && it != "1")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|it| it.is_ascii_digit())
}

/// The documents and sources of the checkout, by their names.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in [root.to_path_buf(), root.join("docs")] {
        found.extend(entries(&folder)?.into_iter().filter(|it| is(it, "md")));
    }
    for folder in SOURCES {
        below(&root.join(folder), &mut found)?;
    }
    found.sort();
    Ok(found)
}

/// Adds the sources and the documents below `folder`; build folders apart.
fn below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            if path.file_name().is_some_and(|it| it != "target") {
                below(&path, found)?;
            }
        } else if is(&path, "rs") || is(&path, "md") {
            found.push(path);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let what = || folder.display().to_string();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(what)? {
        paths.push(entry.with_context(what)?.path());
    }
    Ok(paths)
}

fn is(path: &Path, ending: &str) -> bool {
    path.is_file() && path.extension().is_some_and(|it| it == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let list = List::parse("gizmo => device\n`Gadget` => Device\n").unwrap();
        of_source(&list, text)
            .into_iter()
            .map(|(line, _)| line)
            .collect()
    }

    #[test]
    fn comments_literals_and_names_are_checked() {
        let text = "//! A gizmo.\nfn gizmo() {\n    say(\"no\n gizmo\");\n    Gadget::new();\n}\n";
        assert_eq!(lines(text), [1, 4, 5]);
    }

    #[test]
    fn a_name_is_none_in_a_comment() {
        assert_eq!(lines("// A Gadget, by its name.\n"), [0; 0]);
    }

    #[test]
    fn an_issue_is_found_by_its_number_in_a_comment_only() {
        assert_eq!(lines("/// At most, ns\n/// (issue 3).\n"), [2]);
        assert_eq!(lines("// For the\n// issue\n// 4.\n"), [3]);
        assert_eq!(lines("// As #37 has it.\n"), [1]);
        assert_eq!(lines("let it = \"issue 3, #37\";\n"), [0; 0]);
        assert_eq!(
            lines("// An issue: three of them, #[test], #1 SMP.\n"),
            [0; 0]
        );
        assert_eq!(lines("// https://example.org/issues/37\n"), [0; 0]);
    }

    #[test]
    fn the_list_of_the_checkout_can_be_read() {
        let list = fs::read_to_string(paths::root().join(LIST)).unwrap();
        List::parse(&list).unwrap();
    }
}
