//! The kernel module, built by DKMS for Debian's own kernel.

use anyhow::{Context as _, Result, ensure};

use super::Bed;
use super::snapshot::Snapshot;
use super::system::System;

/// Installs the package, builds for the kernel whose headers are there, and purges.
pub fn check(bed: &Bed<'_>) -> Result<()> {
    let system = System::new(bed)?;
    system.install(&["dkms", "pahole", "linux-headers-amd64"])?;
    let before = Snapshot::of(&system)?;
    system.install(&[
        "--no-install-recommends",
        &system.bring(&bed.packages.dkms)?,
    ])?;
    let headers = system.sh("ls -d /lib/modules/*/build")?;
    let kernel = headers
        .split('/')
        .nth(3)
        .context("no headers were installed")?;
    system.sh(&format!(
        "dkms install -m tscap -v {} -k {kernel}",
        env!("CARGO_PKG_VERSION")
    ))?;
    let module = system.sh(&format!(
        "find /lib/modules/{kernel}/updates -name 'tscap.ko*'"
    ))?;
    ensure!(!module.is_empty(), "DKMS installed no module");
    let shown = system.sh(&format!("modinfo --field description {}", module.trim()))?;
    println!("Linux {kernel}: {}", shown.trim());
    system.sh("apt-get --quiet --yes purge tscap-dkms")?;
    before.compare(&Snapshot::of(&system)?)
}
