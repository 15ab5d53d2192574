//! `tscap report`: a comparison, a sweep or a clock's log drawn again.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use super::print::print;
use super::whole_file::write_whole;
use super::{Exit, Failure, Hint};
use crate::cli::ReportPlan;
use crate::clock::log::{Digest, Line, LogReader, is_header};
use crate::report::{clock_page, clock_text, page, sweep_page, sweep_text, text};
use crate::saved::Saved;

/// Writes the page, then prints the tables.
pub(super) fn run(plan: &ReportPlan) -> Result<Exit, Failure> {
    let (text, page) = match is_log(&plan.file) {
        true => {
            let digest = digest(&plan.file)?;
            (clock_text(&digest), clock_page(&digest))
        }
        false => match read(&plan.file)? {
            Saved::Comparison(comparison) => (text(&comparison), page(&comparison)),
            Saved::Sweep(sweep) => (sweep_text(&sweep), sweep_page(&sweep)),
        },
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
        failure.hint(
            "give a file that `tscap compare --json`, `tscap loss --json` or `tscap clock --log` \
             wrote",
        )
    })
}

/// Whether a file begins as a log of the clock does.
fn is_log(path: &Path) -> bool {
    let mut first = Vec::new();
    let file = File::open(path);
    let read = file.and_then(|file| file.take(64).read_to_end(&mut first));
    read.is_ok() && is_header(&first)
}

/// Reads a log of the clock.
pub(super) fn digest(path: &Path) -> Result<Digest, Failure> {
    let name = path.display();
    let what = || format!("cannot read {name}");
    let file = File::open(path).trying(what())?;
    let mut reader = LogReader::new(BufReader::new(file)).trying(what())?;
    let mut digest = Digest::default();
    digest.take(Line::Header(reader.header().clone()));
    while let Some(line) = reader.next_line().trying(what())? {
        digest.take(line);
    }
    if reader.is_torn() {
        eprintln!("{name}: the last line is torn: what comes before it was used");
    }
    Ok(digest)
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
        // A file is no folder, whoever may write to it.
        nix::unistd::access(&folder.join("."), nix::unistd::AccessFlags::W_OK)
            .map_err(io::Error::from)
    };
    writable
        .trying(format!("cannot write {}", path.display()))
        .map_err(|failure| failure.hint("give --report a file in a folder that you may write to"))
}
