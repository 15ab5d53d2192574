//! How it ends before all is measured.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap_testkit::command::{ask_until_the_end, finish};
use tscap_testkit::root::alone;
use tscap_testkit::terminal::{self, child_of, ctrl_c, in_a_group, wait_for_text};
use tscap_testkit::wait;

use super::{LIMIT, MEASURES, Place, sweep};

#[test]
fn ctrl_c_leaves_the_points_that_were_whole() {
    let Some(_lock) = alone(MEASURES) else { return };
    let place = Place::new();
    let arguments = ["--quick", "--json", "--size", "64-512/8"];
    let mut child = in_a_group(&mut place.loss_in_folder(&arguments));
    // Five captures are for the costs.
    let stderr = wait_for_text(&mut child, "\"captures\":6", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    assert!(stderr.contains("ending: "), "{stderr}");
    let sweep = sweep(&done);
    assert!(sweep.about.partial);
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
    place.has_nothing_new();
}

#[test]
fn before_the_costs_are_known_nothing_is_left() {
    let Some(_lock) = alone(MEASURES) else { return };
    let place = Place::new();
    let mut child = in_a_group(&mut place.loss_in_folder(&["--quick", "--json"]));
    let stderr = wait_for_text(&mut child, "ready: ", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("nothing was measured"), "{stderr}");
    assert_eq!(done.stdout, "");
    place.has_nothing_new();
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let Some(_lock) = alone(MEASURES) else { return };
    let place = Place::new();
    let mut child = in_a_group(&mut place.loss_in_folder(&["--json"]));
    let parent = child.id();
    let capture = wait::until("a capture", LIMIT, || child_of(parent));
    // It does not answer, so the measuring waits for it.
    kill(Pid::from_raw(capture), Signal::SIGSTOP).expect("stop the capture");
    ctrl_c(&child);
    let stderr = wait_for_text(&mut child, "ending: ", LIMIT);
    ask_until_the_end(&mut child, LIMIT, ctrl_c);
    let done = finish(child, "tscap loss", LIMIT);
    let stderr = stderr.join().expect("reader");
    assert_eq!(done.status.code(), Some(130), "{stderr}");
    assert_eq!(done.stdout, "");
    wait::until("the end of the capture", LIMIT, || {
        let gone = kill(Pid::from_raw(capture), None).is_err();
        gone.then_some(())
    });
    place.has_nothing_new();
}

#[test]
fn a_progress_bar_ends_its_line_also_after_ctrl_c() {
    let Some(_lock) = alone(MEASURES) else { return };
    let place = Place::new();
    let whole = terminal::shown(&mut place.loss_in_folder(&["--quick"]), 80);
    bars_have_their_lines(&whole);
    assert!(
        whole.iter().any(|line| line.contains("100 %  0 s left")),
        "{whole:#?}"
    );
    // Five captures are for the costs.
    let mut command = place.loss_in_folder(&["--quick", "--size", "64-512/8"]);
    let ended = terminal::shown_until_ctrl_c(&mut command, 80, "10 %");
    bars_have_their_lines(&ended);
    assert!(
        ended.iter().any(|line| line.starts_with("note: ending")),
        "{ended:#?}"
    );
    place.has_nothing_new();
}

/// Nothing stands on the line of a bar but its time, and what follows begins a line.
fn bars_have_their_lines(lines: &[String]) {
    let bars: Vec<_> = lines.iter().filter(|line| line.contains("[#")).collect();
    assert!(!bars.is_empty(), "{lines:#?}");
    for bar in bars {
        assert!(bar.starts_with('[') && bar.ends_with(" s left"), "{bar:?}");
    }
    let result = lines.iter().find(|line| line.starts_with("Every point: "));
    assert!(result.is_some(), "{lines:#?}");
}
