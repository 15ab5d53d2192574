//! Beside captures, after a kill, and with what privileges.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use aya::programs::loaded_programs;
use nix::sys::signal::Signal;
use tscap_testkit::capture::{LIMIT, capture_on};
use tscap_testkit::files;
use tscap_testkit::root::root;
use tscap_testkit::wait;

use super::{bed, count, stamping, summary};

/// Datagrams of a run.
const MANY: usize = 100;

/// Programs of `tscap stamp` on this machine.
fn programs() -> BTreeSet<u32> {
    let loaded = loaded_programs().filter_map(Result::ok);
    let ours = loaded.filter(|program| {
        let name = program.name_as_str().unwrap_or_default();
        let names = ["tscap_mark", "tscap_place", "tscap_send"];
        names.iter().any(|it| name.starts_with(it))
    });
    ours.map(|program| program.id()).collect()
}

#[test]
fn nothing_is_left_of_one_that_is_killed() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-killed");
    let before = programs();
    let running = stamping(&bench, &["--clock", "ktime", "--send-times", "862"]);
    let program = bench.rx.xdp_program().expect("its program");
    // Those of other tests too, which end as well.
    let loaded = &programs() - &before;
    assert!(loaded.contains(&(program as u32)), "{loaded:?}");
    assert!(loaded.len() >= 3, "{loaded:?}");
    udp.exchanges(MANY);
    running.stop_with(Signal::SIGKILL);
    wait::until("the programs to be gone", LIMIT, || {
        programs().is_disjoint(&loaded).then_some(())
    });
    assert_eq!(bench.rx.xdp_program(), None);
    udp.exchanges(MANY).iter().for_each(|it| it.is_within(0));
}

/// A capture that comes later goes beside it, and both have all packets.
#[test]
fn a_capture_goes_beside_it() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-beside");
    let running = stamping(&bench, &["--clock", "ktime"]);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let capture = capture_on(&bench.rx, &path).ready();
    let exchanges = udp.exchanges(MANY);
    let captured = capture.stop().success();
    assert_eq!(captured.seen, MANY as u64, "{captured:?}");
    assert_eq!(captured.written, MANY as u64, "{captured:?}");
    let said = summary(&running.stop());
    let kept = count(&said, "apart");
    assert_eq!(count(&said, "stamped") + kept, MANY as u64, "{said}");
    let bound = count(&said, "host_bound_ns");
    exchanges.iter().for_each(|it| it.is_within(bound));
}

#[test]
fn it_goes_on_without_capabilities() {
    let Some(_lock) = root() else { return };
    let (bench, udp) = bed("stamp-privileges");
    let running = stamping(&bench, &["--clock", "ktime"]);
    let tasks = format!("/proc/{}/task", running.pid());
    for task in fs::read_dir(&tasks).expect("its threads") {
        let path = task.expect("a thread").path().join("status");
        wait::until("capabilities to be given up", LIMIT, || {
            let status = fs::read_to_string(&path).expect("its status");
            let mask = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                u64::from_str_radix(line.expect("a mask").trim(), 16).expect("hexadecimal")
            };
            (mask("CapPrm:") == 0 && mask("CapEff:") == 0).then_some(())
        });
    }
    udp.exchanges(MANY);
    let said = summary(&running.stop());
    assert!(count(&said, "stamped") > 0, "{said}");
}

/// The kernel goes on to merge its segments; and those that come by a veth have the time at
/// which TCP was to send them.
#[test]
fn tcp_is_left_alone() {
    let Some(_lock) = root() else { return };
    let (bench, _udp) = bed("stamp-tcp");
    let running = stamping(&bench, &["--clock", "ktime"]);
    let bind = || TcpListener::bind("10.9.0.2:0").expect("listen");
    let listener = bench.rx.netns.enter(bind);
    let there = listener.local_addr().expect("an address");
    let connect = || TcpStream::connect_timeout(&there, LIMIT).expect("connect");
    let mut sending = bench.tx.netns.enter(connect);
    let (mut receiving, _) = listener.accept().expect("accept");
    sending.write_all(&[7; 10_000]).expect("send");
    let mut all = [0; 10_000];
    receiving
        .set_read_timeout(Some(LIMIT))
        .expect("a time limit");
    receiving.read_exact(&mut all).expect("receive");
    let said = summary(&running.stop());
    assert!(count(&said, "tcp") >= 8, "{said}");
    assert_eq!(count(&said, "stamped"), 0, "{said}");
    let kept = count(&said, "paced") + count(&said, "unmarked");
    assert!(kept >= 8, "{said}");
}

#[test]
fn it_ends_with_its_interface() {
    let Some(_lock) = root() else { return };
    let (bench, _udp) = bed("stamp-gone");
    let running = stamping(&bench, &["--clock", "ktime"]);
    bench.rx.netns.ip(&["link", "del", &bench.rx.name]);
    let finished = running.wait();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let said = finished.end.expect("a summary");
    assert_eq!(said["stop"], "interface_gone", "{said}");
}
