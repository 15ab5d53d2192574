//! Whether a load will fit.

use serde::Serialize;

use super::disk::DiskRate;
use super::limits::FrameLimits;
use super::model::{Cost, Costs, Load, Needed, Receiving, least_ring, predict, record_bytes};

/// Version of the object.
pub const VERSION: u32 = 1;
/// A good ring also holds what comes in while the converter does not run, for so long:
/// a few slices of the scheduler.
const PAUSE_S: f64 = 0.005;

/// What is to fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Frame size, bytes.
    pub size: u32,
    /// Bytes of each that are kept.
    pub caplen: u32,
    /// Frames that come in a second, all on one receive CPU.
    pub rate: f64,
    /// For so long, s.
    pub seconds: f64,
    /// Length of the ring, bytes.
    pub ring_bytes: u64,
}

/// What `tscap loss --plan` says, with --json as one object of the kind "loss_plan",
/// version [`VERSION`]. All on one receive CPU, with the converter on another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// "loss_plan".
    pub kind: &'static str,
    /// [`VERSION`].
    pub v: u32,
    /// Nothing would be lost, and the file has room.
    pub fits: bool,
    /// What was asked.
    pub question: Question,
    /// Share of the frames that would be lost before the program, 0 to 1.
    pub lost_before: f64,
    /// Share of the frames that would find no room in the ring, 0 to 1.
    pub lost_in_ring: f64,
    /// Share of a CPU that receiving would take; over 1 is more than there is.
    pub receive_load: f64,
    /// Share of a CPU that converting and writing would take.
    pub convert_load: f64,
    /// The least ring with which nothing would be lost, bytes; null if none suffices.
    pub ring_needed: Option<u64>,
    /// The least one that besides holds what comes in while the converter does not run
    /// for 5 ms, bytes; null if none suffices.
    pub ring_advised: Option<u64>,
    /// Most bytes a second that the file takes, as measured or given; null if as many as
    /// were written where the costs are from.
    pub file_bytes_per_s: Option<f64>,
    /// Length of the file if nothing is lost, bytes.
    pub file_bytes: f64,
    /// Room for it, bytes; null if that is not known.
    pub room_bytes: Option<u64>,
    /// From which rate each stage loses such frames.
    pub limits: FrameLimits,
    /// What the disk took alone; null if it was not measured.
    pub disk: Option<DiskRate>,
}

/// Answers, by what the stages cost; `room` is how much the file may have.
pub fn answer(costs: &Costs, question: Question, room_bytes: Option<u64>) -> Answer {
    let costs = received_from_a_card(costs);
    let load = Load {
        frames: question.rate * question.seconds,
        caplen: question.caplen,
        rate: question.rate,
        ring_bytes: question.ring_bytes as f64,
    };
    let prediction = predict(&costs, &load);
    let bytes = |needed| match needed {
        Needed::Bytes(bytes) => Some(bytes as u64),
        Needed::NoneSuffices => None,
    };
    let file_bytes = load.frames * record_bytes(question.caplen);
    let has_room = room_bytes.is_none_or(|room| file_bytes <= room as f64);
    let busy = |cost: Cost| question.rate * cost.of(question.caplen) / 1e9;
    Answer {
        kind: "loss_plan",
        v: VERSION,
        fits: prediction.loses_nothing() && has_room,
        question,
        lost_before: prediction.before,
        lost_in_ring: prediction.ring,
        receive_load: busy(costs.receive),
        convert_load: busy(costs.convert),
        ring_needed: bytes(least_ring(&costs, &load, 0.0)),
        ring_advised: bytes(least_ring(&costs, &load, PAUSE_S)),
        file_bytes_per_s: costs.writer.map(|writer| writer.bytes_per_s),
        file_bytes,
        room_bytes,
        limits: FrameLimits::new(&costs, None, question.size, question.caplen),
        disk: None,
    }
}

/// The same machine, with a card in the sender's place: it costs no CPU, and does not
/// wait. With one CPU for all, converting takes from receiving.
pub(super) fn received_from_a_card(costs: &Costs) -> Costs {
    let with_one_cpu = costs.receiving == Receiving::OnSender && costs.converter_shares;
    let receive = if with_one_cpu {
        Cost {
            frame_ns: costs.receive.frame_ns + costs.convert.frame_ns,
            byte_ns: costs.receive.byte_ns + costs.convert.byte_ns,
        }
    } else {
        costs.receive
    };
    Costs {
        receiving: Receiving::Apart,
        converter_shares: false,
        send_ns: f64::MIN_POSITIVE,
        receive,
        ..*costs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::model::fixtures;

    /// 96 bytes of each frame.
    fn question(rate: f64, ring_mib: u64) -> Question {
        Question {
            size: 512,
            caplen: 96,
            rate,
            seconds: 10.0,
            ring_bytes: ring_mib << 20,
        }
    }

    #[test]
    fn what_every_stage_can_take_fits() {
        let costs = fixtures::costs(Receiving::OnSender);
        let answer = answer(&costs, question(2e6, 64), None);
        assert!(answer.fits, "{answer:?}");
        assert_eq!((answer.lost_before, answer.lost_in_ring), (0.0, 0.0));
        assert!((answer.receive_load - 0.3888).abs() < 1e-9);
        assert_eq!(answer.file_bytes, 2e7 * 128.0);
        assert_eq!(answer.file_bytes_per_s, None);
        // 200 µs and more asleep: 67 kB; 5 ms: 1.28 MB.
        assert_eq!(answer.ring_needed, Some(128 << 10));
        assert_eq!(answer.ring_advised, Some(2 << 20));
    }

    #[test]
    fn a_ring_too_small_is_told_with_the_one_that_is_needed() {
        let costs = fixtures::costs(Receiving::OnSender).with_file_rate(250_000_000);
        // 6 MB a second too many.
        let small = answer(&costs, question(2e6, 16), None);
        assert!(!small.fits && small.lost_in_ring > 0.0, "{small:?}");
        assert_eq!(small.ring_needed, Some(64 << 20));
        assert_eq!(small.file_bytes_per_s, Some(250e6));
        assert!(answer(&costs, question(2e6, 64), None).fits);
    }

    #[test]
    fn where_a_stage_is_too_slow_no_ring_suffices() {
        // 5.1 million can be received.
        let costs = fixtures::costs(Receiving::OnSender);
        let fast = answer(&costs, question(6e6, 64), None);
        assert!(!fast.fits && fast.lost_before > 0.1, "{fast:?}");
        assert_eq!((fast.ring_needed, fast.ring_advised), (None, None));
        // One CPU for all does less.
        assert!(answer(&costs, question(4.5e6, 64), None).fits);
        let one = Costs {
            converter_shares: true,
            ..costs
        };
        assert!(!answer(&one, question(4.5e6, 64), None).fits);
    }

    #[test]
    fn a_file_needs_room() {
        let costs = fixtures::costs(Receiving::OnSender);
        let fits = |room| answer(&costs, question(2e6, 64), Some(room)).fits;
        assert!(fits(3_000_000_000) && !fits(2_000_000_000));
    }
}
