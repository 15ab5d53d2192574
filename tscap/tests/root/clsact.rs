//! Programs attached by filters of clsact, against what `tc` says. Needs root: makes
//! namespaces and veth pairs.

use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use aya_obj::generated::bpf_insn;
use tscap_base::kernel_files::KernelFiles;
use tscap_live::settings::{FilterError, JournalFolder, RestoreOutcome, SettingsGuard, State};
use tscap_network::bpf::program::{self, Kind, Program};
use tscap_network::clsact::{Clsact, ClsactError, Side};
use tscap_network::netdev;
use tscap_testkit::bench::Bench;
use tscap_testkit::command::{SHORT, run};
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::root::{RootLock, root_with};

/// `TC_ACT_UNSPEC`, `TC_ACT_OK` and `TC_ACT_SHOT` (`linux/pkt_cls.h`).
const NEXT: i32 = -1;
const PASS: i32 = 0;
const DROP: i32 = 2;
/// What tells a child what to do.
const HOLD: &str = "TSCAP_TEST_CLSACT";

fn lock() -> Option<RootLock> {
    root_with(&["ip", "ethtool", "tc", "ping"])
}

/// A program that returns `verdict`.
fn program(verdict: i32) -> OwnedFd {
    let insn = |code, imm| bpf_insn {
        code,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm,
    };
    // r0 = verdict; exit
    let code = [insn(0xb7, verdict), insn(0x95, 0)];
    let program = Program {
        name: "verdict",
        license: c"GPL",
        code: &code,
        kind: Kind::Tc,
        module: None,
        functions: None,
        entry_of: None,
    };
    program::load(&program).unwrap_or_else(|(error, log)| panic!("{error}: {log}"))
}

/// Changes that are journalled in a folder of the test.
fn changes(folder: &Path) -> SettingsGuard {
    let files = KernelFiles::live();
    SettingsGuard::new(JournalFolder::at(&folder.join("journals"), &files), files)
}

fn attach(
    changes: &mut SettingsGuard,
    port: &Port,
    side: Side,
    verdict: i32,
) -> Result<Clsact, FilterError> {
    port.netns.enter(|| {
        let link = netdev::by_name(&port.name).expect("rtnetlink answers");
        let link = link.expect("the interface is there");
        changes.attach_filter(program(verdict).as_fd(), &link, side, "tscap")
    })
}

fn tc(port: &Port, object: &str, arguments: &str) -> String {
    let line = format!("tc {object} dev {} {arguments}", port.name);
    port.netns.must("sh", &["-c", &line])
}

fn filters(port: &Port, side: Side) -> String {
    tc(port, "filter show", side.name())
}

/// Adds a filter of somebody else to the egress of `port`, which lets everything pass.
fn add_other(port: &Port, place: &str) {
    let filter = format!("egress {place} bpf da bytecode '1,6 0 0 {PASS},'");
    tc(port, "filter add", &filter);
}

fn has_qdisc(port: &Port) -> bool {
    tc(port, "qdisc show", "").contains("qdisc clsact ffff: parent ffff:fff1")
}

/// Whether an echo from the sending end comes back.
fn echoes(bench: &Bench) -> bool {
    let mut ping = bench.tx.netns.command("ping");
    run(ping.args(["-c", "1", "-W", "1", "10.9.0.2"]), SHORT)
        .status
        .success()
}

#[test]
fn a_filter_comes_and_goes_with_its_discipline() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    let folder = tempfile::tempdir().unwrap();
    let mut changes = changes(folder.path());
    assert!(!has_qdisc(&bench.tx));
    let egress = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap();
    let ingress = attach(&mut changes, &bench.tx, Side::Ingress, NEXT).unwrap();
    for (side, attached) in [(Side::Egress, &egress), (Side::Ingress, &ingress)] {
        let shown = filters(&bench.tx, side);
        let filter = attached.filter();
        let expected = [
            "protocol all pref 1 bpf".into(),
            format!("handle {:#x} tscap direct-action", filter.handle),
            "not_in_hw".into(),
            format!("id {}", filter.program),
        ];
        for part in expected {
            assert!(shown.contains(&part), "{part}: {shown}");
        }
        assert!(filter.is_first() && attached.is_attached().unwrap());
    }
    egress.detach().unwrap();
    assert_eq!(filters(&bench.tx, Side::Egress), "");
    assert!(!egress.is_attached().unwrap() && ingress.is_attached().unwrap());
    assert!(has_qdisc(&bench.tx), "the other side uses it");
    egress.detach().unwrap();
    drop(ingress);
    assert!(!has_qdisc(&bench.tx));
    drop(changes);
    let journals = folder.path().join("journals");
    assert_eq!(journals.read_dir().unwrap().count(), 0);
}

#[test]
fn others_of_the_same_kind_run_behind_and_stay() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    bench.add_addresses();
    tc(&bench.tx, "qdisc add", "clsact");
    // Lets everything pass, and asks nobody after it.
    add_other(&bench.tx, "prio 1 protocol all");
    let before = filters(&bench.tx, Side::Egress);
    assert!(echoes(&bench));
    let folder = tempfile::tempdir().unwrap();
    let mut changes = changes(folder.path());
    let attached = attach(&mut changes, &bench.tx, Side::Egress, DROP).unwrap();
    assert!(attached.filter().is_first());
    assert!(!echoes(&bench), "it runs first");
    let again = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap();
    attached.detach().unwrap();
    assert!(echoes(&bench));
    // Added while ours is there.
    add_other(&bench.tx, "prio 7 protocol ip");
    again.detach().unwrap();
    tc(&bench.tx, "filter del", "egress prio 7");
    assert_eq!(filters(&bench.tx, Side::Egress), before);
    drop(changes);
    assert!(has_qdisc(&bench.tx), "it was not ours");
}

#[test]
fn others_of_another_protocol_run_before() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    tc(&bench.tx, "qdisc add", "clsact");
    add_other(&bench.tx, "prio 1 protocol ip");
    let before = filters(&bench.tx, Side::Egress);
    let folder = tempfile::tempdir().unwrap();
    let mut changes = changes(folder.path());
    let attached = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap();
    assert_eq!(attached.filter().priority, 2);
    assert!(!attached.filter().is_first() && attached.is_attached().unwrap());
    drop(attached);
    assert_eq!(filters(&bench.tx, Side::Egress), before);
}

#[test]
fn the_last_of_two_captures_removes_the_discipline() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    let folder = tempfile::tempdir().unwrap();
    let mut first = changes(folder.path());
    let one = attach(&mut first, &bench.tx, Side::Egress, NEXT).unwrap();
    let mut second = changes(folder.path());
    let other = attach(&mut second, &bench.tx, Side::Egress, NEXT).unwrap();
    drop(one);
    drop(first);
    assert!(has_qdisc(&bench.tx) && other.is_attached().unwrap());
    drop(other);
    drop(second);
    assert!(!has_qdisc(&bench.tx));
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    let folder = tempfile::tempdir().unwrap();
    let mut changes = changes(folder.path());
    tc(&bench.tx, "qdisc add", "ingress");
    let refused = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap_err();
    assert!(
        matches!(refused, FilterError::Attach(ClsactError::IngressOnly)),
        "{refused:?}"
    );
    let received = attach(&mut changes, &bench.tx, Side::Ingress, NEXT).unwrap();
    assert!(received.is_attached().unwrap());
    drop(received);
    let left = tc(&bench.tx, "qdisc show", "ingress");
    assert!(left.contains("qdisc ingress ffff:"), "{left}");
    tc(&bench.tx, "qdisc del", "ingress");

    tc(&bench.tx, "qdisc add", "egress_block 7 clsact");
    let refused = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap_err();
    assert!(
        matches!(refused, FilterError::Attach(ClsactError::SharedBlock)),
        "{refused:?}"
    );
}

#[test]
fn an_interface_loses_it_in_another_namespace_and_when_it_goes() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    let folder = tempfile::tempdir().unwrap();
    let mut changes = changes(folder.path());
    let attached = attach(&mut changes, &bench.tx, Side::Egress, NEXT).unwrap();
    let other = Netns::new("clsact-other");
    bench.tx.set(&["netns", other.name()]);
    assert!(!attached.is_attached().unwrap());
    attached.detach().unwrap();
    let qdiscs = other.must("tc", &["qdisc", "show", "dev", "tx0"]);
    assert!(!qdiscs.contains("qdisc clsact"), "{qdiscs}");

    let attached = attach(&mut changes, &bench.rx, Side::Egress, NEXT).unwrap();
    bench.rx.netns.ip(&["link", "del", "rx0"]);
    assert!(!attached.is_attached().unwrap());
    attached.detach().unwrap();
}

/// What a child of the next test does: attaches, says so, waits to be killed.
#[test]
fn hold_in_a_child() {
    let Some(arguments) = std::env::var_os(HOLD) else {
        return;
    };
    let mut changes = changes(Path::new(&arguments));
    let link = netdev::by_name("tx0").unwrap().unwrap();
    let program = program(NEXT);
    let attached = changes.attach_filter(program.as_fd(), &link, Side::Egress, "tscap");
    let _attached = attached.unwrap();
    eprintln!("attached");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn a_killed_process_leaves_word_of_its_filter() {
    let Some(_lock) = lock() else { return };
    let bench = Bench::new("clsact");
    let temporary = tempfile::tempdir().unwrap();
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new("ip")
        .args(["netns", "exec", bench.tx.netns.name()])
        .arg(this)
        .args(["--exact", "clsact::hold_in_a_child", "--nocapture"])
        .env(HOLD, temporary.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = lines.map_while(Result::ok);
    assert!(said.any(|line| line == "attached"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(filters(&bench.tx, Side::Egress).contains("tscap") && has_qdisc(&bench.tx));

    let files = KernelFiles::live();
    let folder = JournalFolder::at(&temporary.path().join("journals"), &files);
    let journal = || folder.all().unwrap().remove(0).unwrap();
    assert_eq!(folder.state(&journal()).unwrap(), State::Stale);
    let restore = || {
        let mut became = Vec::new();
        let tell = |_: &_, it| became.push(it);
        let done = journal().give_back(&folder, &files, &[], tell);
        done.unwrap();
        became
    };
    // Somebody else's filter keeps the discipline.
    add_other(&bench.tx, "prio 3 protocol ip");
    // From any namespace.
    let became = restore();
    assert!(
        matches!(
            &became[..],
            [RestoreOutcome::Restored, RestoreOutcome::LeftAlone { now }] if now == "used"
        ),
        "{became:?}"
    );
    let left = filters(&bench.tx, Side::Egress);
    assert!(!left.contains("tscap") && left.contains("pref 3"), "{left}");
    assert!(folder.all().unwrap().is_empty());
}
