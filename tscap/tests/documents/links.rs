//! Links between documents, and the paths that they name.

use std::fs;
use std::path::Path;

use tscap_testkit::shown::{pages, root};

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    for page in pages() {
        let text = prose(&page);
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap_or_default();
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = page.parent().expect("a page lies in a folder");
            let path = match file {
                "" => page.clone(),
                file => folder.join(file),
            };
            assert!(path.exists(), "{}: {target}", page.display());
            let leads = heading.is_empty() || headings(&path).iter().any(|it| it == heading);
            assert!(leads, "{}: {target}", page.display());
        }
    }
}

#[test]
fn the_index_names_each_page() {
    let index = fs::read_to_string(root().join("docs/README.md")).expect("the index");
    for page in pages().iter().filter(|it| !it.ends_with("README.md")) {
        let name = page.file_name().expect("a name").to_string_lossy();
        assert!(
            index.contains(&format!("{name})")),
            "{name} is not in docs/README.md"
        );
    }
}

/// In backquotes, from the root of the checkout or, a Rust file, from the sources of a crate.
#[test]
fn every_path_of_the_checkout_exists() {
    const FOLDERS: [&str; 6] = [
        "tscap/",
        "tscap-common/",
        "tscap-ebpf/",
        "xtask/",
        "docs/",
        ".ci/",
    ];
    let crates = fs::read_dir(root().join("tscap/crates")).expect("the crates");
    let crates: Vec<_> = crates.map(|it| it.expect("a crate").path()).collect();
    let others = ["tscap/src", "tscap-ebpf/src"].map(|it| root().join(it));
    let is_there = |name: &str| {
        let sources = crates.iter().map(|it| it.join("src"));
        let mut places = sources.chain(others.clone()).map(|it| it.join(name));
        // "clock/cross.rs" is a file of the crate `clock`.
        let of_crate = name.split_once('/').is_some_and(|(of, rest)| {
            let folder = root().join("tscap/crates").join(of);
            folder.join("src").join(rest).exists()
        });
        of_crate || places.any(|it| it.exists())
    };
    for page in pages() {
        let text = prose(&page);
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = FOLDERS.iter().any(|folder| name.starts_with(folder))
                && !name.contains(|c: char| c.is_whitespace() || "*{…<".contains(c));
            let is_source = name.ends_with(".rs") && !name.contains(' ');
            let is_there = root().join(name).exists() || is_source && is_there(name);
            let place = format!("{}: {name}", page.display());
            assert!(is_there || !is_path && !is_source, "{place}");
        }
    }
}

/// A page without its blocks.
fn prose(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page");
    text.split("\n```")
        .step_by(2)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The headings of a page as links name them.
fn headings(page: &Path) -> Vec<String> {
    let text = prose(page);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}
