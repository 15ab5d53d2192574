//! `tscap report`: a comparison drawn again.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::print::print;
use super::whole_file::write_whole;
use super::{Exit, Failure, Hint};
use crate::cli::ReportPlan;
use crate::compare::schema::{Comparison, VERSION};
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
    write_whole(path, &page(comparison)).trying(format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> Result<Comparison, Failure> {
    let name = path.display();
    let json = fs::read(path).trying(format!("cannot read {name}"))?;
    let cause = match comparison(&json) {
        Ok(comparison) => return Ok(comparison),
        Err(cause) => cause,
    };
    Err(Failure::new(format!("cannot read {name}: {cause}"))
        .hint("give a file that `tscap compare --json` wrote"))
}

/// A comparison from its JSON, or why it is none.
fn comparison(json: &[u8]) -> Result<Comparison, String> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u32,
    }
    let value: serde_json::Value =
        serde_json::from_slice(json).map_err(|error| format!("not JSON: {error}"))?;
    let Versioned { v } = Versioned::deserialize(&value)
        .map_err(|error| format!("not a comparison of tscap: {error}"))?;
    if v != VERSION {
        return Err(format!(
            "version {v}, and this tscap reads version {VERSION}"
        ));
    }
    Comparison::deserialize(value).map_err(|error| format!("not a whole comparison: {error}"))
}
