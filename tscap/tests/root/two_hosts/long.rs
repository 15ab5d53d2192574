//! What takes minutes: memory and account of a reflector over time, and what stamps by the kernel are
//! worth under load.

use std::hint::black_box;
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tscap_clock::{MonoNs, NsPerCycle, RawStamp, RealNs};
use tscap_delay::schema::Measurement;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::command::{finish, tscap_path};
use tscap_testkit::process::resident_bytes;
use tscap_testkit::root::alone;
use tscap_two_hosts::{AlignBy, Aligned, Alignment, Exchange};

use super::{bed, serve, served, session, to};

/// Memory may grow by so much once all of it is in use, bytes.
const GROWTH: u64 = 2 << 20;
/// For so long, s; `TSCAP_HOSTS_SECONDS` says otherwise.
const SECONDS: u64 = 60;

/// At 10,000 packets a second memory stays as it is, and each packet has one outcome.
#[test]
#[ignore = "long: by night"]
fn a_reflector_stays_as_it_is() {
    let Some(_lock) = alone("it keeps a CPU busy") else {
        return;
    };
    let seconds = std::env::var("TSCAP_HOSTS_SECONDS");
    let seconds = seconds.map_or(SECONDS, |it| it.parse().expect("a number"));
    let bench = bed("hosts-long");
    let reflector = serve(&bench, &["--max-rate", "50k"]);
    let mut sender = bench.tx.netns.command(tscap_path());
    sender.args([
        "delay",
        "--to",
        "10.9.0.2:8620",
        "--rate",
        "10k",
        "--size",
        "44",
        "--json",
    ]);
    sender.args(["--duration", &seconds.to_string()]);
    sender.stdout(Stdio::piped()).stderr(Stdio::piped());
    let sender = sender.spawn().expect("start tscap");
    let pid = sender.id();
    // Histories of some seconds are full by then.
    reflector.wait_event_with("progress", |it| {
        it["requests"]["answered"].as_u64() > Some(100_000)
    });
    let before = [reflector.pid(), pid].map(resident_bytes);
    let done = finish(sender, "a sender", Duration::from_secs(seconds) + LIMIT);
    let after = resident_bytes(reflector.pid());
    assert!(after < before[0] + GROWTH, "{before:?}, {after}");
    assert!(done.status.success(), "{}", done.stderr);
    let line = done.stdout.lines().last().unwrap_or_default();
    let measurement: Measurement = tscap_report::saved::read(line).expect("a result");
    let account = &measurement.sessions[0].account;
    assert!(account.adds_up(), "{account:?}");
    assert!(account.answered > 9_000 * seconds, "{account:?}");
    let said = served(&reflector.stop());
    let requests = said["requests"].as_object().expect("outcomes");
    let outcomes: u64 = requests.values().filter_map(|it| it.as_u64()).sum();
    let overflowed = said["overflowed"].as_u64().expect("a count");
    assert_eq!(
        outcomes + overflowed,
        account.sent - account.not_left,
        "{said} {account:?}"
    );
}

/// Exchanges of a session, and how far they are apart.
const EXCHANGES: u64 = 10;
const EVERY: Duration = Duration::from_millis(10);
const SESSIONS: usize = 15;

/// A reflector and a sender in user space, whose stamps are readings of the clock there: half of what
/// ten exchanges leave open, ns.
fn in_user_space(bench: &Bench) -> u64 {
    let bind = |netns: &tscap_testkit::netns::Netns, address: &str| {
        let socket = netns.enter(|| UdpSocket::bind((address, 0)).expect("a socket"));
        socket.set_read_timeout(Some(LIMIT)).expect("a time limit");
        socket
    };
    let reflector = bind(&bench.rx.netns, "10.9.0.2");
    let sender = bind(&bench.tx.netns, "10.9.0.1");
    sender
        .connect(reflector.local_addr().expect("its address"))
        .expect("connect");
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..EXCHANGES {
                let mut packet = [0; 44];
                let (_, peer) = reflector.recv_from(&mut packet).expect("a request");
                packet[..8].copy_from_slice(&RealNs::now().0.to_ne_bytes());
                let sent = RealNs::now().0.to_ne_bytes();
                packet[8..16].copy_from_slice(&sent);
                reflector.send_to(&packet, peer).expect("reply");
            }
        });
        let mut alignment = Alignment::new(AlignBy::Exchange, 100_000, None);
        let mut least = u64::MAX;
        let mut tell = |_: (), _: &Exchange, aligned: Aligned| {
            if let Aligned::Known(way) = aligned {
                least = least.min(way.alignment_ns);
            }
        };
        let real = || RealNs::now();
        for _ in 0..EXCHANGES {
            let (sent, sent_real) = (MonoNs::now().0, real());
            sender.send(&[0; 44]).expect("send");
            let mut packet = [0; 44];
            sender.recv(&mut packet).expect("a reply");
            let (received, received_real) = (MonoNs::now().0, real());
            let time = |at: usize| {
                RealNs(u64::from_ne_bytes(
                    packet[at..at + 8].try_into().expect("8 bytes"),
                ))
            };
            let exchange = Exchange {
                own: [RawStamp(sent), RawStamp(received)],
                own_real: [sent_real, received_real],
                peer: [time(0), time(8)],
                own_error_ns: 0,
                peer_error_ns: 0,
                utc_bound_ns: None,
            };
            alignment.take(exchange, NsPerCycle::ONE, (), &mut tell);
            // The pace of the other's packets.
            thread::sleep(EVERY);
        }
        alignment.finish(&mut tell);
        least
    })
}

/// Both take turns while each CPU is busy.
#[test]
#[ignore = "long: by night"]
fn stamps_of_the_kernel_align_better_under_load() {
    let Some(_lock) = alone("it loads all CPUs") else {
        return;
    };
    let bench = bed("hosts-load");
    let reflector = serve(&bench, &[]);
    let is_over = AtomicBool::new(false);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 * cpus {
            scope.spawn(|| {
                let mut number = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    number = black_box(number.wrapping_mul(31) + 1);
                }
            });
        }
        for _ in 0..SESSIONS {
            let options = [
                "-c",
                "10",
                "--rate",
                "100",
                "--max-drift",
                "100",
                "--align",
                "exchange",
            ];
            let session = session(&to(&bench, "10.9.0.2", &options).run());
            ours.push(session.alignment.bound_ns.expect("aligned"));
            theirs.push(in_user_space(&bench));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    served(&reflector.stop());
    ours.sort_unstable();
    theirs.sort_unstable();
    println!("by the kernel's stamps, ns: {ours:?}; in user space: {theirs:?}");
    let [ours, theirs] = [ours, theirs].map(|it| it[SESSIONS / 2]);
    // Of ten exchanges one is fast in user space too: six times were seen on two busy CPUs.
    assert!(
        3 * ours <= theirs,
        "±{ours} ns, and ±{theirs} ns in user space"
    );
}
