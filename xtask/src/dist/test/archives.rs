//! What can be said of the packages without installing them.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::super::Packages;
use crate::cargo::cargo;
use crate::sh;

/// What every package has, by the ends of the paths.
const EVERYWHERE: [&str; 11] = [
    "/bin/tscap",
    "/man/man1/tscap.1",
    "/man/man1/tscap-capture.1",
    "/bash-completion/completions/tscap",
    "/_tscap",
    "/tscap.fish",
    "/systemd/system/tscap@.service",
    "/systemd/system/tscap-clock.service",
    "/include/tscap_clock.h",
    "/tscap/README.md",
    "/tscap/docs/capture.md",
];

/// Checks lists, scripts and what Debian's own checker says.
pub fn check(folder: &Path, packages: &Packages) -> Result<()> {
    let mut deb = Command::new("dpkg-deb");
    let deb = sh::output(deb.arg("--contents").arg(&packages.deb))?;
    let mut rpm = Command::new("rpm");
    let rpm = sh::output(
        rpm.args(["--query", "--list", "--package"])
            .arg(&packages.rpm),
    )?;
    let mut tar = Command::new("tar");
    let tar = sh::output(tar.arg("--list").arg("--file").arg(&packages.tarball))?;
    for (kind, list) in [(".deb", &deb), (".rpm", &rpm), ("tarball", &tar)] {
        for end in EVERYWHERE {
            // Debian's manual pages are compressed.
            let is_it = |line: &str| line.trim_end_matches(".gz").ends_with(end);
            ensure!(list.lines().any(is_it), "the {kind} has no {end}:\n{list}");
        }
    }
    for (kind, list) in [(".deb", &deb), (".rpm", &rpm)] {
        let links = list.matches("/extcap/tscap-extcap").count();
        ensure!(
            links == 2,
            "the {kind} has {links} links for Wireshark:\n{list}"
        );
    }
    let mut scripts = Command::new("rpm");
    scripts.args(["--query", "--scripts", "--package"]);
    let scripts = sh::output(scripts.arg(&packages.rpm))?;
    ensure!(scripts.contains("groupadd --system tscap"), "{scripts}");

    // The tag is about uploads to Debian's archive.
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]);
    lintian.args(["--suppress-tags", "initial-upload-closes-no-bugs"]);
    sh::run(lintian.arg(&packages.deb).arg(&packages.dkms))?;

    let mut install = cargo();
    install.args([
        "install",
        "--path",
        "tscap",
        "--locked",
        "--force",
        "--no-track",
    ]);
    sh::run(install.arg("--root").arg(folder.join("cargo-install")))
}
