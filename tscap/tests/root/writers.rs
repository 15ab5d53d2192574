//! `--writers`: each writes the frames of its CPUs, and all parts are one capture.
//! Needs root and two CPUs.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tscap::Stop;
use tscap_file::accounting::Outcome;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture, capture_on};
use tscap_testkit::command::tscap_path;
use tscap_testkit::files::{self, SmallDisk};
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{root, two_cpus};
use tscap_testkit::wait::until;

/// Two pairs: the frames of each go through the first CPU of one of the writers.
struct Pairs {
    bench: Bench,
    other: (Port, Port),
}

impl Pairs {
    fn new(tag: &str) -> Self {
        let bench = Bench::new(tag);
        let other = bench.add_pair(1);
        Self { bench, other }
    }

    fn ports(&self, writer: usize) -> (&Port, &Port) {
        match writer {
            0 => (&self.bench.tx, &self.bench.rx),
            _ => (&self.other.0, &self.other.1),
        }
    }

    fn frame(&self, writer: usize, length: usize) -> Frame {
        let (tx, rx) = self.ports(writer);
        Frame::new(tx, rx, length)
    }

    fn send(&self, writer: usize, length: usize, numbers: Range<u64>) {
        let socket = PacketSocket::open(self.ports(writer).0);
        socket.send(&self.frame(writer, length), numbers, first_cpu(writer));
    }

    /// Both at the same time.
    fn send_both(&self, length: usize, numbers: &Range<u64>) {
        std::thread::scope(|scope| {
            for writer in [0, 1] {
                scope.spawn(move || self.send(writer, length, numbers.clone()));
            }
        });
    }

    fn capture(&self, path: &Path) -> tscap_testkit::capture::Plan<'_> {
        let [first, second] = [0, 1].map(|writer| self.ports(writer).1);
        let plan = capture(&first.netns).on(first).on(second).to(path);
        plan.with(["--writers", "2"])
    }
}

/// The first half of the CPUs is one writer's, the second one the other's.
fn first_cpu(writer: usize) -> usize {
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    (cpus * writer).div_ceil(2)
}

fn parts(path: &Path) -> [PathBuf; 2] {
    let stem = path.file_stem().unwrap().to_string_lossy();
    [0, 1].map(|writer| path.with_file_name(format!("{stem}-w{writer}.pcapng")))
}

/// Joins the parts; gives the exit code and the summary.
fn merge(parts: &[PathBuf], to: &Path) -> (Option<i32>, Value) {
    let mut command = std::process::Command::new(tscap_path());
    command.args(["merge", "--json"]).args(parts);
    let output = command.arg("-w").arg(to).output().expect("run tscap merge");
    let stdout = String::from_utf8(output.stdout).expect("JSON");
    let mut lines = stdout
        .lines()
        .filter_map(|it| serde_json::from_str(it).ok());
    let summary = lines
        .next_back()
        .unwrap_or_else(|| panic!("no JSON: {stdout:?}"));
    (output.status.code(), summary)
}

/// The account in the last statistics of a file.
fn totals(recording: &Recording) -> &Value {
    let last = (0..recording.interfaces.len()).map(|it| recording.last_statistics(it));
    let mut totals = last.filter_map(|it| it.custom.get("totals"));
    totals.next_back().expect("an account")
}

#[test]
fn each_writes_its_cpus_and_merge_joins_them() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let pairs = Pairs::new("writers");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = pairs.capture(&path).with(["--keep-raw"]).start();
    let ready = capture.wait_event("ready");
    let of = |ready: &Value, name: &str| {
        let writers = ready["writers"].as_array().expect("writers").iter();
        writers.map(|it| it[name].clone()).collect::<Vec<_>>()
    };
    for (writer, cpus) in of(&ready, "cpus").iter().enumerate() {
        assert_eq!(cpus[0], first_cpu(writer), "{ready}");
    }
    let converters = of(&ready, "converter_cpu");
    assert_ne!(converters[0], converters[1], "one CPU each");
    pairs.send_both(64, &(0..100_000));
    let finished = capture.stop();
    let summary = finished.success();
    assert!(!path.exists(), "the parts only");

    let parts = parts(&path);
    let mut in_parts = 0;
    for (writer, part) in parts.iter().enumerate() {
        let recording = Recording::read(part);
        let written = recording.packets.len() as u64;
        in_parts += written;
        let frame = pairs.frame(writer, 64);
        assert!(written > 0, "writer {writer}");
        for (index, packet) in recording.packets.iter().enumerate() {
            assert_eq!(packet.interface, writer);
            assert_eq!(packet.data, frame.bytes(frame.number(&packet.data)));
            let before = index.checked_sub(1).map(|it| recording.packets[it].nanos);
            assert!(before <= Some(packet.nanos));
        }
        let of_writer = &summary.writers[writer];
        assert_eq!(of_writer.file, part.display().to_string());
        assert_eq!(of_writer.cpus[0] as usize, first_cpu(writer));
        assert_eq!(of_writer.bytes_written, files::length(part));
        assert!(of_writer.totals.add_up());
        assert_eq!(of_writer.totals.written, written);
        assert_eq!(totals(&recording)["seen"], of_writer.totals.seen);
        // Each says it of the whole interface.
        let counted = |it: usize| recording.last_statistics(it).custom["counted_in"].clone();
        let own = [0, 1].map(|it| counted(it)["interface_frames"].as_u64());
        assert!(own.iter().all(|it| *it >= Some(100_000)), "{own:?}");
    }
    assert_eq!(in_parts, summary.written);
    let seen = summary.writers.iter().map(|it| it.totals.seen);
    assert_eq!(seen.sum::<u64>(), summary.seen);

    let whole = folder.path().join("whole.pcapng");
    let (code, merged) = merge(&parts, &whole);
    assert_eq!(code, Some(0), "{merged}");
    let joined = &merged["captures"][0];
    assert_eq!(joined["writers"], 2, "{merged}");
    assert_eq!(joined["missing"], serde_json::json!([]), "{merged}");
    let recording = Recording::read(&whole);
    assert_eq!(recording.packets.len() as u64, summary.written);
    assert_eq!(recording.interfaces.len(), 2, "those of the parts are one");
    let in_order = recording
        .packets
        .windows(2)
        .all(|it| it[0].nanos <= it[1].nanos);
    assert!(in_order);
    assert_eq!(totals(&recording)["seen"], summary.seen);
}

/// What one writer's rings lost is in its own part's account, and not in the other's.
#[test]
fn losses_are_those_of_the_writers_own_cpus() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let pairs = Pairs::new("writers-lose");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = pairs.capture(&path).with(["--ring-size", "128K"]).ready();
    capture.freeze();
    pairs.send(1, 1000, 0..500);
    capture.thaw();
    pairs.send(0, 1000, 0..50);
    let summary = capture.stop().success();
    let [first, second] = summary.writers.as_slice() else {
        panic!("{:?}", summary.writers)
    };
    let lost = second.totals.outcomes[Outcome::RingFull];
    assert!(lost > 300, "{:?}", second.totals);
    assert_eq!(second.totals.seen, 500);
    assert_eq!((first.totals.seen, first.totals.written), (50, 50));
    let [first, second] = parts(&path).map(|part| Recording::read(&part));
    assert_eq!(first.last_statistics(1).os_drop, Some(0));
    assert_eq!(second.last_statistics(1).os_drop, Some(lost));
    assert_eq!(totals(&second)["outcomes"]["ring_full"], lost);
}

#[test]
fn each_rotates_its_own_files() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let pairs = Pairs::new("writers-rotate");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = pairs.capture(&path).with(["-b", "packets:100"]).ready();
    pairs.send_both(64, &(0..1000));
    let finished = capture.stop();
    let summary = finished.success();
    assert_eq!(summary.written, 2000);
    let reported = finished.files();
    assert_eq!(summary.files.expect("files").written, reported.len() as u64);
    for writer in [0, 1] {
        let of_writer = reported.iter().filter(|file| {
            let name = file.path.file_name().unwrap().to_string_lossy();
            name.starts_with(&format!("out-w{writer}_"))
        });
        let mut numbers = Vec::new();
        for file in of_writer {
            let recording = Recording::read(&file.path);
            assert!(recording.packets.len() <= 100);
            let frame = pairs.frame(writer, 64);
            numbers.extend(recording.packets.iter().map(|it| frame.number(&it.data)));
        }
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>(), "writer {writer}");
    }
}

/// The first writer's disk is full: everything ends, and the account still adds up.
#[test]
fn a_full_disk_ends_all_of_them() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let pairs = Pairs::new("writers-full");
    let disk = SmallDisk::new(64 * 4096);
    let path = disk.file("out.pcapng");
    let capture = pairs.capture(&path).ready();
    pairs.send(1, 60, 0..20);
    pairs.send(0, 1000, 0..1000);
    let finished = capture.wait();
    finished.failure(1, &["out-w0.pcapng", "no space"]);
    let summary = finished.accounted();
    assert_eq!(summary.stopped_by, Stop::WriteError);
    let [first, second] = summary.writers.as_slice() else {
        panic!("{:?}", summary.writers)
    };
    assert!(first.totals.outcomes[Outcome::WriteFailed] > 0);
    assert_eq!((second.totals.seen, second.totals.written), (20, 20));
    for (part, of_writer) in parts(&path).iter().zip(&summary.writers) {
        let recording = Recording::read(part);
        assert_eq!(recording.packets.len() as u64, of_writer.totals.written);
    }
    // What there is, and the account of all.
    let (code, merged) = merge(&parts(&path), &disk.file("whole.pcapng"));
    assert_eq!(
        (code, &merged["captures"][0]["adds_up"]),
        (Some(0), &true.into())
    );
    assert_eq!(merged["captures"][0]["seen"], summary.seen);
}

#[test]
fn an_interface_that_joins_is_in_every_part() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("writers-join");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture(&bench.rx.netns)
        .with(["-i", "any", "--writers", "2"])
        .to(&path)
        .ready();
    let pair = bench.add_pair(1);
    let joined = capture.wait_event("joined");
    assert_eq!(joined["name"], pair.1.name.as_str());
    let pairs = Pairs { bench, other: pair };
    pairs.send_both(64, &(0..100));
    let summary = capture.stop().success();
    assert_eq!(summary.written, 200);
    let [first, second] = parts(&path).map(|part| Recording::read(&part));
    let names = |it: &Recording| {
        it.interfaces
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&first), names(&second));
    assert!(names(&first).contains(&pairs.other.1.name));
    let whole = folder.path().join("whole.pcapng");
    let (code, merged) = merge(&parts(&path), &whole);
    assert_eq!(code, Some(0), "{merged}");
    assert_eq!(names(&Recording::read(&whole)), names(&first));
}

/// Killed, each part is readable, and the rest of the capture can be merged.
#[test]
fn a_killed_capture_leaves_its_parts() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let pairs = Pairs::new("writers-killed");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = pairs.capture(&path).ready();
    pairs.send_both(64, &(0..1000));
    for part in parts(&path) {
        until("the frames in the part", LIMIT, || {
            (files::length(&part) > 1000 * 96).then_some(())
        });
    }
    let _ = capture.stop_with(nix::sys::signal::Signal::SIGKILL);
    let whole = folder.path().join("whole.pcapng");
    let (code, merged) = merge(&parts(&path), &whole);
    assert_eq!(code, Some(1), "it has no account: {merged}");
    assert_eq!(Recording::read(&whole).packets.len(), 2000);
}

#[test]
fn what_several_writers_cannot_do_is_refused() {
    let Some(_lock) = root() else { return };
    if two_cpus().is_none() {
        return;
    }
    let bench = Bench::new("writers-refuse");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for file in [Path::new("/dev/null"), folder.path()] {
        let plan = capture_on(&bench.rx, file).with(["--writers", "2"]);
        plan.run().failure(1, &["it is no regular file"]);
    }
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let many = (cpus + 1).to_string();
    let plan = capture_on(&bench.rx, &path).with(["--writers", &many]);
    plan.run()
        .failure(1, &["each needs one", &format!("--writers {cpus} at most")]);
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    assert_eq!(entries.count(), 0, "nothing is left");
}
