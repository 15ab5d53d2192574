//! `arm64`: cargo for arm64, by Debian's compiler, linker and standard library. Nothing is
//! downloaded by rustup.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::target_dir;
use crate::dist::apt;
use crate::toolchain::{CARGO, RUSTC};
use crate::{paths, setup, sh};

/// As Debian names the architecture.
pub const ARCHITECTURE: &str = "arm64";
/// What programs are built for.
const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Links them, with the libraries of `libc6-dev-arm64-cross`.
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// Where those libraries are.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// Runs programs of arm64, for tests that need no kernel of it.
const RUNNER: &str = "qemu-aarch64";
/// Debian's compiler, and the package with the standard library of its version.
const COMPILER: &str = "rustc-web";
const STANDARD_LIBRARY: &str = "libstd-rust-web-dev";

/// Options of `arm64`.
#[derive(clap::Args)]
pub struct Args {
    /// Install first what it takes
    #[arg(long)]
    setup: bool,
    /// What cargo is told: `build --package tscap --bin tscap`, `test --package tscap-clock --lib`
    #[arg(
        value_name = "CARGO_ARGUMENT",
        trailing_var_arg = true,
        required = true
    )]
    arguments: Vec<String>,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    if args.setup {
        setup::arm64()?;
    }
    sh::run(cargo()?.args(&args.arguments))
}

/// Debian's cargo at the root of the checkout, which builds for arm64 into a folder of its own.
pub fn cargo() -> Result<Command> {
    for program in [CARGO, RUSTC, LINKER, RUNNER] {
        if sh::find(program).is_none() {
            bail!("{program} is missing: run `cargo xtask arm64 --setup`");
        }
    }
    let folder = folder()?;
    let library = standard_library(&folder)?;
    let mut cargo = Command::new(CARGO);
    cargo.current_dir(paths::root());
    // Of the cargo that runs this task.
    for name in ["CARGO", "LD_LIBRARY_PATH", "RUSTUP_TOOLCHAIN"] {
        cargo.env_remove(name);
    }
    let of_target = |name: &str| {
        let target = TARGET.replace('-', "_").to_uppercase();
        format!("CARGO_TARGET_{target}_{name}")
    };
    cargo
        .env("RUSTC", RUSTC)
        .env("CARGO_BUILD_TARGET", TARGET)
        .env("CARGO_TARGET_DIR", &folder)
        .env(of_target("LINKER"), LINKER)
        // Programs that run while it builds are of this machine, with its own library.
        .env(
            of_target("RUSTFLAGS"),
            format!("--sysroot={}", library.display()),
        )
        .env(of_target("RUNNER"), format!("{RUNNER} -L {LIBRARIES}"));
    Ok(cargo)
}

/// What it builds, and what that takes.
fn folder() -> Result<PathBuf> {
    Ok(target_dir()?.join(ARCHITECTURE))
}

/// The standard library, unpacked once for each version of the compiler.
fn standard_library(folder: &Path) -> Result<PathBuf> {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat", "${Version}", COMPILER]);
    let version = sh::output(&mut query)?;
    let name = format!("{STANDARD_LIBRARY}_{}", version.replace(':', "-"));
    let done = folder.join(name);
    let root = done.join("usr");
    if done.exists() {
        return Ok(root);
    }
    let work = crate::dist::empty(done.with_extension("partial"))?;
    let package = format!("{STANDARD_LIBRARY}={version}");
    apt::unpack(&work, &apt::own_suite()?, Some(ARCHITECTURE), &[&package])?;
    if !work.join("usr/lib/rustlib").join(TARGET).exists() {
        bail!("{package} has no library for {TARGET}");
    }
    fs::rename(&work, &done).with_context(|| format!("cannot make {}", done.display()))?;
    Ok(root)
}
