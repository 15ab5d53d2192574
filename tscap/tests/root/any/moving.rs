//! Interfaces that move between namespaces which one capture is in.

use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::root::root_with;

use super::node::{Node, PROGRAMS, names, read, send};

/// It is captured once, and goes on under its description.
#[test]
fn one_that_moves_stays_the_same() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (outside, node) = (Netns::new("any-move-out"), Node::new("any-move"));
    let cable = node.cable("mover");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let namespaces = ["--netns", node.here.name(), "--netns", node.there.name()];
    let plan = capture_both(&outside).with(namespaces).to(&path);
    let capture = plan.start();
    let ready = capture.wait_event("ready");
    assert_eq!(names(&ready), ["lo", "mover", "lo", "moverx"], "{ready}");
    cable.exchange(0..10);
    let there = &node.there;
    cable.here.set(&["netns", there.name()]);
    let moved = Port::find(there, "mover");
    moved.set(&["up"]);
    moved.wait_up();
    cable.there.wait_up();
    send(&cable.there, &moved, 10..20);
    send(&moved, &cable.there, 10..20);
    // And back.
    moved.set(&["netns", node.here.name()]);
    let back = Port::find(&node.here, "mover");
    back.set(&["up"]);
    back.wait_up();
    cable.there.wait_up();
    send(&cable.there, &back, 20..30);
    send(&back, &cable.there, 20..30);
    // So that all that has happened is noticed.
    let last = node.cable("last");
    capture.wait_event_with("joined", |it| it["name"] == "last");
    last.exchange(0..1);
    let finished = capture.stop();
    let joined = finished.events("joined");
    let joined: Vec<_> = joined.iter().map(|it| &it["name"]).collect();
    assert!(!joined.iter().any(|it| **it == "mover"), "{joined:?}");
    let summary = finished.success();
    let of = |name: &str| summary.interfaces.iter().find(|it| it.name == name);
    assert_eq!(of("mover").map(|it| it.seen), Some(60));
    assert_eq!(of("moverx").map(|it| it.seen), Some(60));
    read(&path, &summary);
}
