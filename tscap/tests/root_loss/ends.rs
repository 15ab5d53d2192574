//! How it ends before all is measured.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::command::finish;
use crate::support::root::root;
use crate::support::terminal::{child_of, ctrl_c, in_a_group, told};
use crate::support::wait;
use crate::{LIMIT, left, loss, sweep};

#[test]
fn ctrl_c_leaves_the_points_that_were_whole() {
    let Some(_turn) = root("ctrl_c_leaves_the_points_that_were_whole") else {
        return;
    };
    let before = left();
    let arguments = ["--quick", "--json", "--size", "64-512/8"];
    let mut child = in_a_group(&mut loss(&arguments));
    // Five captures are for the costs.
    let stderr = told(&mut child, "\"captures\":6", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    assert!(stderr.contains("ending: "), "{stderr}");
    let sweep = sweep(&done);
    assert!(sweep.partial);
    assert!(
        (1..57).contains(&sweep.points.len()),
        "{}",
        sweep.points.len()
    );
    assert!(
        sweep.warnings[0].contains("told to end"),
        "{:?}",
        sweep.warnings
    );
    assert_eq!(left(), before);
}

#[test]
fn before_the_costs_are_known_nothing_is_left() {
    let Some(_turn) = root("before_the_costs_are_known_nothing_is_left") else {
        return;
    };
    let before = left();
    let mut child = in_a_group(&mut loss(&["--quick", "--json"]));
    let stderr = told(&mut child, "ready: ", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("nothing was measured"), "{stderr}");
    assert_eq!(done.stdout, "");
    assert_eq!(left(), before);
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let Some(_turn) = root("a_second_ctrl_c_ends_at_once") else {
        return;
    };
    let before = left();
    let mut child = in_a_group(&mut loss(&["--json"]));
    let parent = child.id();
    let capture = wait::until("a capture", LIMIT, || child_of(parent));
    // It does not answer, so the measuring waits for it.
    kill(Pid::from_raw(capture), Signal::SIGSTOP).expect("stop the capture");
    ctrl_c(&child);
    let stderr = told(&mut child, "ending: ", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(130), "{stderr}");
    assert_eq!(done.stdout, "");
    wait::until("the end of the capture", LIMIT, || {
        let gone = kill(Pid::from_raw(capture), None).is_err();
        gone.then_some(())
    });
    assert_eq!(left(), before);
}
