//! `dist --test`: the packages in bare systems, in namespaces of their own.

mod archives;
mod base;
mod capturing;
mod lifecycle;
mod module;
mod network;
mod others;
mod snapshot;
mod system;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use self::base::Base;
use self::network::Network;
use super::Packages;
use crate::interrupt;

/// A Debian to install in.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub enum Suite {
    /// Debian 12
    #[default]
    Bookworm,
    /// Debian 13, and the kernel module for its kernel by DKMS
    Trixie,
}

impl Suite {
    /// What apt calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
        }
    }

    /// Whether its kernel's headers have all that the module is built with: those of
    /// Debian 12 lack resolve_btfids.
    fn builds_module(self) -> bool {
        matches!(self, Self::Trixie)
    }
}

/// What each part of the tests is given.
struct Bed<'a> {
    base: &'a Base,
    network: &'a Network,
    packages: &'a Packages,
}

/// Runs the tests.
pub fn run(folder: &Path, packages: &Packages, suite: Suite) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("only root can install packages in a bare system and capture there");
    }
    interrupt::watch()?;
    step("what is in the packages", || {
        archives::check(folder, packages)
    })?;
    let base = step("a bare system", || Base::of(folder, suite, packages))?;
    // What follows has a network and mounts of its own, which end with this process.
    let network = Network::enter()?;
    let bed = Bed {
        base: &base,
        network: &network,
        packages,
    };
    step("captures by users", || capturing::check(&bed))?;
    step("upgrade, answers, purge", || lifecycle::check(&bed, folder))?;
    step("rpm", || others::rpm(&bed))?;
    step("tarball", || others::tarball(&bed))?;
    if suite.builds_module() {
        step("module by DKMS", || module::check(&bed))?;
    }
    println!("dist: the packages passed in {}", suite.name());
    Ok(())
}

/// Runs a part, and prints the seconds that it takes.
fn step<T>(name: &str, part: impl FnOnce() -> Result<T>) -> Result<T> {
    interrupt::check()?;
    println!("\ndist: {name}");
    let start = Instant::now();
    let done = part().with_context(|| name.to_owned())?;
    println!("dist: {name}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(done)
}
