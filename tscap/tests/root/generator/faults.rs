//! The interface goes while frames are sent: what was sent is told all the same.

use tscap_host::perf::{EventPriority, TscEvent};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::generate_on;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::{alone, root};

#[test]
fn the_interface_is_deleted() {
    let Some(_lock) = root() else { return };
    for (sender, pace) in [
        ("native", ["--rate", "20k"]),
        ("native", ["--gap", "2ms"]),
        ("packet", ["--rate", "20k"]),
    ] {
        let bench = Bench::new("deleted");
        let _peer = Attached::dropping(&bench.rx);
        let running = generate_on(&bench.tx)
            .with(pace)
            .with(["--sender", sender])
            .ready();
        running.wait_event("progress");
        bench.tx.netns.ip(&["link", "delete", "tx0"]);
        let finished = running.wait();
        finished.failure(1, &["cannot send everything"]);
        let step = &finished.events("sent")[0];
        assert!(step["sent"].as_u64() > Some(100), "{step}");
        assert_eq!(
            finished.end.as_ref().expect("a summary")["stopped_by"],
            "error"
        );
    }
}

#[test]
fn the_interface_is_set_down() {
    let Some(_lock) = root() else { return };
    for sender in ["native", "packet"] {
        let bench = Bench::new("setdown");
        let _peer = Attached::dropping(&bench.rx);
        let before = bench.rx.received();
        let arguments = ["--rate", "20k", "--count", "160000", "--sender", sender];
        let running = generate_on(&bench.tx).with(arguments).ready();
        running.wait_event("progress");
        bench.tx.set(&["down"]);
        let finished = running.wait();
        finished.failure(1, &["cannot send everything", "tx0"]);
        let step = &finished.events("sent")[0];
        let (sent, refused) = (step["sent"].as_u64(), step["refused"].as_u64());
        assert_eq!(sent, Some(bench.rx.received() - before), "{sender}: {step}");
        if sender == "native" {
            // The kernel drops what cannot go, and the rest of the run with it.
            assert_eq!(
                sent.zip(refused).map(|(a, b)| a + b),
                Some(160_000),
                "{step}"
            );
            assert!(refused > Some(100), "{step}");
            finished.failure(1, &["interface tx0 is down"]);
            // It was down for seconds before the end.
            let progress = finished.events("progress");
            let last = progress.last().expect("progress");
            assert_eq!(last["sent"].as_u64(), sent, "{last}");
        } else {
            finished.failure(1, &["cannot send on tx0"]);
        }
    }
}

#[test]
fn the_other_end_is_set_down() {
    let Some(_lock) = root() else { return };
    for sender in ["native", "packet"] {
        let bench = Bench::new("peerdown");
        let _peer = Attached::dropping(&bench.rx);
        let arguments = ["--rate", "20k", "--count", "60000", "--sender", sender];
        let running = generate_on(&bench.tx).with(arguments).ready();
        running.wait_event("progress");
        bench.rx.set(&["down"]);
        let finished = running.wait();
        finished.failure(1, &["cannot send everything", "interface tx0 is down, or"]);
        let end = finished.end.as_ref().expect("a summary");
        assert_eq!(end["stopped_by"], "error");
        assert!(end["refused"].as_u64() > Some(100), "{sender}: {end}");
    }
}

/// A capture with --clock tsc that begins meanwhile, for instance.
#[test]
fn somebody_elses_event_makes_ours_pause() {
    let Some(_lock) = alone("makes TSC events of the machine pause") else {
        return;
    };
    let bench = Bench::new("genpause");
    let _peer = Attached::dropping(&bench.rx);
    let running = generate_on(&bench.tx)
        .with(["--rate", "1k", "--duration", "2", "--cpu", "0"])
        .ready();
    running.wait_event("progress");
    let opened = TscEvent::open(0, EventPriority::Pinned).expect("open an event");
    let finished = running.wait();
    drop(opened);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let said = "warning: the frames' TSC stamps may be off by ";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    let moved = finished.events("sent")[0]["tsc_moved_ns"].as_u64();
    assert!(moved > Some(100), "{moved:?}");
}
