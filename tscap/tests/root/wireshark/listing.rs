//! What tshark and Wireshark learn before a capture: interfaces, link types, options,
//! and what is wrong with a filter.

use tscap_testkit::bench::Bench;
use tscap_testkit::command::{SHORT, run};
use tscap_testkit::root::root_with;
use tscap_testkit::tun::Tun;

use super::user::{PROGRAMS, User};

#[test]
fn tshark_lists_what_can_be_captured_on() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("list");
    let netns = &bench.rx.netns;
    let pair = ["link", "add", "r}{x", "type", "veth", "peer", "down0"];
    netns.ip(&pair);
    netns.ip(&["link", "set", "r}{x", "up"]);
    let user = User::new();
    let done = user.tshark(netns, &["-D"]);
    assert!(done.status.success(), "{}", done.stderr);
    let list = &done.stdout;
    let listed: Vec<_> = list
        .lines()
        .filter_map(|line| line.split_once(". tscap-").map(|it| it.1))
        .collect();
    let wanted = [
        "any (tscap: any)",
        "lo (tscap: lo)",
        "r%7d%7bx (tscap: r%7d%7bx)",
        "rx0 (tscap: rx0)",
    ];
    assert_eq!(listed, wanted, "{list}");
}

#[test]
fn tshark_knows_link_types_and_options() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("asked");
    let tun = Tun::new(&bench.rx.netns, "tun0");
    let user = User::new();
    for (interface, dlt) in [
        (&*bench.rx.name, "EN10MB (Ethernet)"),
        (&*tun.port.name, "RAW (Raw IP)"),
        ("any", "EN10MB (Ethernet)"),
    ] {
        let interface = format!("tscap-{interface}");
        let done = user.tshark(&bench.rx.netns, &["-i", &interface, "-L"]);
        assert!(done.stdout.contains(dlt), "{interface}: {done:?}");
    }
    // Options are preferences; tshark refuses those that it was not told of.
    let preference = |name: &str| format!("extcap.tscap_rx0.{name}");
    for name in [
        "direction:in",
        "clock:tai",
        "hook:tcx",
        "egresspoint:driver",
        "snaplen:96",
        "nopromiscuousmode:true",
        "keepraw:true",
        "verbose:true",
    ] {
        let done = user.tshark(&bench.rx.netns, &["-o", &preference(name), "-D"]);
        assert!(done.status.success(), "{name}: {}", done.stderr);
    }
    let unknown = user.tshark(&bench.rx.netns, &["-o", &preference("none:1"), "-D"]);
    assert!(unknown.stderr.contains("unknown preference"), "{unknown:?}");
}

/// Wireshark takes the first line of standard output for what is wrong, and asks so at each
/// key: tshark has no filter field.
#[test]
fn a_filter_is_checked_for_its_interface() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("check");
    let _tun = Tun::new(&bench.rx.netns, "tun0");
    let user = User::new();
    let check = |filter: &str, interface: &str| {
        let mut command = user.command(&bench.rx.netns, "./extcap/tscap");
        command.args(["--extcap-capture-filter", filter]);
        command.args(["--extcap-interface", interface]);
        let done = run(&mut command, SHORT);
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
        done.stdout
    };
    for (filter, interface) in [
        ("icmp", "tscap-rx0"),
        ("", "tscap-rx0"),
        ("tcp port 443 and host 10.0.0.1", "tscap-any"),
        ("icmp", "tscap-tun0"),
        ("ether proto 0x88f7", "tscap-rx0"),
    ] {
        assert_eq!(check(filter, interface), "", "{filter} on {interface}");
    }
    for (filter, interface, part) in [
        ("icmp and", "tscap-rx0", "it is not complete"),
        ("no such thing", "tscap-any", "no such thing"),
        ("ether host 02:00:00:00:00:01", "tscap-tun0", "ether host"),
        ("icmp", "tscap-gone0", "gone0"),
    ] {
        let text = check(filter, interface);
        assert!(text.contains(part) && text.lines().count() == 1, "{text}");
    }
}

/// The natural mistake: dumpcap itself runs nothing from the extcap folder.
#[test]
fn dumpcap_knows_none_of_them() {
    let Some(_lock) = root_with(&PROGRAMS) else {
        return;
    };
    let bench = Bench::new("dumpcap");
    let user = User::new();
    let dumpcap = |arguments: &[&str]| {
        let mut command = user.command(&bench.rx.netns, "dumpcap");
        run(command.args(arguments), SHORT)
    };
    let listed = dumpcap(&["-D"]);
    assert!(listed.status.success(), "{listed:?}");
    assert!(!listed.stdout.contains("tscap-"), "{listed:?}");
    // It removes the file of a capture that fails: never give it another one.
    let refused = dumpcap(&["-i", "tscap-rx0", "-w", "out.pcapng"]);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(refused.stderr.contains("tscap-rx0"), "{refused:?}");
}
