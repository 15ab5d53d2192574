//! A capture on many interfaces: how it starts, and what it says of them.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use aya::programs::loaded_programs;
use nix::sys::signal::Signal;
use tscap_testkit::capture::capture;
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::{alone, root};
use tscap_testkit::wait;

/// So many veth pairs, whose first ends are v0, v1, ….
fn pairs(netns: &Netns, count: usize) {
    let add = (0..count).map(|it| format!("link add v{it} type veth peer name p{it}\n"));
    let up = (0..count).map(|it| format!("link set v{it} up\nlink set p{it} up\n"));
    let folder = files::folder();
    let batch = folder.path().join("batch");
    fs::write(&batch, add.chain(up).collect::<String>()).expect("write a batch");
    netns.ip(&["-batch", batch.to_str().expect("a UTF-8 path")]);
}

/// How many interfaces have an XDP program.
fn attached(netns: &Netns) -> usize {
    let links = netns.ip(&["-json", "link", "show"]);
    let links: serde_json::Value = serde_json::from_str(&links).expect("JSON");
    let links = links.as_array().expect("a list").iter();
    links.filter(|link| !link["xdp"].is_null()).count()
}

/// The numbers of the programs that links of a process hold where they are.
fn held_by(pid: u32) -> BTreeSet<u32> {
    let all = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("list its descriptors");
    let texts = all.filter_map(|it| fs::read_to_string(it.ok()?.path()).ok());
    let links = texts.filter(|text| text.contains("link_id:"));
    let number = |text: String| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
    };
    links.filter_map(number).collect()
}

/// The verifier's work is most of the CPU time that an interface takes of a start: 13 ms for
/// 23,635 instructions (a Xeon in a virtual machine).
#[test]
fn the_verifier_has_little_to_do_for_each_interface() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("verified");
    pairs(&netns, 1);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture(&netns).with(["-i", "v0", "-Q", "inout"]);
    let capture = plan.to(&path).ready();
    let held = held_by(capture.pid());
    assert_eq!(held.len(), 2, "{held:?}");
    let programs = loaded_programs().filter_map(Result::ok);
    let mut looked_at = 0;
    for program in programs.filter(|it| held.contains(&it.id())) {
        let name = program.name_as_str().unwrap_or_default().to_owned();
        let most = if name.starts_with("tscap_out_") {
            4_000
        } else {
            19_000
        };
        // The kernel tells since 5.16.
        let verified = program.verified_instruction_count().unwrap_or_default();
        assert!(verified <= most, "{name}: {verified} instructions");
        looked_at += 1;
    }
    assert_eq!(looked_at, 2);
    capture.stop().success();
}

/// Of the time that the whole start takes, a signal that comes at the first interface leaves the
/// most out. Nothing stays attached.
#[test]
fn a_signal_ends_a_start_on_many_interfaces_at_once() {
    let Some(_lock) = alone("it compares how long starts take") else {
        return;
    };
    let netns = Netns::new("many");
    pairs(&netns, 100);
    let folder = files::folder();
    let start = || {
        let path = folder.path().join("out.pcapng");
        let capture = capture(&netns).with(["-i", "v*"]).to(&path).start();
        wait::until("the first program", Duration::from_secs(60), || {
            (attached(&netns) > 0).then_some(())
        });
        (capture, Instant::now())
    };
    let (whole, begun) = start();
    whole.wait_ready();
    let whole_takes = begun.elapsed();
    whole.stop().success();
    assert_eq!(attached(&netns), 0);

    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGALRM] {
        let (ended, _) = start();
        let asked = Instant::now();
        let ended = ended.stop_with(signal);
        let took = asked.elapsed();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("ready: "), "{}", ended.stderr);
        assert_eq!(attached(&netns), 0);
        assert!(
            took < whole_takes / 2,
            "{signal}: {took:?}, and the whole start takes {whole_takes:?}"
        );
    }
}

/// What is to be said of each interface is one line.
#[test]
fn one_line_warns_of_all_interfaces() {
    let Some(_lock) = root() else { return };
    let netns = Netns::new("lines");
    pairs(&netns, 12);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture(&netns).with(["-i", "v*", "--hook", "tcx"]);
    let capture = plan.to(&path).ready();
    let finished = capture.stop();
    let warnings: Vec<_> = finished.events("warning");
    let texts: BTreeSet<_> = warnings.iter().map(|it| it["text"].to_string()).collect();
    assert_eq!(texts.len(), warnings.len(), "each is said once: {texts:?}");
    let of_all = "12 interfaces (v0, v1, v2, …): stamps are taken in the network stack";
    assert!(
        warnings.len() <= 2 && texts.iter().any(|text| text.contains(of_all)),
        "{texts:?}"
    );
    let summary = finished.success();
    assert_eq!(summary.interfaces.len(), 12);
}
