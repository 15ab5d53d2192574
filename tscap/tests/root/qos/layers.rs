//! `tscap qos --layers`: each packet at each layer, what ends between them, what is merged.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tscap_flows::layers::schema::{LayerAccount, LayerReport, Residences};
use tscap_programs::hook::Layer;
use tscap_report::saved::Saved;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, Plan, generate_on, qos_on};
use tscap_testkit::root::{root, root_with};

const ALL: &str = "xdp,tcx,pre,local-in,cgroup,app";
/// What carries packets for a test.
const SHORT: Duration = Duration::from_secs(20);

/// In a file system of its own, as `ip netns exec` gives it, there are no control groups yet.
fn with_cgroups(bench: &Bench, layers: &str) -> Capture {
    let mount = "mount -t cgroup2 none /sys/fs/cgroup && exec \"$@\"";
    let plan: Plan<'_> = qos_on(&bench.rx).through(["sh", "-c", mount, "sh"]);
    plan.with(["--layers", layers]).ready()
}

#[track_caller]
fn residences(running: Capture) -> Residences {
    let finished = running.stop();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    match Saved::from_json(&finished.stdout) {
        Ok(Saved::Residences(residences)) => {
            for it in &residences.layers {
                let LayerAccount { seen, keyed, .. } = it.account;
                let unrecorded: u64 = it.account.unrecorded.values().sum();
                assert_eq!(seen, keyed + it.account.unkeyed + unrecorded, "{it:?}");
                assert!(it.account.adds_up(), "{it:?}");
            }
            *residences
        }
        other => panic!("{other:?}"),
    }
}

/// Waits until so many packets have ended at a layer: their window is over.
#[track_caller]
fn wait_ended(running: &Capture, layer: &str, packets: u64) {
    running.wait_event_with("layers", |event| {
        let layers = event["layers"].as_array().expect("layers");
        let at = layers.iter().find(|it| it["layer"] == layer);
        at.is_some_and(|it| it["ended"].as_u64().is_some_and(|ended| ended >= packets))
    });
}

#[track_caller]
fn at(of: &Residences, layer: Layer) -> &LayerReport {
    let found = of.layers.iter().find(|it| it.layer == layer);
    found.unwrap_or_else(|| panic!("no {layer}: {:?}", of.absent))
}

/// Of these none is lost on the way, so that each has a residence between each two layers. The
/// kernel of this machine may not allow a program at the application's receive call: then that
/// is named.
#[test]
fn every_packet_is_found_at_each_layer() {
    const PACKETS: u64 = 3_000;
    let Some(_lock) = root() else { return };
    let bench = Bench::new("layers-all");
    bench.acquaint();
    let netns = &bench.rx.netns;
    let receiver = netns.enter(|| UdpSocket::bind("10.9.0.2:9").expect("a socket"));
    receiver.set_read_timeout(Some(SHORT)).expect("a limit");
    // Room for all: its reader may be late on a busy machine.
    setsockopt(&receiver, sockopt::RcvBufForce, &(PACKETS as usize * 2_048)).expect("as root");
    let running = with_cgroups(&bench, ALL);
    let reader = thread::spawn(move || {
        let mut bytes = [0; 2_048];
        (0..PACKETS).all(|_| receiver.recv(&mut bytes).is_ok())
    });
    let mac = bench.rx.mac_text();
    let sent = generate_on(&bench.tx)
        .with(["--src", "10.9.0.1", "--dst", "10.9.0.2", "--dst-mac", &mac])
        .with(["--sender", "packet", "--rate", "1k", "--size", "192"])
        .with(["-c", &PACKETS.to_string()])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(reader.join().expect("the reader"), "not all came");
    let found = residences(running);
    let [flow] = &found.flows[..] else {
        panic!("{:?}", found.flows);
    };
    assert_eq!(flow.packets, PACKETS);
    let names: Vec<_> = found.layers.iter().map(|it| it.layer).collect();
    let absent: Vec<_> = found.absent.iter().map(|it| it.layer).collect();
    assert!(
        absent.is_empty() || absent == [Layer::App],
        "{:?}",
        found.absent
    );
    let last = names.len() - 1;
    assert_eq!(names, Layer::ALL[1..=1 + last]);
    for (number, it) in found.layers.iter().enumerate() {
        let account = &it.account;
        assert_eq!((account.keyed, account.ambiguous), (PACKETS, 0), "{it:?}");
        let came = if number == 0 {
            account.first
        } else {
            account.came
        };
        assert_eq!(came, PACKETS, "{it:?}");
        let on = if number == last {
            account.ended
        } else {
            account.went_on
        };
        assert_eq!(on, PACKETS, "{it:?}");
        let cost = it.cost.expect("as root");
        assert!(
            cost.turns > 0 && cost.runs > 0 && cost.least_ns > 0.0,
            "{it:?}"
        );
        assert!(cost.least_ns <= cost.mean_ns && cost.mean_ns <= cost.greatest_ns);
    }
    assert!(
        flow.in_cost_turns > 0 && flow.in_cost_turns < PACKETS / 2,
        "{flow:?}"
    );
    // What the programs themselves take is measured in each packet, and in the bound.
    for it in &flow.residences {
        let (figures, own) = (
            it.figures.expect("packets"),
            it.own_programs.expect("packets"),
        );
        assert!(
            own.mean_ns > 10.0 && own.mean_ns <= figures.mean_ns + 1e3,
            "{it:?}"
        );
        assert!(own.mean_ns <= own.greatest_ns as f64, "{it:?}");
        assert_eq!(figures.bound_ns, Some(own.greatest_ns + 2), "{it:?}");
    }
    let (whole, steps) = flow.residences.split_last().expect("two layers");
    assert_eq!((whole.from, whole.to), (names[0], names[last]));
    let whole = whole.figures.expect("packets");
    let mut least = 0;
    for step in steps {
        let figures = step.figures.expect("packets");
        assert_eq!(figures.n, PACKETS - flow.in_cost_turns, "{step:?}");
        assert!(step.went_back == 0 && figures.min_ns >= 0, "{step:?}");
        assert!(figures.max_ns <= whole.max_ns, "{step:?}");
        least += figures.min_ns;
    }
    assert!(least <= whole.min_ns && whole.min_ns > 0, "{flow:?}");
}

/// Rules of a firewall lie behind the stamp of their hook: what they drop ends there.
#[test]
fn what_a_rule_drops_ends_at_its_hook() {
    let Some(_lock) = root_with(&["ip", "ethtool", "nft"]) else {
        return;
    };
    let bench = Bench::new("layers-drop");
    bench.acquaint();
    let rules = "table ip layers {
        chain before { type filter hook prerouting priority mangle; udp dport 10 drop; }
        chain input { type filter hook input priority filter; udp dport 11 drop; }
    }";
    bench.rx.netns.must("nft", &[rules]);
    let _receiver = bench
        .rx
        .netns
        .enter(|| UdpSocket::bind("10.9.0.2:9").expect("a socket"));
    let running = with_cgroups(&bench, "xdp,tcx,pre,local-in,cgroup");
    let sender = bench
        .tx
        .netns
        .enter(|| UdpSocket::bind("10.9.0.1:7").expect("a socket"));
    for (port, packets) in [(9, 30_u32), (10, 20), (11, 10)] {
        for number in 0..packets {
            let sent = sender.send_to(&number.to_be_bytes(), ("10.9.0.2", port));
            sent.expect("a packet");
        }
    }
    wait_ended(&running, "cgroup", 30);
    let found = residences(running);
    let ended: Vec<_> = found.layers.iter().map(|it| it.account.ended).collect();
    assert_eq!(ended, [0, 0, 20, 10, 30], "{:?}", found.layers);
    let flows = found.flows.iter();
    let mut reached: Vec<_> = flows
        .map(|flow| {
            let steps = flow.residences.iter().map(|it| it.figures);
            let timed = steps.map(|it| it.map_or(0, |it| it.n) + flow.in_cost_turns);
            (flow.packets, timed.filter(|n| *n == flow.packets).count())
        })
        .collect();
    reached.sort_unstable();
    // Between how many layers each has times; the last one is between the first and the last.
    let whole = found.flows.iter().all(|flow| flow.in_cost_turns == 0);
    let expected = [(10, 3), (20, 2), (30, 5)];
    assert!(!whole || reached == expected, "{reached:?}");
}

/// What GRO has merged ends at XDP, and begins anew as an aggregate of as many packets.
#[test]
fn merged_packets_are_counted_exactly() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("layers-gro");
    bench.acquaint();
    bench
        .rx
        .netns
        .must("ethtool", &["-K", &bench.rx.name, "gro", "on"]);
    let listener = bench
        .rx
        .netns
        .enter(|| TcpListener::bind("10.9.0.2:80").expect("a socket"));
    let running = with_cgroups(&bench, "xdp,tcx,pre,local-in,cgroup");
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_read_timeout(Some(SHORT)).expect("a limit");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).map(|_| bytes.len())
    });
    let netns = &bench.tx.netns;
    let mut stream = netns.enter(|| TcpStream::connect("10.9.0.2:80").expect("a connection"));
    let bytes = vec![7; 4 << 20];
    stream.write_all(&bytes).expect("to send");
    drop(stream);
    let read = reader.join().expect("the reader").expect("the bytes");
    assert_eq!(read, bytes.len());
    running.wait_event_with("layers", |event| {
        let all = &event["layers"];
        all[0]["first"] == all[0]["keyed"] && all[0]["first"].as_u64() > Some(0)
    });
    let found = residences(running);
    let (xdp, tcx) = (at(&found, Layer::Xdp), at(&found, Layer::Tcx));
    assert!(at(&found, Layer::Xdp).hook.contains("native"), "{xdp:?}");
    assert_eq!(
        (xdp.account.ambiguous, xdp.account.pending),
        (0, 0),
        "{xdp:?}"
    );
    assert!(tcx.account.aggregates > 0, "{tcx:?}");
    assert_eq!(tcx.account.segments, xdp.account.ended, "{xdp:?} {tcx:?}");
    assert_eq!(tcx.account.first, tcx.account.aggregates, "{tcx:?}");
    // As one packet each they go on.
    let cgroup = at(&found, Layer::Cgroup);
    assert!(
        cgroup.account.came > tcx.account.aggregates / 2,
        "{cgroup:?}"
    );
    assert!(
        found.warnings.iter().any(|it| it.contains("gro off")),
        "{:?}",
        found.warnings
    );
}

/// Without control groups that layer is left out and named; with one layer nothing is measured.
#[test]
fn a_layer_that_can_not_be_had_is_named() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("layers-lack");
    let running = qos_on(&bench.rx)
        .with(["--layers", "tcx,pre,cgroup"])
        .ready();
    let found = residences(running);
    let [absent] = &found.absent[..] else {
        panic!("{:?}", found.absent);
    };
    assert_eq!(absent.layer, Layer::Cgroup);
    assert!(absent.why.contains("--cgroup"), "{}", absent.why);
    let refused = qos_on(&bench.rx).with(["--layers", "xdp,cgroup"]).run();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let said = "only the layer xdp can be had";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
}

/// A veth has no clock that stamps frames.
#[test]
fn an_interface_without_hardware_stamps_is_named() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("layers-hw");
    let without = "hw: the interface has no clock of its own (ethtool -T)";
    let refused = qos_on(&bench.rx).with(["--layers", "hw,xdp"]).run();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains(without), "{}", refused.stderr);
    let running = qos_on(&bench.rx).with(["--layers", "hw,xdp,tcx"]).ready();
    let sent = generate_on(&bench.tx)
        .with(["--sender", "packet", "--rate", "1k", "-c", "20"])
        .run();
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let found = residences(running);
    let [absent] = &found.absent[..] else {
        panic!("{:?}", found.absent);
    };
    assert_eq!(format!("{}: {}", absent.layer, absent.why), without);
    let names: Vec<_> = found.layers.iter().map(|it| it.layer).collect();
    assert_eq!(names, [Layer::Xdp, Layer::Tcx]);
    assert_eq!(at(&found, Layer::Tcx).account.came, 20);
}
