//! What a file has, before packets are matched.

use std::collections::BTreeSet;

use super::places::Places;
use tscap_base::text::numbers::counted;
use tscap_clock::{FileNs, RawStamp};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{Interface, Origin, Record, StatisticsOption, TimesClock};
use tscap_streams::End;
use tscap_streams::namesakes::are_one;

/// An interface of the file.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub interface: Interface,
    /// That of its times.
    pub clock: TimesClock,
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

impl Described {
    /// Greatest error of the difference of a time here and one of another interface, ns; `None`
    /// if nothing bounds it.
    pub fn apart_ns(&self, other: &Self) -> Option<u64> {
        let apart_ns = self.clock.apart_ns(&other.clock)?;
        // `tscap convert` may have moved a time that kept its raw stamp by as much as its bound.
        let moved = [self, other].into_iter().filter(|it| it.raw > 0);
        let moved_ns = moved.filter_map(|it| it.clock.bound_ns());
        Some(moved_ns.fold(apart_ns, u64::saturating_add))
    }

    /// Whether both, which have one name, are one interface. Where early versions wrote them, they
    /// are one if its packets were not captured at one time.
    pub fn is_interface_of(&self, other: &Self) -> bool {
        let one = are_one(
            (&self.interface, &self.clock),
            (&other.interface, &other.clock),
        );
        let times = self.times.zip(other.times);
        let are_apart = |([first, last], [other_first, other_last]): ([FileNs; 2], [FileNs; 2])| {
            last <= other_first || other_last <= first
        };
        one.unwrap_or_else(|| times.is_none_or(are_apart))
    }

    /// Whose clock its times are of.
    pub fn whose(&self) -> String {
        self.clock.whose()
    }
}

/// The file on its first way through.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub records: usize,
    /// Where it was captured, each answer once.
    pub captured: Vec<Origin>,
    pub interfaces: Vec<Described>,
}

impl Survey {
    pub fn take(&mut self, record: Record) {
        self.records += 1;
        match record {
            Record::Section(origin) => {
                if !self.captured.contains(&origin) {
                    self.captured.push(origin);
                }
            }
            Record::Damaged(_) => {}
            Record::Interface(interface) => self.interfaces.push(Described {
                clock: TimesClock::new(self.interfaces.len(), interface.tscap.as_ref()),
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
                    described.clock.take(&statistics);
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
    pub fn warnings(&self, places: &Places, end: &End) -> Vec<String> {
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
        let is_tscaps = self
            .interfaces
            .iter()
            .any(|it| it.interface.tscap.is_some());
        warnings.extend(end.warnings(is_tscaps));
        warnings
    }
}

fn extend<T: Copy + Ord>(range: &mut Option<[T; 2]>, value: T) {
    *range = Some(range.map_or([value; 2], |[least, greatest]| {
        [least.min(value), greatest.max(value)]
    }));
}
