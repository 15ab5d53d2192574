//! What machines are of, and what differs by that.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::packages::Apt;
use crate::dist::{apt, empty};
use crate::{arm64, sh};

/// The architecture of the machines, as Debian names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// x86-64.
    #[default]
    Amd64,
    /// arm64, by emulation of every instruction on another machine.
    Arm64,
}

/// Whose programs a machine runs, with all that they link to.
const PROGRAMS: [&str; 5] = [
    "busybox-static",
    "iproute2",
    "libpcap0.8",
    "util-linux",
    "xdp-tools",
];

/// Where they are unpacked.
const ROOT: &str = "root-arm64";

/// What the checks are given that this machine's own programs are not.
pub struct Foreign {
    root: PathBuf,
    tscap: PathBuf,
    agent: PathBuf,
}

impl Architecture {
    /// Versions of Linux, and the packages that stand for their latest kernels.
    pub fn kernels(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Amd64 => [
                ("6.1", "linux-image-cloud-amd64"),
                ("6.12", "linux-image-6.12-cloud-amd64"),
            ],
            Self::Arm64 => [
                ("6.1", "linux-image-cloud-arm64"),
                ("6.12", "linux-image-6.12-cloud-arm64"),
            ],
        }
    }

    /// What boots the machines, and what is run for them besides.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &["qemu-system-x86_64", "xdp-loader", "ldd", "gcc-12", "lz4"],
            Self::Arm64 => &[
                "qemu-system-aarch64",
                "qemu-aarch64",
                "aarch64-linux-gnu-gcc",
            ],
        }
    }

    /// What `make` is told to build a module.
    pub fn make_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &[],
            Self::Arm64 => &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
        }
    }

    /// What knows its packages: lists of their own for another architecture, in `folder`, fetched
    /// anew by each run.
    pub fn apt(self, folder: &Path) -> Result<Apt> {
        if self == Self::Amd64 {
            return Ok(Apt::default());
        }
        let state = empty(folder.join("apt-arm64"))?;
        let options = apt::lists(&state, &apt::own_suite()?, Some(arm64::ARCHITECTURE))?;
        Ok(Apt::with(options))
    }

    /// Fetches its programs into `folder`, if they are not this machine's.
    pub fn fetch(self, folder: &Path, apt: &Apt) -> Result<()> {
        let root = folder.join(ROOT);
        if self == Self::Amd64 || root.exists() {
            return Ok(());
        }
        let work = empty(root.with_extension("partial"))?;
        apt.unpack_with_all(&PROGRAMS, &work)?;
        std::fs::rename(&work, &root).with_context(|| format!("cannot make {}", root.display()))
    }

    /// Builds tscap and the checks for it, which find its programs in `folder`; `None` if it is
    /// this machine's.
    pub fn foreign(self, folder: &Path, is_released: bool) -> Result<Option<Foreign>> {
        if self == Self::Amd64 {
            return Ok(None);
        }
        let profile = is_released.then_some("--release");
        let mut tscap = arm64::cargo()?;
        tscap.args(["build", "--package", "tscap", "--bin", "tscap"]);
        let mut agent = arm64::cargo()?;
        agent.args([
            "test",
            "--no-run",
            "--package",
            "tscap",
            "--test",
            super::TARGET,
        ]);
        Ok(Some(Foreign {
            root: folder.join(ROOT),
            tscap: built(tscap.args(profile), "tscap")?,
            agent: built(agent.args(profile), super::TARGET)?,
        }))
    }
}

impl Foreign {
    /// Tells the checks of it.
    pub fn tell(&self, checks: &mut Command) {
        checks.env("TSCAP_VM_ARCHITECTURE", arm64::ARCHITECTURE);
        checks.env("TSCAP_VM_ROOT", &self.root);
        checks.env("TSCAP_VM_TSCAP", &self.tscap);
        checks.env("TSCAP_VM_AGENT", &self.agent);
    }
}

/// A message of cargo's, as far as it is of interest.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Where the target `name` is that `cargo` builds.
fn built(cargo: &mut Command, name: &str) -> Result<PathBuf> {
    cargo.arg("--message-format=json-render-diagnostics");
    cargo.stderr(std::process::Stdio::inherit());
    eprintln!("+ {}", sh::line(cargo));
    let output = cargo.output().map_err(|e| sh::not_started(cargo, &e))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", sh::line(cargo), output.status);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let of_name = |it: &Message| it.target.as_ref().is_some_and(|it| it.name == name);
    let mut found = messages.filter(of_name).filter_map(|it| it.executable);
    found
        .next()
        .with_context(|| format!("cargo built no {name}"))
}
