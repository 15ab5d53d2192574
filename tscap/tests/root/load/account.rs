//! The account of a flood: what was sent, what the capture says, and the files.

use std::path::Path;

use tscap::Summary;
use tscap_file::accounting::Outcome;
use tscap_testkit::flow::Flow;
use tscap_testkit::packets;
use tscap_testkit::peers;

use super::flood::Sent;

/// Programs that the tests need.
pub const PROGRAMS: [&str; 3] = ["ip", "ethtool", "capinfos"];

/// Panics unless the files hold every frame that the summary says they do, in
/// order of number and of time over all of them, and each frame that is missing was dropped at that
/// place, for want of room in a ring. `sent` is what came to each interface, in
/// the files' order, as long as the capture ran. Gives what came of each.
#[track_caller]
pub fn of_all(files: &[impl AsRef<Path>], summary: &Summary, sent: &[Sent]) -> Vec<Flow> {
    for (interface, sent) in summary.interfaces.iter().zip(sent) {
        assert_eq!(interface.seen, sent.taken, "{interface:?}");
    }
    let flows = of_files(files, summary, sent);
    for ((flow, interface), sent) in flows.iter().zip(&summary.interfaces).zip(sent) {
        // What is missing was refused before the program, or dropped; behind the
        // last frame nobody reports it.
        let dropped = interface.outcomes[Outcome::RingFull];
        let unreported = sent.taken + sent.refused - flow.next;
        assert_eq!(
            flow.missing + unreported,
            dropped + sent.refused,
            "{flow:?}, {interface:?}, {sent:?}"
        );
        assert!(flow.reported <= dropped, "{flow:?}, {interface:?}");
        if sent.refused == 0 {
            assert_eq!(flow.reported, flow.missing, "{flow:?}");
        }
    }
    flows
}

/// The same for a capture that ended before its senders: it knows nothing of the
/// frames that came later.
#[track_caller]
pub fn of_files(files: &[impl AsRef<Path>], summary: &Summary, sent: &[Sent]) -> Vec<Flow> {
    assert_eq!(summary.interfaces.len(), sent.len());
    let mut flows = vec![Flow::default(); sent.len()];
    for (flow, sent) in flows.iter_mut().zip(sent) {
        flow.run = Some(sent.run);
    }
    let (mut youngest, mut behind) = (0, 0);
    let mut packets = 0;
    for path in files.iter().map(AsRef::as_ref) {
        let of_file = packets::each(path, |packet| {
            behind += u64::from(packet.nanos < youngest);
            youngest = youngest.max(packet.nanos);
            let flow = &mut flows[packet.interface];
            if let Err(error) = flow.take(&packet) {
                panic!(
                    "{}, interface {}: {error}",
                    path.display(),
                    packet.interface
                );
            }
        });
        let of_file = of_file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(peers::capinfos_count(path), of_file);
        packets += of_file;
    }
    assert_eq!(packets, summary.written);
    for (flow, interface) in flows.iter().zip(&summary.interfaces) {
        assert_eq!(flow.came, interface.written, "{interface:?}");
    }
    let clock = &summary.clock;
    if clock.order.stamp_decreases == 0 && clock.steps == 0 {
        assert_eq!(behind, clock.order.late, "out of order of time");
    }
    flows
}

/// Panics if frames were lost otherwise than for want of room in a ring.
#[track_caller]
pub fn only_rings_were_full(summary: &Summary) {
    let full = summary.outcomes[Outcome::RingFull];
    assert_eq!(summary.outcomes, [(Outcome::RingFull, full)].into());
}
