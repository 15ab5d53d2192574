//! `kill -9`.

use std::time::Duration;

use nix::sys::signal::Signal;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_on;
use tscap_testkit::files;
use tscap_testkit::frame::Frame;
use tscap_testkit::live::LiveSender;
use tscap_testkit::packet_socket::PacketSocket;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::root;
use tscap_testkit::wait;

#[test]
fn nothing_stays_attached_and_what_was_written_is_readable() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("killed");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 60);
    let capture = capture_on(&bench.rx, &path).ready();
    let headers = files::length(&path);
    PacketSocket::open(&bench.tx).send(&frame, 0..1000, 0);
    wait::until("the frames in the file", Duration::from_secs(10), || {
        (files::length(&path) >= headers + 1000 * 92).then_some(())
    });
    let finished = capture.stop_with(Signal::SIGKILL);
    assert_eq!((finished.code, finished.signal), (None, Some(9)));
    assert_eq!((bench.rx.xdp_program(), bench.rx.promiscuity()), (None, 0));
    let recording = Recording::read(&path);
    assert_eq!(recording.packets.len(), 1000);
    for (number, packet) in recording.packets.iter().enumerate() {
        frame.check(&packet.data, number as u64);
    }
}

#[test]
fn only_the_last_block_can_be_torn() {
    let Some(_lock) = root() else { return };
    let bench = Bench::new("torn");
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let frame = Frame::new(&bench.tx, &bench.rx, 1000);
    let block = 1000 + 32;
    for round in 0..5 {
        let mut sender = LiveSender::open(&bench.tx);
        let capture = capture_on(&bench.rx, &path).ready();
        let headers = files::length(&path);
        std::thread::scope(|scope| {
            scope.spawn(|| sender.pour(&frame, 200_000, 0));
            // Killed while frames pour in, each round a little later.
            wait::until("frames in the file", Duration::from_secs(10), || {
                (files::length(&path) > headers + (round + 1) * 1_000_000).then_some(())
            });
            let finished = capture.stop_with(Signal::SIGKILL);
            assert_eq!(finished.signal, Some(9));
        });
        assert_eq!(bench.rx.xdp_program(), None);
        let (recording, torn) = Recording::read_torn(&path);
        let whole = headers + recording.packets.len() as u64 * block;
        let length = files::length(&path);
        assert!(
            (whole..whole + block).contains(&length),
            "{torn:?}: {whole} of {length} bytes"
        );
        for packet in &recording.packets {
            frame.check(&packet.data, 0);
        }
    }
}
