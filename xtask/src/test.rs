//! `test`: everything that can be tested on this machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::cargo::{Metadata, cargo};
use crate::leftovers::Leftovers;
use crate::tally::Tally;
use crate::{build_ebpf, setup};

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
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    if args.setup {
        setup::tests()?;
        if args.rebuilt_ebpf {
            setup::ebpf()?;
        }
    }
    let no_skip = args.no_skip || std::env::var("CI").is_ok_and(|ci| ci == "true");
    let (root_tests, tests): (Vec<_>, Vec<_>) = Metadata::of_workspace()?
        .targets("tscap", "test")
        .into_iter()
        .partition(|name| name.starts_with(ROOT_PREFIX));
    if root_tests.is_empty() {
        bail!("there is no integration test whose name begins with {ROOT_PREFIX}");
    }
    let before = Leftovers::now()?;

    let mut tally = Tally::default();
    let mut run = |cargo_test: &mut Command| {
        if no_skip {
            cargo_test.env("TSCAP_NO_SKIP", "1");
        }
        tally.run(cargo_test)
    };
    if args.rebuilt_ebpf {
        let objects = build_ebpf::rebuild_aside()?;
        run(&mut root_with(&root_tests, &objects))?;
    } else {
        run(cargo_test()
            .args(["--workspace", "--lib", "--bins"])
            .args(select(&tests)))?;
        run(cargo_test().args(["--workspace", "--doc"]))?;
        run(&mut root(&root_tests))?;
    }

    let left = Leftovers::since(&before)?;
    for thing in &left {
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
