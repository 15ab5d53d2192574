//! Every file of a system, to see what a package leaves behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::system::System;

/// What the kernel shows, and what apt and dpkg keep of every package.
const LEFT_OUT: [&str; 9] = [
    "proc",
    "sys",
    "root",
    "var/lib/dpkg",
    "var/lib/apt",
    "var/cache/apt",
    "var/cache/debconf",
    "var/cache/ldconfig",
    "var/log",
];
/// The files of users and groups have copies from before each change.
const COPY: char = '-';

/// Files by their paths: mode, owner, group, what is in them or where they lead.
pub struct Snapshot(BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)>);

impl Snapshot {
    /// What is there now.
    pub fn of(system: &System) -> Result<Self> {
        let mut files = BTreeMap::new();
        walk(&system.root, Path::new(""), &mut files)?;
        Ok(Self(files))
    }

    /// Fails if something is there now that was not, or is no longer, or differs.
    pub fn compare(&self, now: &Self) -> Result<()> {
        let mut names: Vec<_> = self.0.keys().chain(now.0.keys()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| self.0.get(*name) != now.0.get(*name));
        if !names.is_empty() {
            bail!("these files are not as they were: {names:?}");
        }
        Ok(())
    }
}

fn walk(
    root: &Path,
    folder: &Path,
    files: &mut BTreeMap<PathBuf, (u32, u32, u32, Vec<u8>)>,
) -> Result<()> {
    let path = root.join(folder);
    let entries = fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))?;
    for entry in entries {
        let name = folder.join(entry?.file_name());
        let is_copy = name.starts_with("etc") && name.display().to_string().ends_with(COPY);
        if is_copy || LEFT_OUT.iter().any(|it| name == Path::new(it)) {
            continue;
        }
        let path = root.join(&name);
        let meta = fs::symlink_metadata(&path)?;
        let content = if meta.is_symlink() {
            fs::read_link(&path)?.into_os_string().into_encoded_bytes()
        } else if name.starts_with("etc") && meta.is_file() {
            fs::read(&path)?
        } else {
            Vec::new()
        };
        let mode = meta.permissions().mode();
        files.insert(name.clone(), (mode, meta.uid(), meta.gid(), content));
        if meta.is_dir() {
            walk(root, &name, files)?;
        }
    }
    Ok(())
}
