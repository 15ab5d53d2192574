//! `tscap restore`.

use std::io::{self, Write};

use super::print::tell;
use super::{Exit, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_live::settings::{JournalFolder, leftovers};

/// Gives back what killed captures left changed, and what `tscap doctor --fix` has changed.
pub(super) fn run() -> Result<Exit, Failure> {
    let waiting = || {
        let text = "note: waiting for another tscap that is about to change settings";
        let _ = writeln!(io::stderr(), "{text}");
    };
    let (folder, files) = (JournalFolder::live(), KernelFiles::live());
    let report = leftovers::restore(&folder, &files, waiting);
    let report = super::runtime()?.block_on(report)?;
    for problem in &report.problems {
        let _ = writeln!(io::stderr(), "tscap: {problem}");
    }
    let mut text = report.done.join("\n");
    text.push('\n');
    tell(&text)?;
    Ok(if report.problems.is_empty() {
        Exit::Success
    } else {
        Exit::Fault
    })
}
