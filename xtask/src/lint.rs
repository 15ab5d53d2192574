//! `lint`: words, formatting and clippy.

use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::cargo;
use crate::{paths, sh, words};

/// Runs the task.
pub fn main() -> Result<()> {
    words::check()?;
    require("fmt", "rustfmt")?;
    require("clippy", "clippy")?;
    sh::run(quiet().args(["fmt", "--all", "--check"]))?;
    // Not a member of the workspace, and clippy cannot build it for this host.
    sh::run(
        quiet()
            .args(["fmt", "--check"])
            .current_dir(paths::root().join("tscap-ebpf")),
    )?;
    sh::run(quiet().args(["clippy", "--workspace", "--all-targets", "--", "-Dwarnings"]))
}

fn require(subcommand: &str, component: &str) -> Result<()> {
    if !sh::succeeds(quiet().args([subcommand, "--version"])) {
        bail!(
            "`cargo {subcommand}` is missing: install {component} \
             (`rustup component add {component}`, or your distribution's package)"
        );
    }
    Ok(())
}

/// A cargo for which rustup downloads nothing.
fn quiet() -> Command {
    let mut cargo = cargo();
    cargo.env("RUSTUP_AUTO_INSTALL", "0");
    cargo
}
