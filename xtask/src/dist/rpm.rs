//! `tscap-VERSION.x86_64.rpm`, by rpmbuild: `packaging/rpm/tscap.spec` says what it does
//! where it is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::empty;
use super::files::RPM;
use super::source::{EPOCH, Source};
use crate::{paths, sh};

/// Builds the package; returns where it is.
pub fn build(folder: &Path, source: &Source, program: &Path) -> Result<PathBuf> {
    let (root, all) = RPM.stage(program, folder.join("rpm"))?;
    let list = list(all.iter().map(|it| it.path.as_path()));
    let work = empty(folder.join("rpmbuild"))?;
    let files = work.join("files");
    fs::write(&files, list.join("\n") + "\n")
        .with_context(|| format!("cannot write {}", files.display()))?;
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", "x86_64"]);
    for (name, value) in [
        ("_topdir", work.display().to_string()),
        ("_rpmdir", folder.display().to_string()),
        (
            "_rpmfilename",
            "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm".into(),
        ),
        ("_tree", root.display().to_string()),
        ("_list", files.display().to_string()),
        ("_version", source.version.into()),
    ] {
        build.args(["--define", &format!("{name} {value}")]);
    }
    build.arg(paths::root().join("packaging/rpm/tscap.spec"));
    build.env(EPOCH, source.epoch.to_string());
    sh::run(&mut build)?;
    Ok(folder.join(format!("tscap-{}.x86_64.rpm", source.revised())))
}

/// What the package owns: files, and the folders that are its own.
fn list<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<String> {
    let mut list = Vec::new();
    for file in files {
        let is_own = |it: &&Path| it.components().any(|part| part.as_os_str() == "tscap");
        let folders = file.ancestors().skip(1).filter(is_own);
        list.extend(folders.map(|folder| format!("%dir /{}", folder.display())));
        // What an administrator changes stays.
        let config = if file.starts_with("etc") {
            "%config(noreplace) "
        } else {
            ""
        };
        list.push(format!("{config}/{}", file.display()));
    }
    list.sort();
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_its_own_go_with_the_package() {
        let files = [
            "usr/bin/tscap",
            "etc/default/tscap",
            "usr/share/doc/tscap/docs/a.md",
            "usr/share/man/man1/tscap.1",
        ];
        let list = list(files.into_iter().map(Path::new));
        let expected = [
            "%config(noreplace) /etc/default/tscap",
            "%dir /usr/share/doc/tscap",
            "%dir /usr/share/doc/tscap/docs",
            "/usr/bin/tscap",
            "/usr/share/doc/tscap/docs/a.md",
            "/usr/share/man/man1/tscap.1",
        ];
        assert_eq!(list, expected);
    }
}
