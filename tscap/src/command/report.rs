//! `tscap report`: a comparison or a sweep drawn again.

use std::fs;
use std::io;
use std::path::Path;

use super::print::print;
use super::whole_file::write_whole;
use super::{Exit, Failure, Hint};
use crate::cli::ReportPlan;
use crate::report::{page, sweep_page, sweep_text, text};
use crate::saved::Saved;

/// Writes the page, then prints the tables.
pub(super) fn run(plan: &ReportPlan) -> Result<Exit, Failure> {
    let (text, page) = match read(&plan.file)? {
        Saved::Comparison(comparison) => (text(&comparison), page(&comparison)),
        Saved::Sweep(sweep) => (sweep_text(&sweep), sweep_page(&sweep)),
    };
    if let Some(path) = &plan.output {
        write_page(&page, path)?;
    }
    print(&text)
}

/// Writes a page, whole or not at all.
pub(super) fn write_page(page: &str, path: &Path) -> Result<(), Failure> {
    write_whole(path, page)
        .trying(format!("cannot write {}", path.display()))
        .map_err(|failure| failure.hint("give a file in a folder that you may write to"))
}

/// Reads what was saved.
pub(super) fn read(path: &Path) -> Result<Saved, Failure> {
    let name = path.display();
    let what = || format!("cannot read {name}");
    let json = fs::read_to_string(path).trying(what());
    let saved = json.and_then(|json| Saved::from_json(&json).trying(what()));
    saved.map_err(|failure| {
        failure.hint("give a file that `tscap compare --json` or `tscap loss --json` wrote")
    })
}

/// Better to fail now than after minutes of measuring.
pub(super) fn check_writable(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let writable = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).map_err(io::Error::from)
    };
    writable
        .trying(format!("cannot write {}", path.display()))
        .map_err(|failure| failure.hint("give --report a file in a folder that you may write to"))
}
