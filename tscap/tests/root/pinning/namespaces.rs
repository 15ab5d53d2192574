//! `tscap restore` beside interfaces that have the same number, name or address as
//! the one that a killed capture has changed: it changes none of them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use nix::sys::signal::Signal;
use tscap_live::settings::JournalFolder;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::command::{Done, SHORT, finish, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::port::Port;
use tscap_testkit::root::{alone, alone_with};

use super::JOURNALS;
use super::machine::{journals, restore, rps, set_rps};

/// A capture that set RPS of the port to CPU 0, and was killed.
fn killed_on(port: &Port) {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_on(port, &path).with(["--hook", "generic", "--rx-cpu", "0"]);
    plan.ready().stop_with(Signal::SIGKILL);
    assert_eq!((rps(port).as_str(), journals().len()), ("1", 1));
}

/// An interface with the name and number of `port` and with this address, in `netns`,
/// with the RPS that the capture has set.
fn twin(port: &Port, address: &str, netns: &Arc<Netns>) -> Port {
    let index = port.index.to_string();
    let link = [
        "link", "add", &port.name, "index", &index, "address", address,
    ];
    netns.ip(&[&link[..], &["type", "bridge"]].concat());
    let twin = Port::find(netns, &port.name);
    set_rps(&twin, "1");
    twin
}

#[track_caller]
fn refused(done: &Done, parts: &[&str], twin: &Port) {
    assert_eq!(done.status.code(), Some(1), "{}", done.stdout);
    for part in parts {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!((rps(twin).as_str(), journals().len()), ("1", 1));
}

#[track_caller]
fn gone(done: &Done, twin: &Port) {
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("any more"), "{}", done.stdout);
    assert_eq!((rps(twin).as_str(), journals().len()), ("1", 0));
}

/// `nsenter` mounts no sysfs: that of another namespace shows its own interfaces, here
/// one that looks the same in all that sysfs tells.
#[test]
fn another_namespaces_sysfs_is_not_written() {
    let Some(_lock) = alone_with(JOURNALS, &["ip", "nsenter"]) else {
        return;
    };
    let bench = Bench::new("pin-enter");
    let other = Arc::new(Netns::new("pin-sysfs"));
    let twin = twin(&bench.rx, &bench.rx.mac_text(), &other);
    killed_on(&bench.rx);
    let name = bench.rx.netns.name();
    let mut command = other.command("nsenter");
    command.args([&format!("--net=/run/netns/{name}"), tscap_path(), "restore"]);
    let hint = format!("hint: ip netns exec {name} tscap restore");
    let parts = ["rx0", "/sys belongs to another network namespace", &hint];
    refused(&run(&mut command, SHORT), &parts, &twin);
    assert_eq!(rps(&bench.rx), "1");
    let done = restore(&bench.rx);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
    assert_eq!(rps(&twin), "1");
}

#[test]
fn an_interface_with_the_same_number_elsewhere_is_left_alone() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-same");
    let other = Arc::new(Netns::new("pin-twin"));
    let twin = twin(&bench.rx, &bench.rx.mac_text(), &other);
    killed_on(&bench.rx);
    let hint = format!(
        "hint: ip netns exec {} tscap restore",
        bench.rx.netns.name()
    );
    refused(
        &restore(&twin),
        &["another network namespace", &hint],
        &twin,
    );
    // Journals of version 1 have no cookie: the inode number tells as much.
    edit_journal(|journal| {
        journal["v"] = 1.into();
        let interface = journal["changes"][0]["interface"].as_object_mut();
        let interface = interface.expect("an interface");
        assert!(interface.remove("netns_cookie").is_some() && interface.remove("mac").is_some());
    });
    refused(
        &restore(&twin),
        &["another network namespace", &hint],
        &twin,
    );
    let done = restore(&bench.rx);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
}

#[test]
fn an_interface_that_was_made_again_is_left_alone() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    for same_number in [true, false] {
        let bench = Bench::new("pin-again");
        let netns = &bench.rx.netns;
        killed_on(&bench.rx);
        netns.ip(&["link", "delete", "rx0"]);
        if same_number {
            let twin = twin(&bench.rx, "02:00:00:00:00:99", netns);
            let parts = [&bench.rx.mac_text(), "02:00:00:00:00:99 now", "hint: "];
            refused(&restore(&twin), &parts, &twin);
            netns.ip(&["link", "delete", "rx0"]);
        }
        netns.ip(&[
            "link", "add", "rx0", "type", "veth", "peer", "name", "peer0",
        ]);
        let again = Port::find(netns, "rx0");
        assert_ne!(again.index, bench.rx.index);
        set_rps(&again, "1");
        gone(&restore(&again), &again);
    }
}

#[test]
fn a_namespace_that_was_made_again_is_left_alone() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-anew");
    killed_on(&bench.rx);
    let (port, mac) = (bench.rx.clone(), bench.rx.mac_text());
    drop(bench);
    let again = Arc::new(Netns::new("pin-anew"));
    let twin = twin(&port, &mac, &again);
    drop(port);
    // The kernel may give the inode number again; here it certainly has.
    let inode = again.must("stat", &["-L", "-c", "%i", "/proc/self/ns/net"]);
    let inode: u64 = inode.trim().parse().expect("an inode number");
    edit_journal(|journal| journal["changes"][0]["interface"]["netns"] = inode.into());
    gone(&restore(&twin), &twin);
}

#[test]
fn restore_waits_for_a_capture_that_is_about_to_change_something() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-wait");
    killed_on(&bench.rx);
    let turn = JournalFolder::live().try_lock().expect("root may");
    let turn = turn.expect("nobody else holds it");
    let mut command = bench.rx.netns.command(tscap_path());
    command.arg("restore").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start tscap restore");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a note");
    assert!(line.contains("waiting for another tscap"), "{line}");
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("1", 1));
    drop(turn);
    let done = finish(child, "tscap restore", SHORT);
    assert_eq!(done.status.code(), Some(0), "{}", done.stdout);
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
}

#[test]
fn what_is_no_journal_holds_up_nobody() {
    let Some(_lock) = alone(JOURNALS) else {
        return;
    };
    let bench = Bench::new("pin-fifo");
    killed_on(&bench.rx);
    let fifo = PathBuf::from("/run/tscap/0-0.json");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("make a fifo");
    let done = restore(&bench.rx);
    fs::remove_file(&fifo).expect("remove the fifo");
    assert_eq!(done.status.code(), Some(1), "{}", done.stdout);
    for part in ["0-0.json is not a regular file", "hint: look at it"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!((rps(&bench.rx).as_str(), journals().len()), ("0", 0));
}

/// Others neither see nor touch root's journals, and can't pin.
#[test]
fn roots_journals_are_roots() {
    let Some(_lock) = alone_with(JOURNALS, &["ip", "setpriv"]) else {
        return;
    };
    let bench = Bench::new("pin-user");
    killed_on(&bench.rx);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let done = run(
        bench
            .rx
            .netns
            .command(user[0])
            .args(&user[1..])
            .args([tscap_path(), "restore"]),
        SHORT,
    );
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("as root"), "{}", done.stdout);
    assert_eq!(journals().len(), 1);
    let capabilities = "+bpf,+net_admin,+perfmon,+net_raw,+dac_override";
    let capture = capture_on(&bench.rx, &path)
        .through(user)
        .through([format!("--inh-caps={capabilities}")])
        .through([format!("--ambient-caps={capabilities}")])
        .with(["--rx-cpu", "0"])
        .run();
    capture.failure(1, &["are root's", "hint: start it as root"]);
    let done = restore(&bench.rx);
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
}

/// Changes the only journal.
fn edit_journal(edit: impl FnOnce(&mut serde_json::Value)) {
    let path = PathBuf::from("/run/tscap").join(&journals()[0]);
    let text = fs::read(&path).expect("read the journal");
    let mut journal = serde_json::from_slice(&text).expect("it is JSON");
    edit(&mut journal);
    fs::write(&path, journal.to_string()).expect("write the journal");
}
