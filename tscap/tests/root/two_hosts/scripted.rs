//! A peer whose clock is scripted: how far it is off is known, and must be within the bound that
//! is told.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tscap_clock::RealNs;
use tscap_protocol::{ErrorEstimate, Mode, Reply, Request, TimeFormat, Timestamp};
use tscap_testkit::bench::Bench;
use tscap_testkit::root::root;
use tscap_testkit::wait::until;

use super::{LIMIT, PORT, bed, session, to};

const MODE: Mode = Mode::Unauthenticated;

/// A clock that is so much ahead, ns, when it begins, and runs so much faster, parts per billion.
#[derive(Clone, Copy, Debug)]
struct Script {
    ahead_ns: i64,
    faster_ppb: i64,
    begun: RealNs,
    format: TimeFormat,
    synchronised: bool,
}

impl Script {
    /// How far it is ahead of this host's clock.
    fn ahead_at(&self, now: RealNs) -> i64 {
        let since = i128::from(now.0) - i128::from(self.begun.0);
        let gained = since * i128::from(self.faster_ppb) / 1_000_000_000;
        self.ahead_ns + gained as i64
    }

    fn read(&self) -> Timestamp {
        let now = RealNs::now();
        let shown = RealNs(now.0.wrapping_add_signed(self.ahead_at(now)));
        Timestamp::of(shown, self.format, 37)
    }
}

/// A reflector of the test's own, in user space, with that clock.
struct Peer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    fn start(bench: &Bench, script: Script) -> Self {
        // A child of another test may have the socket of before for a moment longer.
        let bind = || UdpSocket::bind(("10.9.0.2", PORT)).ok();
        let socket = bench
            .rx
            .netns
            .enter(|| until("the port to be free", LIMIT, bind));
        let wait = Duration::from_millis(20);
        socket.set_read_timeout(Some(wait)).expect("a time limit");
        let stop = Arc::new(AtomicBool::new(false));
        let asked_to_stop = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut packet = [0; 2_000];
            while !asked_to_stop.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut packet) else {
                    continue;
                };
                let received = script.read();
                let Ok(request) = Request::parse(&packet[..length], MODE) else {
                    continue;
                };
                let error = ErrorEstimate::covering(500, script.synchronised, script.format);
                let reply = Reply {
                    sequence: request.sequence,
                    timestamp: script.read(),
                    error,
                    ssid: request.ssid,
                    received,
                    sender_sequence: request.sequence,
                    sender_timestamp: request.timestamp,
                    sender_error: request.error.to_bits(),
                    sender_ttl: 255,
                };
                reply.write(MODE, &mut packet[..length]);
                let _ = socket.send_to(&packet[..length], from);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_clock_that_is_seconds_off_and_drifts_is_found_within_the_bound() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-script");
    for (ahead_ns, faster_ppb, format) in [
        (0, 0, TimeFormat::Ntp),
        (3_000_000_123, 90_000, TimeFormat::Ntp),
        (-1_700_000_000, -90_000, TimeFormat::Ntp),
        (250_000, 20_000, TimeFormat::Ptp),
    ] {
        let script = Script {
            ahead_ns,
            faster_ppb,
            begun: RealNs::now(),
            format,
            synchronised: false,
        };
        let peer = Peer::start(&bench, script);
        let options = ["--rate", "500", "-c", "400"];
        let session = session(&to(&bench, "10.9.0.2", &options).run());
        drop(peer);
        let ended = RealNs::now();
        assert_eq!(session.account.answered, 400, "{:?}", session.account);
        let alignment = &session.alignment;
        let bound = alignment.bound_ns.expect("aligned");
        // TAI - UTC of this kernel may be unknown, of the script it is 37 s.
        let utc_s = |ns: i64| ns.rem_euclid(1_000_000_000);
        let found = alignment.peer_ahead_ns.expect("aligned");
        // The last packet left before the end, by as much as the clock drifts in seconds.
        let truth = script.ahead_at(ended);
        let drifted = (faster_ppb.unsigned_abs() * 5).div_ceil(1_000) * 1_000;
        let apart = if format == TimeFormat::Ptp {
            utc_s(found - truth)
                .min(utc_s(truth - found))
                .unsigned_abs()
        } else {
            found.abs_diff(truth)
        };
        assert!(
            apart <= bound + drifted + 1_000,
            "{found} for {truth}: {alignment:?}"
        );
        let skew = alignment.skew_ppb.expect("a skew");
        let skew_bound = alignment.skew_bound_ppb.expect("its bound") as i64;
        assert!(
            (skew - faster_ppb).abs() <= skew_bound + 200,
            "{alignment:?}"
        );
        for way in [&session.forward, &session.back] {
            let way = way.as_ref().expect("delays");
            let bound = way.bound_ns.expect("a bound") as i64;
            assert!(
                way.summary.min >= -bound && way.summary.min < 1_000_000_000,
                "{way:?}"
            );
        }
        assert_eq!(alignment.contradictions, 0, "{alignment:?}");
    }
}

/// Who says that it follows UTC, and is 50 ms off, is named; the packets alone still tell.
#[test]
fn a_clock_that_lies_is_named() {
    let Some(_lock) = root() else { return };
    let kernel = tscap_time::timex::KernelClock::read().expect("a clock");
    let bench = bed("hosts-liar");
    let script = Script {
        ahead_ns: 50_000_000_000,
        faster_ppb: 0,
        begun: RealNs::now(),
        format: TimeFormat::Ntp,
        synchronised: true,
    };
    let _peer = Peer::start(&bench, script);
    let finished = to(&bench, "10.9.0.2", &["--rate", "500", "-c", "50"]).run();
    let found = session(&finished);
    let alignment = &found.alignment;
    match kernel.utc_bound_ns() {
        // This host does not know UTC either: only the packets align.
        None => {
            assert_eq!(
                (alignment.contradictions, alignment.utc_bound_ns),
                (0, None)
            );
            assert!(found.forward.is_some(), "{found:?}");
        }
        Some(_) => {
            assert_eq!(alignment.contradictions, 50, "{alignment:?}");
            assert!(
                finished
                    .stdout
                    .contains("one of the clocks is not where it says")
            );
            let alone = ["--rate", "500", "-c", "50", "--align", "exchange"];
            let found = session(&to(&bench, "10.9.0.2", &alone).run());
            let ahead = found.alignment.peer_ahead_ns.expect("aligned");
            let off = ahead.abs_diff(50_000_000_000);
            assert!(
                off <= found.alignment.bound_ns.expect("a bound") + 1_000,
                "{found:?}"
            );
        }
    }
    // One of both does not know UTC, or it would be the other way round: refused, not guessed.
    let by_utc = session(&to(&bench, "10.9.0.2", &["-c", "20", "--align", "utc"]).run());
    if kernel.utc_bound_ns().is_none() {
        assert_eq!(by_utc.alignment.unaligned, 20, "{by_utc:?}");
        assert!(by_utc.forward.is_none() && by_utc.round_trip.is_some());
    }
}
