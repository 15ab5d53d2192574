//! `tscap convert`, which anybody may run: captures written from a script, whose true
//! time is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use tscap::clock::scripted::{Host, Random};
use tscap::clock::{MonoNs, RawStamp, StampSource, Tracker};
use tscap::engine::{StampOrder, Written};
use tscap::measure::Summary;
use tscap::pcapng::{
    Counts, FileWriter, InterfaceInfo, InterfaceOption, Packet, Record, SectionInfo, records,
};
use tscap_common::block::{EPB_TYPE, OPT_RAW, PEN};

const MS: u64 = 1_000_000;
/// Of a capture, ns.
const LENGTH: u64 = 60_000 * MS;
/// Between two drains of an idle capture, ns.
const DRAIN: u64 = 10 * MS;

/// A time daemon at work: the clock's rate changes every few hundred milliseconds.
fn slewed() -> Host {
    let ppb = [500_000, -40_000, 8_000, -500_000, 0];
    let slews = (0..80).map(|turn| (turn * 733 * MS, ppb[turn as usize % ppb.len()]));
    Host {
        hertz: 2_596_130_000,
        slews: slews.collect(),
    }
}

fn headers() -> FileWriter {
    let section = SectionInfo {
        hardware: "a script".into(),
        os: "Linux".into(),
        application: "tscap".into(),
    };
    let interface = InterfaceInfo {
        name: "test0".into(),
        description: None,
        mac: None,
        speed: None,
        snaplen: 96,
        os: "Linux".into(),
        tscap: InterfaceOption::new("native", StampSource::Tsc, Default::default()),
    };
    FileWriter::new(&section, &[interface], tscap::clock::RealNs(0)).unwrap()
}

fn packet(stamp: RawStamp, time: u64, keep_raw: bool) -> Vec<u8> {
    let data = [0xa5u8; 61];
    let mut body = Vec::new();
    let mut word = |word: u32| body.extend(word.to_ne_bytes());
    word(0);
    word((time >> 32) as u32);
    word(time as u32);
    word(data.len() as u32);
    word(data.len() as u32);
    body.extend(data);
    body.extend([0; 3]);
    if keep_raw {
        body.extend(OPT_RAW.to_ne_bytes());
        body.extend(PEN.to_ne_bytes());
        body.extend(stamp.0.to_ne_bytes());
        body.extend([0; 4]);
    }
    let length = (body.len() as u32 + 12).to_ne_bytes();
    [&EPB_TYPE.to_ne_bytes()[..], &length, &body, &length].concat()
}

/// A capture of `host`, and the true times of its packets.
fn capture(host: &Host, keep_raw: bool) -> (Vec<u8>, Vec<u64>) {
    let mut random = Random(3);
    let mut gaps = move || [15, 35, 15].map(|least| least + random.exponential(6.0) as u64);
    let mut tracker = Tracker::new(StampSource::Tsc, &host.cross(0, gaps())).unwrap();
    tracker.observe(&host.cross(100 * MS, gaps()));
    let mut file = headers();
    let mut bytes = file.take();
    let mut truths = Vec::new();
    for t in (110 * MS..LENGTH).step_by(DRAIN as usize) {
        tracker.observe(&host.cross(t, gaps()));
        let conversion = tracker.conversion();
        for part in [7, 4, 1] {
            let at = t - DRAIN * part / 10;
            let stamp = RawStamp(host.cycles(at).0);
            bytes.extend(packet(stamp, conversion.to_real(stamp).0, keep_raw));
            truths.push(host.real(at));
        }
        if t % (10_000 * MS) < DRAIN {
            bytes.extend(statistics(&mut file, &mut tracker));
        }
    }
    bytes.extend(statistics(&mut file, &mut tracker));
    (bytes, truths)
}

fn statistics(file: &mut FileWriter, tracker: &mut Tracker) -> Vec<u8> {
    let counts = Counts {
        written: vec![Written::default()],
        ..Counts::default()
    };
    file.statistics(
        tracker,
        MonoNs(LENGTH),
        &counts,
        StampOrder::default(),
        None,
    )
    .unwrap()
}

fn convert(input: &Path, output: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tscap"));
    command.arg("convert").arg(input).arg("-w").arg(output);
    command.args(more).output().expect("start tscap")
}

fn file(folder: &TempDir, content: &[u8]) -> PathBuf {
    let path = folder.path().join("in.pcapng");
    fs::write(&path, content).unwrap();
    path
}

fn packets(bytes: &[u8]) -> Vec<Packet> {
    let records = records(bytes).unwrap().map(Result::unwrap);
    let packets = records.filter_map(|record| match record {
        Record::Packet(packet) => Some(packet),
        _ => None,
    });
    packets.collect()
}

/// How far the times are from the truth.
fn errors(bytes: &[u8], truths: &[u64]) -> Summary {
    let packets = packets(bytes);
    assert_eq!(packets.len(), truths.len());
    let errors = packets.iter().zip(truths);
    let errors = errors.map(|(packet, truth)| packet.time.0.abs_diff(*truth));
    Summary::of(errors.map(|error| i64::try_from(error).unwrap())).unwrap()
}

#[test]
fn it_halves_the_error_of_a_slewed_clock_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = capture(&slewed(), true);
    let input = file(&folder, &bytes);
    let path = folder.path().join("out.pcapng");
    let output = convert(&input, &path, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["event"], &json["v"]), (&"convert".into(), &1.into()));
    assert_eq!(json["packets"], truths.len());
    let moved = json["moved_ns"]["n"].as_u64().unwrap() + json["left"].as_u64().unwrap();
    assert_eq!(moved, truths.len() as u64);

    let converted = fs::read(&path).unwrap();
    let (live, refined) = (errors(&bytes, &truths), errors(&converted, &truths));
    assert!(refined.p50 <= live.p50, "{live:?} {refined:?}");
    assert!(
        refined.p99.unwrap() * 2 <= live.p99.unwrap(),
        "{live:?} {refined:?}"
    );

    // Every byte is the same, but for the stamps.
    let without_times = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
            let (kind, length) = (word(at), word(at + 4) as usize);
            if kind == EPB_TYPE {
                bytes[at + 12..at + 20].fill(0);
            }
            at += length;
        }
        bytes
    };
    assert!(without_times(&bytes) == without_times(&converted));
    // And again, nothing moves.
    let twice = folder.path().join("twice.pcapng");
    assert_eq!(convert(&path, &twice, &[]).status.code(), Some(0));
    assert!(fs::read(twice).unwrap() == converted);
}

/// An interface that another program added, with a stamp option like ours.
#[test]
fn packets_of_other_interfaces_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, _) = capture(&slewed(), true);
    // Ethernet, in microseconds.
    let interface = [1u32, 20, 1, 96, 20].map(u32::to_ne_bytes).concat();
    let mut foreign = packet(RawStamp(slewed().cycles(30_000 * MS).0), 5_000_000, true);
    foreign[8..12].copy_from_slice(&1u32.to_ne_bytes());
    let header = headers().take().len();
    let (head, rest) = ours.split_at(header);
    let bytes = [head, &interface, rest, &foreign].concat();
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, &bytes), &path, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["left"].as_u64() >= Some(1), "{json}");
    assert!(fs::read(&path).unwrap().ends_with(&foreign));
}

#[test]
fn standard_output_gets_the_copy_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture(&slewed(), true);
    let input = file(&folder, &bytes);
    let path = folder.path().join("out.pcapng");
    assert_eq!(convert(&input, &path, &[]).status.code(), Some(0));
    let expected = fs::read(&path).unwrap();
    for target in ["-", "/dev/stdout"] {
        let output = convert(&input, Path::new(target), &[]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(output.stdout == expected, "{target}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("packets stamped again"), "{text}");
        // And where that is a file.
        let redirected = folder.path().join("redirected");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tscap"));
        command.arg("convert").arg(&input).args(["-w", target]);
        let file = fs::File::create(&redirected).unwrap();
        assert!(command.stdout(file).status().unwrap().success());
        assert!(fs::read(&redirected).unwrap() == expected, "{target}");
    }
    assert!(!Path::new("-").exists());
}

#[test]
fn a_torn_capture_is_converted_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture(&slewed(), true);
    let torn = &bytes[..bytes.len() - 7];
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, torn), &path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ends within a block"), "{text}");
    let all = packets(&bytes).len();
    assert_eq!(packets(&fs::read(&path).unwrap()).len(), all);
}

/// Says why and what to do, and writes nothing.
#[track_caller]
fn refuses(content: &[u8], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, content), &path, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_converted_is_refused() {
    refuses(
        b"hello",
        &["cannot read", "hint: tscap converts its own captures"],
    );
    let (bytes, _) = capture(&slewed(), false);
    refuses(
        &bytes,
        &["kept its raw stamp", "hint: capture with --keep-raw"],
    );
    let mut killed = headers().take();
    killed.extend(packet(RawStamp(1), 1, true));
    refuses(
        &killed,
        &["no statistics with the clock", "killed in its first 10 s"],
    );
}

/// A number of the first statistics' JSON, replaced by one of as many digits.
fn damaged(bytes: &[u8], key: &str, value: impl Fn(usize) -> String) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let key = format!("\"{key}\":");
    let found = bytes
        .windows(key.len())
        .position(|part| part == key.as_bytes());
    let from = found.expect("it is there") + key.len();
    let digits = bytes[from..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    let length = digits.count();
    let value = value(length);
    assert_eq!(value.len(), length);
    bytes[from..from + length].copy_from_slice(value.as_bytes());
    bytes
}

#[test]
fn a_damaged_history_is_refused() {
    let (bytes, _) = capture(&slewed(), true);
    refuses(
        &damaged(&bytes, "low", |digits| format!("{:0<digits$}", 9)),
        &[
            "the history of its clock is damaged",
            "above its upper bound",
        ],
    );
    refuses(
        &damaged(&bytes, "ns_per_cycle_2_58", |digits| {
            format!("{:<digits$}", 0)
        }),
        &["the history of its clock is damaged", "an impossible rate"],
    );
}

/// As by cat, and by programs that merge.
#[test]
fn several_captures_in_one_file_are_refused() {
    let parts = &["clocks of several captures", "hint: convert each"];
    let (first, _) = capture(&slewed(), true);
    refuses(&[&first[..], &first].concat(), parts);
    // One section with the interfaces of both.
    let other = Host {
        hertz: 2_000_000_000,
        slews: vec![],
    };
    let (mut second, _) = capture(&other, true);
    let section = u32::from_ne_bytes(second[4..8].try_into().unwrap()) as usize;
    let headers = headers().take().len();
    let mut at = headers;
    while at < second.len() {
        let word = |at: usize| u32::from_ne_bytes(second[at..at + 4].try_into().unwrap());
        let length = word(at + 4) as usize;
        second[at + 8..at + 12].copy_from_slice(&1u32.to_ne_bytes());
        at += length;
    }
    let (head, body) = first.split_at(headers);
    let (interface, more) = (&second[section..headers], &second[headers..]);
    refuses(&[head, interface, body, more].concat(), parts);
}

#[test]
fn a_capture_is_not_converted_into_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture(&slewed(), true);
    let input = file(&folder, &bytes);
    let link = folder.path().join("link.pcapng");
    std::os::unix::fs::symlink(&input, &link).unwrap();
    let output = convert(&input, &link, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("into itself"), "{text}");
    assert!(fs::read(&input).unwrap() == bytes);
}

#[test]
fn the_readmes_command_works() {
    let readme = include_str!("../../README.md");
    let mut lines = readme.lines();
    let line = lines.find_map(|line| line.strip_prefix("tscap convert "));
    let arguments = line.expect("it is there").split(' ');
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture(&slewed(), true);
    fs::write(folder.path().join("out.pcapng"), bytes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tscap"));
    command.arg("convert").args(arguments);
    let status = command.current_dir(folder.path()).status().unwrap();
    assert!(status.success());
    assert!(folder.path().join("better.pcapng").exists());
}
