//! `test`: everything that can be tested on this machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::{Metadata, cargo, target_dir};
use crate::leftovers::Leftovers;
use crate::tally::Tally;
use crate::{build_ebpf, setup, vm};

/// Integration tests that need root begin with this; they share network
/// devices and CPUs, and run one at a time.
const ROOT_PREFIX: &str = "root_";

/// Options of `test`.
#[derive(clap::Args)]
pub struct Args {
    /// Install first what the tests need
    #[arg(long)]
    setup: bool,
    /// A test that lacks something fails instead of skipping itself (always so
    /// when CI=true)
    #[arg(long)]
    no_skip: bool,
    /// Run the root tests alone, with eBPF objects built just now in place of
    /// the committed ones
    #[arg(long)]
    rebuilt_ebpf: bool,
    /// Run the checks in virtual machines alone, with kernels of Debian's
    #[arg(long, conflicts_with = "rebuilt_ebpf")]
    vm: bool,
    /// In virtual machines: with this kernel only (6.1)
    #[arg(long, requires = "vm", value_name = "VERSION")]
    kernel: Option<String>,
    /// In virtual machines: only checks with this in their names
    #[arg(long, requires = "vm", value_name = "PART")]
    check: Option<String>,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    println!("test: {}", how_long(args));
    if args.setup {
        setup::tests()?;
        if args.rebuilt_ebpf {
            setup::ebpf()?;
        }
        if args.vm {
            setup::vm()?;
        }
    }
    let no_skip = args.no_skip || std::env::var("CI").is_ok_and(|ci| ci == "true");
    let mut tally = Tally::default();
    let left = if args.vm {
        // Nothing of what they do happens on this machine.
        let (kernel, check) = (args.kernel.as_deref(), args.check.as_deref());
        vm::run(&mut tally, kernel, check, no_skip)?;
        Vec::new()
    } else {
        let leftovers = Leftovers::watch(&target_dir()?)?;
        here(&mut tally, &leftovers, args.rebuilt_ebpf, no_skip)?;
        leftovers.find()?
    };
    conclude(tally, &left, no_skip)
}

/// What is about to be done, and how long that takes with 2 CPUs.
fn how_long(args: &Args) -> &'static str {
    if args.vm {
        "runs checks in virtual machines: some minutes for each kernel"
    } else if nix::unistd::geteuid().is_root() {
        "builds tscap and its tests, then runs them, those that need root one at a time: about \
         half an hour with 2 CPUs"
    } else {
        "builds tscap and its tests, then runs those that do not need root: about 10 minutes \
         with 2 CPUs"
    }
}

/// Runs the tests on this machine.
fn here(tally: &mut Tally, leftovers: &Leftovers, rebuilt_ebpf: bool, no_skip: bool) -> Result<()> {
    let (root_tests, tests): (Vec<_>, Vec<_>) = Metadata::of_workspace()?
        .targets("tscap", "test")
        .into_iter()
        .filter(|name| name != vm::TARGET)
        .partition(|name| name.starts_with(ROOT_PREFIX));
    if root_tests.is_empty() {
        bail!("there is no integration test whose name begins with {ROOT_PREFIX}");
    }
    let mut run = |cargo_test: &mut Command| {
        leftovers.mark(cargo_test);
        if no_skip {
            cargo_test.env("TSCAP_NO_SKIP", "1");
        }
        tally.run(cargo_test)
    };
    if rebuilt_ebpf {
        let objects = build_ebpf::rebuild_aside()?;
        return run(&mut root_with(&root_tests, &objects));
    }
    run(cargo_test()
        .args(["--workspace", "--lib", "--bins"])
        .args(select(&tests)))?;
    run(cargo_test().args(["--workspace", "--doc"]))?;
    run(&mut root(&root_tests))
}

/// Says what came of it all, and fails unless that is good.
fn conclude(tally: Tally, left: &[String], no_skip: bool) -> Result<()> {
    for thing in left {
        println!("left behind: {thing}");
    }
    let Tally {
        passed,
        failed,
        ignored,
        skipped,
        failed_runs,
    } = tally;
    let clean = if left.is_empty() {
        "nothing left behind"
    } else {
        "things LEFT BEHIND"
    };
    println!(
        "\nxtask test: {passed} passed, {failed} failed, {ignored} ignored, {skipped} skipped; {clean}"
    );
    if failed > 0 || failed_runs > 0 {
        bail!("tests failed");
    }
    if !left.is_empty() {
        bail!("the tests left things behind");
    }
    if no_skip && skipped > 0 {
        bail!("tests were skipped");
    }
    Ok(())
}

fn cargo_test() -> Command {
    let mut cargo = cargo();
    cargo.args(["test", "--no-fail-fast"]);
    cargo
}

/// The root tests, one at a time.
fn root(tests: &[String]) -> Command {
    let mut cargo = cargo_test();
    cargo.args(["--package", "tscap"]).args(select(tests));
    cargo.args(["--", "--test-threads=1"]);
    cargo
}

/// The root tests with other eBPF objects in the program.
fn root_with(tests: &[String], objects: &Path) -> Command {
    let mut cargo = root(tests);
    cargo.env("TSCAP_EBPF_OBJECT", objects.join("tscap.bpf.o"));
    cargo.env("TSCAP_COMPARE_OBJECT", objects.join("compare.bpf.o"));
    cargo.env("TSCAP_GENERATOR_OBJECT", objects.join("generator.bpf.o"));
    cargo.env("TSCAP_PROBES_OBJECT", objects.join("probes.bpf.o"));
    cargo
}

fn select(tests: &[String]) -> Vec<&str> {
    tests
        .iter()
        .flat_map(|test| ["--test", test.as_str()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_fails_where_none_may_be() {
        let tally = |skipped| Tally {
            passed: 3,
            skipped,
            ..Tally::default()
        };
        assert!(conclude(tally(1), &[], false).is_ok());
        assert!(conclude(tally(1), &[], true).is_err());
        assert!(conclude(tally(0), &[], true).is_ok());
    }

    #[test]
    fn what_failed_or_is_left_behind_fails() {
        let failed = Tally {
            failed: 1,
            ..Tally::default()
        };
        assert!(conclude(failed, &[], false).is_err());
        let run = Tally {
            failed_runs: 1,
            ..Tally::default()
        };
        assert!(conclude(run, &[], false).is_err());
        assert!(conclude(Tally::default(), &["veth0".into()], false).is_err());
    }
}
