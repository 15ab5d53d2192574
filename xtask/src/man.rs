//! `man`: writes the man pages and the shell completions, or checks that the
//! committed ones are what the options give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, target_dir};
use crate::{paths, sh};

/// What the example `man` writes, in a folder of its own each.
const FOLDERS: [&str; 2] = ["man", "completions"];

/// Options of `man`.
#[derive(clap::Args)]
pub struct Args {
    /// Compare with the committed files, and write none
    #[arg(long)]
    check: bool,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    let out = target_dir()?.join("man");
    let committed = paths::root().join("docs");
    for name in FOLDERS {
        remove(&out.join(name))?;
    }
    // Built apart from xtask, which needs nothing of tscap.
    sh::run(
        cargo()
            .args(["run", "--quiet", "--package", "tscap", "--example", "man"])
            .arg(&out),
    )?;
    for name in FOLDERS {
        let [old, new] = [&committed, &out].map(|folder| folder.join(name));
        if args.check {
            compare(&old, &new)?
        } else {
            replace(&old, &new)?
        }
    }
    Ok(())
}

fn compare(committed: &Path, written: &Path) -> Result<()> {
    let (committed_files, written_files) = (read(committed)?, read(written)?);
    let mut names: Vec<_> = committed_files.keys().chain(written_files.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| committed_files.get(*name) != written_files.get(*name));
    if !names.is_empty() {
        bail!(
            "{}: {names:?} are not what the options of tscap give: run `cargo xtask man` and \
             commit the result",
            committed.display()
        );
    }
    Ok(())
}

fn replace(committed: &Path, written: &Path) -> Result<()> {
    remove(committed)?;
    fs::create_dir_all(committed)
        .with_context(|| format!("cannot make {}", committed.display()))?;
    for (name, bytes) in read(written)? {
        let path = committed.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The files of a folder by their names; none if there is no such folder.
fn read(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    if !folder.exists() {
        return Ok(BTreeMap::new());
    }
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    entries
        .map(|entry| {
            let path = entry?.path();
            let name = path.file_name().expect("an entry has a name").into();
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((name, bytes))
        })
        .collect()
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_differs_or_is_left_over_is_drift() {
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
        fs::create_dir(&new).unwrap();
        fs::write(new.join("a.1"), "a").unwrap();
        assert!(compare(&old, &new).is_err());

        replace(&old, &new).unwrap();
        compare(&old, &new).unwrap();

        fs::write(old.join("b.1"), "left over").unwrap();
        let error = compare(&old, &new).unwrap_err().to_string();
        assert!(error.contains("b.1") && !error.contains("a.1"), "{error}");

        replace(&old, &new).unwrap();
        fs::write(old.join("a.1"), "differs").unwrap();
        assert!(compare(&old, &new).is_err());
    }
}
