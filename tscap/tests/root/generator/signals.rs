//! Ctrl-C: reports what was sent.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::generate_on;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::root;

/// Where the next frame is an hour away: a busy machine takes its time.
const AT_ONCE: Duration = Duration::from_secs(20);

#[test]
fn an_endless_run_ends_at_ctrl_c() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ctrlc");
    let _peer = Attached::dropping(&bench.rx);
    for sender in ["native", "packet"] {
        for pace in [&["--flat-out"][..], &["--rate", "10k"], &["--gap", "400ms"]] {
            let before = bench.rx.received();
            let running = generate_on(&bench.tx)
                .with(pace)
                .with(["--sender", sender])
                .ready();
            running.wait_event("progress");
            let start = Instant::now();
            let finished = running.stop();
            let took = start.elapsed();
            assert!(took < AT_ONCE, "{sender} {pace:?}: {took:?}");
            assert_eq!(finished.code, Some(0), "{}", finished.stderr);
            let step = &finished.events("sent")[0];
            let taken = bench.rx.received() - before;
            assert_eq!(step["sent"], taken, "{sender} {pace:?}: {step}");
            assert!(taken > 1, "{sender} {pace:?}");
            assert_eq!(
                finished.end.as_ref().expect("a summary")["stopped_by"],
                "signal"
            );
        }
    }
}

/// As coreutils' `timeout` sends them: to its child, and then to the child's group.
#[test]
fn two_signals_at_once_are_one() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ctrlctwice");
    let _peer = Attached::dropping(&bench.rx);
    for sender in ["native", "packet"] {
        let summaries = [false, true].map(|is_twice| {
            let before = bench.rx.received();
            let arguments = ["--rate", "1k", "--size", "64,128", "--duration", "60"];
            let plan = generate_on(&bench.tx).with(arguments);
            let running = plan.with(["--sender", sender]).ready();
            running.wait_event("progress");
            running.signal(Signal::SIGINT);
            if is_twice {
                // The time between the two is what is tested. The process is there until
                // it is waited for.
                std::thread::sleep(Duration::from_millis(5));
                running.signal(Signal::SIGINT);
            }
            let finished = running.wait();
            assert_eq!(finished.code, Some(0), "{}", finished.stderr);
            let mut summary = finished.end.expect("a summary");
            let sent = summary["sent"].take();
            assert_eq!(sent, bench.rx.received() - before, "{sender}");
            // How many were late is up to the machine.
            summary["late"].take();
            (summary, finished.stderr)
        });
        let [(once, once_stderr), (twice, twice_stderr)] = summaries;
        assert_eq!(
            (&once["steps"], &once["stopped_by"]),
            (&1.into(), &"signal".into())
        );
        assert_eq!(twice, once);
        // Whether the rate was reached and whether the counter paused is up to the machine,
        // too.
        let is_ours = |line: &&str| !line.contains(" and reached ") && !line.contains("warning: ");
        let [once, twice] =
            [&once_stderr, &twice_stderr].map(|stderr| stderr.lines().filter(is_ours).count());
        assert_eq!(twice, once, "{twice_stderr}{once_stderr}");
    }
}

/// The signal may come to the thread that sleeps until the next frame.
#[test]
fn a_long_sleep_is_no_reason_to_wait() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ctrlclong");
    let _peer = Attached::dropping(&bench.rx);
    for sender in ["native", "packet"] {
        for _ in 0..5 {
            let arguments = ["--gap", "1h", "--sender", sender];
            let running = generate_on(&bench.tx).with(arguments).ready();
            let start = Instant::now();
            let finished = running.stop();
            let took = start.elapsed();
            assert!(took < AT_ONCE, "{sender}: {took:?}");
            assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        }
    }
}

#[test]
fn ctrl_c_ends_a_sweep_at_its_step() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ctrlcsweep");
    let _peer = Attached::dropping(&bench.rx);
    let arguments = ["--rate", "1k", "--size", "64,128,256", "--duration", "60"];
    let running = generate_on(&bench.tx).with(arguments).ready();
    running.wait_event("progress");
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.events("sent").len(), 1);
}
