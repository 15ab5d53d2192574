//! Hardware stamps where there are none: on veth, whose driver tells them to programs, and
//! has none to tell.

use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;

use super::modes::bridge;

const FRAMES: u64 = 500;

#[test]
fn frames_without_one_are_captured_and_counted() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("hwnone");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 200);
    for arguments in [&["--hw-stamps"][..], &["--hw-stamps", "--keep-raw"]] {
        let capture = capture_on(&bench.rx, &path).with(arguments).ready();
        PacketSocket::open(&bench.tx).send(&frame, 0..FRAMES, 0);
        let finished = capture.stop();
        let summary = finished.success();
        assert_eq!((summary.seen, summary.written), (FRAMES, FRAMES));
        let interface = &summary.interfaces[0];
        let hook = interface.directions[0].hook.as_deref();
        assert_eq!(hook, Some("native XDP"));
        let hardware = interface.hardware.as_ref().expect("it was asked for");
        let frames = &hardware.frames;
        assert_eq!((frames.frames.with, frames.without), (0, FRAMES));
        assert_eq!((frames.frames.unconverted, frames.bound_ns), (0, None));
        assert_eq!(hardware.delay, None);
        assert_eq!(hardware.stamping.clock, None);
        peers::agree_on(&path, FRAMES);
        let recording = Recording::read(&path);
        assert!(recording.packets.iter().all(|it| it.hardware.is_none()));
        for (number, packet) in (0..).zip(&recording.packets) {
            frame.check(&packet.data, number);
        }
        let described = &recording.interfaces[0].custom["hardware"];
        assert!(described.is_object(), "{described}");
        let said = &recording.last_statistics(0).custom["hardware"];
        assert_eq!(
            (&said["with"], &said["without"]),
            (&0.into(), &FRAMES.into())
        );
    }
}

#[test]
fn where_nobody_can_ask_for_them_that_is_said() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("hwrefused");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    // The device of a bridge has no native XDP.
    let bridge = bridge(&bench);
    let refused = capture_on(&bridge, &path).with(["--hw-stamps"]).run();
    let why = "its driver tells XDP programs none";
    refused.failure(
        1,
        &[
            "cannot take hardware stamps on bridge0",
            why,
            "leave out --hw-stamps",
        ],
    );
    // veth stamps nothing, so that there is nothing to set.
    let refused = capture_on(&bench.tx, &path).with(["--hw-stamps=set"]).run();
    refused.failure(
        1,
        &["cannot set the receive filter of", "its driver has none"],
    );
    // Of interfaces that are not named what there is is taken.
    let capture = capture_on(&bench.rx, &path).with(["-i", "bridge*", "--hw-stamps"]);
    let finished = capture.ready().stop();
    let summary = finished.success();
    let with = summary.interfaces.iter().map(|it| it.hardware.is_some());
    assert_eq!(with.collect::<Vec<_>>(), [true, false]);
    let mut lines = finished.stderr.lines();
    let warned = lines.any(|line| line.starts_with("warning: ") && line.contains(why));
    assert!(warned, "{}", finished.stderr);
}
