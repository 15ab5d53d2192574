use super::*;

fn sh(script: &str) -> Capture {
    let mut command = Command::new("sh");
    Capture::spawn(Tool::Tscap, command.args(["-c", script]), &Arc::default()).expect("start sh")
}

#[test]
fn an_early_end_is_explained() {
    let mut capture = sh("echo '{\"event\": \"other\"}'; echo no memory >&2; exit 1");
    let error = capture.wait_until_ready(LIMIT).unwrap_err();
    let error = error.to_string();
    assert_eq!(error, "tscap ended before it was told to: no memory");
}

#[test]
fn no_answer_is_not_waited_for() {
    let mut capture = sh("exec sleep 60");
    let error = capture.wait_until_ready(Duration::from_millis(1));
    let what = "get ready";
    assert!(matches!(error, Err(LoadError::Late { what: it, .. }) if it == what));
}

#[test]
fn a_signal_to_us_is_not_one_to_it() {
    let capture = sh("exec sleep 60");
    let group = nix::unistd::getpgid(Some(capture.pid())).unwrap();
    assert_ne!(group, nix::unistd::getpgrp());
}

#[test]
fn what_was_written_is_told() {
    let script = "trap 'echo {\\\"event\\\": \\\"summary\\\", \\\"seen\\\": 8, \
                  \\\"written\\\": 7, \\\"outcomes\\\": {\\\"ring_full\\\": 1}}; exit' TERM
        echo '{\"event\": \"ready\"}'
        while :; do sleep 0.01; done";
    let mut capture = sh(script);
    capture.output = "/dev/null".into();
    capture.wait_until_ready(LIMIT).unwrap();
    let outcome = capture.finish().unwrap();
    assert_eq!((outcome.said.seen, outcome.said.written), (8, 7));
    assert_eq!((outcome.in_file, outcome.file_bytes), (None, 0));
    assert!(outcome.cpu > Duration::ZERO);
}

/// What came after its end was not lost by it.
#[test]
fn one_that_ends_by_itself_gives_nothing() {
    let mut capture = sh("echo '{\"event\": \"ready\"}'; echo time is up >&2");
    capture.wait_until_ready(LIMIT).unwrap();
    capture.wait(Deadline::after(LIMIT, "end")).unwrap();
    let error = capture.finish().unwrap_err().to_string();
    assert_eq!(error, "tscap ended before it was told to: time is up");
}

#[test]
fn one_that_does_not_end_is_killed() {
    let mut capture = sh("trap '' TERM; echo '{\"event\": \"ready\"}'; exec sleep 60");
    capture.wait_until_ready(LIMIT).unwrap();
    let pid = capture.pid();
    let error = capture
        .finish_within(Duration::from_millis(50))
        .unwrap_err();
    assert!(
        matches!(error, LoadError::Late { what: "end", .. }),
        "{error}"
    );
    assert_eq!(kill(pid, None), Err(nix::errno::Errno::ESRCH), "it is gone");
}

#[test]
fn a_failure_is_explained() {
    let script = "trap 'echo disk full >&2; exit 1' TERM
        echo '{\"event\": \"ready\"}'
        while :; do sleep 0.01; done";
    let mut capture = sh(script);
    capture.wait_until_ready(LIMIT).unwrap();
    let error = capture.finish().unwrap_err().to_string();
    assert_eq!(error, "tscap failed, exit code 1: disk full");
}
