//! `tscap clock` against NTP servers between namespaces, which tell the truth or lie by a
//! script. The truth is the host's own clock, which all namespaces share. Needs root.

use std::time::Duration;

use serde_json::Value;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, LIMIT, Plan, clock};
use tscap_testkit::files;
use tscap_testkit::finished::Finished;
use tscap_testkit::ntp::{self, Asked, NtpClient, NtpServer};
use tscap_testkit::pauses::{PAUSES, make_events_pause};
use tscap_testkit::process::cpus;
use tscap_testkit::root::{RootLock, alone, root, skip};
use tscap_testkit::shown::{Runner, commands};
use tscap_testkit::wait::until;

/// Where the server listens, and as tscap is told to ask it.
const SERVER: &str = "10.9.0.1:123";
/// tscap may ask so often what is on this machine.
const REFERENCE: [&str; 2] = ["--reference", "ntp:10.9.0.1,poll=200ms"];
const LIE_NS: i64 = 1_000_000_000;

/// Two namespaces that know each other; `None` where there is nothing to test by.
fn bench(tag: &str) -> Option<(RootLock, Bench)> {
    bench_with(root()?, tag)
}

fn bench_with(lock: RootLock, tag: &str) -> Option<(RootLock, Bench)> {
    if let Err(error) = tscap_time::tsc::check() {
        skip(&error.to_string());
        return None;
    }
    let bench = Bench::new(tag);
    bench.acquaint();
    Some((lock, bench))
}

fn asking(bench: &Bench) -> Plan<'_> {
    let plan = clock(&bench.rx.netns).with(REFERENCE);
    plan.with(["--interval", "100ms"])
}

fn honest(asked: &Asked) -> Vec<Vec<u8>> {
    vec![asked.reply(0).to_vec()]
}

/// Waits until so many replies of use came.
fn replies(running: &Capture, least: u64) -> Value {
    running.wait_event_with("clock", |line| {
        line["reference"]["replies"].as_u64() >= Some(least)
    })
}

/// The true offset is 0 at each exchange and each line, within the bound. Gives the exchanges
/// that a clock was there for.
#[track_caller]
fn is_true(finished: &Finished) -> Vec<Value> {
    let within = |of: &Value| {
        let ahead = of["ahead_ns"].as_i64().or(of["host_ahead_ns"].as_i64());
        let (ahead, bound) = (ahead.expect("it"), of["bound_ns"].as_u64().expect("it"));
        assert!(ahead.unsigned_abs() <= bound, "{of}");
    };
    for line in finished.events("clock") {
        let reference = &line["reference"];
        if reference.get("bound_ns").is_some() {
            within(reference);
            let utc = reference["utc_bound_ns"].as_u64().expect("it");
            let distance = reference["root_distance_ns"].as_u64().expect("it");
            // 1/65536 s of dispersion, and half of that of delay.
            assert!(distance >= 22_888 && utc > distance, "{line}");
        }
    }
    let exchanges = finished.events("exchange");
    exchanges.iter().for_each(within);
    let known = exchanges.into_iter().filter(|it| !it["off_ns"].is_null());
    known.collect()
}

/// Its last word on the reference.
fn last(finished: &Finished) -> Value {
    let lines = finished.events("clock");
    lines.last().expect("a line")["reference"].clone()
}

#[track_caller]
fn warned(finished: &Finished, parts: &[&str]) {
    let warnings = finished.events("warning");
    for part in parts {
        let is_reported = |it: &Value| it["text"].as_str().is_some_and(|text| text.contains(part));
        assert!(warnings.iter().any(is_reported), "{part:?}: {warnings:#?}");
    }
}

#[test]
fn a_servers_time_is_followed_within_the_bound() {
    let Some((_lock, bench)) = bench("ntp-true") else {
        return;
    };
    let folder = files::folder();
    let [log, page] = ["clock.log", "clock.html"].map(|name| folder.path().join(name));
    let [log, page] = [&log, &page].map(|path| path.to_str().unwrap());
    let server = NtpServer::start(&bench.tx.netns, SERVER, |asked| {
        // A request tells nothing of the client but its cookie.
        assert_eq!(asked.packet[0], 0x23);
        assert!(asked.packet[1..24].iter().all(|byte| *byte == 0));
        honest(asked)
    });
    let running = asking(&bench)
        .with(["--log", log, "--report", page])
        .start();
    replies(&running, 12);
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);

    let exchanges = is_true(&finished);
    assert!(exchanges.len() >= 8, "{}", finished.stdout);
    for it in &exchanges {
        assert_eq!(it["verdict"], "used", "{it}");
        assert!(it["rtt_ns"].as_u64() > Some(1_000), "{it}");
    }
    let last = last(&finished);
    assert_eq!(last["server"], "10.9.0.1:123");
    assert_eq!(last["rejected"], serde_json::json!({}));
    let (requests, replied) = (last["requests"].as_u64(), last["replies"].as_u64());
    assert!(requests >= replied, "{last}");
    until("the last request to arrive", LIMIT, || {
        (server.asked() >= requests.unwrap()).then_some(())
    });
    assert!(
        finished.stderr.contains("sent at tap"),
        "{}",
        finished.stderr
    );

    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains(r#""ntp":[{"server":"10.9.0.1:123","points":[{"#));
    let drawn = std::fs::read_to_string(page).unwrap();
    assert!(drawn.contains("Round trips to 10.9.0.1"), "{drawn}");
}

/// Others open counters between a request and its reply: those that stamp pause.
#[test]
fn stamps_of_counters_that_paused_are_within_the_bound() {
    let Some((_lock, bench)) = alone(PAUSES).and_then(|lock| bench_with(lock, "ntp-pauses")) else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, SERVER, |asked| {
        if asked.number % 3 == 0 {
            (0..120).for_each(|_| make_events_pause());
        }
        honest(asked)
    });
    let running = asking(&bench).start();
    replies(&running, 12);
    let finished = running.stop();
    let exchanges = is_true(&finished);
    assert!(exchanges.len() >= 8, "{}", finished.stdout);
    for it in &exchanges {
        assert_eq!(it["verdict"], "used", "{}", finished.stdout);
    }
    // Once, of each CPU at most.
    let reported = finished.events("warning");
    let pauses = reported
        .iter()
        .filter(|it| it["text"].as_str().unwrap().contains("has paused"));
    assert!((1..=cpus().len()).contains(&pauses.count()), "{reported:?}");
}

/// How long a reply takes after its stamp until it leaves.
const LATE: Duration = Duration::from_millis(3);

#[test]
fn a_server_that_knows_later_when_a_reply_left_is_asked_for_that() {
    let Some((_lock, bench)) = bench("ntp-interleaved") else {
        return;
    };
    let mut before = None;
    let _server = NtpServer::start(&bench.tx.netns, SERVER, move |asked| {
        // The times of the reply before, if it is the one that is asked about.
        let known = before.filter(|(arrived, _)| Some(*arrived) == asked.asks_about());
        let reply = match known {
            Some((_, left)) if asked.number > 2 => asked.interleaved(left),
            _ => asked.reply(0),
        };
        let arrived = reply[32..40].try_into().unwrap();
        std::thread::sleep(LATE);
        before = Some((arrived, ntp::now()));
        vec![reply.to_vec()]
    });
    let running = asking(&bench).start();
    replies(&running, 16);
    let finished = running.stop();
    let exchanges = finished.events("exchange");
    assert_eq!(last(&finished)["rejected"], serde_json::json!({}));
    is_true(&finished);
    // What the server did with a reply after its stamp seems to be on the way.
    let (late, exact): (Vec<_>, Vec<_>) = exchanges
        .iter()
        .map(|it| it["rtt_ns"].as_u64().unwrap())
        .partition(|rtt_ns| *rtt_ns >= LATE.as_nanos() as u64);
    assert!(exact.len() >= 6, "{late:?} {exact:?}");
}

/// What is sent in the place of the good reply, by the number of the request.
fn faulty(asked: &Asked) -> Vec<Vec<u8>> {
    let mut reply = asked.reply(0);
    match asked.number {
        4 => return vec![reply[..40].to_vec()],
        5 => return vec![[&reply[..], &[0; 3]].concat()],
        6 => reply[31] ^= 1,
        7 => return vec![reply.to_vec(), reply.to_vec()],
        8 => reply[0] |= 0xc0,
        9 => reply[0] = 0x25,
        10 => reply[9] = 2,
        11 => return vec![asked.reply(LIE_NS).to_vec()],
        12 => reply[32..48].fill(0),
        13 => return Vec::new(),
        _ => {}
    }
    vec![reply.to_vec()]
}

#[test]
fn a_faulty_reply_is_named_and_changes_nothing() {
    let Some((_lock, bench)) = bench("ntp-faults") else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, SERVER, faulty);
    let running = asking(&bench).start();
    running.wait_event_with("clock", |line| {
        let sent = line["reference"]["requests"].as_u64();
        sent >= Some(17)
    });
    let finished = running.stop();
    let exchanges = is_true(&finished);
    let rejected = &last(&finished)["rejected"];
    for reason in [
        "short",
        "ragged",
        "bogus-origin",
        "replayed",
        "unsynchronised",
        "mode",
        "root-distance",
        "no-time",
    ] {
        assert_eq!(rejected[reason], 1, "{reason}: {rejected}");
    }
    let doubted = exchanges.iter().filter(|it| it["verdict"] == "implausible");
    let off: Vec<_> = doubted.map(|it| it["off_ns"].as_i64().unwrap()).collect();
    assert!(
        matches!(off[..], [off] if off.abs_diff(LIE_NS) < LIE_NS.unsigned_abs() / 2),
        "{off:?}"
    );
    warned(
        &finished,
        &[
            "a reply is not used: it is shorter than an NTP packet",
            "the request was answered before",
            "it does not answer the latest request",
            "it is not believed unless three more in a row say so",
        ],
    );
    assert!(
        finished
            .stderr
            .contains("agrees with its clock again: 1 reply not believed"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_lie_that_stays_is_believed_in_the_end_and_said() {
    let Some((_lock, bench)) = bench("ntp-lie") else {
        return;
    };
    let _server = NtpServer::start(&bench.tx.netns, SERVER, |asked| {
        let lie_ns = if asked.number < 5 { 0 } else { LIE_NS };
        vec![asked.reply(lie_ns).to_vec()]
    });
    let running = asking(&bench).start();
    running.wait_event_with("exchange", |it| it["verdict"] == "jumped");
    // The host's clock is behind by as much from the next line on.
    running.wait_event_with("clock", |line| {
        let ahead = line["reference"]["host_ahead_ns"].as_i64();
        let bound = line["reference"]["bound_ns"].as_u64();
        ahead
            .zip(bound)
            .is_some_and(|(ahead, bound)| ahead.abs_diff(-LIE_NS) <= bound)
    });
    let finished = running.stop();
    let exchanges = finished.events("exchange");
    let verdicts = exchanges.iter().map(|it| it["verdict"].as_str().unwrap());
    let doubted = verdicts.clone().filter(|it| *it == "implausible").count();
    assert_eq!(doubted, 3, "{:?}", verdicts.collect::<Vec<_>>());
    warned(&finished, &["four replies in a row are", "it begins anew"]);
}

#[test]
fn a_kiss_of_death_is_obeyed() {
    let Some((_lock, bench)) = bench("ntp-kiss") else {
        return;
    };
    let server = NtpServer::start(&bench.tx.netns, SERVER, |asked| {
        vec![match asked.number {
            0..3 => asked.reply(0).to_vec(),
            3 => asked.kiss(*b"RATE").to_vec(),
            4 => asked.reply(0).to_vec(),
            _ => asked.kiss(*b"DENY").to_vec(),
        }]
    });
    let running = asking(&bench).start();
    let stopped = |line: &Value| line["reference"]["stopped"] == "DENY";
    running.wait_event_with("clock", stopped);
    let asked = server.asked();
    // The clock goes on, with a bound that grows; several polls pass.
    let age = |line: &Value| line["reference"]["age_ns"].as_u64() > Some(1_500_000_000);
    let later = running.wait_event_with("clock", |line| stopped(line) && age(line));
    assert_eq!((asked, server.asked()), (6, 6));
    assert_eq!(later["reference"]["poll_s"], 0.4);
    let finished = running.stop();
    is_true(&finished);
    assert_eq!(last(&finished)["rejected"]["kiss"], 2);
    warned(&finished, &["denies its service", "wants to be asked less"]);
}

#[test]
fn a_server_that_is_away_is_told() {
    let Some((_lock, bench)) = bench("ntp-away") else {
        return;
    };
    let silent = NtpServer::start(&bench.tx.netns, SERVER, |asked| match asked.number {
        4..9 => Vec::new(),
        _ => honest(asked),
    });
    let running = asking(&bench).start();
    until("the server to be asked", LIMIT, || {
        (silent.asked() >= 12).then_some(())
    });
    drop(silent);
    let warning = |it: &Value, part| it["text"].as_str().is_some_and(|text| text.contains(part));
    running.wait_event_with("warning", |it| {
        warning(it, "no server listens at UDP port 123")
    });
    let finished = running.stop();
    is_true(&finished);
    warned(&finished, &["has not answered 3 requests"]);
    assert!(
        finished.stderr.contains("answers again"),
        "{}",
        finished.stderr
    );
}

#[test]
fn what_is_not_on_this_machine_is_asked_rarely() {
    let Some((_lock, bench)) = bench("ntp-poll") else {
        return;
    };
    bench
        .rx
        .netns
        .ip(&["route", "add", "default", "via", "10.9.0.1"]);
    let before = bench.tx.received();
    let failed = clock(&bench.rx.netns)
        .with(["--reference", "ntp:192.0.2.1,poll=7.9"])
        .run();
    failed.failure(1, &["every 8 s at most", "poll=8s"]);
    assert_eq!(bench.tx.received(), before, "something was sent");
}

#[test]
fn the_exchanges_of_others_are_followed_and_nothing_is_sent() {
    let Some((_lock, bench)) = bench("ntp-passive") else {
        return;
    };
    let server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let running = clock(&bench.rx.netns)
        .with(["--reference", "ntp:passive", "-i", &bench.rx.name])
        .with(["--interval", "100ms"])
        .ready();
    let daemon = NtpClient::new(&bench.rx.netns, SERVER.parse().unwrap());
    for cookie in 1..=6 {
        daemon.ask(cookie);
        // The pace of a daemon: a rate takes some time between exchanges.
        replies(&running, cookie);
        std::thread::sleep(Duration::from_millis(150));
    }
    replies(&running, 6);
    let finished = running.stop();
    assert!(is_true(&finished).len() >= 4, "{}", finished.stdout);
    let last = last(&finished);
    assert_eq!((server.asked(), &last["requests"]), (6, &6.into()));
    assert!(last.get("poll_s").is_none(), "{last}");
}

#[test]
fn the_stamps_of_a_server_here_are_looked_at() {
    let Some((_lock, bench)) = bench("ntp-audit") else {
        return;
    };
    let _server = NtpServer::start(&bench.rx.netns, "10.9.0.2:123", honest);
    let running = clock(&bench.rx.netns)
        .with(["--audit-server", "-i", &bench.rx.name])
        .ready();
    let client = NtpClient::new(&bench.tx.netns, "10.9.0.2:123".parse().unwrap());
    (1..=50).for_each(|cookie| client.ask(cookie));
    running.wait_event_with("served", |it| it["v"] == 1);
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let served = finished.events("served");
    for it in &served {
        let ns = |name: &str| it[name].as_i64().unwrap();
        let bound = ns("bound_ns");
        // It was stamped at the interface before, and after.
        assert!(
            ns("receive_ns") >= -bound && ns("transmit_ns") >= -bound,
            "{it}"
        );
        let asymmetry = ns("transmit_ns") - ns("receive_ns");
        assert_eq!(ns("asymmetry_ns"), asymmetry, "{it}");
        let within = ns("receive_ns") + ns("transmit_ns");
        assert!(ns("turnaround_ns") + 2 * bound >= within, "{it}");
    }
    let [audit] = &finished.events("audit")[..] else {
        panic!("{}", finished.stdout);
    };
    for (name, expected) in [
        ("requests", 50),
        ("served", 50),
        ("unanswered", 0),
        ("lost", 0),
    ] {
        assert_eq!(audit[name], expected, "{name}: {audit}");
    }
    assert_eq!((served.len(), &audit["receive_ns"]["n"]), (50, &50.into()));
    assert_eq!(audit["unmatched"], 0);
}

/// With an interface and a server that are here, and an end.
#[test]
fn the_documented_commands_work() {
    let Some((_lock, bench)) = bench("ntp-shown") else {
        return;
    };
    let folder = files::folder();
    let _server = NtpServer::start(&bench.tx.netns, SERVER, honest);
    let lines = commands(Runner::Ntp);
    for line in &lines {
        let words = line.split(' ').skip(2).map(|word| match word {
            "eth0" => bench.rx.name.clone(),
            "clock.log" | "clock.html" => folder.path().join(word).display().to_string(),
            _ => word.replace("192.0.2.123", "10.9.0.1"),
        });
        let finished = clock(&bench.rx.netns)
            .human()
            .with(words)
            .with(["--duration", "500ms"])
            .run();
        assert_eq!(finished.code, Some(0), "{line}: {}", finished.stderr);
        assert!(!finished.stdout.is_empty(), "{line}");
    }
    assert_eq!(lines.len(), 3);
    assert!(folder.path().join("clock.html").exists());
}
