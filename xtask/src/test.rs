//! `test`: everything that can be tested on this machine.

use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::{Metadata, cargo, target_dir};
use crate::leftovers::Leftovers;
use crate::tally::{Again, Tally};
use crate::vm::architecture::Architecture;
use crate::{setup, vm};

/// The target of the integration tests that need root.
const ROOT: &str = "root";
/// So many of them run side by side, also where there are few CPUs: most of them wait
/// most of the time. Those that measure take a lock, and run alone.
const ROOT_THREADS: u32 = 4;

/// Options of `test`.
#[derive(clap::Args)]
#[command(after_help = TIERS)]
pub struct Args {
    /// Install first what the tests need
    #[arg(long)]
    setup: bool,
    /// A test that lacks something fails instead of skipping itself (always so
    /// when CI=true)
    #[arg(long)]
    no_skip: bool,
    /// Only the tests that need no privilege
    #[arg(long, group = "tier")]
    fast: bool,
    /// Only the tests that need root; with parts of names (`delay::`), only those
    #[arg(long, group = "tier", value_name = "PART", num_args = 0..)]
    root: Option<Vec<String>>,
    /// Of the root tests only those that take too long for every push
    #[arg(long, requires = "root")]
    nightly: bool,
    /// Only the checks in virtual machines, with kernels of Debian's
    #[arg(long, group = "tier")]
    vm: bool,
    /// In virtual machines: of this architecture
    #[arg(long, requires = "vm", value_enum, default_value_t)]
    arch: Architecture,
    /// In virtual machines: with this kernel only (6.1)
    #[arg(long, requires = "vm", value_name = "VERSION")]
    kernel: Option<String>,
    /// In virtual machines: only checks with this in their names; may be given several
    /// times
    #[arg(long, requires = "vm", value_name = "PART")]
    check: Vec<String>,
    /// In virtual machines: the program as it is released, which takes longer to build and
    /// less time there
    #[arg(long, requires = "vm")]
    release: bool,
    /// In virtual machines: without the checks with this in their names; may be given
    /// several times
    #[arg(long, requires = "vm", value_name = "PART")]
    skip: Vec<String>,
}

/// What there is to run, below the options.
const TIERS: &str = "\
Tiers, with their times on 2 CPUs:
  --fast   any user; under a minute
  --root   network namespaces, XDP and CPUs of this machine; 15 minutes
  --vm     virtual machines with other kernels; about 5 minutes a kernel
Without one of them: fast and root. What takes longer is in .ci/nightly.";

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    println!("test: {}", how_long(args));
    if args.setup {
        setup::tests()?;
        if args.vm {
            setup::vm(args.arch)?;
        }
    }
    let no_skip = args.no_skip || std::env::var("CI").is_ok_and(|ci| ci == "true");
    let mut tally = Tally::default();
    let left = if args.vm {
        // Nothing of what they do happens on this machine.
        let which = vm::Which {
            architecture: args.arch,
            kernel: args.kernel.as_deref(),
            check: &args.check,
            skip: &args.skip,
            is_released: args.release,
        };
        vm::run(&mut tally, &which, no_skip)?;
        Vec::new()
    } else {
        let leftovers = Leftovers::watch(&target_dir()?)?;
        here(args, &mut tally, &leftovers, no_skip)?;
        leftovers.find()?
    };
    conclude(tally, &left, no_skip)
}

/// What is about to be done, and how long that takes with 2 CPUs.
fn how_long(args: &Args) -> &'static str {
    if args.vm {
        "runs checks in virtual machines: about 5 minutes for each kernel"
    } else if args.fast || !nix::unistd::geteuid().is_root() {
        "builds tscap and its tests (5 minutes the first time), then runs those that do not need \
         root: about a minute with 2 CPUs"
    } else {
        "builds tscap and its tests (5 minutes the first time), then runs them: about 15 \
         minutes with 2 CPUs"
    }
}

/// Runs the tests on this machine: those of one tier, or of both.
fn here(args: &Args, tally: &mut Tally, leftovers: &Leftovers, no_skip: bool) -> Result<()> {
    let mut tests = Metadata::of_workspace()?.targets(None, "test");
    tests.retain(|name| ![ROOT, vm::TARGET].contains(&name.as_str()));
    let marked = |mut cargo_test: Command| {
        leftovers.mark(&mut cargo_test);
        if no_skip {
            cargo_test.env("TSCAP_NO_SKIP", "1");
        }
        cargo_test
    };
    if args.root.is_none() {
        let mut fast = cargo_test();
        fast.args(["--workspace", "--lib", "--bins"]);
        fast.args(select(&tests));
        tally.run(&mut marked(fast))?;
        let mut doc = cargo_test();
        doc.args(["--workspace", "--doc"]);
        tally.run(&mut marked(doc))?;
    }
    if !args.fast {
        let parts = args.root.as_deref().unwrap_or_default();
        tally.run_twice(|again| marked(root(parts, args.nightly, again)))?;
        leftovers.tell_times()?;
    }
    Ok(())
}

/// Says what came of it all, and fails unless that is good.
fn conclude(tally: Tally, left: &[String], no_skip: bool) -> Result<()> {
    for thing in left {
        println!("left behind: {thing}");
    }
    let names = tally.names();
    let Tally {
        passed,
        failed,
        ignored,
        skipped,
        flaky,
        failed_runs,
        ..
    } = tally;
    let clean = if left.is_empty() {
        "nothing left behind"
    } else {
        "things LEFT BEHIND"
    };
    println!(
        "\nxtask test: {passed} passed, {failed} failed, {ignored} ignored, {skipped} skipped, \
         {flaky} flaky; {clean}"
    );
    if failed > 0 || failed_runs > 0 {
        bail!(
            "tests failed: {}",
            names.as_deref().unwrap_or("see above, no test was named")
        );
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

/// The root tests with one of `parts` in their names, or those that run again: those by day, or
/// by night.
fn root(parts: &[String], is_nightly: bool, again: Option<Again<'_>>) -> Command {
    let mut cargo = cargo_test();
    let target = again.map_or(ROOT, |again| again.target);
    cargo.args(["--package", "tscap", "--test", target]);
    cargo
        .arg("--")
        .arg(format!("--test-threads={ROOT_THREADS}"));
    if is_nightly {
        cargo.arg("--ignored");
    }
    match again {
        Some(Again { tests, .. }) if !tests.is_empty() => cargo.arg("--exact").args(tests),
        // The harness would take parts for whole names as well.
        Some(Again { passed, .. }) if parts.is_empty() => {
            cargo.arg("--exact");
            cargo.args(passed.iter().flat_map(|test| ["--skip", test]))
        }
        _ => cargo.args(parts),
    };
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
