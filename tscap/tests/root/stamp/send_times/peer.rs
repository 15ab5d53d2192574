//! The reflector of stamp-suite, as it is.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};

use tscap_clock::RealNs;
use tscap_protocol::{ErrorEstimate, Mode, PORT, Reply, Request, TimeFormat, Timestamp};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::root::root_with;
use tscap_testkit::wait;

use super::packets::{Family, checksums_are_right};
use super::{bed, outcomes, sending};

/// Exchanges of a session.
const MANY: usize = 200;

/// Where tscap is. Killed when it is dropped.
struct Reflector(Child);

impl Reflector {
    fn start(bench: &Bench, family: Family, options: &[&str]) -> Self {
        let mut command = bench.rx.netns.command("stamp-suite");
        let (address, port) = (family.ours().to_string(), PORT.to_string());
        command.args(["--is-reflector", "--local-addr", &address]);
        command.args(["--local-port", &port]).args(options);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let reflector = Self(command.spawn().expect("start stamp-suite"));
        wait::until("stamp-suite to listen", LIMIT, || {
            let listens = ["-Hln", "--udp", "sport", "=", &port];
            let listens = bench.rx.netns.must("ss", &listens);
            (!listens.is_empty()).then_some(())
        });
        reflector
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session-sender in user space.
struct Sender(UdpSocket);

impl Sender {
    fn new(bench: &Bench, family: Family) -> Self {
        let from = SocketAddr::from((family.theirs(), 0));
        let socket = bench.tx.netns.enter(|| UdpSocket::bind(from));
        let socket = socket.expect("a socket");
        socket.set_read_timeout(Some(LIMIT)).expect("a time limit");
        socket.connect((family.ours(), PORT)).expect("connect");
        Self(socket)
    }

    /// A request and its reply.
    fn exchange(&self, sequence: u32) -> Reply {
        let request = Request {
            sequence,
            timestamp: Timestamp::of(RealNs::now(), TimeFormat::Ntp, 0),
            error: ErrorEstimate::covering(1_000, false, TimeFormat::Ntp),
            ssid: 4_711,
        };
        let mut packet = [0; 44];
        request.write(Mode::Unauthenticated, &mut packet);
        self.0.send(&packet).expect("send a request");
        let mut packet = [0; 64];
        let length = self.0.recv(&mut packet).expect("receive a reply");
        let reply = Reply::parse(&packet[..length], Mode::Unauthenticated);
        reply.expect("a reply")
    }
}

/// Its own Error Estimate is 1 · 2^-32 s, whatever its clock is; each reply has tscap's, and the
/// time at which it left.
#[test]
fn each_reply_of_stamp_suite_has_its_send_time() {
    let Some(_lock) = root_with(&["ip", "ethtool", "ss", "stamp-suite"]) else {
        return;
    };
    let bench = bed("send-peer");
    let running = sending(&bench);
    let theirs = ErrorEstimate::covering(0, false, TimeFormat::Ntp);
    let mut replies = 0;
    for family in Family::ALL {
        for options in [&[][..], &["--stateful-reflector"]] {
            let _reflector = Reflector::start(&bench, family, options);
            let sender = Sender::new(&bench, family);
            for sequence in 0..MANY as u32 {
                let reply = sender.exchange(sequence);
                let now = RealNs::now();
                assert_eq!(reply.sender_sequence, sequence);
                assert_ne!(reply.error, theirs);
                let [sent, received] = [reply.timestamp, reply.received]
                    .map(|time| time.to_real(TimeFormat::Ntp, now, 0).0);
                let bound_ns = reply.error.bound_ns();
                let times = received - bound_ns..=now.0 + bound_ns;
                assert!(times.contains(&sent), "{reply:?}, {now:?}");
                replies += 1;
            }
        }
    }
    checksums_are_right(&bench.tx.netns);
    outcomes(&running.stop(), replies, &[]);
}
