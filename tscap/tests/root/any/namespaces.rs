//! Captures in other network namespaces.

use std::fs::File;
use std::process::Command;

use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::{alone_with, root_with};

use super::node::{Cable, Node, PROGRAMS, names, numbers, read};

/// The same name and number in both: told apart in the file, the summary and for people.
#[test]
fn interfaces_alike_in_two_namespaces() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let outside = Netns::new("ns-out");
    let (one, other) = (Node::new("ns-one"), Node::new("ns-other"));
    let (first, second) = (one.cable("eth0"), other.cable("eth0"));
    assert_eq!(first.here.index, second.here.index);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let namespaces = ["--netns", one.here.name(), "--netns", other.here.name()];
    let plan = || {
        capture_both(&outside)
            .with(namespaces)
            .with(["-i", "eth0"])
            .to(&path)
    };
    let capture = plan().start();
    let ready = capture.wait_event("ready");
    first.exchange(0..10);
    second.exchange(100..105);
    let finished = capture.stop();
    let summary = finished.success();
    let labels = [&one, &other].map(|it| format!("network namespace {}", it.here.name()));
    for (index, label) in labels.iter().enumerate() {
        assert_eq!(ready["interfaces"][index]["namespace"], label.as_str());
        assert_eq!(summary.interfaces[index].namespace.as_ref(), Some(label));
    }
    let recording = read(&path, &summary);
    assert_eq!(numbers(&recording, 0).len(), 20);
    assert_eq!(numbers(&recording, 1).len(), 10);
    for (described, label) in recording.interfaces.iter().zip(&labels) {
        assert_eq!(described.description, Some(format!("{label}: veth")));
        assert_eq!(described.custom["namespace"], label.as_str());
    }
    // For people.
    let human = plan().human().with(["-v"]);
    let finished = human.ready().stop();
    let [one, other] = &labels;
    let ready = format!("eth0 in {one}, eth0 in {other} (in: native XDP, out: tcx egress)");
    assert!(finished.stderr.contains(&ready), "{}", finished.stderr);
    for label in &labels {
        let line = format!("  eth0 in {label}: 0 seen");
        assert!(finished.stderr.contains(&line), "{}", finished.stderr);
    }
}

/// Changes of an interface there are given back there.
#[test]
fn offloads_there_are_given_back() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (outside, node) = (Netns::new("ns-off-out"), Node::new("ns-off"));
    let cable = node.cable("eth0");
    cable.here.offload("gro", true);
    let is_on = |name: &str| cable.here.offloads()[name];
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&outside).with(["--netns", node.here.name(), "-i", "eth0"]);
    let plan = plan.with(["--offloads", "off", "--hook", "tcx"]).to(&path);
    let capture = plan.ready();
    assert!(!is_on("generic-receive-offload"));
    capture.stop().success();
    assert!(is_on("generic-receive-offload"));
}

#[test]
fn what_cannot_be_found_is_told() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (outside, node) = (Netns::new("ns-bad-out"), Node::new("ns-bad"));
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = || capture_both(&outside).to(&path);
    let fails = |arguments: &[&str], parts: &[&str]| {
        plan().with(arguments).run().failure(1, parts);
        assert!(!path.exists());
    };
    let name = node.here.name();
    fails(
        &["--netns", "tscap-no-such"],
        &[
            "cannot capture in network namespace tscap-no-such",
            "there are: ",
        ],
    );
    fails(
        &["--netns", name, "-i", "eth7"],
        &["eth7: no such interface", name, "-i any"],
    );
    fails(
        &["--netns", name, "--netns", &format!("/run/netns/{name}")],
        &["they are the same"],
    );
    fails(
        &["--container", "tscap-no-such"],
        &["there is no container"],
    );
    fails(&["--pod", "default/tscap-no-such"], &["there is no pod"]);
    let file = File::create(folder.path().join("none")).expect("a file");
    drop(file);
    let none = folder.path().join("none");
    fails(
        &["--netns", none.to_str().expect("UTF-8")],
        &["cannot enter", "no network namespace"],
    );
    // --rx-cpu would change what /sys shows of another namespace.
    let _cable = node.cable("eth0");
    fails(
        &["--netns", name, "-i", "eth0", "--rx-cpu", "0"],
        &["/sys belongs to another network namespace"],
    );
    let usage = plan().with(["--pod", "tscap"]).run();
    assert_eq!(usage.code, Some(2));
    assert!(
        usage.stderr.contains("a pod is NAMESPACE/NAME"),
        "{}",
        usage.stderr
    );
}

/// By the number of a process in it.
#[test]
fn the_namespace_of_a_process() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let (outside, node) = (Netns::new("ns-pid-out"), Node::new("ns-pid"));
    let cable = node.cable("eth0");
    let mut process = node.here.command("sleep").arg("60").spawn().expect("sleep");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    tscap_testkit::wait::until(
        "sleep to be there",
        std::time::Duration::from_secs(10),
        || {
            let exe = std::fs::read_link(format!("/proc/{}/exe", process.id())).ok()?;
            exe.ends_with("sleep").then_some(())
        },
    );
    let plan = capture_both(&outside).with(["--netns", &process.id().to_string()]);
    let capture = plan.to(&path).start();
    assert_eq!(names(&capture.wait_event("ready")), ["lo", "eth0"]);
    cable.exchange(0..3);
    let summary = capture.stop().success();
    process.kill().expect("kill");
    process.wait().expect("wait");
    assert_eq!(summary.seen, 6);
    read(&path, &summary);
}

#[test]
fn twenty_namespaces_in_one_capture() {
    let programs = [&PROGRAMS[..], &["tshark"]].concat();
    let Some(_lock) = alone_with("forty namespaces", &programs) else {
        return;
    };
    let outside = Netns::new("ns-many-out");
    let nodes: Vec<_> = (0..20).map(|n| Node::new(&format!("ns{n}"))).collect();
    let cables: Vec<Cable> = nodes.iter().map(|node| node.cable("eth0")).collect();
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let namespaces = nodes.iter().flat_map(|node| ["--netns", node.here.name()]);
    let plan = capture_both(&outside).with(namespaces).to(&path);
    let capture = plan.with(["-i", "eth*"]).ready();
    std::thread::scope(|scope| {
        for (number, cable) in (0_u64..).zip(&cables) {
            scope.spawn(move || cable.exchange(number * 1000..number * 1000 + 300));
        }
    });
    let later: Vec<Cable> = nodes.iter().map(|node| node.cable("eth1")).collect();
    for (number, cable) in (0_u64..).zip(&later) {
        let label = format!("network namespace {}", cable.here.netns.name());
        let is_it = |it: &serde_json::Value| it["name"] == "eth1" && it["namespace"] == label;
        capture.wait_event_with("joined", is_it);
        cable.exchange(50_000 + number * 10..50_000 + number * 10 + 10);
    }
    let summary = capture.stop().success();
    assert_eq!(summary.seen, 20 * (600 + 20));
    let recording = read(&path, &summary);
    for index in 0..20 {
        let first = index as u64 * 1000;
        let mut found = numbers(&recording, index);
        found.retain(|number| *number < super::node::SENT);
        assert_eq!(found, (first..first + 300).collect::<Vec<_>>());
    }
    let tshark = Command::new("tshark")
        .args(["-r", path.to_str().expect("UTF-8"), "-T", "fields"])
        .args([
            "-e",
            "frame.interface_name",
            "-e",
            "frame.interface_description",
        ])
        .output()
        .expect("tshark");
    let text = String::from_utf8_lossy(&tshark.stdout);
    let of_last = format!("eth1\tnetwork namespace {}: veth", nodes[19].here.name());
    assert_eq!(text.lines().filter(|line| *line == of_last).count(), 20);
}
