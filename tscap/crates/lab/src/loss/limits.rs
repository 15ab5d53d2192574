//! The most that each stage takes, by what it costs; and what a port needs of each.

use serde::Serialize;

use super::answer::received_from_a_card;
use super::disk::DiskRate;
use super::model::{Cost, Costs, record_bytes};
use super::schema::kept;
use tscap_clock::StampSource;
use tscap_traffic::generator::LineRate;

/// Version of the object.
pub const VERSION: u32 = 1;
/// Pauses of the converter that rings are to bear, s: a few slices of the scheduler, and
/// a disk that takes nothing for a second.
const PAUSES_S: [f64; 2] = [0.005, 1.0];
/// No stage is free, ns.
const LEAST_NS: f64 = 1.0;
/// What a frame occupies on Ethernet beside the bytes from its header to the end of its
/// payload, byte times: preamble and start delimiter (8), frame check sequence (4), least
/// gap (IEEE 802.3, 4.2.7).
const OVERHEAD: u32 = 8 + 4 + LineRate::LEAST_GAP as u32;

/// What `tscap loss --plan` says without a rate, with --json as one object of the kind
/// "loss_limits", version [`VERSION`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// "loss_limits".
    pub kind: &'static str,
    /// [`VERSION`].
    pub v: u32,
    /// The stamp that the costs are of.
    pub clock: StampSource,
    /// What the stages cost, with the output in memory; the writer is the disk, as it was
    /// measured or given.
    pub costs: Costs,
    /// What the disk took; null if there was none to measure.
    pub disk: Option<DiskRate>,
    /// Bit rate of the port that was asked about; null if none was.
    pub port: Option<u64>,
    /// For each frame size and snaplen.
    pub frames: Vec<FrameLimits>,
}

/// A stage of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Receiving, with the program, on one CPU: what it can't take is lost before the
    /// program.
    Receiving,
    /// Converting and writing to memory, by one thread: what it can't take is lost in the
    /// ring.
    Converting,
    /// The disk: what it can't take is lost in the ring, too.
    Disk,
}

impl Stage {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Receiving => "receiving",
            Self::Converting => "converting",
            Self::Disk => "the disk",
        }
    }
}

/// For frames of one size. Rates are frames a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrameLimits {
    /// Frame size, bytes.
    pub size: u32,
    /// Bytes of each that are kept.
    pub caplen: u32,
    /// Bytes of each in the file.
    pub record_bytes: f64,
    /// What one CPU can receive.
    pub receiving: f64,
    /// What one converter can convert and write.
    pub converting: f64,
    /// What the disk can take; null if that is not known.
    pub disk: Option<f64>,
    /// At the lowest of these rates frames begin to be lost…
    pub lossless: f64,
    /// …by this stage.
    pub first: Stage,
    /// What a port needs that is full of such frames; null if none was asked about.
    pub needs: Option<Needs>,
}

/// What a port that is full of frames of one size needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// Frames of this size that the port carries in a second at most.
    pub rate: f64,
    /// CPUs that receiving would keep busy: 2.5 are two and a half.
    pub receive_cpus: f64,
    /// CPUs that convert and write.
    pub convert_cpus: f64,
    /// Bytes of files a second.
    pub file_bytes_per_s: f64,
    /// Such disks as the one that was measured; null without one.
    pub disks: Option<f64>,
    /// What the rings must hold so that a pause of the converters loses nothing.
    pub rings: [PauseRing; 2],
}

/// Memory that bears a pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PauseRing {
    /// How long the converters take nothing out of the rings, s.
    pub pause_s: f64,
    /// All rings together, bytes.
    pub bytes: f64,
}

/// What a port carries.
fn frames_a_second(port: LineRate, size: u32) -> f64 {
    port.0 as f64 / (8.0 * f64::from(size + OVERHEAD))
}

impl Limits {
    /// By what the stages cost, for each size with each snaplen (0 for whole frames).
    pub fn new(
        (clock, costs): (StampSource, Costs),
        disk: Option<DiskRate>,
        port: Option<LineRate>,
        (sizes, snaplens): (&[u32], &[u32]),
    ) -> Self {
        let from_card = received_from_a_card(&costs);
        let mut frames: Vec<FrameLimits> = Vec::new();
        for &size in sizes {
            for &snaplen in snaplens {
                let frame = FrameLimits::new(&from_card, port, size, snaplen);
                // A snaplen beyond the frame keeps what another one keeps.
                if !frames.contains(&frame) {
                    frames.push(frame);
                }
            }
        }
        Self {
            kind: "loss_limits",
            v: VERSION,
            clock,
            costs,
            disk,
            port: port.map(|port| port.0),
            frames,
        }
    }
}

impl FrameLimits {
    /// By costs that are [`received_from_a_card`].
    pub(super) fn new(costs: &Costs, port: Option<LineRate>, size: u32, snaplen: u32) -> Self {
        let caplen = kept(size, snaplen);
        let record_bytes = record_bytes(caplen);
        let most = |cost: Cost| 1e9 / cost.of(caplen).max(LEAST_NS);
        let (receiving, converting) = (most(costs.receive), most(costs.convert));
        let bytes_per_s = costs.writer.map(|writer| writer.bytes_per_s);
        let disk = bytes_per_s.map(|rate| rate / record_bytes);
        let stages = [
            (Stage::Receiving, Some(receiving)),
            (Stage::Converting, Some(converting)),
            (Stage::Disk, disk),
        ];
        let known = stages
            .into_iter()
            .filter_map(|(stage, rate)| Some((stage, rate?)));
        let (first, lossless) = known
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .unwrap_or((Stage::Receiving, receiving));
        let needs = port.map(|port| {
            let rate = frames_a_second(port, size);
            let file_bytes_per_s = rate * record_bytes;
            Needs {
                rate,
                receive_cpus: rate / receiving,
                convert_cpus: rate / converting,
                file_bytes_per_s,
                disks: disk.map(|disk| rate / disk),
                rings: PAUSES_S.map(|pause_s| PauseRing {
                    pause_s,
                    bytes: file_bytes_per_s * pause_s,
                }),
            }
        });
        Self {
            size,
            caplen,
            record_bytes,
            receiving,
            converting,
            disk,
            lossless,
            first,
            needs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::model::{Receiving, Writer, fixtures};

    /// 100 ns to receive, 10 ns and 0.1 ns a byte to convert.
    fn costs() -> Costs {
        let cost = |frame_ns, byte_ns| Cost { frame_ns, byte_ns };
        Costs {
            receive: cost(100.0, 0.0),
            convert: cost(10.0, 0.1),
            ..fixtures::costs(Receiving::OnSender)
        }
    }

    fn limits(disk: Option<f64>, port: Option<LineRate>, sizes: &[u32]) -> Limits {
        let writer = disk.map(|bytes_per_s| Writer {
            bytes_per_s,
            buffer_bytes: 0.0,
        });
        let costs = Costs { writer, ..costs() };
        Limits::new((StampSource::Ktime, costs), None, port, (sizes, &[0]))
    }

    #[test]
    fn the_slowest_stage_loses_first() {
        let alone = limits(None, None, &[64, 1490]).frames;
        assert_eq!((alone[0].receiving, alone[0].lossless), (1e7, 1e7));
        assert_eq!((alone[0].first, alone[0].disk), (Stage::Receiving, None));
        // 159 ns to convert.
        assert_eq!(alone[1].first, Stage::Converting);
        assert!((alone[1].lossless - 1e9 / 159.0).abs() < 1.0);
        // 96 bytes of each in the file.
        let with_disk = limits(Some(96e6), None, &[64]).frames[0];
        assert_eq!((with_disk.first, with_disk.lossless), (Stage::Disk, 1e6));
        assert_eq!(with_disk.needs, None);
    }

    #[test]
    fn a_port_is_full() {
        let port = Some(LineRate(100_000_000_000));
        let limits = limits(Some(1e9), port, &[60, 1500]);
        // The number that is known for 64-byte frames with their check sequence.
        let needs = limits.frames[0].needs.unwrap();
        assert!((needs.rate - 148_809_523.8).abs() < 1.0, "{needs:?}");
        assert!((needs.receive_cpus - 14.88).abs() < 0.01, "{needs:?}");
        assert!(
            (needs.convert_cpus - 148.81 * 16e-3).abs() < 0.01,
            "{needs:?}"
        );
        assert_eq!(needs.file_bytes_per_s, needs.rate * 92.0);
        assert!((needs.disks.unwrap() - needs.file_bytes_per_s / 1e9).abs() < 1e-9);
        let [short, long] = needs.rings;
        assert_eq!((short.pause_s, long.pause_s), (0.005, 1.0));
        assert_eq!(long.bytes, needs.file_bytes_per_s);
        assert!((short.bytes * 200.0 / long.bytes - 1.0).abs() < 1e-9);
        let needs = limits.frames[1].needs.unwrap();
        assert!((needs.rate - 1e11 / (1524.0 * 8.0)).abs() < 1e-3);
    }

    #[test]
    fn each_size_with_each_snaplen_once() {
        let plan = Limits::new(
            (StampSource::Tai, costs()),
            None,
            None,
            (&[64, 512], &[0, 96, 600]),
        );
        let kept: Vec<_> = plan.frames.iter().map(|it| (it.size, it.caplen)).collect();
        assert_eq!(kept, [(64, 64), (512, 512), (512, 96)]);
    }
}
