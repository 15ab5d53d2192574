//! Two queues, each with a CPU of its own, in one file.

use std::sync::Barrier;
use std::thread;

use tscap_capture::ClockSummary;
use tscap_testkit::files;
use tscap_testkit::peers;
use tscap_testkit::recording::Recording;

use crate::machine::Rig;
use crate::nic::{Kind, Nic};

/// Frames of each queue.
pub const FRAMES: u64 = 3_000;

/// Sends [`FRAMES`] to each, at the same time.
pub fn send_at_once(nics: &[Nic]) {
    let start = Barrier::new(nics.len());
    thread::scope(|scope| {
        for nic in nics {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                nic.send(&nic.frame(64), 0..FRAMES);
            });
        }
    });
}

/// Checks that each frame is no younger than the next but for those that the capture
/// says were late.
pub fn is_in_order(recording: &Recording, clock: &ClockSummary) {
    let (mut youngest, mut behind) = (0, 0);
    for packet in &recording.packets {
        behind += u64::from(packet.nanos < youngest);
        youngest = youngest.max(packet.nanos);
    }
    if clock.order.stamp_decreases == 0 && clock.steps == 0 {
        assert_eq!(behind, clock.order.late);
    }
}

/// Checks that the queues' frames lie between each other's.
pub fn is_merged(recording: &Recording) {
    let pairs = recording.packets.windows(2);
    let turns = pairs.filter(|pair| pair[0].interface != pair[1].interface);
    let turns = turns.count();
    assert!(turns > 4, "the queues were hardly merged: {turns} turns");
}

pub fn two_queues_in_order_of_time(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio, Kind::Virtio]);
    let (guest, nics) = (&machine.guest, &machine.nics);
    let count = (2 * FRAMES).to_string();
    let arguments = ["-i", "eth0", "-i", "eth1", "--rx-cpu", "0-1", "-c", &count];
    let capture = guest.capture(&arguments).ready();
    send_at_once(nics);
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
    is_in_order(&recording, &summary.clock);
    is_merged(&recording);
}
