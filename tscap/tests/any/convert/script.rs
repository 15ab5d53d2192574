//! Captures written from a script, whose true time is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tempfile::TempDir;
use tscap_clock::scripted::{Host, Random};
use tscap_clock::{
    CrossTimestamp, MonoNs, RawStamp, RealNs, StampPath, StampSource, TaiNs, Tracker, TscCycles,
    TscPath,
};
use tscap_common::block::{CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, OPT_FLAGS, OPT_RAW, PEN, padded};
use tscap_file::accounting::{Counts, Directed, StampOrder, Written};
use tscap_file::pcapng::{
    FileWriter, Hooks, InterfaceInfo, InterfaceOption, Packet, Record, SectionInfo, StampOption,
    records,
};
use tscap_filter::LinkType;
use tscap_references::log::{LogWriter, Recorder};
use tscap_statistics::Summary;
use tscap_testkit::command::tscap_path;

pub const MS: u64 = 1_000_000;
/// Of a capture, ns.
pub const LENGTH: u64 = 60_000 * MS;
/// Between two drains of an idle capture, ns.
pub const DRAIN: u64 = 10 * MS;

/// A time daemon at work: the clock's rate changes every few hundred milliseconds.
pub fn slewed() -> Host {
    let ppb = [500_000, -40_000, 8_000, -500_000, 0];
    let slews = (0..80).map(|turn| (turn * 733 * MS, ppb[turn as usize % ppb.len()]));
    Host {
        hertz: 2_596_130_000,
        slews: slews.collect(),
    }
}

/// Of the captures, and of the logs.
pub const BOOT: &str = "boot-1";

pub const TSC: StampPath = StampPath::Tsc(TscPath::Perf);

pub fn headers() -> FileWriter {
    headers_of(TSC)
}

fn headers_of(path: StampPath) -> FileWriter {
    let section = SectionInfo {
        hardware: "a script".into(),
        os: "Linux".into(),
        application: "tscap".into(),
        part: None,
    };
    let stamp = StampOption::new(path);
    let mut tscap = InterfaceOption::new(Hooks::default(), stamp, Default::default());
    tscap.boot_id = Some(BOOT.into());
    let interface = InterfaceInfo {
        name: "test0".into(),
        description: None,
        link_type: LinkType::Ethernet,
        mac: None,
        speed: None,
        snaplen: 96,
        filter: None,
        os: "Linux".into(),
        tscap,
    };
    FileWriter::new(&section, &[interface], RealNs(0)).unwrap()
}

pub fn packet(stamp: RawStamp, time: u64, keep_raw: bool) -> Vec<u8> {
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

/// A packet with a raw stamp, and with these flags (`epb_flags`) before it.
pub fn with_flags(packet: &[u8], flags: u32) -> Vec<u8> {
    let caplen = u32::from_ne_bytes(packet[CAPLEN_OFFSET..][..4].try_into().unwrap());
    let (before, after) = packet.split_at(DATA_OFFSET + padded(caplen as usize));
    let option = [OPT_FLAGS, flags].map(u32::to_ne_bytes).concat();
    let mut packet = [before, &option, after].concat();
    let length = (packet.len() as u32).to_ne_bytes();
    let end = packet.len() - 4;
    for at in [4, end] {
        packet[at..at + 4].copy_from_slice(&length);
    }
    packet
}

/// A capture of `host`, and the true times of its packets.
pub fn capture(host: &Host, keep_raw: bool) -> (Vec<u8>, Vec<u64>) {
    capture_with(host, keep_raw, |_| (0, 37))
}

/// That of [`slewed`], made once for all tests: it takes a while.
pub fn slewed_capture(keep_raw: bool) -> (Vec<u8>, Vec<u64>) {
    static MADE: [OnceLock<(Vec<u8>, Vec<u64>)>; 2] = [OnceLock::new(), OnceLock::new()];
    let made = &MADE[usize::from(keep_raw)];
    made.get_or_init(|| capture(&slewed(), keep_raw)).clone()
}

/// The same on a host whose clock is set: by how much it is ahead in all, ns, and the
/// offset of TAI, s, at a true time.
pub fn capture_with(
    host: &Host,
    keep_raw: bool,
    set: impl Fn(u64) -> (i64, u64),
) -> (Vec<u8>, Vec<u64>) {
    capture_by(TSC, host, keep_raw, set, |_| 0)
}

/// The same with stamps by any path, of a counter that jumps: by how many cycles it is
/// ahead in all at a true time.
pub fn capture_by(
    path: StampPath,
    host: &Host,
    keep_raw: bool,
    set: impl Fn(u64) -> (i64, u64),
    jump: impl Fn(u64) -> i64,
) -> (Vec<u8>, Vec<u64>) {
    let jumped = |t: u64, tsc: TscCycles| TscCycles(tsc.0.wrapping_add_signed(jump(t)));
    let cross = |t: u64, gaps: [u64; 3]| {
        let mut cross = cross_of(host, t, gaps, set(t));
        cross.tsc = cross.tsc.map(|tsc| tsc.map(|tsc| jumped(t, tsc)));
        cross
    };
    let real = |t: u64| host.real(t).wrapping_add_signed(set(t).0);
    let stamp = |t: u64| match path.source() {
        StampSource::Tsc => RawStamp(jumped(t, host.cycles(t)).0),
        StampSource::Ktime => RawStamp(host.mono(t).0),
        StampSource::Tai => RawStamp(real(t) + set(t).1 * 1_000_000_000),
    };
    let mut random = Random(3);
    let mut gaps = move || [15, 35, 15].map(|least| least + random.exponential(6.0) as u64);
    let mut tracker = Tracker::new(path.source(), &cross(0, gaps())).unwrap();
    tracker.observe(&cross(100 * MS, gaps()));
    let mut file = headers_of(path);
    let mut bytes = file.take();
    let mut truths = Vec::new();
    for t in (110 * MS..LENGTH).step_by(DRAIN as usize) {
        tracker.observe(&cross(t, gaps()));
        let conversion = tracker.conversion();
        for part in [7, 4, 1] {
            let at = t - DRAIN * part / 10;
            let stamp = stamp(at);
            bytes.extend(packet(stamp, conversion.to_real(stamp).0, keep_raw));
            truths.push(real(at));
        }
        if t % (10_000 * MS) < DRAIN {
            bytes.extend(statistics(&mut file, &mut tracker, truths.len()));
        }
    }
    bytes.extend(statistics(&mut file, &mut tracker, truths.len()));
    (bytes, truths)
}

/// A reading of a clock that was set so far ahead, ns, with this offset of TAI, s.
pub fn cross_of(
    host: &Host,
    t: u64,
    gaps: [u64; 3],
    (ahead, tai_offset_s): (i64, u64),
) -> CrossTimestamp {
    let mut cross = host.cross(t, gaps);
    let set = |real: RealNs| RealNs(real.0.wrapping_add_signed(ahead));
    cross.real = cross.real.map(set);
    cross.tai = TaiNs(cross.real[0].0 + tai_offset_s * 1_000_000_000);
    cross
}

pub fn statistics(file: &mut FileWriter, tracker: &mut Tracker, written: usize) -> Vec<u8> {
    let written = Written {
        written: written as u64,
        ..Written::default()
    };
    let counts = Counts {
        written: vec![Directed::received(written)],
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

pub fn convert(input: &Path, output: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(tscap_path());
    command.arg("convert").arg(input).arg("-w").arg(output);
    command.args(more).output().expect("start tscap")
}

pub fn file(folder: &TempDir, content: &[u8]) -> PathBuf {
    let path = folder.path().join("in.pcapng");
    fs::write(&path, content).unwrap();
    path
}

pub fn packets(bytes: &[u8]) -> Vec<Packet> {
    let records = records(bytes).unwrap().map(Result::unwrap);
    let packets = records.filter_map(|record| match record {
        Record::Packet(packet) => Some(packet),
        _ => None,
    });
    packets.collect()
}

/// A log of the clock of `host` between two true times, by a process with brackets of
/// its own.
pub fn log(folder: &TempDir, host: &Host, from: u64, until: u64) -> PathBuf {
    log_with(folder, host, from, until, |_| Some(0))
}

/// The same on a host whose clock is set: by how much it is ahead in all, ns, at a true
/// time; none while the process is stopped.
pub fn log_with(
    folder: &TempDir,
    host: &Host,
    from: u64,
    until: u64,
    set: impl Fn(u64) -> Option<i64>,
) -> PathBuf {
    let path = folder.path().join("clock.log");
    let mut log = LogWriter::open(&path, BOOT).unwrap();
    let mut random = Random(from ^ 5);
    let mut gaps = move || [15, 35, 15].map(|least| least + random.exponential(6.0) as u64);
    let cross = |t: u64, gaps| Some(cross_of(host, t, gaps, (set(t)?, 37)));
    let first = cross(from, gaps()).expect("it runs at first");
    let mut tracker = Tracker::new(StampSource::Tsc, &first).unwrap();
    let mut recorder = Recorder::default();
    for t in (from + DRAIN..until).step_by(DRAIN as usize) {
        let Some(cross) = cross(t, gaps()) else {
            continue;
        };
        let seen = tracker.observe(&cross);
        recorder.observe(&cross, seen, &tracker);
        if (t - from) % (10_000 * MS) < DRAIN || t + DRAIN >= until {
            let entry = recorder.entry(&mut tracker, host.cycles(t), None);
            if let Some(entry) = entry {
                log.write(&entry).unwrap();
            }
        }
    }
    path
}

/// How far the times are from the truth.
pub fn errors(bytes: &[u8], truths: &[u64]) -> Summary {
    let packets = packets(bytes);
    assert_eq!(packets.len(), truths.len());
    let errors = packets.iter().zip(truths);
    let errors = errors.map(|(packet, truth)| packet.time.0.abs_diff(*truth));
    Summary::of(errors.map(|error| i64::try_from(error).unwrap())).unwrap()
}

/// A capture with all times of packets at 0.
pub fn without_times(bytes: &[u8]) -> Vec<u8> {
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
}

/// Says why and what to do, and writes nothing.
#[track_caller]
pub fn refuses(content: &[u8], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    refuses_with(&folder, content, &[], parts);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The same with these arguments.
#[track_caller]
pub fn refuses_with(folder: &TempDir, content: &[u8], more: &[&str], parts: &[&str]) {
    let path = folder.path().join("out.pcapng");
    let output = convert(&file(folder, content), &path, more);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!path.exists());
}
