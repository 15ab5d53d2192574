//! Interfaces that join a capture that runs.

use std::time::{Duration, Instant};

use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::{alone_with, root_with};

use super::node::{Node, PROGRAMS, names, numbers, read};

/// As an interface may join at the latest.
const SOON: Duration = Duration::from_secs(1);

#[test]
fn one_that_comes_up_joins_and_leaves() {
    let Some(_lock) = alone_with("compares times", &PROGRAMS) else {
        return;
    };
    let node = Node::new("any-join");
    let always = node.cable("always");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&node.here)
        .with(["-i", "any"])
        .to(&path)
        .start();
    assert_eq!(names(&capture.wait_event("ready")), ["lo", "always"]);
    always.exchange(0..10);

    let first = node.plug("later");
    let start = Instant::now();
    first.here.set(&["up"]);
    let joined = capture.wait_event("joined");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!(joined["name"], "later", "{joined}");
    assert_eq!(joined["hooks"]["in"], "native XDP", "{joined}");
    assert_eq!(joined["hooks"]["out"], "tcx egress", "{joined}");
    first.exchange(10..20);
    let ifindex = first.here.index;
    first.unplug();
    let left = capture.wait_event("left");
    assert_eq!(
        (&left["name"], &left["ifindex"]),
        (&"later".into(), &ifindex.into())
    );

    // Another one of the same name.
    let second = node.cable("later");
    let is_second = |it: &serde_json::Value| it["ifindex"] == second.here.index;
    capture.wait_event_with("joined", is_second);
    second.exchange(20..30);
    always.exchange(30..40);
    let summary = capture.stop().success();
    let seen: Vec<_> = summary
        .interfaces
        .iter()
        .map(|it| (it.name.as_str(), it.seen))
        .collect();
    assert_eq!(
        seen,
        [("lo", 0), ("always", 40), ("later", 20), ("later", 20)]
    );
    let recording = read(&path, &summary);
    assert_eq!(numbers(&recording, 2)[..10], (10..20).collect::<Vec<_>>());
    assert_eq!(numbers(&recording, 3)[..10], (20..30).collect::<Vec<_>>());
    for index in [2, 3] {
        let described = &recording.interfaces[index];
        assert_eq!(described.custom["hooks"]["in"], "native XDP");
        let last = recording.last_statistics(index);
        assert_eq!(last.custom["totals"]["seen"], 80, "{}", last.custom);
    }
}

/// Set down and up it stays the same; renamed so that it matches it joins.
#[test]
fn what_is_set_down_and_what_is_renamed() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-renamed");
    let (one, other) = (node.cable("ve0"), node.cable("eth0"));
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_both(&node.here)
        .with(["-i", "ve*"])
        .to(&path)
        .start();
    assert_eq!(names(&capture.wait_event("ready")), ["ve0"]);
    one.here.set(&["down"]);
    one.here.set(&["up"]);
    one.here.wait_up();
    one.there.wait_up();
    one.exchange(0..10);
    // Renamed so that it does not match, it stays.
    one.here.set(&["name", "xe0"]);
    one.exchange(10..20);
    other.here.set(&["name", "ve1"]);
    assert_eq!(capture.wait_event("joined")["name"], "ve1");
    other.exchange(20..30);
    let finished = capture.stop();
    assert_eq!(finished.events("joined").len(), 1);
    assert!(finished.events("left").is_empty());
    let summary = finished.success();
    let seen: Vec<_> = summary.interfaces.iter().map(|it| it.seen).collect();
    assert_eq!(seen, [40, 20]);
    read(&path, &summary);
}

/// Each file has descriptions of its own, also of those that joined before it began.
#[test]
fn files_after_the_first_describe_all() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-files");
    let always = node.cable("always");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here)
        .with(["-i", "any", "-C", "1"])
        .to(&path);
    let capture = plan.start();
    capture.wait_event("ready");
    let later = node.cable("later");
    capture.wait_event("joined");
    for part in 0..30_u64 {
        later.exchange(part * 500..(part + 1) * 500);
    }
    always.exchange(20_000..20_010);
    let finished = capture.stop();
    let summary = finished.success();
    let files = finished.files();
    assert!(files.len() > 1, "{files:?}");
    let mut frames = 0;
    for (position, file) in files.iter().enumerate() {
        let recording = Recording::read(&file.path);
        let names: Vec<_> = recording.interfaces.iter().map(|it| &it.name).collect();
        assert_eq!(names, ["lo", "always", "later"], "file {position}");
        frames += recording.packets_of(2).count();
    }
    assert_eq!(frames, 30_000);
    assert_eq!(summary.written, 30_020);
}

/// What joins is treated as what was there, and given back.
#[test]
fn offloads_of_one_that_joins_are_given_back() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let node = Node::new("any-offloads");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&node.here).with(["-i", "ve*", "--offloads", "off"]);
    let capture = plan.with(["--hook", "tcx"]).to(&path).ready();
    let cable = node.plug("ve0");
    cable.here.offload("gro", true);
    let is_on = || cable.here.offloads()["generic-receive-offload"];
    cable.here.set(&["up"]);
    capture.wait_event("joined");
    assert!(!is_on());
    capture.stop().success();
    assert!(is_on());
}
