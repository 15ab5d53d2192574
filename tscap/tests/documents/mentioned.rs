//! Every command and option of tscap that a message, a help text or a document names is one
//! that the program has, with values that it takes.

use std::fs;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory as _};
use tscap_cli::Cli;

use crate::texts::{Text, files, of_code, of_page};
use tscap_testkit::shown::{pages, root};

/// Programs whose options are not tscap's, where they stand before them in a sentence.
const OTHERS: &[&str] = &[
    "adduser",
    "apt",
    "apt-get",
    "bpftool",
    "capinfos",
    "cargo",
    "chronyc",
    "chronyd",
    "crictl",
    "dkms",
    "docker",
    "dumpcap",
    "editcap",
    "ethtool",
    "grep",
    "install",
    "ip",
    "iw",
    "journalctl",
    "lsns",
    "systemd-analyze",
    "ulimit",
    "ls",
    "make",
    "mergecap",
    "modprobe",
    "mokutil",
    "mount",
    "nsenter",
    "ntpq",
    "perf",
    "pmc",
    "podman",
    "ptp4l",
    "setcap",
    "sysctl",
    "systemctl",
    "systemd-escape",
    "systemd-run",
    "tc",
    "tcpdump",
    "trafgen",
    "tshark",
    "unshare",
    "usermod",
    "xdp-loader",
];

/// Words that follow an option in a sentence and are no value of it.
const WORDS: &[&str] = &[
    "a", "accepts", "after", "all", "also", "alone", "an", "and", "are", "as", "asks", "at", "by",
    "can", "does", "for", "from", "gives", "given", "goes", "has", "have", "here", "if", "in",
    "instead", "is", "it", "leaves", "makes", "means", "must", "names", "needs", "not", "of",
    "off", "on", "one", "only", "out", "or", "says", "takes", "that", "the", "then", "to", "turns",
    "until", "was", "where", "which", "while", "with", "without",
];

/// Texts whose options are those of other programs, unless tscap stands before them.
const OF_OTHERS: &[&str] = &[
    // What is answered to people who know tcpdump and dumpcap.
    "tscap/crates/cli/src/foreign.rs",
    // Wireshark's own.
    "tscap/crates/cli/src/extcap.rs",
    "tscap/crates/network/src/namespaces/tools.rs",
    // Command lines of other capture programs.
    "tscap/crates/traffic/src/load/",
    // Of `cargo xtask` and its benchmarks.
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/benchmarks.md",
];

fn tscap() -> Command {
    let mut tscap = Cli::command();
    tscap.build();
    tscap
}

/// What people read of tscap: its sources, its documents, its packages' files.
fn texts() -> Vec<Text> {
    let mut texts = Vec::new();
    let here = |path: &Path| {
        path.strip_prefix(root())
            .expect("in the checkout")
            .to_owned()
    };
    let read = |path: &Path| fs::read_to_string(path).expect("a text");
    let folders = ["tscap/src", "tscap/crates"].map(|it| root().join(it));
    for path in folders.iter().flat_map(|it| files(it, &["rs"])) {
        let place = here(&path);
        let is_test = |part: &std::ffi::OsStr| {
            ["tests", "tests.rs", "fixtures.rs"]
                .iter()
                .any(|it| part == *it)
        };
        if !place.iter().any(is_test) {
            texts.extend(of_code(&place, &read(&path)));
        }
    }
    for page in pages() {
        texts.extend(of_page(&here(&page), &read(&page)));
    }
    for path in files(
        &root().join("packaging"),
        &["md", "templates", "service", "conf", "config", "postinst"],
    ) {
        texts.extend(of_page(&here(&path), &read(&path)));
    }
    texts
}

/// What an option is of that stands without a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bare {
    /// Of tscap.
    Own,
    /// Of tscap, or one of other programs that it takes or answers.
    Known,
    /// Of any program.
    Any,
}

/// What is wrong with what `text` names.
fn faults(tscap: &Command, text: &str, of: Bare) -> Vec<String> {
    let mut faults = Vec::new();
    // What is quoted is a command or an option by itself; between two of them is a sentence.
    for (number, part) in text.split('`').enumerate() {
        let is_quoted = number % 2 == 1 && text.matches('`').count().is_multiple_of(2);
        let sentences: Vec<_> = if is_quoted {
            part.split('|').collect()
        } else {
            part.split([';', ')', '|', '\n'])
                .flat_map(|it| it.split(". "))
                .collect()
        };
        for sentence in sentences {
            let words: Vec<_> = sentence.split_whitespace().collect();
            look(tscap, &words, (is_quoted, of), &mut faults);
        }
    }
    faults
}

fn look(tscap: &Command, words: &[&str], (is_quoted, of): (bool, Bare), faults: &mut Vec<String>) {
    let mut at = 0;
    let mut is_others = false;
    while at < words.len() {
        let word = bare(words[at]);
        // Not as a value: cargo test -p tscap.
        let is_program = at == 0 || !is_option(words[at - 1]);
        if word == "tscap" && is_program && !words[at].ends_with([',', ':', '.']) {
            at += command(tscap, &words[at..], is_quoted, faults);
            is_others = false;
            continue;
        }
        is_others |= OTHERS.contains(&word) || word.starts_with("tcpdump");
        if is_option(word) && !is_others && of != Bare::Any {
            let known = tscap.get_subcommands().filter_map(|it| {
                find(it, word).or_else(|| find_any(it, word).filter(|_| of == Bare::Known))
            });
            let known: Vec<_> = known.chain(find(tscap, word)).collect();
            if known.is_empty() {
                faults.push(format!("no command has {word}"));
            }
            let next = words
                .get(at + 1)
                .filter(|_| words[at] == word)
                .map(|it| bare(it));
            let is_wrong = |next: &str| known.iter().all(|it| !takes(it, next, is_quoted));
            if let Some(next) = next.filter(|next| !known.is_empty() && is_wrong(next)) {
                faults.push(format!("{word} does not take {next}"));
            }
        }
        at += 1;
    }
}

/// Looks at a command line that begins with the program's name; returns how many words it has.
fn command(tscap: &Command, words: &[&str], is_quoted: bool, faults: &mut Vec<String>) -> usize {
    let Some(first) = words.get(1).map(|it| bare(it)) else {
        return 1;
    };
    if first == "help" {
        return words.len();
    }
    let (command, start) = match tscap.find_subcommand(first) {
        Some(found) => (found, 2),
        None if first.starts_with('-') => (tscap.find_subcommand("capture").expect("it is one"), 1),
        None => {
            let is_open =
                is_placeholder(first) || ["keep-settings", "switch-statistics"].contains(&first);
            if is_quoted && !is_open {
                faults.push(format!("tscap has no command {first}"));
            }
            return 1;
        }
    };
    let name = command.get_name();
    let mut at = start;
    while at < words.len() {
        let word = bare(words[at]);
        let is_last = words[at].ends_with([',', ':', '.']) && !words[at].ends_with("..");
        if is_option(word) {
            let found = find(command, word).or_else(|| find(tscap, word));
            let Some(found) = found else {
                faults.push(format!("tscap {name} has no {word}"));
                return at + 1;
            };
            let next = words.get(at + 1).filter(|_| !is_last && words[at] == word);
            if let Some(next) = next.map(|it| bare(it))
                && has_value(found)
                && !word.contains('=')
            {
                if !takes(found, next, is_quoted) {
                    faults.push(format!("tscap {name} {word} does not take {next}"));
                }
                at += 1;
            }
        } else if !is_quoted {
            return at;
        }
        at += 1;
        if is_last {
            return at;
        }
    }
    if is_quoted {
        parse(&words[..at], faults);
    }
    at
}

/// Lets the program parse a command line that has nothing to be filled in.
fn parse(words: &[&str], faults: &mut Vec<String>) {
    let is_open = |word: &&str| is_placeholder(word) || [">", "<", "&", "&&"].contains(word);
    let is_redirected = words.iter().any(is_open);
    if is_redirected {
        return;
    }
    let plan = Cli::plan(words.iter().map(|it| it.trim_matches('\'').into()));
    let Err(error) = plan else { return };
    // The option is named, and no value of it.
    let has_no_value = error.kind() == ErrorKind::InvalidValue
        && error.get(ContextKind::InvalidValue) == Some(&ContextValue::String(String::new()));
    if has_no_value {
        return;
    }
    // A part may be left out.
    let is_fine = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::ArgumentConflict,
    ];
    if !is_fine.contains(&error.kind()) {
        faults.push(format!("{}: {}", words.join(" "), error.to_string().trim()));
    }
}

/// A word without the punctuation around it.
fn bare(word: &str) -> &str {
    let word = word.trim_start_matches(['(', '"', '\'', '[', '*', '/']);
    let word = word.trim_end_matches([')', '"', '\'', ',', ':', ';', '*', '|']);
    if word.ends_with("..") {
        word
    } else {
        word.trim_end_matches(['.', ']', '?'])
    }
}

fn is_option(word: &str) -> bool {
    let long = word.strip_prefix("--");
    let letter = |text: &str| text.starts_with(|it: char| it.is_ascii_alphabetic());
    match long {
        Some(long) => letter(long),
        None => word
            .strip_prefix('-')
            .is_some_and(|it| letter(it) && it.len() == 1),
    }
}

/// Whether something has to be put in its place.
fn is_placeholder(word: &str) -> bool {
    word.contains(['{', '}', '…', '<', '*'])
        || word.contains("...")
        || word.chars().any(|it| it.is_ascii_uppercase()) && !word.starts_with('-')
}

/// The option of a command that has this name; not one of other programs that is only answered.
fn find<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    find_any(command, word).filter(|it| !it.is_hide_set())
}

/// The same, also of those.
fn find_any<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or(word);
    let is_it = |arg: &&Arg| match name.strip_prefix("--") {
        Some(long) => {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        }
        None => arg.get_short() == name.chars().nth(1),
    };
    command.get_arguments().find(is_it)
}

fn has_value(arg: &Arg) -> bool {
    let takes_some = arg.get_num_args().is_some_and(|it| it.max_values() > 0);
    takes_some && !arg.is_require_equals_set()
}

/// Whether an option takes the word behind it, or the sentence goes on with it.
fn takes(arg: &Arg, next: &str, is_quoted: bool) -> bool {
    let values = arg.get_possible_values();
    if !has_value(arg) || values.is_empty() || is_placeholder(next) || next.starts_with('-') {
        return true;
    }
    let is_value = |part: &str| values.iter().any(|it| it.matches(part, false));
    // Only a word of letters can be meant as one of them.
    let is_word = next
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || it == '-');
    next.split(',').all(is_value) || !is_quoted && (!is_word || WORDS.contains(&next))
}

#[test]
fn every_command_and_option_that_is_named_exists() {
    let tscap = tscap();
    let mut all = Vec::new();
    for Text { file, line, text } in texts() {
        let is_of_others = OF_OTHERS.iter().any(|it| file.starts_with(it));
        let of = if is_of_others {
            Bare::Any
        } else if file.extension().is_some_and(|it| it == "rs") {
            Bare::Own
        } else {
            Bare::Known
        };
        for fault in faults(&tscap, &text, of) {
            all.push(format!("{}:{line}: {fault}", file.display()));
        }
    }
    assert!(all.is_empty(), "{} faults:\n{}", all.len(), all.join("\n"));
}

#[test]
fn what_does_not_exist_is_found() {
    let tscap = tscap();
    for (text, fault) in [
        (
            "`tscap capture --direction both` records it",
            "--direction does not take both",
        ),
        (
            "records it: tscap capture --direction both",
            "--direction does not take both",
        ),
        ("give --direction both", "--direction does not take both"),
        ("`tscap record -i eth0`", "no command record"),
        (
            "see `tscap doctor --repair`",
            "tscap doctor has no --repair",
        ),
        (
            "tscap convert --keep-raw keeps them",
            "tscap convert has no --keep-raw",
        ),
        (
            "leave out --snapshot-size",
            "no command has --snapshot-size",
        ),
        ("give -A", "no command has -A"),
        ("`tscap -i eth0 --clock tsx`", "--clock does not take tsx"),
        ("`tscap capture -i a -c many`", "invalid value 'many'"),
        ("`tscap capture -r in.pcap`", "tscap capture has no -r"),
    ] {
        let found = faults(&tscap, text, Bare::Own);
        assert!(
            found.iter().any(|it| it.contains(fault)),
            "{text}: {found:?}"
        );
    }
    for text in [
        "`tscap capture --direction inout` records both",
        "tscap capture --direction inout, and --clock tsc or ktime",
        "`tscap -i eth0 --clock tsc`, or leave out --clock",
        "tshark -r FILE -Y FILTER shows it",
        "`tshark -r f.pcapng -Y tcp`, tscap -D lists them",
        "give --hook xdp or generic, or leave out --hook",
        "`tscap capture -i {name} -w out.pcapng 'tcp port 80'`",
    ] {
        let found = faults(&tscap, text, Bare::Own);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}
