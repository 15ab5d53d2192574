//! A capture inside the test's own process, with programs of the tests.

use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use tscap::Summary;
use tscap::capturing::capture::Programs;
use tscap::cli::{Cli, Plan};
use tscap::command::Exit;
use tscap::command::capture::run_summed;

use crate::port::Port;
use crate::{probes, wait};

/// Captures on `port` into `path` with the test program `program` and rings for
/// `ring_cpus` (all CPUs if `None`). Calls `work` as soon as the program is
/// attached, and returns when the capture ends by one of `arguments`.
pub fn capture_with(
    program: &str,
    ring_cpus: Option<Vec<u32>>,
    port: &Port,
    path: &Path,
    arguments: &[&str],
    work: impl FnOnce(),
) -> (Exit, Summary) {
    let path = path.to_str().expect("a UTF-8 path");
    let line = ["tscap", "capture", "-q", "-i", &port.name, "-w", path];
    let cli = Cli::try_parse_from(line.iter().chain(arguments)).expect("valid arguments");
    let Ok(Plan::Capture(mut plan)) = cli.into_plan() else {
        panic!("not a plan for a capture");
    };
    plan.capture.programs = Programs {
        object: probes::OBJECT.into(),
        name: Some(program.into()),
        ring_cpus,
    };
    std::thread::scope(|scope| {
        let capture = scope.spawn(|| port.netns.enter(|| run_summed(&plan)));
        wait::until(
            "the program to be attached",
            Duration::from_secs(30),
            || {
                assert!(!capture.is_finished(), "the capture ended before it began");
                port.xdp_program()
            },
        );
        work();
        let ended = capture.join().expect("the capture does not panic");
        let (exit, summary) = ended.unwrap_or_else(|failure| panic!("{failure}"));
        (exit, summary.expect("a summary"))
    })
}
