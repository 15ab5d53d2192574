//! A delay that is known: a token bucket behind which a burst waits.

use tscap_testkit::between::Between;
use tscap_testkit::capture::generate_on;
use tscap_testkit::root::alone_with;

use super::{MEASURES, PROGRAMS, SIZE, arrived, first, measure};

const FRAMES: u64 = 1_000;
/// Bits a second that the bucket lets through, and bytes that it lets through at once.
const RATE: u64 = 20_000_000;
const BURST: u64 = 2_000;
/// What a timer of the kernel may be late, ns.
const LATE_NS: i64 = 20_000_000;

/// Sends a burst; returns how long that took, ns.
fn burst(between: &Between) -> i64 {
    let before = between.far.received();
    let sent = generate_on(&between.bench.tx)
        .with([
            "--sender",
            "packet",
            "--flat-out",
            "--size",
            &SIZE.to_string(),
        ])
        .with(["-c", &FRAMES.to_string()])
        .with(between.through())
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    arrived(between, before + FRAMES);
    let seconds = sent.events("sent")[0]["seconds"].as_f64().expect("seconds");
    (1e9 * seconds) as i64
}

#[test]
fn a_burst_waits_as_long_as_its_bytes_take() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-tbf");
    between.throttle(&RATE.to_string(), BURST, 1 << 20);
    let (measurement, took) = measure(&between, &["--match", "gen"], || burst(&between));
    let passage = &measurement.passages[0];
    let [tap, egress] = &passage.exits[..] else {
        panic!("{passage:?}");
    };
    assert_eq!(
        (tap.point.as_str(), egress.point.as_str()),
        ("tap", "egress")
    );
    assert_eq!(
        (tap.account.matched, egress.account.matched),
        (FRAMES, FRAMES)
    );
    // The last frame leaves when all bytes but the first burst have gone through.
    let bytes = FRAMES * SIZE as u64 - BURST;
    let all = i64::try_from(bytes * 8 * 1_000_000_000 / RATE).expect("seconds");
    let (_, delays) = first(&measurement);
    let bound = i64::try_from(delays.bound_ns.expect("a bound")).expect("a short one");
    let (least, most) = (all - took - 1_000_000 - bound, all + LATE_NS + bound);
    let max = delays.summary.max;
    assert!(
        (least..=most).contains(&max),
        "{max} is not within {least} to {most}"
    );
    // The queue is where they wait, and not what is before it.
    let before = egress.delays.as_ref().expect("matched").summary.p50;
    assert!(before.expect("enough") < all / 10, "{egress:?}");
    let queueing = passage.queueing.as_ref().expect("seen at both exits");
    assert_eq!(queueing.summary.n, FRAMES);
    assert!(
        (least..=most).contains(&queueing.summary.max),
        "{queueing:?}"
    );
}

/// What the queue has no room for is seen before it, and not behind it.
#[test]
fn what_the_queue_drops_is_lost_behind_it() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-drop");
    between.throttle(&RATE.to_string(), BURST, 40_000);
    let running = super::start(&between, &["--match", "gen"]);
    let before = between.far.received();
    let sent = generate_on(&between.bench.tx)
        .with([
            "--sender",
            "packet",
            "--flat-out",
            "--size",
            &SIZE.to_string(),
        ])
        .with(["-c", &FRAMES.to_string()])
        .with(between.through())
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    between.drained();
    let arrived = between.far.received() - before;
    let measurement = super::end(running);
    let [tap, egress] = &measurement.passages[0].exits[..] else {
        panic!("{measurement:?}");
    };
    assert_eq!(egress.account.matched, FRAMES, "{:?}", egress.account);
    let lost = tap.account.lost_inside + tap.account.pending;
    assert_eq!((tap.account.matched, lost), (arrived, FRAMES - arrived));
    assert!(lost > 0, "{:?}", tap.account);
}
