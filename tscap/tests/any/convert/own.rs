//! By the history that the capture itself carries.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tscap_clock::scripted::Host;
use tscap_clock::{RawStamp, StampPath};
use tscap_statistics::Summary;
use tscap_testkit::command::tscap_path;

use super::script::{
    DRAIN, LENGTH, MS, TSC, capture, capture_by, convert, errors, file, headers, log, packet,
    packets, refuses, slewed, slewed_capture, without_times,
};
use tscap_testkit::shown::{Runner, commands};

#[test]
fn it_halves_the_error_of_a_slewed_clock_and_changes_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = slewed_capture(true);
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
    assert!(without_times(&bytes) == without_times(&converted));
    // And again, nothing moves.
    let twice = folder.path().join("twice.pcapng");
    assert_eq!(convert(&path, &twice, &[]).status.code(), Some(0));
    assert!(fs::read(twice).unwrap() == converted);
}

/// Half of a drain after its start, so that some stamps of it are of either side.
const CHANGE: u64 = 30_005 * MS;

/// The clock is set, or the counter jumps, amid a capture: whatever is told on either side
/// is no worse than live, and no stamp is moved to the other side.
#[track_caller]
fn keeps_to_its_side(
    set: impl Fn(u64) -> (i64, u64),
    jump: impl Fn(u64) -> i64,
    wrong_ns: u64,
    most_left: u64,
) {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = capture_by(TSC, &slewed(), true, set, jump);
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, &bytes), &path, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["segments"], 2);
    let bound = json["bound_ns"]["p99"].as_u64().unwrap();
    let errors = |bytes: &[u8]| -> Vec<u64> {
        let packets = packets(bytes).into_iter().zip(&truths);
        let errors = packets.map(|(packet, truth)| packet.time.0.abs_diff(*truth));
        errors.collect()
    };
    let (live, again) = (errors(&bytes), errors(&fs::read(&path).unwrap()));
    let earlier = usize::try_from((CHANGE - 110 * MS) * 3 / DRAIN).unwrap();
    for side in [0..earlier, earlier..truths.len()] {
        let summary = |errors: &[u64]| {
            let errors = errors[side.clone()].iter();
            Summary::of(errors.map(|error| i64::try_from(*error).unwrap())).unwrap()
        };
        let (live, again) = (summary(&live), summary(&again));
        assert!(
            again.p50 <= live.p50 && again.p99 <= live.p99,
            "{live:?} {again:?}"
        );
        assert!(
            again.p99.unwrap().unsigned_abs() <= bound && bound < 11_000,
            "{again:?} {bound}"
        );
    }
    // Live, only those between the change and the next reading are wrong.
    let wrong = |errors: &[u64]| -> Vec<usize> {
        let all = errors.iter().enumerate();
        all.filter(|(_, error)| **error > wrong_ns)
            .map(|(index, _)| index)
            .collect()
    };
    assert_eq!(wrong(&again), wrong(&live));
    assert!(json["left"].as_u64().unwrap() <= most_left, "{json}");
}

#[test]
fn a_step_is_no_bend() {
    for step_ns in [1_000_000_000, -1_000_000_000, 50_000i64] {
        let ahead = |t| if t < CHANGE { 0 } else { step_ns };
        let wrong_ns = step_ns.unsigned_abs() / 2;
        // Those of the drain, and after the last bend.
        keeps_to_its_side(|t| (ahead(t), 37), |_| 0, wrong_ns, 200);
    }
}

#[test]
fn a_jump_of_the_counter_is_no_bend() {
    for cycles in [1 << 32, 1 << 22, -(1 << 31)] {
        let ahead = |t| if t < CHANGE { 0 } else { cycles };
        // Of 300 in a second: those of the drain, and of the second in which values of a
        // counter that went back come again; and those after the last bend.
        keeps_to_its_side(|_| (0, 37), ahead, MS / 2, 2 * 320 + 200);
    }
}

/// An interface that another program added, with a stamp option like ours.
#[test]
fn packets_of_other_interfaces_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, _) = slewed_capture(true);
    let path = folder.path().join("out.pcapng");
    let left = |bytes: &[u8]| {
        let output = convert(&file(&folder, bytes), &path, &["--json"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["left"].as_u64().unwrap()
    };
    let alone = left(&ours);
    // Ethernet, in microseconds.
    let interface = [1u32, 20, 1, 96, 20].map(u32::to_ne_bytes).concat();
    let mut foreign = packet(RawStamp(slewed().cycles(30_000 * MS).0), 5_000_000, true);
    foreign[8..12].copy_from_slice(&1u32.to_ne_bytes());
    let header = headers().take().len();
    let (head, rest) = ours.split_at(header);
    let bytes = [head, &interface, rest, &foreign].concat();
    assert_eq!(left(&bytes), alone + 1);
    assert!(fs::read(&path).unwrap().ends_with(&foreign));
}

#[test]
fn standard_output_gets_the_copy_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
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
        assert!(text.contains(" of the clock in 1 segment\n"), "{text}");
        // And where that is a file.
        let redirected = folder.path().join("redirected");
        let mut command = Command::new(tscap_path());
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
    let (bytes, _) = slewed_capture(true);
    let torn = &bytes[..bytes.len() - 7];
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, torn), &path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ends within a block"), "{text}");
    let all = packets(&bytes).len();
    assert_eq!(packets(&fs::read(&path).unwrap()).len(), all);
}

#[test]
fn what_cannot_be_converted_is_refused() {
    refuses(
        b"hello",
        &["cannot read", "hint: tscap converts its own captures"],
    );
    let (bytes, _) = slewed_capture(false);
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

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// A number of the first statistics' JSON, replaced by one of as many digits.
fn damaged(bytes: &[u8], key: &str, value: impl Fn(usize) -> String) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let key = format!("\"{key}\":");
    let from = find(&bytes, key.as_bytes()).expect("it is there") + key.len();
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
    let (bytes, _) = slewed_capture(true);
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

/// Every packet would be of 1970.
#[test]
fn a_history_that_its_own_readings_exclude_is_refused() {
    for path in [TSC, StampPath::Ktime] {
        let (mut bytes, _) = capture_by(path, &slewed(), true, |_| (0, 37), |_| 0);
        for key in ["low", "high"] {
            let key = format!("\"{key}\":");
            let at = |bytes: &[u8], from| find(&bytes[from..], key.as_bytes()).map(|at| at + from);
            let mut next = at(&bytes, 0);
            while let Some(from) = next {
                let value = bytes[from + key.len()..].iter_mut();
                let digits = value.take_while(|byte| byte.is_ascii_digit());
                for (index, digit) in digits.enumerate() {
                    *digit = if index == 0 { b'0' } else { b' ' };
                }
                next = at(&bytes, from + 1);
            }
        }
        refuses(
            &bytes,
            &[
                "the history of its clock is damaged",
                "an offset that its own readings exclude",
            ],
        );
    }
}

/// Where the next block begins.
fn next(bytes: &[u8], at: usize) -> usize {
    at + u32::from_ne_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize
}

/// With `-i 'veth*'` interfaces are described when they join, behind packets and statistics.
#[test]
fn an_interface_that_joined_is_no_other_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = slewed_capture(true);
    let interface = &bytes[next(&bytes, 0)..headers().take().len()];
    let mut joined = Vec::new();
    let (mut at, mut blocks) = (0, 0);
    while at < bytes.len() {
        let end = next(&bytes, at);
        let mut block = bytes[at..end].to_vec();
        let is_packet = block[..4] == 6u32.to_ne_bytes();
        if blocks == 500 {
            joined.extend(interface);
        }
        if is_packet && blocks > 500 && blocks % 2 == 0 {
            block[8..12].copy_from_slice(&1u32.to_ne_bytes());
        }
        joined.extend(block);
        (at, blocks) = (end, blocks + 1);
    }
    assert!(blocks > 1_000);
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, &joined), &path, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["packets"], truths.len() as u64);
    let copy = fs::read(&path).unwrap();
    assert!(packets(&copy).iter().any(|it| it.interface == 1));
}

/// Statistics that can't be read may say that the clock was set. A packet says nothing of it.
#[test]
fn a_history_with_a_hole_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = slewed_capture(true);
    let find_block = |kind: u32| {
        let mut at = headers().take().len();
        while bytes[at..at + 4] != kind.to_ne_bytes() {
            at = next(&bytes, at);
        }
        at
    };
    let mut of_statistics = bytes.clone();
    let at = find_block(5);
    of_statistics[next(&bytes, at) - 4] ^= 1;
    refuses(
        &of_statistics,
        &["a hole, at byte", "hint: a filter copies"],
    );
    let mut of_packet = bytes.clone();
    let at = find_block(6);
    of_packet[next(&bytes, at) - 4] ^= 1;
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(&folder, &of_packet), &path, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["packets"], truths.len() as u64 - 1);
    let damage = &json["damage"];
    assert_eq!(
        (&damage["parts"], &damage["packets"]),
        (&1.into(), &1.into())
    );
    assert_eq!(damage["first"][0]["at"], at as u64);
}

/// As by cat, and by programs that merge.
#[test]
fn several_captures_in_one_file_are_refused() {
    let parts = &["clocks of several captures", "hint: convert each"];
    let (first, _) = slewed_capture(true);
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
    let (bytes, _) = slewed_capture(true);
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
fn the_documented_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    fs::write(folder.path().join("out.pcapng"), bytes).unwrap();
    log(&folder, &slewed(), 0, LENGTH);
    for line in commands(Runner::Convert) {
        let mut command = Command::new(tscap_path());
        command.args(line.split(' ').skip(1));
        let status = command.current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}");
    }
    assert!(folder.path().join("better.pcapng").exists());
}

#[test]
fn a_copy_has_the_mode_of_its_input_or_that_of_the_file_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = slewed_capture(true);
    let input = file(&folder, &bytes);
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    set(&input, 0o640);
    let path = folder.path().join("out.pcapng");
    assert_eq!(convert(&input, &path, &[]).status.code(), Some(0));
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o640);
    set(&path, 0o600);
    assert_eq!(convert(&input, &path, &[]).status.code(), Some(0));
    assert_eq!(mode(), 0o600);
}

#[test]
fn a_signal_leaves_neither_a_copy_nor_half_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut bytes, _) = slewed_capture(true);
    // Enough to be at it for a while.
    bytes.extend(packet(RawStamp(1), 1, true).repeat(300_000));
    let input = file(&folder, &bytes);
    let names = || fs::read_dir(folder.path()).unwrap().count();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut command = Command::new(tscap_path());
        command.arg("convert").arg(&input).arg("-w");
        command.arg(folder.path().join("out.pcapng"));
        tscap_testkit::process::interruptible(&mut command);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        // The copy has no name before it is whole.
        let descriptors = format!("/proc/{}/fd", child.id());
        let is_begun = || {
            let opened = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            let mut opened = opened.filter_map(|it| fs::read_link(it.path()).ok());
            opened.any(|it| it != input && it.starts_with(folder.path()))
        };
        let begun = Instant::now();
        while !is_begun() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "no copy is begun"
            );
        }
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("ended by a signal"), "{stderr}");
        assert_eq!(names(), 1, "{signal}");
    }
}
