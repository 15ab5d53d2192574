//! Another XDP program on the interface.

use aya::programs::XdpMode;

use crate::support::bench::Bench;
use crate::support::capture::capture_on;
use crate::support::files;
use crate::support::probes::Attached;
use crate::support::root::root;

#[test]
fn another_program_attached_is_named_and_left_alone() {
    let Some(_turn) = root("another_program_attached") else {
        return;
    };
    let bench = Bench::new("busy");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    for mode in [XdpMode::Driver, XdpMode::Skb] {
        let other = Attached::pass(&bench.rx, mode);
        let id = other.id.to_string();
        let finished = capture_on(&bench.rx, &path).run();
        finished.failure(1, &["rx0", &id]);
        let hint = finished
            .stderr
            .lines()
            .find(|line| line.starts_with("hint: "));
        assert!(
            hint.is_some_and(|hint| hint.contains("rx0") || hint.contains(&id)),
            "{hint:?}"
        );
        assert_eq!(
            bench.rx.xdp_program(),
            Some(u64::from(other.id)),
            "still there"
        );
        assert!(!path.exists(), "a file was left");
        assert_eq!(bench.rx.promiscuity(), 0, "given back");
    }
}

#[test]
fn a_second_capture_on_the_same_interface_is_refused() {
    let Some(_turn) = root("a_second_capture_on_the_same_interface") else {
        return;
    };
    let bench = Bench::new("second");
    let folder = files::folder();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let running = capture_on(&bench.rx, &first).ready();
    let id = bench
        .rx
        .xdp_program()
        .expect("the first capture's program")
        .to_string();
    capture_on(&bench.rx, &second)
        .run()
        .failure(1, &["rx0", &id]);
    assert!(!second.exists(), "a file was left");
    running.stop().success();
}

#[test]
fn the_second_of_two_interfaces_is_busy_and_the_first_is_given_back() {
    let Some(_turn) = root("the_second_of_two_interfaces_is_busy") else {
        return;
    };
    let bench = Bench::new("half");
    let (_tx1, rx1) = bench.add_pair(1);
    let other = Attached::pass(&rx1, XdpMode::Driver);
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let finished = capture_on(&bench.rx, &path).on(&rx1).run();
    finished.failure(1, &["rx1", &other.id.to_string()]);
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
    assert!(!path.exists(), "a file was left");
}
