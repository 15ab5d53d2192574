//! The load and the traffic beside a measurement.

use std::time::{Duration, Instant};

use tscap_delay::stress::ParallelTraffic;
use tscap_testkit::bench::Bench;
use tscap_testkit::between::Between;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::root::{alone, alone_with};
use tscap_testkit::wait;

use super::{MEASURES, PROGRAMS, first, measure, send};

/// Bits a second, and frames of 192 bytes that makes.
const BITS: u64 = 25_000_000;
const FRAMES_A_SECOND: f64 = 25e6 / 8.0 / 192.0;
/// Of a measurement.
const FRAMES: u64 = 2_000;

fn start(bench: &Bench, bits: u64) -> ParallelTraffic {
    let traffic = bench.tx.netns.enter(|| ParallelTraffic::start(bits, "tx0"));
    traffic.expect("it is sent")
}

#[test]
fn it_is_sent_at_its_rate_until_it_is_stopped() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("delay-parallel");
    let before = bench.rx.received();
    let began = Instant::now();
    let traffic = start(&bench, BITS);
    wait::until("five thousand frames", LIMIT, || {
        (traffic.sent() >= 5_000).then_some(())
    });
    let report = traffic.stop();
    let most = began.elapsed().as_secs_f64() * FRAMES_A_SECOND;
    assert_eq!((report.refused, &report.error), (0, &None));
    assert_eq!(report.sent, bench.rx.received() - before);
    // No frame is early.
    assert!((report.sent as f64) < most + 100.0, "{report}");
    let reached = report.reached.expect("more than a frame");
    assert!((0.5..1.02).contains(&(reached / BITS as f64)), "{report}");
    let reported = report.to_string();
    assert!(
        reported.starts_with("25 Mbit/s of 192-byte frames on tx0 ("),
        "{reported}"
    );
}

/// Frames may be hours apart.
#[test]
fn a_long_wait_is_no_reason_to_go_on() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("delay-slow");
    for bits in [1, BITS] {
        let traffic = start(&bench, bits);
        let asked = Instant::now();
        drop(traffic);
        let took = asked.elapsed();
        assert!(took < Duration::from_secs(2), "{bits}: {took:?}");
        // What a thread that is left would send was counted here.
        let before = bench.rx.received();
        let sent = start(&bench, BITS).stop().sent;
        assert_eq!(bench.rx.received(), before + sent, "{bits}");
    }
}

#[test]
fn load_and_traffic_beside_say_what_they_did() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let between = Between::router("delay-loaded");
    let pair = ["link", "add", "m0", "type", "veth", "peer", "name", "m1"];
    between.device().ip(&pair);
    for end in ["m0", "m1"] {
        between.device().ip(&["link", "set", end, "up"]);
    }
    let options = ["--load", "paper:0", "--parallel", "5Mbit:m0"];
    let (measurement, ()) = measure(&between, &options, || {
        send(&between, &["--rate", "5k"], FRAMES)
    });
    assert_eq!(first(&measurement).0.account.matched, FRAMES);
    let method = &measurement.method;
    let load = method.load.as_deref().expect("a load");
    assert!(load.starts_with("paper on CPU 0 ("), "{load}");
    let parallel = method.parallel.as_deref().expect("traffic");
    assert!(
        parallel.starts_with("5 Mbit/s of 192-byte frames on m0 ("),
        "{parallel}"
    );
    assert!(!parallel.contains("(0 frames"), "{parallel}");
}
