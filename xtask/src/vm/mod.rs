//! `test --vm`: the checks in virtual machines, with Debian's kernels.

pub mod architecture;
mod module;
pub mod packages;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use self::architecture::Architecture;
use self::module::Headers;
use self::packages::{Apt, unpacked};
use crate::cargo::{cargo, target_dir};
use crate::tally::Tally;
use crate::{paths, sh};

/// The test target with the checks; it is no part of a plain `cargo test`.
pub const TARGET: &str = "vm";

/// What builds the modules, and what reads the captures.
const PROGRAMS: [&str; 7] = [
    "setpriv", "strip", "make", "pahole", "tshark", "capinfos", "tcpdump",
];

/// What is needed for one kernel.
struct Needed {
    kernel: PathBuf,
    headers: Headers,
    busybox: PathBuf,
}

/// Which checks to run on which kernels.
pub struct Which<'a> {
    /// On machines of this architecture.
    pub architecture: Architecture,
    /// On this kernel only.
    pub kernel: Option<&'a str>,
    /// Only those with one of these in their names, if there is any.
    pub check: &'a [String],
    /// None with one of these in its name.
    pub skip: &'a [String],
    /// With the program as it is released: processors are emulated, and what is not optimised
    /// takes most of a check.
    pub is_released: bool,
}

/// Runs checks.
pub fn run(tally: &mut Tally, which: &Which<'_>, no_skip: bool) -> Result<()> {
    let all = which.architecture.kernels();
    let kernels: Vec<_> = all
        .into_iter()
        .filter(|(version, _)| which.kernel.is_none_or(|wanted| wanted == *version))
        .collect();
    if kernels.is_empty() {
        let known: Vec<_> = all.iter().map(|(version, _)| *version).collect();
        bail!("no such kernel here, only {}", known.join(", "));
    }
    let folder = target_dir()?.join("vm");
    let alone = one_at_a_time(&folder)?;
    let machines = match Machines::of(which.architecture, &folder) {
        Ok(machines) => machines,
        Err(reason) => {
            println!("SKIPPED virtual machines: {reason:#}");
            tally.skipped += 1;
            return Ok(());
        }
    };
    // No reason to skip: it is ours.
    let foreign = which.architecture.foreign(&folder, which.is_released)?;
    drop(alone);
    for (version, package) in kernels {
        println!("\nLinux {version}");
        let alone = one_at_a_time(&folder)?;
        let needed = match machines.have(&folder, version, package) {
            Ok(needed) => needed,
            Err(reason) => {
                println!("SKIPPED Linux {version}: {reason:#}");
                tally.skipped += 1;
                continue;
            }
        };
        // No reason to skip: it is ours.
        let module = module::build(&folder, &needed.headers)?;
        let nic = module::build_nic(&folder, &needed.headers)?;
        drop(alone);
        tally.run_twice(|again| {
            // It ends with this task, and with it the checks and their machine.
            let cargo = cargo();
            let mut checks = Command::new("setpriv");
            checks
                .args(["--pdeathsig", "KILL"])
                .arg(cargo.get_program());
            checks.current_dir(paths::root());
            checks.args(["test", "--no-fail-fast", "--package", "tscap"]);
            if which.is_released {
                checks.arg("--release");
            }
            checks.args(["--test", TARGET, "--"]);
            match again {
                Some(again) if !again.tests.is_empty() => {
                    _ = checks.env("TSCAP_VM_ONLY", again.tests.join(","));
                }
                // The harness takes one part.
                _ if !which.check.is_empty() => {
                    _ = checks.env("TSCAP_VM_PARTS", which.check.join(","));
                }
                _ => {}
            }
            checks.args(which.skip.iter().flat_map(|part| ["--skip", part]));
            checks.env("TSCAP_VM_KERNEL", &needed.kernel);
            checks.env("TSCAP_VM_MODULE", &module);
            checks.envs(nic.iter().map(|nic| ("TSCAP_VM_NIC", nic)));
            checks.env("TSCAP_VM_BUSYBOX", &needed.busybox);
            if let Some(foreign) = &foreign {
                foreign.tell(&mut checks);
            }
            if no_skip {
                checks.env("TSCAP_NO_SKIP", "1");
            }
            checks
        })?;
    }
    Ok(())
}

/// Waits until no other run fetches or builds in `folder`; none begins until the file is
/// dropped. Runs for different kernels share packages.
fn one_at_a_time(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// What the machines of all kernels have in common.
struct Machines {
    architecture: Architecture,
    /// Knows their packages.
    apt: Apt,
}

impl Machines {
    /// Looks for what they take, and fetches programs of another architecture.
    fn of(architecture: Architecture, folder: &Path) -> Result<Self> {
        let all = PROGRAMS.iter().chain(architecture.programs());
        let lacking: Vec<_> = all
            .copied()
            .filter(|program| sh::find(program).is_none())
            .collect();
        if !lacking.is_empty() {
            bail!(
                "{} missing (`cargo xtask setup --vm` installs it)",
                lacking.join(", ")
            );
        }
        let apt = architecture.apt(folder)?;
        architecture.fetch(folder, &apt)?;
        Ok(Self { architecture, apt })
    }

    /// Fetches what is not there yet.
    fn have(&self, folder: &Path, version: &str, stand_in: &str) -> Result<Needed> {
        let package = Apt::default().candidate("busybox-static")?;
        let busybox = unpacked(folder, &package.folder_name(), &[package], |_| Ok(()))?;
        let busybox = busybox.join("bin/busybox");
        let package = self.apt.behind(stand_in)?;
        let kernel = unpacked(folder, &package.folder_name(), &[package], |kernel| {
            depmod(&busybox, kernel)
        })?;
        let release = release(&kernel)?;
        if !release.starts_with(&format!("{version}.")) {
            bail!("{stand_in} is Linux {release} by now");
        }
        Ok(Needed {
            headers: module::headers(self.architecture, &self.apt, folder, &kernel, &release)?,
            kernel,
            busybox,
        })
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn runs_beside_each_other_prepare_in_turn() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let is_held = AtomicBool::new(false);
        let hold = || -> Result<()> {
            for _ in 0..200 {
                let alone = one_at_a_time(&folder.path().join("vm"))?;
                assert!(!is_held.swap(true, Ordering::SeqCst), "two at once");
                thread::yield_now();
                is_held.store(false, Ordering::SeqCst);
                drop(alone);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let beside = scope.spawn(hold);
            hold()?;
            beside.join().expect("the other thread ends")
        })
    }
}
