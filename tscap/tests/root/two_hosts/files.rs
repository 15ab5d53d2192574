//! Captures of both ends, whose clock is one: so what exchanges say of them can be checked.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tscap_delay::schema::{Delays, Measurement};
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::root::root;
use tscap_testkit::shown::{Runner, commands};

use super::bed;

const PINGS: u64 = 400;

/// A capture of each end, and one that has both, while packets go there and back.
fn captured(tag: &str, folder: &Path) {
    let bench = bed(tag);
    let files = ["a.pcapng", "b.pcapng"].map(|name| folder.join(name));
    let both = [&bench.tx, &bench.rx];
    let running = [0, 1].map(|index| {
        let plan = capture_on(both[index], &files[index]);
        plan.with(["-Q", "inout", "--keep-raw"]).ready()
    });
    let mut ping = bench.tx.netns.command("ping");
    let count = PINGS.to_string();
    run(
        ping.args(["-q", "-c", &count, "-i", "0.002", "10.9.0.2"]),
        LIMIT,
    );
    for capture in running {
        assert_eq!(capture.stop().code, Some(0));
    }
    let mut merge = Command::new(tscap_path());
    merge.arg("merge").args(&files).arg("-w");
    run(merge.arg(folder.join("both.pcapng")), LIMIT);
}

/// What `tscap delay` says of the files of this folder.
fn measured(folder: &Path, line: &str) -> Measurement {
    let mut command = Command::new(tscap_path());
    command.args(line.split(' ').skip(1)).current_dir(folder);
    command.args((!line.contains("--json")).then_some("--json"));
    let output = command.output().expect("start tscap");
    let text = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {why}");
    let line = text.lines().last().unwrap_or_default();
    tscap_report::saved::read(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn ways(measurement: &Measurement) -> Vec<&Delays> {
    let passages = measurement.passages.iter();
    let exits = passages.map(|it| &it.exits[0]);
    let checked = exits.map(|exit| {
        let account = exit.account;
        assert!(account.matched >= PINGS, "{account:?}");
        let others = account.lost_inside + account.originated + account.untracked_in;
        assert_eq!(others, 0, "{account:?}");
        exit.delays.as_ref().expect("delays")
    });
    checked.collect()
}

/// Two captures of one host by one clock, and by the packets alone.
#[test]
fn both_ends_align_each_other() {
    let Some(_lock) = root() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    captured("hosts-files", folder.path());
    let line = "tscap delay --file a.pcapng --file b.pcapng --both";
    let truth = measured(folder.path(), line);
    assert_eq!(truth.alignment, None);
    let aligned = measured(folder.path(), &format!("{line} --align exchange"));
    let alignment = aligned.alignment.as_ref().expect("an alignment");
    assert_eq!(alignment.by, "exchange");
    assert!(
        alignment.packets.unwrap().iter().all(|it| *it >= PINGS),
        "{alignment:?}"
    );
    let bound = alignment.bound_ns.expect("a bound");
    let ahead = alignment.peer_ahead_ns.expect("how far it is ahead");
    // Both lines of time begin at the first packet's time, whose stamp may be off by this.
    assert!(ahead.unsigned_abs() <= bound + 10_000, "{alignment:?}");
    let both = ways(&truth).into_iter().zip(ways(&aligned));
    for (truth, said) in both {
        let bounds = truth.bound_ns.unwrap() + said.bound_ns.unwrap();
        assert_eq!(truth.summary.n, said.summary.n);
        for (is, said) in [
            (truth.summary.min, said.summary.min),
            (truth.summary.max, said.summary.max),
        ] {
            assert!(is.abs_diff(said) <= bounds, "{said} for {is}, ±{bounds}");
        }
        assert!(said.summary.min >= -(bounds as i64));
    }
    for passage in &aligned.passages {
        let varies = passage.exits[0].variation.as_ref().expect("variation");
        assert!(varies.bound_ns < bound, "{varies:?}");
    }
}

/// Each command of docs/two-hosts.md that reads captures.
#[test]
fn every_command_with_files_works() {
    let Some(_lock) = root() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    captured("hosts-read", folder.path());
    let lines = commands(Runner::TwoHosts);
    let lines: Vec<_> = lines.iter().filter(|it| it.contains("--file")).collect();
    assert!(lines.len() >= 2, "{lines:?}");
    for line in lines {
        assert!(!ways(&measured(folder.path(), line)).is_empty(), "{line}");
    }
}

/// Gives a capture the name of another boot.
fn of_another_boot(path: &Path) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the boot");
    let (boot, mut bytes) = (boot.trim().as_bytes(), fs::read(path).expect("a capture"));
    let mut other = boot.to_vec();
    other[0] = if other[0] == b'0' { b'1' } else { b'0' };
    for at in 0..bytes.len() - boot.len() {
        if bytes[at..].starts_with(boot) {
            bytes[at..at + boot.len()].copy_from_slice(&other);
        }
    }
    fs::write(path, bytes).expect("write the capture");
}

/// A copy by the other host's clock, which is this one's: no time moves by more than the bound, and
/// both are of one clock from then on.
#[test]
fn a_copy_has_the_times_of_the_other_host() {
    let Some(_lock) = root() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    captured("hosts-copy", folder.path());
    let lines = commands(Runner::TwoHosts);
    let line = lines.iter().find(|it| it.contains("--with"));
    let line = line.expect("a command of docs/two-hosts.md");
    let convert = || {
        let mut command = Command::new(tscap_path());
        let words = line.split(' ').skip(1);
        run(
            command.args(words).arg("--json").current_dir(folder.path()),
            LIMIT,
        )
    };
    let refused = convert();
    assert!(
        refused.stderr.contains("one clock already"),
        "{}",
        refused.stderr
    );
    let truth = measured(folder.path(), "tscap delay --file a.pcapng --file b.pcapng");
    of_another_boot(&folder.path().join("b.pcapng"));
    let converted = convert();
    assert!(converted.status.success(), "{}", converted.stderr);
    let said: Value = serde_json::from_str(converted.stdout.trim()).expect("JSON");
    let bound = said["bound_ns"].as_u64().expect("a bound");
    for end in ["min", "max"] {
        let moved = said["moved_ns"][end].as_i64().expect("how far times moved");
        // As its own times are off that clock.
        assert!(moved.unsigned_abs() <= bound + 10_000, "{said}");
    }
    let after = measured(
        folder.path(),
        "tscap delay --file out.pcapng --file b.pcapng",
    );
    assert_eq!(after.alignment, None);
    let (is, said) = (ways(&truth)[0].clone(), ways(&after)[0].clone());
    let bounds = is.bound_ns.unwrap() + said.bound_ns.unwrap();
    assert!(said.bound_ns.unwrap() >= bound, "{said:?}");
    assert!(is.summary.min.abs_diff(said.summary.min) <= bounds);
    let mut merge = Command::new(tscap_path());
    merge.args(["merge", "out.pcapng", "b.pcapng", "-w", "one.pcapng"]);
    let merged = run(merge.current_dir(folder.path()), LIMIT);
    assert!(merged.status.success(), "{}", merged.stderr);
}
