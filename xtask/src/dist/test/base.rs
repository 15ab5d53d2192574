//! A bare Debian: what debootstrap's smallest variant with apt has, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Suite;
use crate::dist::{Packages, apt, empty};
use crate::sh;

/// Besides what the packages depend on: reads captures.
const TSHARK: &str = "tshark";
/// What the kernel module is built against.
const HEADERS: &str = "linux-headers-amd64";

/// An unpacked system, which nobody changes, and the packages in it that apt may ask for.
pub struct Base {
    /// Its root.
    pub root: PathBuf,
}

impl Base {
    /// Makes it, unless it is there; fetches what the tests install later without a
    /// network.
    pub fn of(folder: &Path, suite: Suite, packages: &Packages) -> Result<Self> {
        let root = folder.join(format!("root-{}", suite.name()));
        if !root.exists() {
            bootstrap(suite, &root)?;
        }
        let base = Self { root };
        let mut wanted = vec![base.bring(&packages.deb)?, TSHARK.into()];
        let dkms_deb = base.bring(&packages.dkms)?;
        if suite.builds_module() {
            wanted.extend([dkms_deb, HEADERS.into()]);
        }
        base.fetch(&wanted)?;
        Ok(base)
    }

    /// Puts a file into the root's own folder; returns where it is there.
    fn bring(&self, file: &Path) -> Result<String> {
        let name = file.file_name().context("a package has a name")?;
        let inside = Path::new("/root").join(name);
        let to = self.root.join("root").join(name);
        fs::copy(file, &to).with_context(|| format!("cannot write {}", to.display()))?;
        Ok(inside.display().to_string())
    }

    fn fetch(&self, wanted: &[String]) -> Result<()> {
        // Names are resolved as this machine does it.
        for file in ["etc/resolv.conf", "etc/hosts"] {
            let to = self.root.join(file);
            fs::copy(Path::new("/").join(file), &to)
                .with_context(|| format!("cannot write {}", to.display()))?;
        }
        let apt_get = || {
            let mut apt_get = Command::new("chroot");
            apt_get
                .arg(&self.root)
                .args(["apt-get", "--quiet", "--yes"]);
            apt_get.stdout(Stdio::null());
            apt_get
        };
        sh::run(apt_get().arg("update"))?;
        sh::run(apt_get().args(["--download-only", "install"]).args(wanted))
    }
}

fn bootstrap(suite: Suite, root: &Path) -> Result<()> {
    let work = empty(root.with_extension("partial"))?;
    let list = work.with_extension("list");
    fs::write(&list, apt::sources(suite.name())?)?;
    let options = work.with_extension("conf");
    fs::write(&options, acquire()?)?;
    let mut bootstrap = Command::new("mmdebstrap");
    bootstrap.args(["--mode=root", "--variant=apt", "--quiet"]);
    // It lasts as long as the tests do.
    bootstrap.arg("--dpkgopt=force-unsafe-io");
    bootstrap.arg(format!("--aptopt={}", options.display()));
    bootstrap.arg(suite.name()).arg(&work).arg(&list);
    sh::run(&mut bootstrap)?;
    fs::rename(&work, root).with_context(|| format!("cannot make {}", root.display()))
}

/// How this machine's apt fetches: proxies, and what it does not check.
fn acquire() -> Result<String> {
    let mut dump = Command::new("apt-config");
    dump.args(["dump", "--no-empty", "--format", "%F \"%v\";%n"]);
    let dump = sh::output(&mut dump)?;
    let kept = [
        "Acquire::http",
        "Acquire::https",
        "Acquire::Check-",
        "Acquire::Languages",
    ];
    let lines = dump
        .lines()
        .filter(|line| kept.iter().any(|start| line.starts_with(start)));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}
