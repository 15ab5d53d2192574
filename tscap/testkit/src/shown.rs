//! The commands that the documents show, and what runs each of them.

use std::fs;
use std::path::{Path, PathBuf};

/// What runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// A step of `.ci/run` or `.ci/nightly`, which may have more options.
    Ci,
    /// `tests/root/capture/documents.rs`
    Capture,
    /// `tests/any/shared_clock`
    SharedClock,
    /// `tests/any/clock.rs`
    Clock,
    /// `tests/root/compare/documents.rs`
    Compare,
    /// `tests/any/convert/own.rs`
    Convert,
    /// `tests/any/convert/filter.rs`
    ConvertFilter,
    /// `tests/any/convert/ntp.rs`
    ConvertNtp,
    /// `tests/any/counters.rs`; those with frames `tests/root/counters.rs`
    Counters,
    /// `tests/root/delay/documents.rs`
    Delay,
    /// `tests/root/generator/documents.rs`
    Generator,
    /// `tests/root/loss/documents.rs`
    Loss,
    /// `tests/any/merge.rs`
    Merge,
    /// `tests/root/ntp.rs`
    Ntp,
    /// `tests/root/qos/documents.rs`
    Qos,
    /// `tests/root/reference.rs`
    Reference,
    /// `tests/root/service/unit.rs`
    Service,
    /// `tests/root/stamp/documents.rs`
    Stamp,
    /// `tests/root/two_hosts/documents.rs`, `tests/root/two_hosts/files.rs`
    TwoHosts,
    /// `tests/root/wireshark/documents.rs`
    Wireshark,
    /// Nothing, for this reason.
    Nothing(&'static str),
}

const PACKAGES: &str = "cargo xtask dist --test does so in bare systems";
const MODULE: &str = "the checks in virtual machines build and load the module";

/// What runs `line`, if anybody has said so.
pub fn runner(line: &str) -> Option<Runner> {
    let words: Vec<_> = line.split_whitespace().collect();
    Some(match words[..] {
        ["cargo", "xtask", ..] => Runner::Ci,
        ["cargo", "build", "--release"] => Runner::Nothing("cargo xtask dist builds it so"),
        ["cargo", "install", ..]
        | ["apt", ..]
        | [
            "adduser" | "usermod" | "dpkg-reconfigure" | "dpkg-statoverride",
            ..,
        ]
        | ["echo", .., "|", "debconf-set-selections"] => Runner::Nothing(PACKAGES),
        ["cargo", "test", ..] => Runner::Nothing("cargo xtask test does all of it"),
        ["dnf", ..] => {
            Runner::Nothing("only Debian's rpm can be had here: cargo xtask dist --test")
        }
        ["ln", "-s", "/usr/bin/tscap", _] => {
            Runner::Nothing("changes the system: the tests have a folder and a copy of their own")
        }
        ["tshark", ..] | ["install", .., "~/.local/lib/wireshark/plugins/tscap.lua"] => {
            Runner::Wireshark
        }
        ["apt-get", "install" | "update", ..] => Runner::Nothing(
            "installs headers of the running kernel; .ci/common and .ci/nightly install Rust",
        ),
        ["git", "clone", ..] | ["cd", ..] => Runner::Nothing("the checkout is there"),
        ["make", "-C", "tscap-ebpf/kmod"] | ["insmod" | "modprobe", ..] => Runner::Nothing(MODULE),
        ["tscap", "clock", "--serve" | "--read", ..] => Runner::SharedClock,
        ["tscap", "clock", "--audit-server", ..] => Runner::Ntp,
        ["tscap", "clock", "--reference", reference, ..] if reference.starts_with("ntp:") => {
            Runner::Ntp
        }
        ["tscap", "report", "clock.log", ..] | ["tscap", "clock", ..] => Runner::Clock,
        ["tscap", "report", "compare.json", ..]
        | ["tscap", "report", "--paper", "compare.json", ..]
        | ["tscap", "compare", ..] => Runner::Compare,
        ["tscap", "report", "counters.json", ..] | ["tscap", "counters", ..] => Runner::Counters,
        ["tscap", "delay", "--serve" | "--to", ..] => Runner::TwoHosts,
        ["tscap", "delay", "--file", _, "--file", ..] => Runner::TwoHosts,
        ["tscap", "report", "router.json", ..] | ["tscap", "delay", ..] => Runner::Delay,
        ["tscap", "qos", "--flow", "gen", "out.pcapng"] => Runner::Generator,
        ["tscap", "report", "voip.json", ..] | ["tscap", "qos", ..] => Runner::Qos,
        ["tscap", "report", "loss.json", ..]
        | ["tscap", "report", "--paper", "loss.json", ..]
        | ["tscap", "loss", ..] => Runner::Loss,
        ["tscap", "convert", _, "-w", _, word, ..] if !word.starts_with('-') => {
            Runner::ConvertFilter
        }
        ["tscap", "convert", _, "--with", ..] => Runner::TwoHosts,
        ["tscap", "convert", ..] if line.contains("--time-base ntp") => Runner::ConvertNtp,
        ["tscap", "convert", ..] => Runner::Convert,
        ["tscap", "merge", ..] => Runner::Merge,
        ["tscap", "stamp", ..] => Runner::Stamp,
        ["tscap", "gen", ..] => Runner::Generator,
        ["tscap", "capture", "-i", _, "--reference", ..] => Runner::Reference,
        ["tscap", "capture", "-i", _] => {
            Runner::Nothing("tests/root/capture/output.rs runs it on a terminal")
        }
        ["systemctl", ..] | ["journalctl", ..] => Runner::Service,
        [
            "tscap",
            "capture" | "doctor" | "restore" | "-d" | "-ddd" | "--dump-ebpf",
            ..,
        ]
        | ["tcpdump", ..] => Runner::Capture,
        _ => return None,
    })
}

/// The commands that `runner` runs, in the order of the pages, each once.
pub fn commands(wanted: Runner) -> Vec<String> {
    let all = pages().into_iter().flat_map(|page| shown(&page));
    let mut commands = Vec::new();
    for line in all.filter(|line| runner(line) == Some(wanted)) {
        if !commands.contains(&line) {
            commands.push(line);
        }
    }
    assert!(!commands.is_empty(), "no command for {wanted:?}");
    commands
}

/// The root of the checkout.
pub fn root() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the crate lies two folders below the checkout")
}

/// The documents: the README first, then the others by their names.
pub fn pages() -> Vec<PathBuf> {
    let folders = [root().join("docs"), root().to_owned()];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .filter(|path| !path.ends_with("CHANGELOG.md"))
        .collect();
    pages.sort_by_key(|path| (!path.ends_with("README.md"), path.clone()));
    pages
}

/// The lines of the blocks of `page` that are marked `sh`, without their comments.
pub fn shown(page: &Path) -> Vec<String> {
    let blocks = blocks(page).into_iter();
    let lines = blocks.filter(|(kind, _)| kind == "sh").flat_map(|it| it.1);
    lines
        .map(|line| {
            line.split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .filter(|line| !line.is_empty())
        .collect()
}

/// The fenced blocks of a page: what they are marked as, and their lines.
pub fn blocks(page: &Path) -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(page).expect("a page");
    let mut blocks = Vec::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), Vec::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a block has no end", page.display());
    blocks
}
