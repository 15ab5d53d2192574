//! The library's own example, on a veth.

use std::time::Duration;

use tscap_testkit::bench::Bench;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::process;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;
use tscap_testkit::wait;

#[allow(
    dead_code,
    reason = "its main function captures on an interface of the user's"
)]
#[path = "../../../examples/capture.rs"]
mod example;

fn run(interface: &str, path: &str) -> Result<(), tscap::Failure> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(example::capture(interface, path))
}

#[test]
fn the_example_captures() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("api");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let name = path.to_str().expect("a UTF-8 path");
    std::thread::scope(|scope| {
        let port = &bench.rx;
        let capture = scope.spawn(|| port.netns.enter(|| run(&port.name, name)));
        wait::until("the program", Duration::from_secs(30), || {
            assert!(!capture.is_finished(), "the capture ended before it began");
            port.xdp_program()
        });
        PacketSocket::open(&bench.tx).send(
            &Frame::new(&bench.tx, &bench.rx, 100),
            0..10,
            process::cpus()[0],
        );
        let ended = capture.join().expect("no panic");
        ended.unwrap_or_else(|failure| panic!("{failure}"));
    });
    assert_eq!(Recording::read(&path).packets.len(), 10);
}

#[test]
fn a_capture_that_nobody_finishes_leaves_nothing_attached() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("dropped");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let port = &bench.rx;
    port.netns.enter(|| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        let capture = tscap::Capture::on([port.name.as_str()], &path);
        let running = runtime.block_on(capture.start(&mut |_| {}));
        let running = running.unwrap_or_else(|failure| panic!("{failure}"));
        assert!(port.xdp_program().is_some());
        let _runtime = runtime.enter();
        drop(running);
    });
    assert_eq!(port.xdp_program(), None);
}
