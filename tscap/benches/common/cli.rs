//! The command line of a bench, and its end: report printed, targets held to.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

/// Options of every bench.
#[derive(Debug, Args)]
pub struct Options {
    /// A short run for CI: fewer rounds, fewer frames
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Rounds of each part [default: its own number, fewer with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Fail when a target is missed
    #[arg(long)]
    assert: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Which parts of a bench are wanted.
#[derive(Debug, Args)]
pub struct Parts<P: ValueEnum + Send + Sync + 'static> {
    /// Only this part; may be given several times
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<P>,
}

impl<P: ValueEnum + PartialEq + Send + Sync> Parts<P> {
    /// Whether `part` is one of them.
    pub fn want(&self, part: P) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

impl Options {
    /// Rounds of a part that has `quick` of them in a quick run, else `full`.
    pub fn rounds(&self, quick: u32, full: u32) -> u32 {
        self.rounds.unwrap_or(if self.quick { quick } else { full })
    }
}

/// Runs bench `name`: measures, prints for people by `render` or for machines,
/// and lists by `missed` which targets are not reached.
pub fn main<R: Serialize>(
    name: &str,
    options: &Options,
    measure: impl FnOnce() -> Result<R>,
    render: fn(&R) -> String,
    missed: fn(&R) -> Vec<String>,
) -> ExitCode {
    if !options.bench {
        // `cargo test --all-targets` runs benches too.
        eprintln!("not measuring: this is for `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let result = measure().and_then(|report| {
        if options.json {
            println!("{}", serde_json::to_string(&report)?);
        } else {
            print!("{}", render(&report));
        }
        let missed = missed(&report);
        if options.assert && !missed.is_empty() {
            bail!("target missed: {}", missed.join("; "));
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
