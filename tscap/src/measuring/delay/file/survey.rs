//! What a file has, before packets are matched.

use std::collections::BTreeSet;

use super::places::Places;
use crate::capturing::accounting::Direction;
use crate::capturing::clock::{FileNs, RawStamp};
use crate::capturing::pcapng::{Interface, ReadError, Record, StatisticsOption};
use crate::measuring::measure::broken_end;
use crate::text::numbers::counted;

/// An interface of the file.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub interface: Interface,
    /// The latest statistics with its clock.
    pub statistics: Option<Box<StatisticsOption>>,
    /// The clock was set meanwhile.
    pub was_set: bool,
    pub frames: u64,
    /// Of them, by their flags.
    pub sent: u64,
    /// Of them, with raw stamps.
    pub raw: u64,
    /// Of them, shorter than they were.
    pub cut: u64,
    /// In simple packet blocks, which have no times.
    pub untimed: u64,
    /// The first and the last time.
    pub times: Option<[FileNs; 2]>,
    /// The first and the last raw stamp.
    pub stamps: Option<[RawStamp; 2]>,
}

/// The file on its first way through.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub records: usize,
    pub interfaces: Vec<Described>,
}

impl Survey {
    pub fn take(&mut self, record: Record) {
        self.records += 1;
        match record {
            Record::Interface(interface) => self.interfaces.push(Described {
                interface,
                statistics: None,
                was_set: false,
                frames: 0,
                sent: 0,
                raw: 0,
                cut: 0,
                untimed: 0,
                times: None,
                stamps: None,
            }),
            Record::Statistics(index, statistics) => {
                if let Some(described) = self.interfaces.get_mut(index as usize) {
                    let segments = &statistics.clock.segments;
                    described.was_set |= segments.iter().any(|segment| segment.step_ns != 0);
                    described.statistics = Some(statistics);
                }
            }
            Record::Untimed { interface, .. } => {
                if let Some(described) = self.interfaces.get_mut(interface as usize) {
                    described.untimed += 1;
                }
            }
            Record::Packet(packet) => {
                if let Some(described) = self.interfaces.get_mut(packet.interface as usize) {
                    described.frames += 1;
                    described.sent += u64::from(packet.direction == Direction::Out);
                    described.raw += u64::from(packet.raw.is_some());
                    described.cut += u64::from(packet.origlen as usize > packet.data.len());
                    extend(&mut described.times, packet.time);
                    if let Some(raw) = packet.raw {
                        extend(&mut described.stamps, raw);
                    }
                }
            }
        }
    }

    /// What a reader must know of the places, and of the end of the file.
    pub fn warnings(&self, places: &Places, end: Option<&ReadError>) -> Vec<String> {
        let both = [&places.entry, &places.exit];
        let indices: BTreeSet<_> = both.iter().flat_map(|place| &place.indices).collect();
        let mut warnings = Vec::new();
        for index in indices {
            let described = &self.interfaces[*index];
            let mut place = both.iter().filter(|place| place.indices.contains(index));
            let name = place.next().map_or("", |place| place.name.as_str());
            if described.cut > 0 {
                warnings.push(format!(
                    "{name}: {} of {} cut by the snaplen: those with the same bytes up to there \
                     can't be told apart",
                    counted(described.cut, "frame"),
                    described.frames
                ));
            }
            if described.untimed > 0 {
                warnings.push(format!(
                    "{name}: not looked into: {} in simple packet blocks, which hold no times",
                    counted(described.untimed, "frame")
                ));
            }
            let outcomes = described.statistics.as_ref().map(|it| it.outcomes.lost());
            if let Some(lost) = outcomes.filter(|lost| *lost > 0) {
                warnings.push(format!(
                    "{name}: the capture itself lost {}: packets that seem to be lost inside or \
                     to originate there may be among them",
                    counted(lost, "frame")
                ));
            }
        }
        warnings.extend(end.map(broken_end));
        warnings
    }
}

fn extend<T: Copy + Ord>(range: &mut Option<[T; 2]>, value: T) {
    *range = Some(range.map_or([value; 2], |[least, greatest]| {
        [least.min(value), greatest.max(value)]
    }));
}
