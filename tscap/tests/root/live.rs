//! What all live measurements have in common: the example of one, on a veth, and the network
//! namespaces that they find interfaces in.

use std::fs;
use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{delay, qos, stamp};
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::netns::Netns;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::process;
use tscap_testkit::root::{root, root_with};
use tscap_testkit::wait;

use super::namespaces::Waiting;

#[allow(
    dead_code,
    reason = "its main function measures at an interface of the user's"
)]
#[path = "../../examples/live_measurement.rs"]
mod example;

/// In a process of its own: the example gives up the privileges of its process.
const CHILD: &str = "TSCAP_TEST_LIVE_MEASUREMENT";
const SHORT: u64 = 12;
const LONG: u64 = 8;

#[test]
fn the_example_of_a_live_measurement_counts_each_packet() {
    if let Ok(interface) = std::env::var(CHILD) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let found = runtime.block_on(example::measure(&interface, SHORT + LONG));
        let found = found.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(found.lengths, [SHORT, 0, LONG, 0], "{found:?}");
        assert_eq!(found.seen, SHORT + LONG);
        assert!(found.span_ns > 0, "{found:?}");
        return;
    }
    let Some(_lock) = root() else { return };
    let bench = Bench::new("live-example");
    let test = std::env::current_exe().expect("this program");
    let mut child = bench.rx.netns.command(test.to_str().expect("a UTF-8 path"));
    child.args([
        "live::the_example_of_a_live_measurement_counts_each_packet",
        "--exact",
        "--nocapture",
    ]);
    child.env(CHILD, &bench.rx.name);
    let mut child = child.spawn().expect("a process");
    wait::until("the program", Duration::from_secs(60), || {
        let ended = child.try_wait().expect("its state");
        assert_eq!(ended, None, "it ended before it began");
        bench.rx.xdp_program()
    });
    // The thread is there once everything is attached, and the clock was read.
    let tasks = format!("/proc/{}/task", child.id());
    wait::until("its thread", Duration::from_secs(60), || {
        let tasks = fs::read_dir(&tasks).ok()?.flatten();
        let mut names = tasks.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
        names.any(|name| name.trim_end() == "lengths").then_some(())
    });
    let socket = PacketSocket::open(&bench.tx);
    let cpu = process::cpus()[0];
    socket.send(&Frame::new(&bench.tx, &bench.rx, 64), 0..SHORT, cpu);
    socket.send(&Frame::new(&bench.tx, &bench.rx, 900), 0..LONG, cpu);
    let ended = wait::until("its end", Duration::from_secs(60), || {
        child.try_wait().expect("its state")
    });
    assert!(ended.success(), "{ended}");
    assert_eq!(bench.rx.xdp_program(), None);
}

/// Each is started outside of the namespace.
#[test]
fn each_measurement_finds_its_interface_in_another_namespace() {
    let Some(_lock) = root_with(&["ip", "unshare", "mount", "sh"]) else {
        return;
    };
    let bench = Bench::new("live-scope");
    let outside = Netns::new("live-outside");
    let name = bench.rx.name.as_str();
    let plans = || {
        [
            (delay(&outside).with(["--rtt", name]), "delay"),
            (qos(&outside).with(["-i", name]), "qos"),
            (stamp(&outside).with(["-i", name]), "ready"),
        ]
    };
    for (plan, event) in plans() {
        let running = plan.with(["--netns", bench.rx.netns.name()]).start();
        running.wait_event(event);
        let finished = running.stop();
        assert_eq!(finished.code, Some(0), "{event}: {}", finished.stderr);
    }
    // As crun, under a kubelet, writes of a container whose process is that one.
    let folder = files::folder();
    let process = Waiting::within(&bench.rx.netns);
    let annotations = r#"{"annotations": {"io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.name": "web-0", "io.kubernetes.container.name": "web"}}"#;
    fs::write(folder.path().join("config.json"), annotations).expect("a bundle");
    let (pid, bundle) = (process.pid(), folder.path().display());
    let status = format!(r#"{{"pid": {pid}, "bundle": "{bundle}"}}"#);
    // For this command alone: what is in /run of the machine stays as it is.
    let beside = "mount -t tmpfs none /run && mkdir -p /run/crun/0123456789abcdef && \
                  printf %s \"$0\" >/run/crun/0123456789abcdef/status && exec \"$@\"";
    let there = ["unshare", "--mount", "sh", "-c", beside, &status];
    for scope in [
        ["--container", "0123"],
        ["--container", "web"],
        ["--pod", "shop/web-0"],
    ] {
        for (plan, event) in plans() {
            let running = plan.with(scope).through(there).start();
            running.wait_event(event);
            let finished = running.stop();
            assert_eq!(
                finished.code,
                Some(0),
                "{event} {scope:?}: {}",
                finished.stderr
            );
        }
    }
    // Nobody has a container or a pod of that name: they are looked for all the same.
    for (option, what) in [("--container", "container x-no"), ("--pod", "pod x/no")] {
        for (plan, _) in plans() {
            let named = what.split_once(' ').expect("a name").1;
            let finished = plan.with([option, named]).run();
            finished.failure(1, &[&format!(" in {what}: ")]);
        }
    }
}
