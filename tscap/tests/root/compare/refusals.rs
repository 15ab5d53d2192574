//! What is refused, and arguments that are odd.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use tscap_testkit::bench::Bench;
use tscap_testkit::command::{run, tscap_path};
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::root::{alone, root};

use super::{LIMIT, MEASURES, compare, fails, first_round};

#[test]
fn what_cannot_be_measured_is_refused() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("cmprefuse");
    let on = |arguments: &[&str]| {
        let mut command = bench.rx.netns.command(tscap_path());
        run(command.args(["compare", "--quick"]).args(arguments), LIMIT)
    };
    fails(
        &on(&["-i", "rx9"]),
        &["measure on rx9", "no such interface"],
    );
    let silent = on(&["-i", "rx0", "--timeout", "0.3"]);
    let parts = [
        "rounds, at least ",
        "no frame came in on CPU",
        "within 300ms",
    ];
    fails(&silent, &parts);
    fails(&on(&["-i", "rx0", "--cpu", "4096"]), &["CPU 4096"]);
    let occupied = Attached::dropping(&bench.rx);
    fails(&on(&["-i", "rx0"]), &["has XDP program"]);
    drop(occupied);
    bench.rx.set(&["down"]);
    fails(&on(&["-i", "rx0"]), &["rx0: it is down"]);

    let netns = std::sync::Arc::new(Netns::new("cmplo"));
    netns.ip(&["link", "set", "lo", "up"]);
    let lo = Port::find(&netns, "lo");
    let mut command = lo.netns.command(tscap_path());
    let generic = run(command.args(["compare", "--quick", "-i", "lo"]), LIMIT);
    fails(&generic, &["native", "lo"]);
}

#[test]
fn arguments_need_not_be_utf_8() {
    let Some(_lock) = alone(MEASURES) else { return };
    let folder = tscap_testkit::files::folder();
    let name = OsStr::from_bytes(b"\xff.html");
    let mut command = compare(&["--quick", "--json", "--report"]);
    let comparison = first_round(command.arg(folder.path().join(name)));
    let words = comparison.about.command;
    assert!(words[5].ends_with("/\u{fffd}.html"), "{words:?}");
    assert!(folder.path().join(name).is_file());
}

#[test]
fn a_page_that_cannot_be_written_is_refused_at_once() {
    let Some(_lock) = root() else { return };
    let start = Instant::now();
    let done = run(&mut compare(&["--report", "/nonexistent/out.html"]), LIMIT);
    fails(&done, &["cannot write /nonexistent/out.html"]);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "nothing was measured, which takes minutes"
    );
}
