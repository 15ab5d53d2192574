//! Both ends: what is measured between two hosts with one clock.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tscap_delay::schema::{Delays, PeerSession};
use tscap_testkit::root::{alone, root};

use super::{bed, outcome, serve, served, session, to};

/// Packets of a session.
const MANY: u64 = 300;
const MANY_TOLD: [&str; 2] = ["-c", "300"];

/// The clocks of both ends are one: whatever they are said to be apart is an error.
#[track_caller]
fn is_true(session: &PeerSession) {
    let alignment = &session.alignment;
    let bound = alignment.bound_ns.expect("aligned");
    let ahead = alignment.peer_ahead_ns.expect("aligned");
    // Stamps of both ends are off by some ns too.
    assert!(ahead.unsigned_abs() <= bound + 1_000, "{alignment:?}");
    let [there, back] = [&session.forward, &session.back].map(|it| it.as_ref().expect("delays"));
    for way in [there, back] {
        // A packet takes no less than nothing.
        let bound = way.bound_ns.expect("a bound") as i64;
        assert!(way.summary.min >= -bound, "{way:?}");
    }
    let round_trip = session.round_trip.as_ref().expect("delays");
    assert!(round_trip.summary.min > 0, "{round_trip:?}");
    let sum = |of: &Delays| of.summary.mean * of.summary.n as f64;
    let whole = sum(round_trip) - sum(there) - sum(back);
    // Each way is rounded.
    assert!(whole.abs() <= 2.0 * round_trip.summary.n as f64, "{whole}");
}

#[test]
fn delays_each_way_hold_the_truth() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-truth");
    let reflector = serve(&bench, &[]);
    for peer in ["10.9.0.2", "[fd09::2]"] {
        for options in [
            &[][..],
            &["--size", "44"],
            &["--size", "1400", "--dscp", "ef"],
        ] {
            let options = [options, &["--rate", "1k"], &MANY_TOLD].concat();
            let session = session(&to(&bench, peer, &options).run());
            assert_eq!(session.account.sent, MANY);
            assert_eq!(session.account.answered, MANY, "{:?}", session.account);
            is_true(&session);
            // Some µs, and nothing lost: the best that the E-model knows of this codec.
            let voice = session.voice.expect("voice");
            assert!(voice.r > 92.0 && voice.mos > 4.3, "{voice:?}");
            let clock = session.peer_clock.expect("it says what its clock is");
            assert!(clock.error_estimate_ns > 0);
            let variation = session.forward_variation.expect("neighbours");
            // What needs no alignment has none in its bound: that of the stamps, and how far the
            // clocks drift apart between two packets, which a busy machine may hold up.
            let stamps = session.round_trip.expect("delays").bound_ns;
            let drift_in_5_s = session.alignment.max_drift_ppb * 5;
            assert!(
                variation.bound_ns <= stamps.expect("a bound") + drift_in_5_s,
                "{variation:?}"
            );
        }
    }
    let said = served(&reflector.stop());
    assert_eq!(outcome(&said, "answered"), 6 * MANY, "{said}");
    assert_eq!(said["stamps"]["adds_up"], true, "{said}");
    // T3 is where the reply left, for each of them.
    let written = said["stamps"]["send_times"]["written"].as_u64();
    assert_eq!(written, Some(6 * MANY), "{said}");
}

#[test]
fn a_signed_session_is_as_good() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-key");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    fs::write(&path, "00112233445566778899aabbccddeeff\n").expect("a key");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    let key = ["--key-file", path.to_str().expect("a name")];
    let reflector = serve(&bench, &key);
    let options = [&key[..], &["-c", "50"]].concat();
    let signed = session(&to(&bench, "10.9.0.2", &options).run());
    assert_eq!(signed.account.answered, 50, "{:?}", signed.account);
    assert!(signed.authenticated);
    is_true(&signed);
    // Who has no key is not answered, and says what to do.
    let plain = to(&bench, "10.9.0.2", &["-c", "3", "--window", "200ms"]).run();
    let unsigned = session(&plain);
    assert_eq!((unsigned.account.answered, unsigned.account.lost()), (0, 3));
    assert!(
        plain.stdout.contains("nothing was answered"),
        "{}",
        plain.stdout
    );
    let said = served(&reflector.stop());
    assert_eq!(outcome(&said, "answered"), 50, "{said}");
    assert_eq!(outcome(&said, "not_authentic"), 3, "{said}");
    // The program at egress leaves alone what it can't sign.
    let left_alone = said["stamps"]["send_times"]["authenticated"].as_u64();
    assert_eq!(left_alone, Some(50), "{said}");
}

#[test]
fn several_sessions_go_on_at_once() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-several");
    let reflector = serve(&bench, &["--stateless"]);
    let plan = to(&bench, "10.9.0.2", &["--to", "[fd09::2]:8620"]);
    let finished = plan.with(["--poisson", "2ms", "-c", "100"]).run();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let line = finished.stdout.lines().last().expect("a result");
    let read: tscap_delay::schema::Measurement = tscap_report::saved::read(line).expect("JSON");
    assert_eq!(read.sessions.len(), 2);
    for session in &read.sessions {
        assert_eq!(session.account.answered, 100, "{:?}", session.account);
        // Without a state nothing shows that the peer counts.
        assert_eq!(session.account.stateful, None);
        is_true(session);
    }
    assert_ne!(read.sessions[0].ssid, 0);
    let said = served(&reflector.stop());
    assert_eq!(said["sessions"].as_u64(), Some(0), "{said}");
}

/// Loss has a direction: nftables drops requests at the reflector's host, or replies.
#[test]
fn loss_is_told_by_direction() {
    let Some(_lock) = tscap_testkit::root::root_with(&["ip", "ethtool", "nft"]) else {
        return;
    };
    let bench = bed("hosts-loss");
    let reflector = serve(&bench, &[]);
    let rules = |hook: &str, rule: &str| {
        let netns = &bench.rx.netns;
        let table = format!(
            "table inet lossy {{ chain c {{ type filter hook {hook} priority 0; {rule}; }}; }}"
        );
        netns.must("nft", &[&table]);
    };
    for (hook, rule, is_forward) in [
        ("input", "udp dport 8620 numgen inc mod 4 0 drop", true),
        ("output", "udp sport 8620 numgen inc mod 4 0 drop", false),
    ] {
        rules(hook, rule);
        let options = ["--rate", "1k", "-c", "200", "--window", "500ms"];
        let session = session(&to(&bench, "10.9.0.2", &options).run());
        bench.rx.netns.must("nft", &["delete table inet lossy"]);
        let account = &session.account;
        assert_eq!(account.answered, 150, "{account:?}");
        let (lost, none) = if is_forward {
            (account.lost_forward, account.lost_back)
        } else {
            (account.lost_back, account.lost_forward)
        };
        // Those behind the last reply may have been lost either way.
        assert_eq!((lost + account.undecided, none), (50, 0), "{account:?}");
        assert!(account.undecided <= 1, "{account:?}");
    }
    served(&reflector.stop());
}

#[test]
fn who_can_not_be_reached_is_named() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-refused");
    let options = ["-c", "5", "--window", "200ms"];
    let finished = to(&bench, "10.9.0.2", &options).run();
    assert_eq!(session(&finished).account.answered, 0);
    assert!(
        finished.stdout.contains("tscap delay --serve"),
        "{}",
        finished.stdout
    );
    for (peer, said) in [
        ("10.9.0.1", "it is this host"),
        ("192.0.2.1", "cannot send to 192.0.2.1"),
    ] {
        let finished = to(&bench, peer, &options).run();
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
}

/// A capture beside either end, and another reflector, which finds the port in use.
#[test]
fn a_port_in_use_is_refused_and_nothing_stays() {
    let Some(_lock) = root() else { return };
    let bench = bed("hosts-port");
    let reflector = serve(&bench, &[]);
    let options = ["--serve", &bench.rx.name, "--port", "8620"];
    let second = tscap_testkit::capture::delay(&bench.rx.netns)
        .with(options)
        .run();
    assert_eq!(second.code, Some(1));
    assert!(
        second.stderr.contains("--port takes another one"),
        "{}",
        second.stderr
    );
    served(&reflector.stop());
    let links = bench
        .rx
        .netns
        .ip(&["-d", "link", "show", "dev", &bench.rx.name]);
    assert!(!links.contains("xdp"), "{links}");
}

/// Half of the least round trip, the errors of the stamps, and 1 µs after ten exchanges; the
/// clocks of both ends are free.
#[test]
fn ten_exchanges_align_to_half_of_the_round_trip() {
    let Some(_lock) = alone("ten packets in 9 ms, each of which is timed") else {
        return;
    };
    let bench = bed("hosts-ten");
    let reflector = serve(&bench, &[]);
    let options = ["--rate", "1k", "-c", "10", "--max-drift", "50"];
    let session = session(&to(&bench, "10.9.0.2", &options).run());
    let round_trip = session.round_trip.as_ref().expect("delays");
    let half = round_trip.summary.min.unsigned_abs().div_ceil(2);
    let stamps = round_trip.bound_ns.expect("a bound");
    let best = session
        .alignment
        .median_bound_ns
        .or(session.alignment.bound_ns);
    let best = best.expect("aligned");
    assert!(best <= half + stamps + 1_000, "{best}: {session:?}");
    is_true(&session);
    served(&reflector.stop());
}
