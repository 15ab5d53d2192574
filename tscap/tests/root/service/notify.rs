//! sd_notify: what a service manager hears, on a socket of the test's own.

use std::fs;
use std::io::Read as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, Plan, capture_on};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::root;
use tscap_testkit::wait;

/// The service manager.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        Self::of(socket, path.to_str().expect("UTF-8").into())
    }

    fn hidden(name: &str) -> Self {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Self::of(socket, format!("@{name}"))
    }

    fn of(socket: UnixDatagram, name: String) -> Self {
        let limit = socket.set_read_timeout(Some(LIMIT));
        limit.expect("a time limit");
        Self { socket, name }
    }

    /// Runs the capture under it.
    fn over<'a>(&self, plan: Plan<'a>, more: &[&str]) -> Plan<'a> {
        let socket = format!("NOTIFY_SOCKET={}", self.name);
        plan.through([&["env", &socket], more].concat())
    }

    /// The next message.
    fn receive(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("a message in time");
        String::from_utf8(buffer[..length].to_vec()).expect("UTF-8")
    }

    /// Waits for a message.
    fn wait_for(&self, start: &str) -> String {
        loop {
            let message = self.receive();
            if message.starts_with(start) {
                return message;
            }
        }
    }

    /// Whether nothing is said for so long; what was said before is forgotten.
    fn is_silent(&self, time: Duration) -> bool {
        let limit = |time| self.socket.set_read_timeout(Some(time)).expect("a limit");
        let mut buffer = [0; 4096];
        limit(Duration::from_millis(1));
        while self.socket.recv(&mut buffer).is_ok() {}
        limit(time);
        let is_silent = self.socket.recv(&mut buffer).is_err();
        limit(LIMIT);
        is_silent
    }
}

#[test]
fn a_service_manager_hears_of_the_beginning_the_state_and_the_end() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("notify");
    let folder = files::folder();
    let managers = [
        Manager::at(&folder.path().join("notify")),
        // Such names are of a network namespace.
        bench.rx.netns.enter(|| Manager::hidden("tscap-test")),
    ];
    for manager in managers {
        let plan = capture_on(&bench.rx, &folder.path().join("out.pcapng"));
        let capture = manager.over(plan, &[]).start();
        assert_eq!(manager.receive(), "READY=1");
        // What was said before it: the programs are attached.
        capture.wait_ready();
        assert!(bench.rx.xdp_program().is_some());
        let status = manager.wait_for("STATUS=");
        assert!(
            status.contains("0 drops, fullest ring 0 %, clock ±"),
            "{status}"
        );
        capture.signal(nix::sys::signal::Signal::SIGTERM);
        // Without WATCHDOG_USEC there is nothing else.
        assert_eq!(manager.wait_for("STOPPING"), "STOPPING=1");
        capture.wait().success();
        assert!(manager.is_silent(Duration::from_millis(1)));
    }
}

#[test]
fn a_watchdog_bites_while_the_converter_hangs() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("watchdog");
    let folder = files::folder();
    let manager = Manager::at(&folder.path().join("notify"));
    // An output that nobody reads for a while.
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).expect("a fifo");
    let plan = capture_on(&bench.rx, &pipe);
    let capture = manager.over(plan, &["WATCHDOG_USEC=400000"]).start();
    let mut reader = fs::File::open(&pipe).expect("the fifo");
    manager.wait_for("READY=1");
    // More than once, also while nothing comes in.
    for _ in 0..5 {
        manager.wait_for("WATCHDOG=1");
    }
    let frame = Frame::new(&bench.tx, &bench.rx, 1500);
    PacketSocket::open(&bench.tx).send(&frame, 0..500, 0);
    wait::until("the converter to hang", LIMIT, || {
        manager.is_silent(Duration::from_secs(1)).then_some(())
    });
    // The rest of tscap goes on.
    capture.wait_event("progress");
    let drained = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map(|_| bytes)
    });
    manager.wait_for("WATCHDOG=1");
    let summary = capture.stop().success();
    assert_eq!(summary.written, 500);
    let bytes = drained.join().expect("the reader").expect("the stream");
    assert_eq!(bytes.len() as u64, summary.bytes_written);
}

#[test]
fn a_watchdog_of_another_process_is_not_answered() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("watchdog-other");
    let folder = files::folder();
    let manager = Manager::at(&folder.path().join("notify"));
    let plan = capture_on(&bench.rx, &folder.path().join("out.pcapng"));
    let more = ["WATCHDOG_USEC=100000", "WATCHDOG_PID=1"];
    let capture = manager.over(plan, &more).start();
    manager.wait_for("READY=1");
    let mut reported = 0;
    while !manager.receive().starts_with("STATUS=") {
        reported += 1;
    }
    assert_eq!(
        reported, 0,
        "nothing between READY and STATUS, a second later"
    );
    capture.stop().success();
}

#[test]
fn a_socket_that_is_none_is_refused_and_one_that_is_gone_is_told() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("notify-none");
    let folder = files::folder();
    let plan = || capture_on(&bench.rx, &folder.path().join("out.pcapng"));
    let refused = plan().through(["env", "NOTIFY_SOCKET=relative"]).run();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("NOTIFY_SOCKET=relative"),
        "{}",
        refused.stderr
    );
    let gone = ["env", "NOTIFY_SOCKET=/nonexistent/notify"];
    let finished = plan().through(gone).ready().stop();
    finished.success();
    let reported = "cannot tell the service manager";
    assert!(finished.stderr.contains(reported), "{}", finished.stderr);
}
