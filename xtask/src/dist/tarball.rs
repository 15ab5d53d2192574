//! `tscap-VERSION-x86_64.tar.gz`, for every distribution with glibc.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::files::TARBALL;
use super::source::Source;
use crate::{paths, sh};

/// Builds the tarball; returns where it is.
pub fn build(folder: &Path, source: &Source, program: &Path) -> Result<PathBuf> {
    let name = format!("tscap-{}-x86_64", source.version);
    let (root, _) = TARBALL.stage(program, folder.join(&name))?;
    let note = paths::root().join("packaging/tarball/INSTALL");
    fs::copy(&note, root.join("INSTALL"))
        .with_context(|| format!("cannot copy {}", note.display()))?;
    let tarball = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--file").arg(&tarball);
    tar.args(["--use-compress-program", "gzip -9n"]);
    // The same bytes whoever builds it, and whenever.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--format=gnu", &format!("--mtime=@{}", source.epoch)]);
    tar.arg("--directory").arg(folder).arg(&name);
    sh::run(&mut tar)?;
    Ok(tarball)
}
