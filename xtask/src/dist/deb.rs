//! `tscap_VERSION_amd64.deb`, by cargo-deb. `[package.metadata.deb]` of tscap's
//! `Cargo.toml` and `packaging/debian` say what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files::DEB;
use super::source::{EPOCH, Source};
use crate::cargo::cargo;
use crate::{paths, sh};

/// Who is said to maintain the packages: of `[package.metadata.deb]`.
pub const MAINTAINER: &str = "The tscap authors <tscap@example.org>";

/// Builds the package; returns where it is.
pub fn build(folder: &Path, source: &Source, program: &Path) -> Result<PathBuf> {
    DEB.stage(program, folder.join("deb"))?;
    let changelog = folder.join("changelog");
    fs::write(&changelog, debian_changelog("tscap", source)?)
        .with_context(|| format!("cannot write {}", changelog.display()))?;
    let deb = folder.join(format!("tscap_{}_amd64.deb", source.revised()));
    let mut cargo = cargo();
    cargo.args([
        "deb",
        "--package",
        "tscap",
        "--no-build",
        "--no-strip",
        "--quiet",
    ]);
    cargo.arg("--output").arg(&deb);
    cargo.env(EPOCH, source.epoch.to_string());
    sh::run(cargo.current_dir(paths::root()))?;
    Ok(deb)
}

/// The changelog of a package, of this version alone: what changed in the program is
/// elsewhere.
pub fn debian_changelog(package: &str, source: &Source) -> Result<String> {
    Ok(format!(
        "{package} ({}) unstable; urgency=medium\n\n  \
         * Package of tscap {}.\n\n \
         -- {MAINTAINER}  {}\n",
        source.revised(),
        source.version,
        source.date()?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_packages_have_one_maintainer() {
        let manifest = fs::read_to_string(paths::root().join("tscap/Cargo.toml")).unwrap();
        let maintainer = format!("maintainer = \"{MAINTAINER}\"");
        assert!(manifest.contains(&maintainer), "{maintainer}");
    }
}
