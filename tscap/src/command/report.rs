//! `tscap report`: a comparison drawn again.

use std::fs;
use std::path::Path;

use super::print::print;
use super::whole_file::write_whole;
use super::{Exit, Failure, Hint};
use crate::cli::ReportPlan;
use crate::compare::schema::Comparison;
use crate::report::{page, text};

/// Writes the page, then prints the tables.
pub(super) fn run(plan: &ReportPlan) -> Result<Exit, Failure> {
    let comparison = read(&plan.file)?;
    if let Some(path) = &plan.output {
        write_page(&comparison, path)?;
    }
    print(&text(&comparison))
}

/// Writes a comparison's page, whole or not at all.
pub(super) fn write_page(comparison: &Comparison, path: &Path) -> Result<(), Failure> {
    write_whole(path, &page(comparison))
        .trying(format!("cannot write {}", path.display()))
        .map_err(|failure| failure.hint("give a file in a folder that you may write to"))
}

fn read(path: &Path) -> Result<Comparison, Failure> {
    let name = path.display();
    let what = || format!("cannot read {name}");
    let json = fs::read_to_string(path).trying(what());
    let comparison = json.and_then(|json| Comparison::from_json(&json).trying(what()));
    comparison.map_err(|failure| failure.hint("give a file that `tscap compare --json` wrote"))
}
