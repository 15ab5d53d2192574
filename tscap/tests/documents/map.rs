//! The code map of ARCHITECTURE.md: its tables of crates and of threads are those of the sources.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tscap_testkit::shown::root;

/// Lines that a crate has at most, with its unit tests.
const MOST_LINES: usize = 12_000;

fn crates() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("tscap/crates")).expect("the crates");
    folders.map(|it| it.expect("a crate").path()).collect()
}

fn name(path: &Path) -> String {
    let name = path.file_name().expect("a name");
    name.to_string_lossy().into_owned()
}

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found
}

fn map() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the code map")
}

/// The cells of the rows of a section's tables.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let text = map();
    let section = text.split("\n## ").find(|it| it.starts_with(heading));
    let lines = section.expect("the section").lines();
    let rows = lines.filter(|line| line.starts_with("| "));
    let cells = rows.map(|line| line.trim_matches('|').split(" | ").map(str::trim));
    cells.map(|it| it.map(String::from).collect()).collect()
}

/// The crates of tscap that a manifest names as what it is built of.
fn used(folder: &Path) -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
    let (_, rest) = manifest.split_once("[dependencies]").expect("a section");
    let section = rest.split("\n[").next().unwrap_or_default();
    let names = section
        .lines()
        .filter_map(|line| line.strip_prefix("tscap-"));
    let names = names.filter_map(|line| line.split(['.', ' ']).next());
    let names = names.filter(|it| *it != "common");
    // A folder is named as Rust names the crate.
    names.map(|it| it.replace('-', "_")).collect()
}

#[test]
fn the_table_of_crates_is_what_cargo_builds() {
    let rows = rows("The crates of tscap");
    let rows = &rows[1..];
    let listed: BTreeSet<_> = rows.iter().map(|row| row[0].replace('`', "")).collect();
    let there: BTreeSet<_> = crates().iter().map(|it| name(it)).collect();
    assert_eq!(listed, there);
    for (index, row) in rows.iter().enumerate() {
        let crate_name = row[0].replace('`', "");
        let uses = used(&root().join("tscap/crates").join(&crate_name));
        let said: BTreeSet<_> = row[2].split(", ").filter(|it| *it != "–").collect();
        assert_eq!(
            said,
            uses.iter().map(String::as_str).collect(),
            "{crate_name}"
        );
        let before: Vec<_> = rows[..index]
            .iter()
            .map(|it| it[0].replace('`', ""))
            .collect();
        assert!(
            uses.iter().all(|it| before.contains(it)),
            "{crate_name} stands too low"
        );
    }
}

#[test]
fn each_crate_is_small_and_says_what_it_is() {
    for folder in crates() {
        let lines: usize = sources(&folder.join("src"))
            .iter()
            .map(|it| fs::read_to_string(it).expect("a source").lines().count())
            .sum();
        let name = name(&folder);
        assert!(lines <= MOST_LINES, "{name} has {lines} lines");
        let readme = fs::read_to_string(folder.join("README.md"));
        let readme = readme.unwrap_or_else(|error| panic!("README.md of {name}: {error}"));
        assert!(readme.contains("```"), "README.md of {name} has no example");
    }
}

/// Everything that a crate is built of, directly or not.
fn tree(package: &str) -> BTreeSet<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tree = Command::new(cargo);
    tree.args(["tree", "--edges", "normal", "--prefix", "none", "--package"]);
    let tree = tree.arg(package).args(["--locked", "--offline"]);
    let tree = tree.current_dir(root()).output().expect("cargo starts");
    let said = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "cargo tree of {package}: {said}");
    let lines = String::from_utf8(tree.stdout).expect("text");
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names
        .filter(|it| !it.is_empty())
        .map(String::from)
        .collect()
}

/// Nothing below the clock or the filter, at any depth, is of eBPF's loader, the network, an
/// executor or the command line.
#[test]
fn the_clock_and_the_filter_stand_alone() {
    for (name, may_use) in [
        ("clock", &["arch", "base", "time"][..]),
        ("filter", &["base"]),
        ("time", &["arch", "base"]),
        ("base", &[]),
        ("arch", &[]),
    ] {
        let package = format!("tscap-{name}");
        let tree = tree(&package);
        assert!(tree.contains(&package), "{tree:?}");
        for other in ["aya", "netlink", "tokio", "maud", "clap"] {
            let found = tree.iter().find(|it| it.starts_with(other));
            assert_eq!(found, None, "{name}");
        }
        let others = tree.iter().filter_map(|it| it.strip_prefix("tscap-"));
        for other in others.filter(|it| ![name, "common"].contains(it)) {
            assert!(may_use.contains(&other), "{name} uses {other}");
        }
    }
}

/// What asks for the architecture, or is of one.
const OF_AN_ARCHITECTURE: [&str; 5] = [
    concat!("target_", "arch"),
    concat!("CARGO_CFG_TARGET_", "ARCH"),
    concat!("std::", "arch"),
    concat!("core::", "arch"),
    concat!("asm", "!("),
];

/// The counter of programs that read the shared clock: they use nothing of tscap.
const OF_READERS: &str = "tscap/crates/clock_reader/src/system/counter.rs";

#[test]
fn only_one_crate_asks_for_the_architecture() {
    let of_arch = root().join("tscap/crates/arch");
    let of_readers = root().join(OF_READERS);
    let folders = ["tscap", "tscap-common", "xtask"].map(|it| root().join(it));
    let mut seen = 0;
    for file in folders.iter().flat_map(|it| sources(it)) {
        let text = fs::read_to_string(&file).expect("a source");
        // What aya builds the programs for is another thing.
        let text = text.replace("bpf_target_arch", "");
        let found = OF_AN_ARCHITECTURE.iter().find(|it| text.contains(**it));
        if file.starts_with(&of_arch) || file == of_readers {
            seen += usize::from(found.is_some());
        } else {
            assert_eq!(found, None, "{}", file.display());
        }
    }
    assert!(seen >= 3, "only {seen} files of tscap-arch were found");
}

#[test]
fn the_table_of_threads_has_each_thread() {
    let table = rows("Threads and who owns what");
    let table: String = table.into_iter().map(|row| row[0].clone()).collect();
    let folders = [root().join("tscap/crates"), root().join("tscap/src")];
    for file in folders.iter().flat_map(|it| sources(it)) {
        let text = fs::read_to_string(&file).expect("a source");
        let named = text.split(".name(\"tscap-").skip(1);
        // Those of a session.
        let of_sinks = text.split("const THREAD: &'static str = \"tscap-").skip(1);
        for after in named.chain(of_sinks) {
            let thread = after.split('"').next().unwrap_or_default();
            let is_listed = table.contains(&format!("`tscap-{thread}`"));
            assert!(is_listed, "{}: tscap-{thread}", file.display());
        }
    }
}
