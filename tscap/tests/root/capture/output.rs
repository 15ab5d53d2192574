//! What is said on standard output and standard error.

use std::process::Command;
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

/// From outside: those of the namespace, which -i counts there.
#[test]
fn interfaces_of_another_namespace_are_listed() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("list-there");
    let [there, other] = [&bench.rx, &bench.tx].map(|it| it.netns.name());
    let mut list = Command::new(tscap_path());
    let text = must(list.args(["-D", "--netns", there, "--netns", other]));
    let (rx, tx) = text
        .split_once(&format!("network namespace {other}:\n"))
        .expect("two lists");
    let own = must(bench.rx.netns.command(tscap_path()).arg("-D"));
    assert_eq!(rx, format!("network namespace {there}:\n{own}"));
    assert!(rx.contains(".rx0 [") && tx.contains(".tx0 ["), "{text}");
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
            "adds_up bytes_direct bytes_written clock directions disk event file files filter interfaces off_cpu outcomes \
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
             utc utc_bound_ns",
        ),
    ];
    for (object, expected) in of_all {
        let names = object.as_object().expect("an object").keys();
        let names: Vec<_> = names.map(String::as_str).collect();
        assert_eq!(names.join(" "), expected);
    }
}

#[test]
fn the_summary_for_people_is_a_line_and_with_v_all_of_it() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("human");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let reported = |arguments: &[&str]| {
        let plan = capture_on(&bench.rx, &path).human();
        let capture = plan.with(arguments).with(["-c", "10"]).ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..25, 0);
        let finished = capture.wait();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert_eq!(finished.stdout, "", "standard output is for data");
        let text = finished.stderr;
        assert!(!text.contains('\r'), "a live line where no terminal is");
        text
    };
    let short = reported(&[]);
    let mut lines = short.lines().filter(|it| !it.starts_with("warning: "));
    let [ready, end] = [lines.next(), lines.next()].map(|it| it.expect("a line"));
    assert!(ready.starts_with("ready: capturing on rx0 ("), "{short}");
    let name = path.to_str().expect("UTF-8");
    assert!(end.starts_with(&format!("{name}: ")), "{short}");
    for part in [" seen = 10 written", " kB in ", "stamps ±", "UTC "] {
        assert!(end.contains(part), "{part:?} is not in {end}");
    }
    assert_eq!(lines.next(), None, "{short}");
    let whole = reported(&["-v"]).to_lowercase();
    for part in ["seen", "written", "ktime", "utc", "rx0", "exactly"] {
        assert!(whole.contains(part), "{part:?} is not in\n{whole}");
    }
}

#[test]
fn each_of_several_files_is_named() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("named");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let plan = capture_on(&bench.rx, &path).human();
    let capture = plan
        .with(["-Q", "in", "-b", "packets:4", "-c", "10"])
        .ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    let finished = capture.wait();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let entries = std::fs::read_dir(folder.path()).expect("a folder");
    let mut made: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .collect();
    made.sort();
    assert_eq!(made.len(), 3, "{made:?}");
    for (name, frames) in made.iter().zip([4, 4, 2]) {
        let line = format!("{name}: {frames} frames, ");
        let mut lines = finished.stderr.lines();
        assert!(lines.any(|it| it.starts_with(&line)), "{}", finished.stderr);
    }
    assert!(
        finished.stderr.contains(" written in 3 files, "),
        "{}",
        finished.stderr
    );
}

/// What reads the pipe may print on the same terminal.
#[test]
fn there_is_no_live_line_beside_what_reads_a_pipe() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("live-pipe");
    let folder = files::folder();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let fifo = fifo.display();
    let tscap = format!("{} -i {} --duration 2.5", tscap_path(), bench.rx.name);
    for line in [
        format!("{tscap} -w - | cat > /dev/null"),
        format!("{tscap} -w /dev/stdout | cat > /dev/null"),
        format!("cat {fifo} > /dev/null & {tscap} -w {fifo}"),
    ] {
        let mut shell = bench.rx.netns.command("sh");
        let lines = terminal::shown(shell.args(["-c", &line]), 80);
        let is_there = |start: &str| lines.iter().any(|it| it.starts_with(start));
        assert!(is_there("ready: "), "{line}: {lines:#?}");
        assert!(!is_there("00:00:0"), "{line}: {lines:#?}");
    }
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
            before
                .iter()
                .all(|line| line.starts_with("warning: ") || line.starts_with("  ")),
            "{lines:#?}"
        );
        let fits = |line: &&String| line.chars().count() < columns.into() || !line.contains(' ');
        let broken = lines.iter().find(|line| !fits(line));
        assert_eq!(broken, None, "{columns}: {lines:#?}");
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
        // In the row of rx0, behind the 0 frames a second that it sends.
        let row = format!("0 {:>12}", 40);
        terminal::shown_until_key(&mut command, 80, (&row, b'q'))
    });
    let end = lines
        .iter()
        .position(|line| line.ends_with("none was kept"));
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
        lines
            .iter()
            .any(|it| it.starts_with("40 seen = 40 counted in ")),
        "{lines:#?}"
    );
    assert!(
        !lines.iter().any(|it| it.contains("/dev/null")),
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
fn the_readiness_line_names_interface_mode_and_clock() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("ready");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture =
        capture(&bench.rx.netns)
            .on(&bench.rx)
            .to(&path)
            .with(["--ring-size", "1M", "-v"]);
    let capture = capture.start();
    let line = capture.wait_ready();
    for part in ["rx0", "native", "ktime", "ns"] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    // Ready means: the program is attached and the link is up.
    assert!(bench.rx.xdp_program().is_some());
    assert_eq!(bench.rx.show()["operstate"], "UP");
    // By -v how it is done.
    let line = capture.wait_line("clock ktime by bpf_ktime_get_ns");
    assert!(line.contains(" of 1 MiB"), "{line}");
    capture.stop().success();
}
