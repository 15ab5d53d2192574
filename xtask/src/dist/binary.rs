//! The program that all packages hold: of the release profile, linked for the glibc of an
//! older Debian, without symbols.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{apt, empty};
use crate::cargo::{cargo, target_dir};
use crate::sh;

/// What is linked with: of Debian 11, whose glibc every distribution has, or a later one,
/// whose kernel tscap takes. A static program with musl could not open libpcap.
const SUITE: &str = "bullseye";
/// Its glibc. The package depends on it.
const GLIBC: [u32; 2] = [2, 31];
/// What holds it, what links with it, and what unwinds.
const PACKAGES: [&str; 3] = ["libc6", "libc6-dev", "libgcc-s1"];
/// Where libraries are in it.
const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];

/// Builds the program; returns where it is.
pub fn build(folder: &Path) -> Result<PathBuf> {
    let sysroot = sysroot(folder)?;
    let mut rustc = cargo();
    rustc.args([
        "rustc",
        "--release",
        "--package",
        "tscap",
        "--bin",
        "tscap",
        "--",
    ]);
    rustc.arg(format!("-Clink-arg=--sysroot={}", sysroot.display()));
    // Before this machine's: -B for what a program starts with, -L for libraries.
    for library in LIBRARIES {
        let library = sysroot.join(library);
        rustc.arg(format!("-Clink-arg=-B{}", library.display()));
        rustc.arg(format!("-Clink-arg=-L{}", library.display()));
    }
    sh::run(&mut rustc)?;
    let built = target_dir()?.join("release/tscap");
    let program = folder.join("tscap");
    let mut strip = Command::new("strip");
    sh::run(strip.arg("-o").arg(&program).arg(&built))?;
    check_glibc(&program)?;
    Ok(program)
}

/// Debian 11's libraries, unpacked once.
fn sysroot(folder: &Path) -> Result<PathBuf> {
    let done = folder.join(format!("glibc-{SUITE}"));
    if done.exists() {
        return Ok(done);
    }
    let work = empty(done.with_extension("partial"))?;
    apt::unpack(&work, SUITE, None, &PACKAGES)?;
    for library in LIBRARIES.iter().chain(&["lib64"]) {
        relink(&work, &work.join(library))?;
    }
    fs::rename(&work, &done).with_context(|| format!("cannot make {}", done.display()))?;
    Ok(done)
}

/// Lets the absolute links in `folder` lead to where `root` will be instead of into this
/// machine.
fn relink(root: &Path, folder: &Path) -> Result<()> {
    let final_root = root.with_extension("");
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let Ok(target) = fs::read_link(&path) else {
            continue;
        };
        if let Ok(target) = target.strip_prefix("/") {
            fs::remove_file(&path)?;
            symlink(final_root.join(target), &path)
                .with_context(|| format!("cannot link {}", path.display()))?;
        }
    }
    Ok(())
}

/// Fails if the program needs a later glibc.
fn check_glibc(program: &Path) -> Result<()> {
    let symbols = sh::output(Command::new("objdump").arg("-T").arg(program))?;
    match glibc(&symbols) {
        None => bail!("{} needs no glibc: what was linked?", program.display()),
        Some(needed) if needed > GLIBC.to_vec() => bail!(
            "{} needs glibc {needed:?}, which is later than {GLIBC:?} of {SUITE}",
            program.display()
        ),
        Some(_) => Ok(()),
    }
}

/// The latest glibc among the symbols that `objdump -T` lists.
fn glibc(symbols: &str) -> Option<Vec<u32>> {
    let versions = symbols.split("GLIBC_").skip(1);
    let numbers = versions.map(|rest| {
        let version = rest.split(|it: char| !it.is_ascii_digit() && it != '.');
        let parts = version.take(1).flat_map(|version| version.split('.'));
        parts.filter_map(|part| part.parse().ok()).collect()
    });
    numbers.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_glibc_is_by_numbers() {
        let symbols = "0000 DF *UND* 0000 (GLIBC_2.2.5) read\n\
            0000 w DF *UND* 0000 (GLIBC_2.30) gettid\n\
            0000 DF *UND* 0000 (GLIBC_2.4) x\n\
            0000 DF *UND* 0000 (GCC_3.0) _Unwind_Resume\n";
        assert_eq!(glibc(symbols), Some(vec![2, 30]));
        assert_eq!(glibc("0000 DF *UND* 0000 (GCC_3.0) y"), None);
    }

    #[test]
    fn the_deb_depends_on_that_glibc() {
        let manifest = crate::paths::root().join("packaging/debian/control");
        let manifest = fs::read_to_string(manifest).unwrap();
        let [major, minor] = GLIBC;
        let needs = format!("libc6 (>= {major}.{minor})");
        assert!(manifest.contains(&needs), "{needs}");
    }
}
