//! `bench`: runs one benchmark of the `tscap` package.

use anyhow::{Result, bail};

use crate::cargo::{Metadata, cargo};
use crate::sh;

const PACKAGE: &str = "tscap";

/// Options of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// List the benchmarks
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Which benchmark
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Handed on to the benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    let benches = Metadata::of_workspace()?.targets(Some(PACKAGE), "bench");
    let Some(name) = &args.name else {
        for bench in benches {
            println!("{bench}");
        }
        return Ok(());
    };
    if !benches.contains(name) {
        bail!("no benchmark `{name}`; there are: {}", benches.join(", "));
    }
    sh::run(
        cargo()
            .args(["bench", "--package", PACKAGE, "--bench", name, "--"])
            .args(&args.args),
    )
}
