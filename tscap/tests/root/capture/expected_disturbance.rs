//! What attaching will do to an interface at work is said before it is done.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{capture, capture_on};
use tscap_testkit::files;
use tscap_testkit::root::root;

const FORETOLD: &str = "attaching native XDP has frames polled for";

/// What a capture on `rx0` says until it is ready, in lines.
fn says(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    says_on(bench, "rx0", arguments)
}

fn says_on(bench: &Bench, interface: &str, arguments: &[&str]) -> Vec<String> {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture(&bench.rx.netns).with(["-i", interface]).to(&path);
    let plan = plan.human().with(arguments);
    let finished = plan.ready().stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let lines = finished.stderr.lines().map(str::to_owned);
    lines.take_while(|line| !line.contains("ready: ")).collect()
}

#[test]
fn on_the_default_route_it_is_said_in_any_case() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("foretold");
    let said = |arguments: &[&str]| {
        let lines = says(&bench, arguments);
        lines.into_iter().find(|line| line.contains(FORETOLD))
    };
    assert_eq!(said(&[]), None);
    let detail = said(&["-v"]).expect("by -v");
    assert!(!detail.contains("default route"), "{detail}");
    assert_eq!(said(&["-v", "--hook", "tcx"]), None);

    bench.add_addresses();
    let default = ["route", "add", "default", "via", "10.9.0.1"];
    bench.rx.netns.ip(&default);
    for hook in ["auto", "xdp"] {
        let note = said(&["--hook", hook]).expect("on the default route");
        for part in ["rx0: ", "veth_xdp_set", "default route", "--hook tcx"] {
            assert!(note.contains(part), "{part}: {note}");
        }
    }
    for hook in ["tcx", "generic"] {
        assert_eq!(said(&["-v", "--hook", hook]), None);
    }
    // Of one that was not named only if its driver is known to lose frames.
    let of_pattern = says_on(&bench, "rx*", &[]);
    let is_said = of_pattern.iter().any(|line| line.contains(FORETOLD));
    assert!(!is_said, "{of_pattern:?}");
    let filled = says(&bench, &["-v", "-Q", "out"]);
    assert!(
        !filled.iter().any(|line| line.contains(FORETOLD)),
        "{filled:?}"
    );
}

/// The peer can send aggregates again when the capture has ended.
#[test]
fn what_a_veth_is_said_to_do_to_its_peer_is_done_and_given_back() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("foretold-peer");
    bench.tx.offload("tso", true);
    let sends_aggregates = || bench.tx.offloads()["tx-tcp-segmentation"];
    assert!(sends_aggregates());
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for (hook, during) in [("xdp", false), ("tcx", true), ("generic", true)] {
        let capture = capture_on(&bench.rx, &path).with(["--hook", hook]).ready();
        assert_eq!(sends_aggregates(), during, "{hook}");
        capture.stop().success();
        assert!(sends_aggregates(), "{hook}");
    }
}
