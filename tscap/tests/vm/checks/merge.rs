//! Two queues, each with a CPU of its own, in one file.

use std::sync::Barrier;
use std::thread;

use crate::machine::Rig;
use crate::nic::Kind;
use crate::support::files;
use crate::support::peers;
use crate::support::recording::Recording;

/// Frames of each queue.
const FRAMES: u64 = 3_000;

pub fn two_queues_in_order_of_time(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Virtio]);
    let (guest, nics) = (&machine.guest, &machine.nics);
    let count = (2 * FRAMES).to_string();
    let arguments = ["-i", "eth0", "-i", "eth1", "--rx-cpu", "0-1", "-c", &count];
    let capture = guest.capture(&arguments).ready();
    let start = Barrier::new(2);
    thread::scope(|scope| {
        for nic in nics {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                nic.send(&nic.frame(64), 0..FRAMES);
            });
        }
    });
    let summary = capture.wait().success();
    assert_eq!((summary.seen, summary.written), (2 * FRAMES, 2 * FRAMES));
    let folder = files::folder();
    let path = guest.bring(folder.path());
    peers::agree_on(&path, 2 * FRAMES);

    let recording = Recording::read(&path);
    for (index, nic) in nics.iter().enumerate() {
        let frame = nic.frame(64);
        for (number, packet) in recording.packets_of(index).enumerate() {
            frame.check(&packet.data, number as u64);
        }
        assert_eq!(recording.packets_of(index).count() as u64, FRAMES);
    }
    let (mut youngest, mut behind, mut turns) = (0, 0, 0);
    let mut last = 0;
    for packet in &recording.packets {
        behind += u64::from(packet.nanos < youngest);
        youngest = youngest.max(packet.nanos);
        turns += u64::from(packet.interface != last);
        last = packet.interface;
    }
    assert!(turns > 20, "the queues were hardly merged: {turns} turns");
    let order = &summary.clock;
    if order.stamp_decreases == 0 && order.steps == 0 {
        assert_eq!(behind, order.late);
    }
}
