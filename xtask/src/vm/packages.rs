//! Debian packages, unpacked under the target folder: nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Running;
use crate::sh;

/// Longest that fetching or unpacking a package may take.
const LIMIT: Duration = Duration::from_secs(300);

/// What knows packages: apt with these options.
#[derive(Clone, Debug, Default)]
pub struct Apt {
    options: Vec<String>,
}

/// A package in a version.
#[derive(Clone, Debug)]
pub struct Package {
    name: String,
    version: String,
    apt: Apt,
}

impl Apt {
    /// apt with lists of its own.
    pub fn with(options: Vec<String>) -> Self {
        Self { options }
    }

    /// The version of `name` that apt would install.
    pub fn candidate(&self, name: &str) -> Result<Package> {
        let version = field(&self.show(name)?, "Version").map(str::to_owned);
        let version = version.with_context(|| format!("apt knows no version of {name}"))?;
        Ok(self.package((name.into(), version)))
    }

    /// The one that the package `name`, which is empty, stands for.
    pub fn behind(&self, name: &str) -> Result<Package> {
        let shown = self.show(name)?;
        let depends = field(&shown, "Depends").and_then(exact);
        let depends = depends.with_context(|| format!("{name} stands for no other package"))?;
        Ok(self.package(depends))
    }

    fn package(&self, (name, version): (String, String)) -> Package {
        Package {
            name,
            version,
            apt: self.clone(),
        }
    }

    fn show(&self, name: &str) -> Result<String> {
        let mut show = Command::new("apt-cache");
        show.args(&self.options);
        let shown = sh::output(show.args(["--no-all-versions", "show", name]));
        shown.with_context(|| format!("apt knows no package {name}: `apt-get update` may help"))
    }

    /// Fetches packages with all that they depend on, and unpacks them into `folder`. The options
    /// must be of lists of their own, by which nothing is installed.
    pub fn unpack_with_all(&self, packages: &[&str], folder: &Path) -> Result<()> {
        let cache = folder.join("cache");
        let archives = cache.join("archives");
        fs::create_dir_all(archives.join("partial"))?;
        let mut fetch = Command::new("apt-get");
        fetch.args(&self.options).arg("-o");
        fetch.arg(format!("Dir::Cache={}", cache.display()));
        fetch.args(["-o", "APT::Sandbox::User=", "--quiet", "--yes"]);
        fetch.args(["--download-only", "--no-install-recommends", "install"]);
        run("apt-get", fetch.args(packages))?;
        for file in fs::read_dir(&archives)? {
            let file = file?.path();
            if file.extension().is_some_and(|it| it == "deb") {
                let mut unpack = Command::new("dpkg");
                run("dpkg", unpack.arg("-x").arg(&file).arg(folder))?;
            }
        }
        fs::remove_dir_all(&cache)?;
        Ok(())
    }
}

impl Package {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of a folder for it.
    pub fn folder_name(&self) -> String {
        format!("{}_{}", self.name, self.version.replace(':', "-"))
    }

    /// The packages that it depends on, those whose names begin with one of
    /// `prefixes`.
    pub fn depends(&self, prefixes: &[&str]) -> Result<Vec<Self>> {
        let shown = self.apt.show(&self.name)?;
        let depends = field(&shown, "Depends").unwrap_or_default().split(", ");
        let names = depends.filter_map(|depend| depend.split(' ').next());
        names
            .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .map(|name| self.apt.candidate(name))
            .collect()
    }

    /// Fetches it and unpacks it over what is in `folder`.
    fn unpack(&self, folder: &Path) -> Result<()> {
        let Self { name, version, apt } = self;
        unpack(&apt.options, &format!("{name}={version}"), folder)
    }
}

/// Fetches a package by apt, with these options, and unpacks it over what is in `folder`.
pub fn unpack(options: &[String], package: &str, folder: &Path) -> Result<()> {
    let download = folder.join("download");
    fs::create_dir_all(&download).with_context(|| format!("cannot make {}", download.display()))?;
    let mut fetch = Command::new("apt-get");
    fetch.args(options).args(["--quiet", "download", package]);
    // As root, apt would fetch as another user, who can't write here.
    fetch.args(["-o", "APT::Sandbox::User="]);
    run("apt-get", fetch.current_dir(&download))?;
    let mut files = fs::read_dir(&download)?;
    let file = files.next().context("apt-get downloaded nothing")??.path();
    run(
        "dpkg",
        Command::new("dpkg").arg("-x").arg(&file).arg(folder),
    )?;
    fs::remove_dir_all(&download)?;
    Ok(())
}

/// Makes the folder `name` with these packages unpacked in it, unless it is there;
/// `prepare` completes it.
pub fn unpacked(
    folder: &Path,
    name: &str,
    packages: &[Package],
    prepare: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let done = folder.join(name);
    if done.exists() {
        return Ok(done);
    }
    let work = folder.join(format!("{name}.partial"));
    if work.exists() {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    for package in packages {
        package.unpack(&work)?;
    }
    prepare(&work)?;
    fs::rename(&work, &done).with_context(|| format!("cannot make {}", done.display()))?;
    Ok(done)
}

/// Runs a command to its end under the deadline; its errors are shown.
pub fn run(name: &'static str, command: &mut Command) -> Result<()> {
    eprintln!("+ {}", sh::line(command));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().map_err(|e| sh::not_started(command, &e))?;
    let status = Running::new(name, child).wait(LIMIT)?;
    if !status.success() {
        bail!("`{}` failed: {status}", sh::line(command));
    }
    Ok(())
}

fn field<'a>(shown: &'a str, name: &str) -> Option<&'a str> {
    let mut values = shown
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    values.next()
}

/// `a-package (= 1.2-3)`, the first of a list.
fn exact(depends: &str) -> Option<(String, String)> {
    let first = depends.split(',').next()?;
    let (name, version) = first.split_once(" (= ")?;
    let version = version.trim().strip_suffix(')')?;
    Some((name.trim().into(), version.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "Package: linux-image-cloud-amd64\n\
        Version: 6.1.192-2\n\
        Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)\n";

    #[test]
    fn an_empty_package_stands_for_another() {
        assert_eq!(field(SHOWN, "Version"), Some("6.1.192-2"));
        let behind = ["linux-image-6.1.0-56-cloud-amd64", "6.1.192-2"];
        let behind = behind.map(str::to_owned).into();
        assert_eq!(field(SHOWN, "Depends").and_then(exact), Some(behind));
        assert_eq!(exact("libc6 (>= 2.36), libgcc-s1"), None);
    }
}
