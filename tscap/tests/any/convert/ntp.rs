//! By the clock of an NTP server that a log has exchanges with. The server has the true time
//! and 1.5 s more; the host's clock is slewed, and set by an hour in the middle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;
use tscap_clock::scripted::{EPOCH, Random};
use tscap_clock::{RealNs, StampPath, StampSource, Tracker};
use tscap_references::log::{LogWriter, Recorder};
use tscap_references::ntp::{Exchange, NtpClock, NtpTime, Packet};
use tscap_testkit::command::tscap_path;

use super::script::{
    BOOT, DRAIN, LENGTH, MS, TSC, capture_by, convert, cross_of, file, log, packets, refuses_with,
    slewed,
};
use tscap_testkit::shown::{Runner, commands};

/// How far the server is ahead of the truth.
const AHEAD_NS: u64 = 1_500 * MS;
const SERVER: &str = "10.9.0.1:123";
/// When the host's clock is set, and by how much.
const SET_AT: u64 = 31_000 * MS;
const SET_NS: i64 = 3_600_000_000_000;

fn set(t: u64) -> i64 {
    if t < SET_AT { 0 } else { SET_NS }
}

/// The capture, and the true time of each packet by the server, ns.
fn capture() -> (Vec<u8>, Vec<u64>) {
    static MADE: OnceLock<(Vec<u8>, Vec<u64>)> = OnceLock::new();
    MADE.get_or_init(make).clone()
}

fn make() -> (Vec<u8>, Vec<u64>) {
    let host = slewed();
    let (bytes, _) = capture_by(TSC, &host, true, |t| (set(t), 37), |_| 0);
    let truths = packets(&bytes).into_iter().map(|packet| {
        let cycles = u128::from(packet.raw.unwrap().0 - host.cycles(0).0);
        let t = cycles * 1_000_000_000 / u128::from(host.hertz);
        EPOCH + u64::try_from(t).unwrap() + AHEAD_NS
    });
    let truths = truths.collect();
    (bytes, truths)
}

fn reply(real: [RealNs; 2]) -> Packet {
    let mut bytes = [0; 48];
    bytes[..4].copy_from_slice(&[0x24, 1, 6, 0xe7]);
    (bytes[7], bytes[11]) = (1, 1);
    for (at, time) in [(32, real[0]), (40, real[1])] {
        bytes[at..at + 8].copy_from_slice(&NtpTime::of(time).0.to_be_bytes());
    }
    Packet::parse(&bytes).unwrap()
}

/// A log with an exchange every two seconds: the way there takes 100 µs more than the way back,
/// and both more at times. `lie` is what the server is off besides.
fn log_of_server(
    folder: &TempDir,
    servers: &[&str],
    [from, until]: [u64; 2],
    lie: impl Fn(u64) -> i64,
) -> PathBuf {
    let path = folder.path().join("clock.log");
    let _ = fs::remove_file(&path);
    let mut log = LogWriter::open(&path, BOOT).unwrap();
    let (host, mut random) = (slewed(), Random(11));
    let cross = |t: u64| cross_of(&host, t, [20, 40, 20], (set(t), 37));
    let mut tracker = Tracker::new(StampSource::Tsc, &cross(from)).unwrap();
    let (mut recorder, mut clock) = (Recorder::default(), NtpClock::default());
    for t in (from + DRAIN..until).step_by(DRAIN as usize) {
        let seen = tracker.observe(&cross(t));
        recorder.observe(&cross(t), seen, &tracker);
        if t % (2_000 * MS) < DRAIN {
            let [there, back] = [200, 100].map(|least| least + random.exponential(50.0) as u64);
            let left = t + there * 1_000;
            let at = |t: u64| RealNs((EPOCH + t + AHEAD_NS).wrapping_add_signed(lie(t)));
            let real = [left, left + 20_000].map(at);
            let exchange = Exchange {
                server: servers[0].parse().unwrap(),
                tsc: [t, left + 20_000 + back * 1_000].map(|t| host.cycles(t)),
                stamp_error_ns: 0,
                real,
                packet: reply(real),
            };
            if let Some(point) = clock.take(&exchange, &tracker) {
                for server in servers {
                    recorder.observe_ntp(server.parse().unwrap(), point);
                }
            }
        }
        if t % (10_000 * MS) < DRAIN || t + DRAIN >= until {
            let entry = recorder.entry(&mut tracker, host.cycles(t), None);
            if let Some(entry) = entry {
                log.write(&entry).unwrap();
            }
        }
    }
    path
}

fn whole(folder: &TempDir) -> PathBuf {
    log_of_server(folder, &[SERVER], [0, LENGTH + 1_000 * MS], |_| 0)
}

/// What was said, and the copy.
fn by_server(folder: &TempDir, bytes: &[u8], log: &Path, base: &str) -> (Value, Vec<u8>) {
    let path = folder.path().join("out.pcapng");
    let log = log.to_str().unwrap();
    let more = ["--clock-log", log, "--time-base", base, "--json"];
    let output = convert(&file(folder, bytes), &path, &more);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (json, fs::read(&path).unwrap())
}

#[test]
fn every_time_is_the_servers_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = capture();
    let (json, copy) = by_server(&folder, &bytes, &whole(&folder), "ntp");
    let bound = json["bound_ns"]["max"].as_u64().unwrap();
    let after = packets(&copy);
    assert_eq!(after.len(), truths.len());
    let mut off: Vec<_> = after
        .iter()
        .zip(&truths)
        .map(|(packet, truth)| packet.time.0.abs_diff(*truth))
        .collect();
    off.sort_unstable();
    // Before the second exchange the server's rate is not known.
    let most = off[off.len() - 1];
    assert!(most <= bound && bound < 3 * MS, "{most} {bound}");
    // Half of the ways' difference, and what their noise adds.
    let p99 = off[off.len() * 99 / 100];
    assert!((40_000..80_000).contains(&p99), "{p99}");
    let p99_bound = json["bound_ns"]["p99"].as_u64().unwrap();
    assert!(p99 < p99_bound && p99_bound < 500_000, "{json}");
    assert!(after.is_sorted_by_key(|packet| packet.time.0));
    // 1/65536 s of dispersion, and half of that of delay.
    let utc = json["utc_bound_ns"]["max"].as_u64().unwrap();
    assert!(utc >= bound + 22_888, "{json}");
    assert_eq!(
        (&json["server"], &json["ambiguous"], &json["time_base"]),
        (&SERVER.into(), &0.into(), &"ntp".into())
    );
    assert_eq!(json["timed"], truths.len());

    let text = String::from_utf8_lossy(&copy);
    let stated = format!(r#""ntp":{{"server":"{SERVER}","bound_ns":{bound},"root_distance_ns":"#);
    assert!(text.contains(&stated), "{stated}");
    assert!(text.contains("times are UTC by the clock of NTP server 10.9.0.1:123"));
}

#[test]
fn a_lie_between_two_exchanges_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, truths) = capture();
    let lie = |t| if t < 40_000 * MS { 0 } else { 1_000_000_000 };
    let log = log_of_server(&folder, &[SERVER], [0, LENGTH + 1_000 * MS], lie);
    let (json, copy) = by_server(&folder, &bytes, &log, &format!("ntp:{SERVER}"));
    // Three exchanges are not believed: 300 packets a second for 8 s.
    let ambiguous = json["ambiguous"].as_u64().unwrap();
    assert!((2_000..2_500).contains(&ambiguous), "{json}");
    let bound = json["bound_ns"]["max"].as_u64().unwrap();
    let packets = packets(&copy);
    for (packet, truth) in packets.iter().zip(&truths) {
        let lied = packet.time.0.saturating_sub(1_000_000_000).abs_diff(*truth);
        let off = packet.time.0.abs_diff(*truth).min(lied);
        assert!(off <= bound, "{off} {bound}");
    }
    let text = convert(
        &file(&folder, &bytes),
        &folder.path().join("text.pcapng"),
        &["--clock-log", log.to_str().unwrap(), "--time-base", "ntp"],
    );
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["by the clock of NTP server 10.9.0.1:123", "was set between"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_of_a_server_is_not_converted_again() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture();
    let log = whole(&folder);
    let (_, copy) = by_server(&folder, &bytes, &log, "ntp");
    fs::remove_file(folder.path().join("out.pcapng")).unwrap();
    let log = log.to_str().unwrap();
    let again = ["--clock-log", log, "--time-base", "ntp"];
    for more in [&[][..], &again, &["--time-base", "realtime"]] {
        refuses_with(
            &folder,
            &copy,
            more,
            &["its times are of NTP server 10.9.0.1:123 already", "hint: "],
        );
    }
}

#[test]
fn what_no_server_tells_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture();
    let refused = |bytes: &[u8], log: &Path, base: &str, parts: &[&str]| {
        let log = log.to_str().unwrap();
        let more = ["--clock-log", log, "--time-base", base];
        refuses_with(&folder, bytes, &more, parts);
    };
    let path = log(&folder, &slewed(), 0, LENGTH);
    refused(&bytes, &path, "ntp", &["no exchange with an NTP server"]);
    let path = log_of_server(&folder, &[SERVER, "10.9.0.3:123"], [0, LENGTH], |_| 0);
    refused(
        &bytes,
        &path,
        "ntp",
        &[
            "several NTP servers: 10.9.0.1:123, 10.9.0.3:123",
            "ntp:ADDRESS",
        ],
    );
    by_server(&folder, &bytes, &path, "ntp:10.9.0.3");
    fs::remove_file(folder.path().join("out.pcapng")).unwrap();
    refused(
        &bytes,
        &path,
        "ntp:10.9.0.4",
        &["no exchange with NTP server 10.9.0.4"],
    );
    let late = [2_000_000 * MS, 2_010_000 * MS];
    let path = log_of_server(&folder, &[SERVER], late, |_| 0);
    refused(&bytes, &path, "ntp", &["within 1024 s of all packets"]);
    let path = whole(&folder);
    let (untold, _) = capture_by(TSC, &slewed(), false, |_| (0, 37), |_| 0);
    refused(
        &untold,
        &path,
        "ntp",
        &["kept their raw stamp", "--keep-raw"],
    );
    let (ktime, _) = capture_by(StampPath::Ktime, &slewed(), true, |_| (0, 37), |_| 0);
    refused(
        &ktime,
        &path,
        "ntp",
        &["its stamps are of ktime", "--clock tsc"],
    );
}

#[test]
fn the_documented_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = capture();
    fs::write(folder.path().join("out.pcapng"), bytes).unwrap();
    whole(&folder);
    for line in commands(Runner::ConvertNtp) {
        let mut command = Command::new(tscap_path());
        command.args(line.split(' ').skip(1));
        let done = command.current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    }
    assert!(folder.path().join("utc.pcapng").exists());
}

#[test]
fn a_servers_clock_needs_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let output = convert(
        &file(&folder, b""),
        &folder.path().join("out.pcapng"),
        &["--time-base", "ntp"],
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--time-base ntp needs --clock-log"), "{text}");
}
