//! The packages that are not Debian's own, in Debian.

use std::process::Command;

use anyhow::{Result, ensure};

use super::Bed;
use super::capturing::captured;
use super::system::System;
use crate::sh;

/// The rpm, installed by this machine's rpm: members of the group capture.
pub fn rpm(bed: &Bed<'_>) -> Result<()> {
    let system = System::new(bed)?;
    system.install(&["passwd"])?;
    system.sh("useradd --create-home alice")?;
    let rpm = || {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(&system.root);
        rpm
    };
    // Debian's packages are not in its database.
    sh::run(rpm().args(["--install", "--nodeps"]).arg(&bed.packages.rpm))?;
    capture_as_alice(bed, &system, ".rpm")?;
    sh::run(rpm().args(["--erase", "--nodeps", "tscap"]))?;
    let left = system.sh("find /usr -xdev -name '*tscap*'")?;
    ensure!(left.is_empty(), "the .rpm leaves {left}");
    Ok(())
}

/// The tarball, as its INSTALL says.
pub fn tarball(bed: &Bed<'_>) -> Result<()> {
    let system = System::new(bed)?;
    system.install(&["libcap2-bin", "passwd"])?;
    system.sh("useradd --create-home alice")?;
    system.bring(&bed.packages.tarball)?;
    let note = include_str!("../../../../packaging/tarball/INSTALL");
    let commands = |from: &str| {
        let after = note.split_once(from).map_or("", |(_, after)| after);
        let lines = after.lines().skip_while(|line| !line.starts_with("    "));
        let lines = lines.take_while(|line| line.starts_with("    "));
        format!("cd /root\n{}", lines.collect::<Vec<_>>().join("\n"))
    };
    system.sh(&commands("as root:"))?;
    system.sh(&commands("without being root:"))?;
    capture_as_alice(bed, &system, "tarball")?;
    system.sh(&commands("To remove it:"))?;
    let left = system.sh("find /usr/local -type f")?;
    ensure!(left.is_empty(), "the tarball leaves {left}");
    Ok(())
}

/// Captures as a member of the group, by the program of a package.
fn capture_as_alice(bed: &Bed<'_>, system: &System, package: &str) -> Result<()> {
    system.sh("usermod --append --groups tscap alice")?;
    let command = system.command_of("alice", "tscap");
    let frames = captured(bed, command, "/home/alice/x.pcapng")?;
    println!("captured {frames} frames by the {package}");
    Ok(())
}
