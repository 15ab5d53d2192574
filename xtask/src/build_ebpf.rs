//! `build-ebpf`: builds the eBPF objects, or checks that the committed ones are
//! what these sources give.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{Metadata, target_dir};
use crate::manifest::{Manifest, SCHEMA, file_hash, source_hash};
use crate::toolchain::{CARGO, LLVM_NM, LLVM_OBJCOPY, RUSTC, TARGET, Toolchain};
use crate::{paths, sh};

/// The binaries of `tscap-ebpf`.
const BINS: [&str; 7] = [
    "tscap",
    "generator",
    "compare",
    "delay",
    "layers",
    "stamp",
    "probes",
];
/// What rustup and an outer cargo leave in the environment, and what a user may
/// have set for ordinary builds.
const FOREIGN_ENV: [&str; 8] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_INCREMENTAL",
    "CARGO_TARGET_DIR",
    "LD_LIBRARY_PATH",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTFLAGS",
];

/// Options of `build-ebpf`.
#[derive(clap::Args)]
pub struct Args {
    /// Rebuild aside and compare with the committed objects (bytes only where
    /// the tools' versions are those of the manifest)
    #[arg(long, conflicts_with = "out")]
    check: bool,
    /// Put the objects into DIR and leave the committed ones alone
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    if args.check {
        return check();
    }
    match &args.out {
        Some(out) => {
            build(&build_dir()?, out)?;
        }
        None => {
            let out = paths::committed_objects();
            let manifest = build(&build_dir()?, &out)?;
            manifest.write(&out)?;
        }
    }
    Ok(())
}

fn build_dir() -> Result<PathBuf> {
    Ok(target_dir()?.join("ebpf/build"))
}

fn check() -> Result<()> {
    let committed = paths::committed_objects();
    let manifest = Manifest::read(&committed)?;
    manifest.check_fresh(&paths::root(), &committed)?;

    let scratch = target_dir()?.join(format!("ebpf/check-{}", std::process::id()));
    let built = build(&scratch.join("build"), &scratch.join("out"));
    let removed = fs::remove_dir_all(&scratch);
    let built = built?;
    removed.with_context(|| format!("cannot remove {}", scratch.display()))?;

    if built.tools != manifest.tools {
        println!(
            "the objects build; their bytes were not compared, because the committed ones are by\n  \
             {:?}\nand these by\n  {:?}",
            manifest.tools, built.tools
        );
        return Ok(());
    }
    for (name, hash) in &manifest.objects {
        if built.objects.get(name) != Some(hash) {
            bail!("{name}: the committed object has other bytes than the one just built");
        }
    }
    println!("the committed eBPF objects are, byte for byte, what these sources give");
    Ok(())
}

/// Builds in `build_dir`, and copies the stripped objects into `out`.
fn build(build_dir: &Path, out: &Path) -> Result<Manifest> {
    let Toolchain { tools, linker } = Toolchain::find()?;
    let root = paths::root();
    let package = root.join("tscap-ebpf");
    let flags = rustflags(&root, &package)?;
    // Before the build: an edit during it must leave the objects stale.
    let hash = source_hash(&root)?;

    let mut cargo = cargo(&package);
    cargo
        .args([
            "build",
            "--locked",
            "--release",
            "--target",
            TARGET,
            "--target-dir",
        ])
        .arg(build_dir)
        // The crate that declares the BPF helpers needs unstable features, and so does the one
        // with instructions in it. With them, the programs' own symbols would have other names.
        .env("RUSTC_BOOTSTRAP", "aya_ebpf,tscap_ebpf")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", linker);
    sh::run(&mut cargo)?;

    fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let mut objects = BTreeMap::new();
    for bin in BINS {
        let name = format!("{bin}.bpf.o");
        let object = out.join(&name);
        strip(&build_dir.join(TARGET).join("release").join(bin), &object)?;
        objects.insert(name, file_hash(&object)?);
    }
    println!(
        "built {} into {}",
        BINS.map(|b| format!("{b}.bpf.o")).join(", "),
        out.display()
    );
    Ok(Manifest {
        schema: SCHEMA,
        hash,
        tools,
        objects,
    })
}

/// Copies an object without its DWARF (BTF and its line information stay), its
/// mangled symbols by names that do not depend on where the checkout lies.
fn strip(built: &Path, object: &Path) -> Result<()> {
    let mut nm = Command::new(LLVM_NM);
    nm.arg("--just-symbol-name").arg(built);
    let symbols = sh::output(&mut nm)?;
    let mut copy = Command::new(LLVM_OBJCOPY);
    copy.arg("--strip-debug");
    for symbol in symbols.lines() {
        if let Some(stable) = without_hash(symbol) {
            copy.arg(format!("--redefine-sym={symbol}={stable}"));
        }
    }
    sh::run(copy.arg(built).arg(object))
}

/// A mangled symbol without the hash at its end, which cargo derives among
/// other things from the absolute path of `tscap-common`; `None` if it has none.
/// Only functions that BPF calls without inlining have such a symbol.
fn without_hash(symbol: &str) -> Option<String> {
    let (name, hash) = symbol.strip_suffix('E')?.rsplit_once("17h")?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    (name.starts_with("_ZN") && is_hash).then(|| format!("{name}E"))
}

fn cargo(package: &Path) -> Command {
    let mut cargo = Command::new(CARGO);
    cargo.current_dir(package).env("RUSTC", RUSTC);
    for name in FOREIGN_ENV {
        cargo.env_remove(name);
    }
    cargo
}

/// Flags that make the bytes the same wherever the checkout and cargo's home
/// lie: each dependency appears by its name and version.
fn rustflags(root: &Path, package: &Path) -> Result<Vec<String>> {
    let mut flags = vec![
        "--cfg=bpf_target_arch=\"x86_64\"".to_owned(),
        "-Cdebuginfo=2".to_owned(),
        // The kernel takes such accesses on every 64-bit machine; without it a copied
        // word is put together from bytes.
        "-Clink-arg=--cpu-features=+allows-misaligned-mem-access".to_owned(),
        // With jumps if a variable is less than a constant: of one turned round the
        // verifier of 6.1 can't tell which way it goes.
        "-Ctarget-cpu=v2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
        format!("--remap-path-prefix={}=.", root.display()),
    ];
    let mut metadata = cargo(package);
    metadata.args(["metadata", "--locked", "--format-version=1"]);
    metadata.args(["--filter-platform", TARGET]);
    let metadata = Metadata::read(&mut metadata)?;
    for dependency in metadata.packages.iter().filter(|p| p.source.is_some()) {
        let folder = dependency.manifest_path.parent().unwrap_or(Path::new("/"));
        flags.push(format!(
            "--remap-path-prefix={}={}-{}",
            folder.display(),
            dependency.name,
            dependency.version
        ));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::without_hash;

    #[test]
    fn only_mangled_symbols_lose_their_hash() {
        let mangled = "_ZN9generator13look_at_clock17hcf6dfbdf0deaa98eE";
        assert_eq!(
            without_hash(mangled).as_deref(),
            Some("_ZN9generator13look_at_clockE")
        );
        for plain in ["GAPS", "memcpy", "_ZN9generator13look_at_clockE", "17hE"] {
            assert_eq!(without_hash(plain), None, "{plain}");
        }
    }
}
