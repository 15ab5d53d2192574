//! The interface changes while frames flow both ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use aya::programs::{loaded_links, loaded_programs};
use tempfile::TempDir;
use tscap::{Stop, Summary};
use tscap_file::accounting::{Direction, Totals};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{LIMIT, capture_both};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::port::Port;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone_with, root_with};
use tscap_testkit::wait;

use super::versus::{check_account, direction};

const PROGRAMS: [&str; 5] = ["ip", "ethtool", "tcpdump", "capinfos", "tshark"];
/// So many frames go each way before and after a change.
const SOME: u64 = 500;
/// Frames that a driver polls at most at a time (`NAPI_POLL_WEIGHT`, linux/netdevice.h).
const POLL: u64 = 64;
/// How often an interface is set down and up.
const DOWNS: u64 = 3;

/// Sends frames with rising numbers until it is told to end.
struct Sender {
    frame: Frame,
    /// Its next number.
    next: AtomicU64,
    /// Numbers that its socket took.
    taken: std::sync::Mutex<Vec<u64>>,
    ended: AtomicBool,
}

impl Sender {
    fn new(from: &Port, to: &Port) -> Self {
        Self {
            frame: Frame::new(from, to, 80),
            next: AtomicU64::new(0),
            taken: Vec::new().into(),
            ended: AtomicBool::new(false),
        }
    }

    /// Sends out of `port` as long as that is there, under its number.
    fn send_from(&self, port: &Port) {
        let socket = PacketSocket::open(port);
        while !self.ended.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match socket.send_once(&self.frame.bytes(number)) {
                Ok(()) => self.taken.lock().expect("no panic").push(number),
                // Gone from this namespace.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return,
                // Down: it may be up again.
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn count(&self) -> usize {
        self.taken.lock().expect("no panic").len()
    }

    fn wait_for_some(&self) {
        let before = self.count();
        wait::until("frames", LIMIT, || {
            (self.count() as u64 >= before as u64 + SOME).then_some(())
        });
    }
}

/// A capture on `rx0` while frames flow and `change` is made.
struct Changed {
    summary: Summary,
    recording: Recording,
    /// Numbers that the sockets took, by direction.
    taken: [Vec<u64>; 2],
    /// How many frames the driver gave to XDP, if it is still there to tell.
    at_xdp: Option<u64>,
    _folder: TempDir,
}

fn at_xdp(port: &Port) -> u64 {
    port.driver_counters()["rx_xdp_packets"]
}

/// `change` gives the interface as it is then, or `None` if it is gone.
fn changed(tag: &str, change: impl FnOnce(&Bench) -> Option<Port>) -> Changed {
    let bench = Bench::new(tag);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let before = at_xdp(&bench.rx);
    let plan = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let capture = plan.with(["--hook", "xdp"]).ready();
    let received = Sender::new(&bench.tx, &bench.rx);
    let sent = Sender::new(&bench.rx, &bench.tx);
    let now = thread::scope(|scope| {
        scope.spawn(|| received.send_from(&bench.tx));
        scope.spawn(|| sent.send_from(&bench.rx));
        received.wait_for_some();
        sent.wait_for_some();
        let now = change(&bench);
        if let Some(now) = &now {
            now.wait_up();
            bench.tx.wait_up();
            if !Arc::ptr_eq(&now.netns, &bench.rx.netns) {
                let (sent, now) = (&sent, now.clone());
                scope.spawn(move || sent.send_from(&now));
            }
            received.wait_for_some();
            sent.wait_for_some();
        }
        received.end();
        sent.end();
        now
    });
    let finished = match now {
        Some(_) => capture.stop(),
        None => capture.wait(),
    };
    let summary = finished.accounted();
    assert_eq!(
        finished.code,
        Some(i32::from(now.is_none())),
        "{}",
        finished.stderr
    );
    peers::agree_on(&path, summary.written);
    let recording = Recording::read(&path);
    check_account(&summary, &recording);
    let taken = [received, sent].map(|it| it.taken.into_inner().expect("no panic"));
    Changed {
        summary,
        recording,
        taken,
        at_xdp: now.as_ref().map(|port| at_xdp(port) - before),
        _folder: folder,
    }
}

impl Changed {
    fn totals(&self, way: Direction) -> Totals {
        self.summary.directions[way as usize].totals
    }

    /// Checks what holds whatever the change: frames in their order, each once, all of
    /// those that the kernel took to be sent, and as many as the driver gave to XDP. Of those
    /// it also counts frames that it polls after it has let go of the program to go down.
    #[track_caller]
    fn is_whole(&self, downs: u64) {
        for way in Direction::ALL {
            let of_it = self
                .recording
                .packets
                .iter()
                .filter(|it| direction(it) == way);
            let frame = Frame::between([0; 6], [0; 6], 80);
            let numbers: Vec<_> = of_it.map(|it| frame.number(&it.data)).collect();
            assert!(
                numbers.is_sorted_by(|one, next| one < next),
                "{way:?}: out of order"
            );
            let totals = self.totals(way);
            assert_eq!(
                (totals.seen, totals.outcomes.total()),
                (numbers.len() as u64, 0)
            );
            let taken = &self.taken[way as usize];
            let is_there = |it: &&u64| numbers.binary_search(it).is_ok();
            let there = taken.iter().filter(is_there).count();
            if way == Direction::Out {
                assert_eq!(there, taken.len(), "sent and not captured");
            }
            assert!(there as u64 >= SOME, "{way:?}: {there}");
        }
        if let Some(at_xdp) = self.at_xdp {
            let seen = self.totals(Direction::In).seen;
            let without = at_xdp
                .checked_sub(seen)
                .expect("no more than the driver had");
            assert!(
                without <= downs * POLL,
                "{seen} seen, {at_xdp} by the driver"
            );
        }
    }
}

#[test]
fn it_gets_another_name() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let changed = changed("dir-name", |bench| {
        // Up as it is: Linux 6.2 and later.
        bench.rx.set(&["name", "other0"]);
        Some(Port::find(&bench.rx.netns, "other0"))
    });
    changed.is_whole(0);
    assert_eq!(
        changed.recording.interfaces[0].name, "rx0",
        "as at the start"
    );
    let [received, sent] = &changed.taken;
    assert_eq!(changed.totals(Direction::In).written, received.len() as u64);
    assert_eq!(changed.totals(Direction::Out).written, sent.len() as u64);
}

#[test]
fn it_goes_down_and_up() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let changed = changed("dir-down", |bench| {
        for _ in 0..DOWNS {
            bench.rx.set(&["down"]);
            bench.rx.set(&["up"]);
        }
        Some(bench.rx.clone())
    });
    changed.is_whole(DOWNS);
    assert_eq!(changed.summary.stopped_by, Stop::Signal);
}

#[test]
fn it_moves_to_another_namespace() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let elsewhere = Arc::new(Netns::new("dir-elsewhere"));
    let changed = changed("dir-move", |bench| {
        bench.rx.set(&["netns", elsewhere.name()]);
        let moved = Port::find(&elsewhere, "rx0");
        moved.set(&["up"]);
        Some(Port::find(&elsewhere, "rx0"))
    });
    changed.is_whole(1);
    assert_eq!(changed.summary.stopped_by, Stop::Signal);
}

#[test]
fn it_is_deleted() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let changed = changed("dir-gone", |bench| {
        bench.rx.netns.ip(&["link", "del", "rx0"]);
        None
    });
    changed.is_whole(1);
    assert_eq!(changed.summary.stopped_by, Stop::InterfaceGone);
}

/// Somebody takes one of the two programs away.
#[test]
fn a_direction_that_ends_early_is_told_of() {
    let Some(_lock) = alone_with(
        "a program is found by its name",
        &["ip", "ethtool", "bpftool"],
    ) else {
        return;
    };
    let bench = Bench::new("dir-blind");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&bench.rx.netns).on(&bench.rx).to(&path);
    let capture = capture.with(["--clock", "ktime"]).ready();
    let programs = loaded_programs().filter_map(Result::ok);
    let sent = programs.filter(|it| it.name_as_str() == Some("tscap_out_ktime"));
    let sent = sent.map(|it| it.id()).max().expect("it is attached");
    let mut links = loaded_links().filter_map(Result::ok);
    let link = links.find(|it| it.program_id() == sent).expect("a link");
    let id = link.id().to_string();
    bench
        .rx
        .netns
        .must("bpftool", &["link", "detach", "id", &id]);
    capture.wait_line("tscap: rx0: nothing is captured at tcx egress any more");
    let frame = Frame::new(&bench.tx, &bench.rx, 80);
    PacketSocket::open(&bench.tx).send(&frame, 0..SOME, 0);
    let summary = capture.stop().success();
    assert!(summary.adds_up && summary.directions[0].totals.written >= SOME);
}
