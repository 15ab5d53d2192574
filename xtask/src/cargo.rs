//! Asking cargo about this workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::{paths, sh};

/// The part of `cargo metadata` that is of interest here.
#[derive(Deserialize)]
pub struct Metadata {
    /// Packages of the workspace, and their dependencies where asked for.
    pub packages: Vec<Package>,
    /// Where cargo puts what it builds.
    pub target_directory: PathBuf,
}

/// One package.
#[derive(Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it came from; absent for packages of the checkout.
    pub source: Option<String>,
    /// Its `Cargo.toml`.
    pub manifest_path: PathBuf,
    /// What it builds.
    pub targets: Vec<Target>,
}

/// One thing that a package builds.
#[derive(Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `test`, `bench`, `bin`, `lib`, …
    pub kind: Vec<String>,
}

/// The cargo that runs this task, started at the root of the checkout.
pub fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo.current_dir(paths::root());
    cargo
}

impl Metadata {
    /// Reads what `command`, a `cargo metadata`, prints.
    pub fn read(command: &mut Command) -> Result<Self> {
        serde_json::from_str(&sh::output(command)?)
            .with_context(|| format!("cannot understand what `{}` printed", sh::line(command)))
    }

    /// The packages of this workspace, without dependencies.
    pub fn of_workspace() -> Result<Self> {
        Self::read(cargo().args(["metadata", "--no-deps", "--format-version=1"]))
    }

    /// Names of the targets of one kind of one package, in order; of all packages without one.
    pub fn targets(&self, package: Option<&str>, kind: &str) -> Vec<String> {
        let mut names: Vec<_> = self
            .packages
            .iter()
            .filter(|p| package.is_none_or(|package| p.name == package))
            .flat_map(|p| &p.targets)
            .filter(|target| target.kind.iter().any(|k| k == kind))
            .map(|target| target.name.clone())
            .collect();
        names.sort();
        names
    }
}

/// Cargo's target directory of this workspace.
pub fn target_dir() -> Result<PathBuf> {
    Ok(Metadata::of_workspace()?.target_directory)
}

/// The folder that a program installed by cargo lies in, if cargo has a home.
pub fn bin_dir() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("bin"))
}
