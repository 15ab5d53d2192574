//! `setup`: installs what the tests, the demo and the eBPF build need on a
//! bare Debian 12. Does nothing where everything is there.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::{self, cargo};
use crate::{sh, toolchain};

/// What the demo runs: `ip`, `ss`, `ping`, `nc`, `tcpdump`.
const DEMO: [&str; 4] = ["iproute2", "iputils-ping", "netcat-openbsd", "tcpdump"];

/// What tests and benches compare with and look through. dropbear-bin is an SSH server
/// that installing does not start.
const TESTS: [&str; 13] = [
    "bpftool",
    "dropbear-bin",
    "ethtool",
    "libcap2-bin",
    "libpcap0.8",
    "netsniff-ng",
    "nftables",
    "strace",
    "systemd",
    "tshark",
    "util-linux",
    "wireshark-common",
    "xdp-tools",
];

/// Debian's Rust with a libcore for the BPF target, LLVM for bpf-linker, and
/// what building bpf-linker needs.
const EBPF: [&str; 5] = [
    "cargo-web",
    "g++",
    "libstd-rust-web-dev-bpf",
    "llvm-22-dev",
    "rustc-web",
];

/// What boots virtual machines, and readies what runs in them, the kernel module
/// among it.
const VM: [&str; 7] = [
    "binutils",
    "gcc-12",
    "libc-bin",
    "lz4",
    "make",
    "pahole",
    "qemu-system-x86",
];

/// What builds packages.
const DIST: [&str; 3] = ["binutils", "rpm", "xz-utils"];

/// What tests them in bare systems.
const DIST_TEST: [&str; 5] = [
    "ethtool",
    "iproute2",
    "iputils-ping",
    "lintian",
    "mmdebstrap",
];

const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
const BPF_LINKER: &str = "0.13.0";
const CARGO_DEB: &str = "3.8.0";

/// Options of `setup`.
#[derive(clap::Args)]
pub struct Args {
    /// Install what the tests and the demo need, not the toolchain of the eBPF
    /// objects
    #[arg(long)]
    no_ebpf: bool,
    /// Also install what the checks in virtual machines need
    #[arg(long)]
    vm: bool,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    tests()?;
    if args.vm {
        vm()?;
    }
    if args.no_ebpf { Ok(()) } else { ebpf() }
}

/// Installs what the tests need.
pub fn tests() -> Result<()> {
    packages(&[&DEMO[..], &TESTS[..]].concat())
}

/// Installs what the checks in virtual machines need besides. Their kernels are
/// not installed: see [`crate::vm`].
pub fn vm() -> Result<()> {
    packages(&VM)
}

/// Installs what the demo needs, unless its programs are there already.
pub fn demo() -> Result<()> {
    let programs = ["ip", "ss", "ping", "nc.openbsd", "tcpdump"];
    if programs.iter().all(|program| sh::find(program).is_some()) {
        return Ok(());
    }
    packages(&DEMO)
}

/// Installs what builds packages, and if asked for what tests them.
pub fn dist(test: bool) -> Result<()> {
    packages(&DIST)?;
    if test {
        packages(&DIST_TEST)?;
    }
    let wanted = format!("cargo-deb {CARGO_DEB}");
    let installed = cargo::bin_dir().map(|bin| bin.join("cargo-deb"));
    if let Some(cargo_deb) = installed
        && toolchain::version(&cargo_deb).is_ok_and(|version| version.trim() == wanted)
    {
        println!("setup: {wanted} is installed");
        return Ok(());
    }
    let mut install = cargo();
    install.args(["install", "cargo-deb", "--version", CARGO_DEB]);
    // It compresses by xz's own program, and building it is most of what it takes.
    install.args(["--locked", "--force", "--debug", "--no-default-features"]);
    sh::run(&mut install)
}

/// Installs the toolchain of the eBPF objects.
pub fn ebpf() -> Result<()> {
    packages(&EBPF)?;
    let wanted = format!("bpf-linker {BPF_LINKER}");
    if let Some(linker) = toolchain::bpf_linker()
        && toolchain::version(&linker).is_ok_and(|version| version.trim() == wanted)
    {
        println!("setup: {wanted} is installed");
        return Ok(());
    }
    let mut install = cargo();
    install
        .args([
            "install",
            "bpf-linker",
            "--version",
            BPF_LINKER,
            "--locked",
            "--force",
        ])
        .args(["--no-default-features", "--features", "llvm-22"])
        .env("LLVM_PREFIX", LLVM_PREFIX);
    sh::run(&mut install)
}

/// Installs those of `packages` that are missing.
fn packages(packages: &[&str]) -> Result<()> {
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "setup knows only Debian's apt-get, which is not here; install by hand what these \
             Debian packages hold: {}",
            packages.join(" ")
        );
    }
    let missing = missing(packages)?;
    if missing.is_empty() {
        println!("setup: installed already: {}", packages.join(" "));
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        bail!(
            "only root can install packages; missing: {}",
            missing.join(" ")
        );
    }
    println!("setup: installing {}", missing.join(" "));
    sh::run(apt_get().arg("update"))?;
    sh::run(
        apt_get()
            .args(["install", "--yes", "--no-install-recommends"])
            .args(missing),
    )
}

/// apt-get that asks no questions (wireshark-common has one).
fn apt_get() -> Command {
    let mut apt_get = Command::new("/usr/bin/apt-get");
    apt_get
        .env("DEBIAN_FRONTEND", "noninteractive")
        .arg("--quiet");
    apt_get
}

fn missing<'a>(packages: &[&'a str]) -> Result<Vec<&'a str>> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .args(packages);
    // It fails when it does not know one of them, and lists the others.
    let listed = query.output().map_err(|e| sh::not_started(&query, &e))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let installed: Vec<_> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(" installed"))
        .collect();
    Ok(packages
        .iter()
        .copied()
        .filter(|package| !installed.contains(package))
        .collect())
}
