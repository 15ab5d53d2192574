//! What a capture file has, before its packets are looked into.

use std::io::{Read, Seek};

use super::capture::{CaptureError, End, each_record, first_records};
use super::namesakes::are_one;
use super::receive_clock::ReceiveClock;
use tscap_base::text::numbers::counted;
use tscap_clock::{FileNs, RawStamp};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{Interface, Origin, Record, StatisticsOption};

/// An interface of a file.
#[derive(Clone, Debug)]
pub struct Described {
    /// As the file describes it.
    pub interface: Interface,
    /// That of its times.
    pub clock: ReceiveClock,
    /// The latest statistics with its clock.
    pub statistics: Option<Box<StatisticsOption>>,
    /// The clock was set meanwhile.
    pub was_set: bool,
    /// Its packets that have times.
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
    fn new(number: usize, interface: Interface) -> Self {
        Self {
            clock: ReceiveClock::of(number, interface.tscap.as_ref()),
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
        }
    }

    /// Greatest error of the difference of a time here and one of another interface, ns; `None`
    /// if nothing bounds it.
    pub fn apart_ns(&self, other: &Self) -> Option<u64> {
        let apart_ns = self.clock.times().apart_ns(other.clock.times())?;
        // `tscap convert` may have moved a time that kept its raw stamp by as much as its bound.
        let moved = [self, other].into_iter().filter(|it| it.raw > 0);
        let moved_ns = moved.filter_map(|it| it.clock.times().bound_ns());
        Some(moved_ns.fold(apart_ns, u64::saturating_add))
    }

    /// Whether both, which have one name, are one interface. Where early versions wrote them, they
    /// are one if its packets were not captured at one time.
    pub fn is_interface_of(&self, other: &Self) -> bool {
        let one = are_one(
            (&self.interface, self.clock.times()),
            (&other.interface, other.clock.times()),
        );
        let times = self.times.zip(other.times);
        let are_apart = |([first, last], [other_first, other_last]): ([FileNs; 2], [FileNs; 2])| {
            last <= other_first || other_last <= first
        };
        one.unwrap_or_else(|| times.is_none_or(are_apart))
    }

    /// What a reader must know of frames without times; the interface is called `name`.
    pub fn without_times(&self, name: &str) -> Option<String> {
        (self.untimed > 0).then(|| {
            format!(
                "{name}: not looked into: {} in simple packet blocks, which hold no times",
                counted(self.untimed, "frame")
            )
        })
    }

    /// What a reader must know of frames that the capture lost, which are `taken_for` others.
    pub fn lost(&self, name: &str, taken_for: &str) -> Option<String> {
        let lost = self.statistics.as_ref().map_or(0, |it| it.outcomes.lost());
        (lost > 0).then(|| {
            format!(
                "{name}: the capture itself lost {}: {taken_for} may be among them",
                counted(lost, "frame")
            )
        })
    }
}

/// A file on its first way through.
#[derive(Debug, Default)]
pub struct Survey {
    /// What the clock of the first interface is numbered by.
    first_number: usize,
    /// Records up to the end: a file that grows has more of them the next time.
    pub records: usize,
    /// Where it was captured, each answer once.
    pub captured: Vec<Origin>,
    /// In the order of the file.
    pub interfaces: Vec<Described>,
    /// How far it could be read.
    pub end: End,
}

impl Survey {
    /// Reads a file for the first time.
    ///
    /// # Errors
    /// If it is no capture, or can't be read from its start.
    pub fn of<R: Read + Seek>(file: &mut R) -> Result<Self, CaptureError> {
        Self::beside(file, 0)
    }

    /// The same, of a file whose interfaces are compared with those of others: none of these has a
    /// number from `first_number` on.
    ///
    /// # Errors
    /// As of [`Self::of`].
    pub fn beside<R: Read + Seek>(file: &mut R, first_number: usize) -> Result<Self, CaptureError> {
        let mut survey = Self {
            first_number,
            ..Self::default()
        };
        survey.end = each_record(file, |record| survey.take(record))?;
        Ok(survey)
    }

    /// Hands over the same records once more: packets of a file that grows are not among them
    /// unless they were there the first time.
    ///
    /// # Errors
    /// If it can't be read from its start.
    pub fn again<R: Read + Seek>(
        &self,
        file: &mut R,
        then: impl FnMut(Record),
    ) -> Result<(), CaptureError> {
        self.one_by_one(file)?.for_each(then);
        Ok(())
    }

    /// The same records, one by one.
    ///
    /// # Errors
    /// If it can't be read from its start.
    pub fn one_by_one<R: Read + Seek>(
        &self,
        file: &mut R,
    ) -> Result<impl Iterator<Item = Record>, CaptureError> {
        first_records(file, self.records)
    }

    /// Whether tscap wrote any of it.
    pub fn is_tscaps(&self) -> bool {
        let mut all = self.interfaces.iter();
        all.any(|it| it.interface.tscap.is_some())
    }

    fn take(&mut self, record: Record) {
        self.records += 1;
        match record {
            Record::Section(origin) => {
                if !self.captured.contains(&origin) {
                    self.captured.push(origin);
                }
            }
            Record::Damaged(_) => {}
            Record::Interface(interface) => {
                let number = self.first_number + self.interfaces.len();
                self.interfaces.push(Described::new(number, interface));
            }
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
}

fn extend<T: Copy + Ord>(range: &mut Option<[T; 2]>, value: T) {
    *range = Some(range.map_or([value; 2], |[least, greatest]| {
        [least.min(value), greatest.max(value)]
    }));
}
