//! What is said on standard output and standard error.

use std::time::Duration;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture, capture_on};
use tscap_testkit::command::{must, tscap_path};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::{root, root_with};
use tscap_testkit::{terminal, wait};

#[test]
fn interfaces_are_listed() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("list");
    let _ = bench.add_pair(1);
    let mut list = bench.rx.netns.command(tscap_path());
    let text = must(list.args(["capture", "-D"]));
    for name in ["lo", "rx0", "rx1"] {
        assert!(
            text.lines().any(|line| line.contains(name)),
            "{name} is not in\n{text}"
        );
    }
}

#[test]
fn json_is_one_valid_object_a_line() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("json");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path)
        .with(["--duration", "2500ms"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..100, 0);
    let finished = capture.wait();
    let summary = finished.success();
    assert_eq!(summary.file, path.to_str().expect("a UTF-8 path"));
    assert_eq!(finished.events("ready").len(), 1);
    let progress = finished.events("progress");
    assert!((1..=3).contains(&progress.len()), "{progress:?}");
    let summaries = finished.events("summary");
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0]["v"], 1);
    assert_eq!(summaries[0]["progress_left_out"], 0);
    names_are_kept(&summaries[0]);
    let last = finished.stdout.lines().next_back().expect("a line");
    assert!(last.contains("\"summary\""), "{last}");
    // No summary for people beside it; the readiness line is for both.
    assert_eq!(
        finished
            .stderr
            .lines()
            .filter(|line| line.starts_with("ready: "))
            .count(),
        1
    );
    assert!(!finished.stderr.contains("written"), "{}", finished.stderr);
}

/// Programs that read summaries go by these names.
fn names_are_kept(summary: &Value) {
    let of_all = [
        (
            summary,
            "adds_up bytes_direct bytes_written clock directions event file files filter interfaces off_cpu outcomes \
             priority progress_left_out seconds seen stopped_by tap v written",
        ),
        (
            &summary["interfaces"][0],
            "directions hardware ifdrop ifindex name outcomes seen written",
        ),
        (
            &summary["interfaces"][0]["directions"][0],
            "direction hook interface_dropped interface_frames outcomes seen written",
        ),
        (
            &summary["clock"],
            "ambiguous bound_raised host_bound_ns largest_decrease_ns largest_lateness_ns late \
             ordered path reference segments segments_forgotten source stamp_decreases steps synchronised \
             utc_bound_ns",
        ),
    ];
    for (object, expected) in of_all {
        let names = object.as_object().expect("an object").keys();
        let names: Vec<_> = names.map(String::as_str).collect();
        assert_eq!(names.join(" "), expected);
    }
}

#[test]
fn the_summary_for_people_names_every_outcome() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("human");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path)
        .human()
        .with(["-c", "10"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..25, 0);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout, "", "standard output is for data");
    let text = finished.stderr.to_lowercase();
    for part in ["seen", "written", "ktime", "utc", "rx0"] {
        assert!(
            text.contains(part),
            "{part:?} is not in\n{}",
            finished.stderr
        );
    }
    assert!(!text.contains('\r'), "a live line where no terminal is");
}

#[test]
fn quiet_is_one_line() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("quiet");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).human().with(["-q"]).start();
    wait::until("the program to be attached", LIMIT, || {
        (!bench.rx.show()["xdp"].is_null()).then_some(())
    });
    // Longer than it takes to a live line, were there one.
    std::thread::sleep(Duration::from_millis(1200));
    let finished = capture.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let lines = finished.stderr.lines();
    let lines: Vec<_> = lines
        .filter(|line| !line.starts_with("warning: "))
        .collect();
    assert_eq!(lines.len(), 1, "{}", finished.stderr);
    assert!(lines[0].contains(" seen = "), "{}", finished.stderr);
}

#[test]
fn a_capture_says_little_before_it_is_ready_and_its_live_line_fits() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("live");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for columns in [40, 80, 200] {
        let mut command = bench.rx.netns.command(tscap_path());
        command
            .args(["-i", &bench.rx.name, "--duration", "1.5", "-w"])
            .arg(&path);
        let lines = terminal::shown(&mut command, columns);
        let ready = lines.iter().position(|line| line.starts_with("ready: "));
        let before = &lines[..ready.expect("a line ready")];
        assert!(
            before.iter().all(|line| line.starts_with("warning: ")),
            "{lines:#?}"
        );
        let live = lines.iter().find(|line| line.starts_with("00:00:01"));
        let live = live.expect("a live line");
        assert!(live.chars().count() < columns.into(), "{live}");
        assert_eq!(live.contains("clock ±"), columns >= 80, "{live}");
        assert!(live.contains("drops"), "{live}");
    }
}

/// Without a file, on a terminal.
#[test]
fn a_view_shows_what_each_interface_takes_until_q() {
    let Some(_lock) = root_with(&["ip", "ethtool", "setsid"]) else {
        return;
    };
    let bench = Bench::new("view");
    let mut command = bench.rx.netns.command("setsid");
    command.args(["-c", tscap_path(), "-i", &bench.rx.name, "-i", "lo"]);
    let frame = Frame::new(&bench.tx, &bench.rx, 100);
    let lines = std::thread::scope(|scope| {
        scope.spawn(|| {
            let attached = || bench.rx.xdp_program();
            wait::until("a program to be attached", LIMIT, attached);
            PacketSocket::open(&bench.tx).send(&frame, 0..40, 0);
        });
        // In the row of rx0, behind the 0 frames a second that it sends: what the converter did
        // with them it tells once a second.
        let row = format!("0 {:>12}", 40);
        terminal::shown_until_key(&mut command, 80, (&row, b'q'))
    });
    let end = lines
        .iter()
        .position(|line| line.starts_with("/dev/null: "));
    // As it stood last.
    let view = &lines[end.expect("a summary") - 5..end.expect("a summary")];
    terminal::check_width(view, 80);
    let shown = |start: &str| {
        let line = view.iter().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("no {start:?} in {lines:#?}"));
        line.split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(
        shown("interface ")[..4],
        ["interface", "in/s", "out/s", "frames"]
    );
    assert_eq!(shown("rx0 ")[3], "40");
    assert_eq!(shown("lo ")[1..], ["0", "0", "0"]);
    assert!(
        lines.iter().any(|it| it.contains("stopped by a key")),
        "{lines:#?}"
    );
    assert!(
        lines
            .iter()
            .any(|it| it.ends_with("40 seen (40 in, 0 out)")),
        "{lines:#?}"
    );
}

#[test]
fn a_name_that_promises_pcap_is_warned_of_also_in_json() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("name");
    let folder = files::folder();
    let path = folder.path().join("out.pcap");
    let finished = capture_on(&bench.rx, &path).ready().stop();
    finished.success();
    assert!(finished.stderr.contains("warning: "), "{}", finished.stderr);
    let events = finished.stdout.lines();
    let events = events.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let texts: Vec<_> = events
        .filter(|event| event["event"] == "warning" && event["v"] == 1)
        .map(|event| event["text"].as_str().expect("a text").to_owned())
        .collect();
    assert!(
        texts.iter().any(|text| text.contains("writes pcapng")),
        "{texts:?}"
    );
    let said = finished
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: "));
    assert_eq!(said.count(), texts.len(), "{}", finished.stderr);
}

#[test]
fn the_readiness_line_names_interface_mode_clock_and_rings() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ready");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture(&bench.rx.netns)
        .on(&bench.rx)
        .to(&path)
        .with(["--ring-size", "1M"]);
    let capture = capture.start();
    let line = capture.wait_ready();
    for part in ["rx0", "native", "ktime", "ns", "1 MiB"] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    // Ready means: the program is attached and the link is up.
    assert!(bench.rx.xdp_program().is_some());
    assert_eq!(bench.rx.show()["operstate"], "UP");
    capture.stop().success();
}
