//! `test --vm`: the checks in virtual machines, with Debian's kernels.

mod packages;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use self::packages::Package;
use crate::cargo::{cargo, target_dir};
use crate::tally::Tally;
use crate::{paths, sh};

/// The test target with the checks; it is no part of a plain `cargo test`.
pub const TARGET: &str = "vm";

/// Versions of Linux, and the packages that stand for their latest kernels.
const KERNELS: [(&str, &str); 2] = [
    ("6.1", "linux-image-cloud-amd64"),
    ("6.12", "linux-image-6.12-cloud-amd64"),
];

/// What boots the machines, and what reads the captures.
const PROGRAMS: [&str; 7] = [
    "qemu-system-x86_64",
    "setpriv",
    "strip",
    "ldd",
    "tshark",
    "capinfos",
    "tcpdump",
];

/// Runs the checks, those with `filter` in their names, on each kernel or one.
pub fn run(
    tally: &mut Tally,
    kernel: Option<&str>,
    filter: Option<&str>,
    no_skip: bool,
) -> Result<()> {
    let kernels: Vec<_> = KERNELS
        .into_iter()
        .filter(|(version, _)| kernel.is_none_or(|wanted| wanted == *version))
        .collect();
    if kernels.is_empty() {
        let known: Vec<_> = KERNELS.iter().map(|(version, _)| *version).collect();
        bail!("no such kernel here, only {}", known.join(", "));
    }
    for (version, package) in kernels {
        println!("\nLinux {version}");
        let (kernel, busybox) = match have(version, package) {
            Ok(folders) => folders,
            Err(reason) => {
                println!("SKIPPED Linux {version}: {reason:#}");
                tally.skipped += 1;
                continue;
            }
        };
        // It ends with this task, and with it the checks and their machine.
        let cargo = cargo();
        let mut checks = Command::new("setpriv");
        checks
            .args(["--pdeathsig", "KILL"])
            .arg(cargo.get_program());
        checks.current_dir(paths::root());
        checks.args(["test", "--package", "tscap", "--test", TARGET, "--"]);
        checks.args(filter);
        checks.env("TSCAP_VM_KERNEL", kernel);
        checks.env("TSCAP_VM_BUSYBOX", busybox);
        if no_skip {
            checks.env("TSCAP_NO_SKIP", "1");
        }
        tally.run(&mut checks)?;
    }
    Ok(())
}

/// The folder of a kernel and the busybox, fetched if need be.
fn have(version: &str, package: &str) -> Result<(PathBuf, PathBuf)> {
    let lacking: Vec<_> = PROGRAMS
        .into_iter()
        .filter(|program| sh::find(program).is_none())
        .collect();
    if !lacking.is_empty() {
        bail!(
            "{} missing (`cargo xtask setup --vm` installs it)",
            lacking.join(", ")
        );
    }
    let folder = target_dir()?.join("vm");
    let busybox = Package::candidate("busybox-static")?;
    let busybox = busybox.unpacked(&folder, |_| Ok(()))?.join("bin/busybox");
    let kernel = Package::behind(package)?.unpacked(&folder, |kernel| depmod(&busybox, kernel))?;
    match release(&kernel)? {
        release if release.starts_with(&format!("{version}.")) => Ok((kernel, busybox)),
        release => bail!("{package} is Linux {release} by now"),
    }
}

/// Lists which modules need which: the package leaves it to its installation.
fn depmod(busybox: &Path, kernel: &Path) -> Result<()> {
    let mut depmod = Command::new(busybox);
    depmod
        .args(["depmod", "-b"])
        .arg(kernel)
        .arg(release(kernel)?);
    packages::run("busybox", &mut depmod)
}

/// The only release in an unpacked kernel package.
fn release(kernel: &Path) -> Result<String> {
    let modules = kernel.join("lib/modules");
    let entry = modules.read_dir()?.next();
    match entry {
        Some(entry) => Ok(entry?.file_name().to_string_lossy().into_owned()),
        None => bail!("{} is empty", modules.display()),
    }
}
