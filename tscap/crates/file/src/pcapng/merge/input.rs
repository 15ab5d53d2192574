//! A capture that is joined with others: read to its next packet, and counted.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use pcap_file::Endianness;
use serde::Serialize;

use super::super::block::{SECTION_OPTIONS, word};
use super::super::custom::{PartOption, StatisticsOption};
use super::super::damage::{Damage, Damaged};
use super::super::options::{json_of_ours, options_of};
use super::super::reader::Reader;
use super::super::record::{ReadError, Record};
use super::last_statistics::last_statistics;
use super::neighbours::{Bounds, Placed};
use super::{MergeError, Source};
use tscap_clock::{FileNs, RawStamp};

/// What was found in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputReport {
    /// Its name.
    pub file: String,
    /// Packet blocks that were found in the file.
    pub packets: u64,
    /// Packets whose time is before that of the packet before them.
    pub disordered: u64,
    /// Greatest error of its times against its host's clock, or against one that follows
    /// `reference`, ns; `None` if there are packets of which it does not say so.
    pub host_bound_ns: Option<u64>,
    /// The bound on that clock against UTC at the end, ns, if it was known: by the kernel of its
    /// host, or by the reference. Not part of `host_bound_ns`.
    pub utc_bound_ns: Option<u64>,
    /// The reference whose time it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Greatest error of the clock against that, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_bound_ns: Option<u64>,
    /// Which part of a capture it is, if several writers wrote that.
    pub part: Option<PartOption>,
    /// Whether all of it was read.
    pub is_whole: bool,
    /// What can't be read of it, and is not in the copy.
    #[serde(skip_serializing_if = "Damage::is_none")]
    pub damage: Damage,
    /// Interfaces whose last statistics contradict themselves, or the file's packets.
    pub contradictions: Vec<Contradiction>,
}

/// The last statistics of an interface that contradict themselves, or its packets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Its name, or its number in the file.
    pub interface: String,
    /// Frames seen by them.
    pub seen: u64,
    /// Frames written by them.
    pub written: u64,
    /// Frames not written by them.
    pub not_written: u64,
    /// Packets of it in the file.
    pub packets: u64,
}

/// An interface of a file.
#[derive(Debug)]
pub(super) struct OfInput {
    pub name: String,
    /// Its number in the copy.
    pub number: u32,
    pub bounds: Option<Bounds>,
    pub packets: u64,
    pub latest: Option<Latest>,
}

/// The latest statistics of an interface.
#[derive(Debug)]
pub(super) struct Latest {
    pub block: Vec<u8>,
    pub statistics: Box<StatisticsOption>,
    /// Packets of the interface that stand before it in the file.
    pub after: u64,
    /// It is not in the copy yet.
    pub is_waiting: bool,
}

/// The packet that was read last.
#[derive(Clone, Copy, Debug)]
struct Head {
    time: FileNs,
    raw: Option<RawStamp>,
    interface: u32,
}

/// A capture at work.
#[derive(Debug)]
pub(super) struct Input<R> {
    pub report: InputReport,
    pub endianness: Endianness,
    pub header: Vec<u8>,
    /// Index of the capture of which it is a part, among those that there are.
    pub capture: Option<usize>,
    pub reader: Reader<R>,
    pub interfaces: Vec<OfInput>,
    /// The statistics at its end, by interface of the file.
    pub last: BTreeMap<u32, StatisticsOption>,
    /// Whether latest statistics may wait to be in the copy.
    pub has_waiting: bool,
    head: Option<Head>,
}

impl<R: Read + Seek> Input<R> {
    /// Looks at its beginning and its end.
    pub fn open(source: Source<R>) -> Result<Self, MergeError> {
        let Source { name, mut from } = source;
        let refused = |error| MergeError::read(&name, ReadError::Io(error));
        let endianness = byte_order(&mut from).map_err(refused)?;
        let last = last_statistics(&mut from, endianness).map_err(refused)?;
        let read = |error| MergeError::read(&name, error);
        let mut reader = Reader::new(from).map_err(read)?;
        let (block, endianness) = reader.block();
        let header = block.to_vec();
        let part = part_in(&header, endianness).map_err(read)?;
        let references = last.values().filter_map(|it| it.clock.reference);
        let utc_bounds = last.values().map(|it| it.clock.utc_bound_ns);
        let utc_bounds: Option<Vec<_>> = utc_bounds.collect();
        Ok(Self {
            report: InputReport {
                packets: 0,
                disordered: 0,
                host_bound_ns: last.values().map(|it| it.clock.host_bound_ns).max(),
                utc_bound_ns: utc_bounds.and_then(|bounds| bounds.into_iter().max()),
                reference: None,
                reference_bound_ns: references.map(|it| it.bound_ns).max(),
                part,
                is_whole: true,
                damage: Damage::default(),
                contradictions: Vec::new(),
                file: name,
            },
            endianness,
            header,
            capture: None,
            reader,
            interfaces: Vec::new(),
            last,
            has_waiting: false,
            head: None,
        })
    }

    /// Reads the next block; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Option<Record>>, MergeError> {
        let next = self.reader.next();
        next.map_err(|error| MergeError::read(&self.report.file, error))
    }

    /// Counts what can't be read.
    pub fn pass_over(&mut self, damaged: Damaged) {
        self.report.is_whole = false;
        self.report.damage.add(damaged);
    }

    pub fn block(&mut self) -> &mut [u8] {
        self.reader.block().0
    }

    /// Takes in a packet that was read.
    pub fn read(&mut self, interface: u32, time: FileNs, raw: Option<RawStamp>) {
        self.report.packets += 1;
        let is_back = self.head.is_some_and(|before| time < before.time);
        self.report.disordered += u64::from(is_back);
        let of = &mut self.interfaces[interface as usize];
        of.packets += 1;
        if of.bounds.is_none() {
            self.report.host_bound_ns = None;
        }
        self.head = Some(Head {
            time,
            // Only tscap's interfaces have such stamps, and bounds.
            raw: raw.filter(|_| of.bounds.is_some()),
            interface,
        });
    }

    /// The packet that was read last, as one of file `index`.
    pub fn placed(&self, index: usize, time: FileNs) -> Placed {
        let bounds = self.head.and_then(|head| self.of(head.interface)?.bounds);
        Placed {
            input: index,
            time,
            raw: self.head.and_then(|head| head.raw),
            bounds,
        }
    }

    /// The number in the copy of the interface of the packet that was read last.
    pub fn number_of_head(&self) -> u32 {
        let of = self.head.and_then(|head| self.of(head.interface));
        of.map_or(0, |it| it.number)
    }

    pub fn of(&self, interface: u32) -> Option<&OfInput> {
        self.interfaces.get(interface as usize)
    }

    /// Interfaces whose last statistics say something else than the file's packets. Where
    /// packets follow them, as when the capture was killed, they say nothing of these. Packets
    /// may be among what can't be read.
    pub fn find_contradictions(&mut self) {
        let found = self.interfaces.iter().filter_map(|of| {
            let latest = of.latest.as_ref()?;
            let [seen, written] = latest.seen_and_written(self.endianness)?;
            let not_written = latest.statistics.outcomes.total();
            let may_lack = !self.report.is_whole && written > of.packets;
            let is_right = seen == written + not_written && (written == of.packets || may_lack);
            (latest.after == of.packets && !is_right).then(|| Contradiction {
                interface: of.name.clone(),
                seen,
                written,
                not_written,
                packets: of.packets,
            })
        });
        self.report.contradictions = found.collect();
    }
}

/// By the magic of the section header.
fn byte_order(from: &mut impl Read) -> std::io::Result<Endianness> {
    let mut start = Vec::new();
    from.take(12).read_to_end(&mut start)?;
    Ok(match word(&start, 8, Endianness::Big) {
        Some(0x1a2b_3c4d) => Endianness::Big,
        _ => Endianness::Little,
    })
}

/// What tscap says in a section header.
fn part_in(header: &[u8], endianness: Endianness) -> Result<Option<PartOption>, ReadError> {
    let options = options_of(header, SECTION_OPTIONS, endianness);
    let mut ours = options
        .iter()
        .filter_map(|(code, value)| json_of_ours(*code, value, endianness));
    Ok(ours.next().map(serde_json::from_str).transpose()?)
}
