//! TSC stamps: against the other clocks on the same frame, across silence and
//! CPUs, and the raw stamps in the file. Needs root.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tscap::command::Exit;
use tscap_clock::interval_ns;
use tscap_clock::{FileNs, OffsetBracket, RawStamp, Segment};
use tscap_file::pcapng::{Packet, Record, StatisticsOption, records};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{SHORT, run, tscap_path, wait_for};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::in_process::capture_with;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::pauses::{PAUSES, make_events_pause};
use tscap_testkit::peers;
use tscap_testkit::probes::programs;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone, two_cpus};
use tscap_testkit::wait::until;

fn read(path: &Path) -> impl Iterator<Item = Record> {
    let file = File::open(path).expect("open the capture");
    let records = records(std::io::BufReader::new(file)).expect("a pcapng file");
    records.map(|record| record.expect("a whole block"))
}

fn packets(path: &Path) -> impl Iterator<Item = Packet> {
    read(path).filter_map(|record| match record {
        Record::Packet(packet) => Some(packet),
        _ => None,
    })
}

fn statistics(path: &Path) -> Vec<StatisticsOption> {
    let statistics = read(path).filter_map(|record| match record {
        Record::Statistics(_, statistics) => Some(*statistics),
        _ => None,
    });
    statistics.collect()
}

/// How closely the interface's stamps are held against the TSC.
fn bracket(path: &Path) -> Option<OffsetBracket> {
    read(path).find_map(|record| match record {
        Record::Interface(interface) => interface.tscap.expect("tscap wrote it").stamp.bracket,
        _ => None,
    })
}

/// What `probe_three_clocks` left in a frame: TAI and CLOCK_MONOTONIC on either
/// side of the stamp, as wall-clock time.
struct Others {
    tai: [u64; 2],
    mono: [u64; 2],
}

impl Others {
    fn of(packet: &Packet, segment: &Segment) -> Self {
        let reading = |at: usize| {
            let bytes = packet.data[at..at + 8].try_into().expect("eight bytes");
            u64::from_ne_bytes(bytes)
        };
        let seconds = segment.tai_offset_s * 1_000_000_000;
        let from_tai = |tai: u64| tai.wrapping_add_signed(-seconds);
        let from_mono = |mono| RawStamp(mono).to_real(segment.mono_to_real.middle()).0;
        Self {
            tai: [from_tai(reading(14)), from_tai(reading(22))],
            mono: [from_mono(reading(30)), from_mono(reading(38))],
        }
    }
}

fn outside(time: FileNs, [before, after]: [u64; 2]) -> u64 {
    let early = before.saturating_sub(time.0);
    early.max(time.0.saturating_sub(after))
}

/// Between two statistics, and between two checks of the TSC events.
const STATISTICS_EVERY: Duration = Duration::from_secs(1);
/// Longer than that, and than between two readings of the clock.
const SILENCE: Duration = Duration::from_millis(2_500);

/// A million frames natively, from one CPU and from another, with [`SILENCE`] in between: each stamp lies between the other clocks' readings.
#[test]
fn three_clocks_agree_on_a_million_frames() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    let Some((first, second)) = two_cpus() else {
        return;
    };
    const BURST: u64 = 250_000;
    const SLOW: u64 = 10_000;
    let bench = Bench::new("agree");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let mut live = LiveSender::open(&bench.tx);
    let socket = PacketSocket::open(&bench.tx);
    let total = 4 * BURST + 2 * SLOW;
    let count = total.to_string();
    // The rings hold a burst, so that nothing is lost however slow the machine.
    let arguments = ["--clock", "tsc", "-c", &count, "--ring-size", "64M"];
    let (exit, summary) = capture_with(
        |capture| {
            capture.programs = programs("probe_three_clocks", None);
            capture.statistics_every = STATISTICS_EVERY;
        },
        &bench.rx,
        &path,
        &arguments,
        || {
            for cpu in [first, second] {
                assert_eq!(live.send(&frame, BURST, cpu), BURST);
            }
            assert_eq!(socket.send(&frame, 0..SLOW, second), SLOW);
            // The silence is what is under test.
            std::thread::sleep(SILENCE);
            assert_eq!(socket.send(&frame, 0..SLOW, first), SLOW);
            for cpu in [second, first] {
                assert_eq!(live.send(&frame, BURST, cpu), BURST);
            }
        },
    );
    assert_eq!((exit, summary.written), (Exit::Success, total));
    let clock = &summary.clock;
    assert_eq!(clock.source, "tsc");
    assert!(clock.path.contains("bpf_perf_event_read"), "{}", clock.path);
    let [segment] = &clock.segments[..] else {
        panic!("the host's clock was set meanwhile: {:?}", clock.segments);
    };
    // CLOCK_MONOTONIC is known to its own bound.
    let mono_bound = segment.mono_to_real.half_width();
    let (mut worst, mut checked) = (0, 0);
    for (number, packet) in packets(&path).enumerate() {
        let others = Others::of(&packet, segment);
        let tai = outside(packet.time, others.tai);
        let mono = outside(packet.time, others.mono);
        assert!(
            tai <= clock.host_bound_ns,
            "frame {number}: {tai} ns off TAI, bound {} ns",
            clock.host_bound_ns
        );
        assert!(
            mono <= clock.host_bound_ns + mono_bound,
            "frame {number}: {mono} ns off CLOCK_MONOTONIC, bound {} + {mono_bound} ns",
            clock.host_bound_ns
        );
        worst = worst.max(tai);
        checked += 1;
    }
    assert_eq!(checked, total);
    println!(
        "tsc: bound {} ns, at most {worst} ns outside TAI's bracket in {checked} frames",
        clock.host_bound_ns
    );
    assert!(clock.host_bound_ns < 20_000, "{} ns", clock.host_bound_ns);
}

/// Somebody else's events make ours pause: the capture notices at the next check,
/// corrects its stamps, and says by how much the ones before may be off.
#[test]
fn an_event_that_paused_widens_the_bound() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    let bench = Bench::new("paused");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let (exit, summary) = capture_with(
        |capture| capture.statistics_every = STATISTICS_EVERY,
        &bench.rx,
        &path,
        &["--clock", "tsc", "-c", "10"],
        || {
            let latest_bound = || {
                let statistics = Recording::read_torn(&path).0.statistics;
                statistics.last()?.custom["clock"]["host_bound_ns"].as_u64()
            };
            let before = until("statistics", SHORT, latest_bound);
            make_events_pause();
            until("the bound to widen", SHORT, || {
                latest_bound().filter(|now| *now > before.max(WIDE_NS))
            });
            PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
        },
    );
    assert_eq!((exit, summary.written), (Exit::Success, 10));
    assert!(
        last_bound_ns(&path) > WIDE_NS,
        "{} ns",
        last_bound_ns(&path)
    );
}

/// A bound of a TSC event that has paused, at least, ns: what the other tests' are is far
/// below.
const WIDE_NS: u64 = 1_000;

fn last_bound_ns(path: &Path) -> u64 {
    let statistics = statistics(path);
    let last = statistics.last().expect("statistics at the end");
    last.clock.host_bound_ns
}

/// A pause after the last look while capturing is found at the end: it is in the bound,
/// also when the capture is stamped again.
#[test]
fn an_event_that_paused_is_noticed_at_the_end() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    let bench = Bench::new("pausedend");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let capture = capture_on(&bench.rx, &path).with(["--clock", "tsc", "--keep-raw"]);
    let capture = capture.ready();
    // Long enough for the samples of the clock that stamp frames again, one a second.
    std::thread::sleep(Duration::from_millis(2_500));
    PacketSocket::open(&bench.tx).send(&frame, 0..10, 0);
    make_events_pause();
    let finished = capture.stop();
    assert!(
        finished.stderr.contains("has paused"),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.success().written, 10);
    assert!(
        last_bound_ns(&path) > WIDE_NS,
        "{} ns",
        last_bound_ns(&path)
    );

    let converted = folder.path().join("converted.pcapng");
    let mut convert = Command::new(tscap_path());
    convert.arg("convert").arg(&path).arg("-w").arg(&converted);
    let said = convert.arg("--json").output().expect("start tscap");
    assert!(said.status.success());
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let bound_ns = said["bound_ns"]["max"]
        .as_i64()
        .unwrap_or_else(|| panic!("no bound: {said}"));
    assert!(bound_ns > WIDE_NS.cast_signed(), "{bound_ns} ns");
}

/// The raw stamps of every source stand beside the times, and give the same
/// intervals through the clock in the file.
#[test]
fn raw_stamps_are_kept_and_give_the_intervals() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    for source in ["ktime", "tai", "tsc"] {
        let bench = Bench::new("raw");
        let folder = files::folder();
        let path = folder.path().join("out.pcapng");
        let frame = Frame::new(&bench.tx, &bench.rx, 61);
        let arguments = ["--clock", source, "--keep-raw", "--packet-meta"];
        let capture = capture_on(&bench.rx, &path).with(arguments);
        let capture = capture.with(["-c", "500"]).ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..500, 0);
        assert_eq!(capture.wait().success().written, 500);

        let statistics = statistics(&path);
        let clock = &statistics.last().expect("statistics at the end").clock;
        assert_eq!(clock.counter.is_some(), source == "tsc");
        assert!(!clock.samples.is_empty());
        let bracket = bracket(&path);
        assert_eq!(bracket.is_some(), source == "tsc");
        if let Some(bracket) = bracket {
            // The two legs make the whole, which several runs narrow.
            let legs = bracket.cpu_ns + bracket.common_ns;
            assert!(bracket.cpu_ns > 0 && bracket.common_ns > 0, "{bracket:?}");
            assert!(bracket.whole_ns <= legs + 2, "{bracket:?}");
            assert!(bracket.whole_ns / 2 <= clock.host_bound_ns, "{bracket:?}");
        }
        assert_eq!(clock.samples[0].tsc.is_some(), source == "tsc");
        let packets: Vec<_> = packets(&path).collect();
        assert_eq!(packets.len(), 500);
        for pair in packets.windows(2) {
            let raw = |packet: &Packet| packet.raw.expect("a raw stamp");
            let interval = interval_ns(raw(&pair[0]), raw(&pair[1]), clock.counter.as_ref());
            let times = pair[1].time.0.wrapping_sub(pair[0].time.0).cast_signed();
            let off = interval.abs_diff(times);
            assert!(
                off <= 2 * clock.host_bound_ns,
                "{source}: {interval} {times}"
            );
        }
        peers::agree_on(&path, 500);
        let converted = folder.path().join("converted.pcapng");
        let mut convert = Command::new(tscap_path());
        convert.arg("convert").arg(&path).arg("-w").arg(&converted);
        let status = convert.status().expect("start tscap");
        assert!(status.success(), "{source}");
        for (live, again) in packets.iter().zip(self::packets(&converted)) {
            let moved = again.time.0.abs_diff(live.time.0);
            assert!(moved <= 2 * clock.host_bound_ns, "{source}: {moved} ns");
        }
    }
}

/// A process that ends with its test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail for one that has been waited for: fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One process logs the clock; captures of it are stamped by the log, and in other
/// clocks' times, as other programs see.
#[test]
fn one_log_serves_many_captures() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    let folder = files::folder();
    let log = folder.path().join("clock.log");
    let mut clock = Command::new(tscap_path());
    clock.args(["clock", "--json", "--duration", "120", "--log"]);
    clock.arg(&log).stdout(Stdio::null());
    let mut clock = Ended(clock.spawn().expect("start tscap"));
    until("the first entry of the log", SHORT, || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.lines().count() >= 2).then_some(())
    });
    let sources = ["ktime", "tai", "tsc"];
    let path = |source: &str, what: &str| folder.path().join(format!("{source}-{what}.pcapng"));
    for source in sources {
        let bench = Bench::new("log");
        let frame = Frame::new(&bench.tx, &bench.rx, 61);
        let capture = capture_on(&bench.rx, &path(source, "live"));
        let capture = capture.with(["--clock", source, "--keep-raw", "-c", "500"]);
        let capture = capture.ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..500, 0);
        assert_eq!(capture.wait().success().written, 500);
    }
    // Its last entry comes at its end.
    let pid = Pid::from_raw(clock.0.id().cast_signed());
    kill(pid, Signal::SIGTERM).expect("end the log");
    assert!(wait_for(&mut clock.0, SHORT).is_some_and(|status| status.success()));

    let convert = |from: &Path, to: &Path, more: &[&str]| {
        let mut convert = Command::new(tscap_path());
        convert.arg("convert").arg(from).arg("-w").arg(to);
        let done = run(convert.args(more), SHORT);
        assert!(done.status.success(), "{more:?}: {}", done.stderr);
    };
    for source in sources {
        let [live, by_log, mono] = ["live", "log", "mono"].map(|what| path(source, what));
        convert(&live, &by_log, &["--clock-log", log.to_str().unwrap()]);
        let statistics = statistics(&live);
        let clock = &statistics.last().expect("statistics at the end").clock;
        let pairs = packets(&live).zip(packets(&by_log));
        for (live, again) in pairs {
            let moved = again.time.0.abs_diff(live.time.0);
            // The log's own bound is no more.
            assert!(
                moved <= 2 * clock.host_bound_ns + 200,
                "{source}: {moved} ns"
            );
        }
        convert(&live, &mono, &["--time-base", "monotonic"]);
        let segment = clock.segments.last().expect("a segment");
        let span = segment.from.0..=segment.until.0 + 1_000_000_000;
        assert!(
            packets(&mono).all(|packet| span.contains(&packet.time.0)),
            "{source}"
        );
        peers::agree_on(&mono, 500);
        let back = path(source, "back");
        convert(&mono, &back, &["--time-base", "realtime"]);
        let again = path(source, "again");
        convert(&live, &again, &[]);
        let read = |path: &Path| std::fs::read(path).expect("a copy");
        assert!(read(&back) == read(&again), "{source}");
    }
}

/// Without the option nothing is added.
#[test]
fn raw_stamps_are_left_out_by_default() {
    let Some(_lock) = alone(PAUSES) else {
        return;
    };
    let bench = Bench::new("noraw");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 64);
    let capture = capture_on(&bench.rx, &path).with(["--clock", "tsc", "-c", "5"]);
    let capture = capture.ready();
    PacketSocket::open(&bench.tx).send(&frame, 0..5, 0);
    capture.wait().success();
    assert!(packets(&path).all(|packet| packet.raw.is_none()));
}
