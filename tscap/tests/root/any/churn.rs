//! Interfaces come and go while frames flow on another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::root::alone_with;

use super::node::{Node, PROGRAMS, SENT, numbers, read};

/// How many come and go.
const MANY: u64 = 30;
/// Frames each way on each of them.
const EACH: u64 = 50;

#[test]
fn nothing_is_lost_while_interfaces_come_and_go() {
    let Some(_lock) = alone_with("frames as fast as they go", &PROGRAMS) else {
        return;
    };
    let node = Node::new("any-churn");
    let always = node.cable("always");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&node.here)
        .with(["-i", "any"])
        .to(&path)
        .start();
    capture.wait_event("ready");
    let has_ended = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let frame = Frame::new(&always.there, &always.here, 100);
            let socket = PacketSocket::open(&always.there);
            let mut number = 0;
            while !has_ended.load(Ordering::Relaxed) {
                let frames: Vec<_> = (number..number + 20).map(|n| frame.bytes(n)).collect();
                socket.send_all(&frames);
                number += 20;
                // Half of a core is for the others.
                thread::sleep(std::time::Duration::from_micros(500));
            }
            number
        });
        for turn in 0..MANY {
            let name = format!("c{turn}");
            let cable = node.cable(&name);
            capture.wait_event_with("joined", |it| it["name"] == name.as_str());
            cable.exchange(turn * EACH..(turn + 1) * EACH);
            cable.unplug();
        }
        has_ended.store(true, Ordering::Relaxed);
        sender.join().expect("no panic")
    });
    capture.wait_event_with("left", |it| it["name"] == format!("c{}", MANY - 1).as_str());
    let finished = capture.stop();
    assert_eq!(finished.events("joined").len() as u64, MANY);
    assert_eq!(finished.events("left").len() as u64, MANY);
    let summary = finished.success();
    assert_eq!(summary.outcomes.total(), 0, "{:?}", summary.outcomes);
    let recording = read(&path, &summary);
    assert_eq!(numbers(&recording, 1), (0..sent).collect::<Vec<_>>());
    for turn in 0..MANY {
        let of_it = turn * EACH..(turn + 1) * EACH;
        let out = of_it.clone().map(|number| number + SENT);
        let expected: Vec<_> = of_it.chain(out).collect();
        assert_eq!(numbers(&recording, turn as usize + 2), expected);
    }
}
