//! `tscap delay` on devices between namespaces: accounts, delays that others observe too, a
//! delay that is known. Needs root.

mod asked;
mod beside;
mod devices;
mod documents;
mod modes;
mod shaped;
mod versus;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tscap_common::stream::{STAMP_MASK, StreamHeader};
use tscap_delay::schema::{Delays, Exit, Measurement, MeasuringPoint, Passage};
use tscap_testkit::between::Between;
use tscap_testkit::capture::{Capture, LIMIT, capture_on, delay, generate_on};
use tscap_testkit::recording::Recording;
use tscap_testkit::wait;

/// Programs that these tests need besides.
const PROGRAMS: [&str; 5] = ["ip", "ethtool", "nft", "tc", "tcpdump"];

/// Why a test runs alone.
const MEASURES: &str = "measures how long frames take";

/// Length of the frames, bytes: that of the paper's packets.
const SIZE: usize = 192;
/// Behind Ethernet, IPv4 and UDP.
const PAYLOAD_AT: usize = 42;

/// How long a packet is waited for: shorter than the default, so that a test is.
const WINDOW: [&str; 2] = ["--window", "300ms"];

/// Measures what passes the device while `send` sends it.
fn measure<T>(between: &Between, options: &[&str], send: impl FnOnce() -> T) -> (Measurement, T) {
    let running = start(between, options);
    let sent = send();
    (end(running), sent)
}

fn start(between: &Between, options: &[&str]) -> Capture {
    let (entry, exit) = (&between.bench.rx.name, &between.out.name);
    delay(between.device())
        .with(["--in", entry, "--out", exit])
        .with(WINDOW)
        .with(options)
        .ready()
}

/// Ends it; what it says adds up.
fn end(running: Capture) -> Measurement {
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let read = tscap_report::saved::read::<Measurement>(&finished.stdout);
    let measurement = read.unwrap_or_else(|error| panic!("{error}\n{}", finished.stdout));
    measurement.passages.iter().for_each(adds_up);
    measurement
}

/// Every equation of the schema holds.
#[track_caller]
fn adds_up(passage: &Passage) {
    let spot = |spot: &MeasuringPoint| {
        let unrecorded: u64 = spot.unrecorded.values().sum();
        let all = spot.keyed + spot.unkeyed + unrecorded;
        assert_eq!(spot.seen, all, "{spot:?}");
    };
    spot(&passage.entry);
    for exit in &passage.exits {
        spot(&exit.spot);
        let of = exit.account;
        let entered = of.matched + of.lost_inside + of.pending + of.ambiguous_in + of.untracked_in;
        let left = of.matched + of.originated + of.early + of.ambiguous_out + of.untracked_out;
        assert_eq!((of.entered, of.left), (entered, left), "{of:?}");
        let keyed = (passage.entry.keyed, exit.spot.keyed);
        let sightings = match exit.point.as_str() {
            // Both ends are seen at one place.
            "mirror" => (of.entered + of.left, of.entered + of.left),
            _ => (of.entered, of.left),
        };
        assert_eq!(sightings, keyed, "{of:?}");
        let n = exit.delays.as_ref().map_or(0, |delays| delays.summary.n);
        assert_eq!(of.matched, n, "{of:?}");
        if let Some(delays) = &exit.delays {
            assert_eq!(delays.summary.negative, 0, "{delays:?}");
            let drawn: u64 = delays.histogram.iter().map(|bin| bin.n).sum();
            assert_eq!(drawn, n);
        }
    }
}

/// The exit that counts first.
#[track_caller]
fn first(measurement: &Measurement) -> (&Exit, &Delays) {
    let exit = &measurement.passages[0].exits[0];
    (exit, exit.delays.as_ref().expect("packets were matched"))
}

/// Sends frames through the device at a pace, and waits until all of them have arrived.
fn send(between: &Between, pace: &[&str], frames: u64) {
    let before = between.far.received();
    let sent = generate_on(&between.bench.tx)
        .with(["--sender", "packet", "--size", &SIZE.to_string()])
        .with(["-c", &frames.to_string()])
        .with(between.through())
        .with(pace)
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert_eq!(sent.end.expect("a summary")["sent"], frames);
    arrived(between, before + frames);
}

/// Waits until the far end has got so many frames.
fn arrived(between: &Between, frames: u64) {
    wait::until("all frames to arrive", LIMIT, || {
        (between.far.received() >= frames).then_some(())
    });
}

/// A capture of what arrives at the far end.
fn watch(between: &Between, path: &Path) -> Capture {
    capture_on(&between.far, path).with(["udp"]).ready()
}

/// From the sender's own stamp in the frame to the stamp of the far end, ns, ascending. Both
/// are stamps of one host.
fn observed(path: &Path) -> Vec<i64> {
    let tai_offset = tai_offset_ns();
    let packets = Recording::read(path).packets;
    let delay = packets.iter().map(|packet| {
        let header = StreamHeader::of(&packet.data[PAYLOAD_AT..]).expect("a frame of gen's");
        let received = packet.nanos.wrapping_add(tai_offset) & STAMP_MASK;
        let delay = received.wrapping_sub(header.tai) & STAMP_MASK;
        i64::try_from(delay).expect("48 bits")
    });
    let mut delays: Vec<_> = delay.collect();
    delays.sort_unstable();
    delays
}

/// Whole seconds from CLOCK_REALTIME to CLOCK_TAI, ns.
fn tai_offset_ns() -> u64 {
    let now = |clock| Duration::from(clock_gettime(clock).expect("a clock"));
    let (real, tai) = (now(ClockId::CLOCK_REALTIME), now(ClockId::CLOCK_TAI));
    let seconds = (tai.as_secs_f64() - real.as_secs_f64()).round();
    Duration::from_secs_f64(seconds).as_nanos() as u64
}

/// The value below which this share of sorted values lies (type 1).
fn quantile(sorted: &[i64], per_mille: usize) -> i64 {
    sorted[(sorted.len() * per_mille).div_ceil(1_000).max(1) - 1]
}

/// Every packet was longer on its way from the sender to the far end than in the device, so
/// that each quantile of all of them was, too.
#[track_caller]
fn is_within(delays: &Delays, observed: &[i64], clocks_ns: i64) {
    let of = &delays.summary;
    assert_eq!(of.n, observed.len() as u64);
    let bound = i64::try_from(delays.bound_ns.expect("a bound")).expect("a short one") + clocks_ns;
    for (ours, per_mille) in [
        (Some(of.min), 0),
        (of.p50, 500),
        (of.p90, 900),
        (of.p99, 990),
        (of.p99_9, 999),
        (Some(of.max), 1_000),
    ] {
        let theirs = quantile(observed, per_mille);
        // Quantiles of many values are right within 0.05 %.
        let most = theirs + theirs / 2_000 + bound;
        let ours = ours.unwrap_or(0);
        assert!(ours <= most, "{per_mille}: {ours} > {most}: {of:?}");
    }
}

/// Sequence numbers of gen's frames with their stamps.
fn by_number<'a>(packets: impl Iterator<Item = (&'a [u8], u64)>) -> BTreeMap<u32, u64> {
    let of = |(data, nanos): (&[u8], u64)| {
        let header = StreamHeader::of(data.get(PAYLOAD_AT..)?)?;
        Some((header.seq, nanos))
    };
    packets.filter_map(of).collect()
}
