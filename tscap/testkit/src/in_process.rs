//! A capture inside the test's own process: as the library's users may have it, and with
//! programs of the tests.

use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use tscap::command::Exit;
use tscap::command::capture::run_summed;
use tscap::{Capture, Summary};
use tscap_capture::Privileges;
use tscap_cli::{CapturePlan, Cli, Plan};

use crate::port::Port;
use crate::wait;

/// The plan of `tscap <arguments>`, which is a capture.
pub fn plan_of<'a>(arguments: impl IntoIterator<Item = &'a str>) -> CapturePlan {
    let line = ["tscap"].into_iter().chain(arguments);
    let cli = Cli::try_parse_from(line).expect("valid arguments");
    match cli.into_plan() {
        Ok(Plan::Capture(plan)) => *plan,
        _ => panic!("not a plan for a capture"),
    }
}

/// Captures on `port` into `path` what `change` makes of `arguments`. Calls `work` as soon
/// as the program is attached, and returns when the capture ends by one of `arguments`.
pub fn capture_with(
    change: impl FnOnce(&mut Capture),
    port: &Port,
    path: &Path,
    arguments: &[&str],
    work: impl FnOnce(),
) -> (Exit, Summary) {
    let path = path.to_str().expect("a UTF-8 path");
    let output = ["capture", "-q", "-Q", "in", "-i", &port.name, "-w", path];
    let mut plan = plan_of(output.into_iter().chain(arguments.iter().copied()));
    // Every thread of this process would go on as another user, also those of other tests.
    plan.capture.privileges = Privileges::Keep;
    change(&mut plan.capture);
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
