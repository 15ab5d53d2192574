//! The programs that build the eBPF objects.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::manifest::Tools;
use crate::{cargo, sh};

/// Debian's own programs: a rustup may come first in `PATH`, and has no libcore
/// for the BPF target.
pub const CARGO: &str = "/usr/bin/cargo";
/// Its compiler.
pub const RUSTC: &str = "/usr/bin/rustc";
/// Takes DWARF out of an object.
pub const LLVM_OBJCOPY: &str = "/usr/lib/llvm-22/bin/llvm-objcopy";
/// Lists the symbols of an object; of the same package.
pub const LLVM_NM: &str = "/usr/lib/llvm-22/bin/llvm-nm";
/// What the objects are built for.
pub const TARGET: &str = "bpfel-unknown-none";

/// What builds the objects, where it lies and which versions it has.
pub struct Toolchain {
    /// Versions, for the manifest.
    pub tools: Tools,
    /// bpf-linker.
    pub linker: PathBuf,
}

impl Toolchain {
    /// Finds all tools, or names the first that is missing.
    pub fn find() -> Result<Self> {
        for tool in [CARGO, RUSTC, LLVM_OBJCOPY, LLVM_NM] {
            if !Path::new(tool).exists() {
                bail!("{tool} is missing: run `cargo xtask setup`");
            }
        }
        let mut libdir = Command::new(RUSTC);
        libdir.env_remove("LD_LIBRARY_PATH");
        libdir.args(["--print", "target-libdir", "--target", TARGET]);
        if !Path::new(sh::output(&mut libdir)?.trim()).exists() {
            bail!("{RUSTC} has no libcore for {TARGET}: run `cargo xtask setup`");
        }
        let Some(linker) = bpf_linker() else {
            bail!("bpf-linker is missing: run `cargo xtask setup`");
        };
        let llvm = version(Path::new(LLVM_OBJCOPY))?;
        let llvm = llvm
            .lines()
            .find_map(|line| {
                line.split_once("version ")
                    .map(|(_, version)| version.trim())
            })
            .with_context(|| format!("cannot find LLVM's version in: {llvm}"))?
            .to_owned();
        let tools = Tools {
            rustc: rustc_version()?,
            bpf_linker: first_line(&version(&linker)?),
            llvm,
        };
        Ok(Self { tools, linker })
    }
}

/// Version of rustc, and whether the sources of its libcore are installed: LLVM
/// copies the lines that it finds into the BTF line information.
fn rustc_version() -> Result<String> {
    let mut text = first_line(&version(Path::new(RUSTC))?);
    let number = text.split_whitespace().nth(1).unwrap_or_default();
    if Path::new("/usr/src")
        .join(format!("rustc-{number}"))
        .exists()
    {
        text += " with rust-web-src";
    }
    Ok(text)
}

/// The bpf-linker that cargo installed, else the one in `PATH`.
pub fn bpf_linker() -> Option<PathBuf> {
    cargo::bin_dir()
        .map(|folder| folder.join("bpf-linker"))
        .filter(|linker| linker.exists())
        .or_else(|| sh::find("bpf-linker"))
}

/// What `program --version` prints.
pub fn version(program: &Path) -> Result<String> {
    sh::output(
        Command::new(program)
            .arg("--version")
            .env_remove("LD_LIBRARY_PATH"),
    )
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
