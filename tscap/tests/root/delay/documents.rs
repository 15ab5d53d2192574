//! The commands of docs/delay.md, each on the device that its section is about.

use std::path::Path;
use std::process::{Command, Stdio};

use tscap_delay::schema::Measurement;
use tscap_testkit::between::Between;
use tscap_testkit::capture::{LIMIT, generate_on};
use tscap_testkit::command::{SHORT, finish, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::root::alone_with;

use super::{MEASURES, PROGRAMS, SIZE, adds_up};
use tscap_testkit::shown::{Runner, commands};

/// Rules of the firewall.
const RULES: usize = 100;

/// The device that a command is about, by the interface where packets enter.
fn device(line: &str) -> Between {
    let entry = line.split(" --in ").nth(1).expect("an entry");
    match entry.split(' ').next() {
        Some("eth0") if line.contains("--match nat") => Between::nat("delay-docs-nat"),
        Some("eth0") => Between::router("delay-docs-router"),
        Some("port0") => Between::bridge("delay-docs-bridge"),
        Some("wan0") => Between::firewall("delay-docs-firewall", RULES),
        Some("uplink0") => Between::router("delay-docs-veth"),
        other => panic!("no device for {other:?}"),
    }
}

/// Runs it in the device's namespace while frames pass.
fn measure(line: &str, folder: &Path) {
    let between = device(line);
    let namespace = between.far.netns.name();
    let words = line.split(' ').map(|word| match word {
        "tscap" => tscap_path(),
        "eth0" | "port0" | "wan0" | "uplink0" => between.bench.rx.name.as_str(),
        "eth1" | "port1" | "lan0" | "veth7" => between.out.name.as_str(),
        "web" => namespace,
        word => word,
    });
    let command = words.collect::<Vec<_>>().join(" ");
    let mut shell = between.device().command("sh");
    let shell = shell.args(["-c", &command]).current_dir(folder);
    shell.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = shell.stderr(Stdio::piped()).spawn().expect("start a shell");
    let sender = generate_on(&between.bench.tx)
        .with([
            "--sender",
            "packet",
            "--rate",
            "2k",
            "--size",
            &SIZE.to_string(),
        ])
        .with(between.through())
        .start();
    let done = finish(child, line, LIMIT);
    drop(sender);
    assert!(done.status.success(), "{line}: {}", done.stderr);
    if !line.contains("--json") {
        assert!(done.stdout.contains(" matched"), "{line}: {}", done.stdout);
    }
}

/// Packets are matched in each, and the page shows all of them.
#[test]
fn every_command_works() {
    let Some(_lock) = alone_with(MEASURES, &PROGRAMS) else {
        return;
    };
    let folder = files::folder();
    let lines = commands(Runner::Delay).into_iter();
    let (reports, measured): (Vec<_>, Vec<_>) =
        lines.partition(|line| line.starts_with("tscap report"));
    assert!(measured.len() >= 5 && reports.len() == 1, "{measured:?}");
    for line in &measured {
        measure(line, folder.path());
    }
    for device in ["router", "bridge", "firewall", "container"] {
        let path = folder.path().join(device).with_extension("json");
        let text = std::fs::read_to_string(&path).expect(device);
        let measurement = tscap_report::saved::read::<Measurement>(&text).expect(device);
        measurement.passages.iter().for_each(adds_up);
        let matched = measurement.passages[0].exits[0].account.matched;
        assert!(matched > 1_000, "{device}: {measurement:?}");
        assert_eq!(measurement.method.label.as_deref(), Some(device));
    }
    for line in &reports {
        let words = line.split(' ').skip(1);
        let mut tscap = Command::new(tscap_path());
        let done = run(tscap.args(words).current_dir(folder.path()), SHORT);
        assert!(done.status.success(), "{line}: {}", done.stderr);
    }
    let page = std::fs::read_to_string(folder.path().join("delay.html")).expect("a page");
    for label in ["router: ", "bridge: ", "firewall: "] {
        assert!(page.contains(label), "{label}");
    }
}
