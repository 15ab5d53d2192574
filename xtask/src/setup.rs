//! `setup`: installs what the tests, the demo and the eBPF build need on a
//! bare Debian 12. Does nothing where everything is there.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::cargo;
use crate::vm::architecture::Architecture;
use crate::{sh, toolchain};

/// What each tier needs: a line has the tier, a Debian package, and its programs.
const TABLE: &str = include_str!("../../tscap/testkit/programs.txt");

/// How long apt waits for another one to end, seconds.
const LOCK_TIMEOUT: &str = "DPkg::Lock::Timeout=600";

const LLVM_PREFIX: &str = "/usr/lib/llvm-22";
const BPF_LINKER: &str = "0.13.0";

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
        vm(Architecture::Amd64)?;
    }
    if args.no_ebpf { Ok(()) } else { ebpf() }
}

/// Installs what the tests need.
pub fn tests() -> Result<()> {
    packages(&["demo", "test"])?;
    crates(&["crate"])
}

/// Installs what the checks in virtual machines need besides. Their kernels are
/// not installed: see [`crate::vm`].
pub fn vm(architecture: Architecture) -> Result<()> {
    match architecture {
        Architecture::Amd64 => packages(&["vm"]),
        Architecture::Arm64 => packages(&["vm", "arm64", "vm-arm64"]),
    }
}

/// Installs what builds for arm64.
pub fn arm64() -> Result<()> {
    packages(&["arm64"])
}

/// The packages that the demo would install: none if its programs are there already.
pub fn missing_for_demo() -> Result<Vec<&'static str>> {
    if absent(&["demo"]).is_empty() {
        return Ok(Vec::new());
    }
    missing(&of(&["demo"]))
}

/// Installs what the demo needs, unless its programs are there already.
pub fn demo() -> Result<()> {
    if absent(&["demo"]).is_empty() {
        return Ok(());
    }
    packages(&["demo"])
}

/// Installs what builds packages, and if asked for what tests them in bare systems.
pub fn dist(test: bool) -> Result<()> {
    packages(if test { &["dist", "bare"] } else { &["dist"] })
}

/// Installs the toolchain of the eBPF objects.
pub fn ebpf() -> Result<()> {
    packages(&["ebpf"])?;
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

/// Packages of `tiers`, with their programs.
fn lines<'a>(
    tiers: &'a [&str],
) -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> + 'a {
    TABLE.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let tier = words.next()?;
        let package = words.next()?;
        tiers.contains(&tier).then_some((package, words))
    })
}

/// The packages of `tiers`.
fn of(tiers: &[&str]) -> Vec<&'static str> {
    let mut packages: Vec<_> = lines(tiers).map(|(package, _)| package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// The programs of `tiers` that are not here, with their packages.
fn absent(tiers: &[&str]) -> Vec<String> {
    lines(tiers)
        .flat_map(|(package, programs)| programs.map(move |program| (package, program)))
        .filter(|(_, program)| sh::find(program).is_none())
        .map(|(package, program)| format!("`{program}` of {package}"))
        .collect()
}

/// Installs those packages of `tiers` that are missing, and looks for their programs.
fn packages(tiers: &[&str]) -> Result<()> {
    let packages = of(tiers);
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "setup knows only Debian's apt-get, which is not here; install by hand what these \
             Debian packages hold: {}",
            packages.join(" ")
        );
    }
    let missing = missing(&packages)?;
    if missing.is_empty() {
        println!("setup: installed already: {}", packages.join(" "));
    } else {
        install(&missing)?;
    }
    let absent = absent(tiers);
    if !absent.is_empty() {
        bail!(
            "the packages are installed, and these programs are not in PATH: {}",
            absent.join(", ")
        );
    }
    Ok(())
}

/// Builds the crates of `tiers` whose programs are missing, to where root's
/// programs are looked for. Not optimised: that would take twice as long.
fn crates(tiers: &[&str]) -> Result<()> {
    for (package, mut programs) in lines(tiers) {
        if programs.all(|program| sh::find(program).is_some()) {
            println!("setup: {package} is installed");
            continue;
        }
        let mut install = cargo();
        install.args(["install", package, "--locked", "--debug"]);
        sh::run(install.args(["--root", "/usr/local"]))?;
    }
    Ok(())
}

fn install(missing: &[&str]) -> Result<()> {
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

/// apt-get that asks no questions (wireshark-common has one), and waits for another apt.
fn apt_get() -> Command {
    let mut apt_get = Command::new("/usr/bin/apt-get");
    apt_get
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["--quiet", "-o", LOCK_TIMEOUT]);
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::paths;

    const TIERS: [&str; 10] = [
        "base", "demo", "test", "crate", "ebpf", "vm", "dist", "bare", "arm64", "vm-arm64",
    ];

    /// What starts a program: by name, on this machine, in a namespace.
    const STARTS: [&str; 4] = ["Command::new(", ".must(", ".command(", ".exec("];

    fn sources(folder: PathBuf, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(path, found);
            } else if path.extension().is_some_and(|it| it == "rs") {
                found.push(path);
            }
        }
    }

    /// The literals that follow one of [`STARTS`].
    fn started(text: &str) -> Vec<&str> {
        let after = STARTS.iter().flat_map(|start| text.split(start).skip(1));
        let literals = after.filter_map(|rest| rest.trim_start().strip_prefix('"'));
        let words = literals.filter_map(|rest| rest.split('"').next());
        let is_name = |word: &&str| word.chars().all(|it| it.is_ascii_graphic() && it != ',');
        words.filter(is_name).collect()
    }

    /// Of apt, which setup needs itself; of cargo; of the program itself; what is there or not.
    const OTHERS: [&str; 7] = [
        "apt-cache",
        "apt-config",
        "apt-get",
        "/usr/bin/apt-get",
        "cargo",
        "tscap",
        "/bin/true",
    ];

    #[test]
    fn every_program_that_is_started_is_in_the_table() {
        let mut files = Vec::new();
        for folder in [
            "tscap/tests",
            "tscap/testkit/src",
            "tscap/benches",
            "xtask/src",
        ] {
            sources(paths::root().join(folder), &mut files);
        }
        let known: Vec<_> = lines(&TIERS).flat_map(|(_, programs)| programs).collect();
        let mut seen = 0;
        for file in files {
            let text = fs::read_to_string(&file).expect("UTF-8");
            for program in started(&text) {
                seen += 1;
                let is_known = known.contains(&program) || OTHERS.contains(&program);
                assert!(
                    is_known,
                    "{}: tscap/testkit/programs.txt does not know `{program}`",
                    file.display()
                );
            }
        }
        assert!(seen > 100, "only {seen} programs were found");
    }

    #[test]
    fn each_line_has_a_tier_that_is_known() {
        for line in TABLE
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
        {
            let words: Vec<_> = line.split_whitespace().collect();
            assert!(TIERS.contains(&words[0]) && words.len() > 1, "{line}");
        }
    }

    #[test]
    fn what_is_absent_is_named_with_its_package() {
        assert_eq!(absent(&["base"]), [""; 0]);
        assert!(of(&["test"]).contains(&"util-linux"));
    }
}
