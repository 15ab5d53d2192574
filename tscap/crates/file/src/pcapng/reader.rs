//! Reads a capture back with what tscap put into it: raw stamps and clock.

mod scale;

use std::io::Read;

use pcap_file::Endianness;
use tscap_common::block::{
    CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, FLAGS_OUTBOUND, INTERFACE_OFFSET, ORIGLEN_OFFSET,
    STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET, padded,
};

use super::block::{
    BlockFault, DESCRIPTION_OPTIONS, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, LONGEST,
    OBSOLETE_PACKET, SECTION_HEADER, SECTION_OPTIONS, SIMPLE_PACKET, STATISTICS_OPTIONS, half,
    least_length, long, options, word,
};
use super::blocks::{Blocks, Part};
use super::custom::{PEN, StatisticsOption};
use super::damage::Damaged;
use super::record::{Interface, Origin, Packet, ReadError, Record};
use crate::accounting::Direction;
use scale::Scale;
use tscap_clock::RawStamp;

/// The records of a capture: sections, packets, descriptions and statistics of interfaces, and
/// what can't be read. They end with the first error, which is of the system.
///
/// # Errors
/// If it does not begin as a pcapng file does.
pub fn records<R: Read>(
    from: R,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    let mut reader = Reader::new(from)?;
    let mut has_ended = false;
    let section = Record::Section(reader.origin());
    let records = std::iter::from_fn(move || {
        while !has_ended {
            match reader.next() {
                Ok(Some(None)) => {}
                Ok(Some(record)) => return record.map(Ok),
                Ok(None) => has_ended = true,
                Err(error) => {
                    has_ended = true;
                    return Some(Err(error));
                }
            }
        }
        None
    });
    Ok(std::iter::once(Ok(section)).chain(records))
}

/// Most interface descriptions that are read: more than any capture has, and as many as
/// obsolete packet blocks can name.
pub(super) const MOST_INTERFACES: usize = 1 << 16;

/// Longest frame of an interface that does not limit them, bytes: the greatest snapshot length of
/// most programs.
const LONGEST_FRAME: u32 = 262_144;

/// A capture block by block, in memory of one block and 32 bytes an interface.
#[derive(Debug)]
pub(super) struct Reader<R> {
    blocks: Blocks<R>,
    /// Of the latest block, what is told after it.
    also: Option<Damaged>,
    /// Sections before this one.
    section: u32,
    /// Interfaces of the sections before.
    earlier: usize,
    /// How each interface of the section tells times; `None` if its description is damaged.
    scales: Vec<Option<Scale>>,
    /// Most bytes captured of a frame of the section's first interface; 0 for any.
    first_snaplen: u32,
    /// Length of the section's longest frame, as far as that is known.
    longest_frame: u32,
    /// Bytes of the section before can't be read.
    has_hole: bool,
    /// It is not known which section this is, or which number an interface has: nothing is read
    /// up to the next section header.
    is_lost: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the first section header.
    pub fn new(from: R) -> Result<Self, ReadError> {
        let mut blocks = Blocks::new(from);
        blocks.next(0)?;
        let mut reader = Self {
            blocks,
            also: None,
            section: 0,
            earlier: 0,
            scales: Vec::new(),
            first_snaplen: 0,
            longest_frame: 0,
            has_hole: false,
            is_lost: false,
        };
        match reader.section_header() {
            Ok(()) => Ok(reader),
            Err(fault) => Err(ReadError::Block { at: 0, fault }),
        }
    }

    /// The latest block, whole, and its byte order.
    pub fn block(&mut self) -> (&mut [u8], Endianness) {
        let endianness = self.blocks.endianness;
        (self.blocks.bytes_mut(), endianness)
    }

    /// Reads the next block: `None` at the end, and no record if none is in it.
    pub fn next(&mut self) -> Result<Option<Option<Record>>, ReadError> {
        if let Some(damaged) = self.also.take() {
            return Ok(Some(Some(Record::Damaged(damaged))));
        }
        let longest_frame = self.longest_frame.min(LONGEST) as usize;
        let record = match self.blocks.next(longest_frame)? {
            None => return Ok(None),
            Some(Part::Block(kind)) => match self.record(kind) {
                Ok(record) => {
                    if let Some(Record::Packet(packet)) = &record {
                        self.longest_frame = self.longest_frame.max(packet.data.len() as u32);
                    }
                    record
                }
                Err(fault) => Some(Record::Damaged(self.damaged(kind, fault))),
            },
            Some(Part::Damaged(damaged, has_section)) => {
                self.is_lost |= has_section;
                self.has_hole |= damaged.block.is_none();
                Some(match damaged.block {
                    Some(INTERFACE_DESCRIPTION) => self.undescribed(damaged),
                    _ => Record::Damaged(damaged),
                })
            }
        };
        Ok(Some(record))
    }

    /// The latest block as one that can't be read.
    fn damaged(&self, kind: u32, fault: BlockFault) -> Damaged {
        Damaged {
            at: self.blocks.at,
            bytes: self.blocks.length(),
            block: Some(kind),
            fault,
        }
    }

    /// An interface whose description can't be read.
    fn undescribed(&mut self, damaged: Damaged) -> Record {
        if !self.can_describe() {
            return Record::Damaged(damaged);
        }
        self.also = Some(damaged);
        self.scales.push(None);
        let (block, endianness) = (self.blocks.bytes(), self.blocks.endianness);
        Record::Interface(Interface {
            section: self.section,
            name: None,
            linktype: half(block, 8, endianness).map_or(0, u32::from).into(),
            is_damaged: true,
            resolution_ns: 1,
            tscap: None,
        })
    }

    /// Whether an interface that is described here has a number. Behind a hole nobody knows
    /// which. It may even be the first one of another section.
    fn can_describe(&mut self) -> bool {
        self.is_lost |= self.has_hole;
        !self.is_lost && self.earlier + self.scales.len() < MOST_INTERFACES
    }

    fn record(&mut self, kind: u32) -> Result<Option<Record>, BlockFault> {
        if kind == SECTION_HEADER {
            self.section += 1;
            self.earlier += self.scales.len();
            self.scales.clear();
            self.section_header()?;
            return Ok(Some(Record::Section(self.origin())));
        }
        let can_describe = kind == INTERFACE_DESCRIPTION && self.can_describe();
        if self.is_lost {
            return Err(BlockFault::Behind);
        }
        if kind == INTERFACE_DESCRIPTION {
            if !can_describe {
                return Err(BlockFault::Interfaces(MOST_INTERFACES));
            }
            return Ok(Some(match self.interface() {
                Ok(interface) => Record::Interface(interface),
                Err(fault) => self.undescribed(self.damaged(kind, fault)),
            }));
        }
        self.is_long_enough(kind)?;
        Ok(match kind {
            EPB_TYPE | OBSOLETE_PACKET => {
                Some(Record::Packet(self.packet(kind == OBSOLETE_PACKET)?))
            }
            SIMPLE_PACKET => Some(self.simple_packet()?),
            INTERFACE_STATISTICS => self.statistics()?,
            _ => None,
        })
    }

    fn is_long_enough(&self, kind: u32) -> Result<(), BlockFault> {
        if self.blocks.bytes().len() < least_length(kind) {
            Err(BlockFault::Short)
        } else {
            Ok(())
        }
    }

    /// The latest block begins a section.
    fn section_header(&mut self) -> Result<(), BlockFault> {
        (self.has_hole, self.is_lost) = (false, true);
        (self.first_snaplen, self.longest_frame) = (0, 0);
        self.is_long_enough(SECTION_HEADER)?;
        let (block, endianness) = (self.blocks.bytes(), self.blocks.endianness);
        let version = [12, 14].map(|at| half(block, at, endianness).unwrap_or(0));
        // Version 1.2 differs in its numbers alone.
        if !matches!(version, [1, 0 | 2]) {
            return Err(BlockFault::Version(version[0], version[1]));
        }
        self.is_lost = false;
        let damaged = options(block, SECTION_OPTIONS, endianness).find_map(Result::err);
        self.also = damaged.map(|fault| self.damaged(SECTION_HEADER, fault));
        Ok(())
    }

    /// What the latest block says, which is a section header.
    pub fn origin(&self) -> Origin {
        Origin::of(self.blocks.bytes(), self.blocks.endianness)
    }

    fn word(&self, at: usize) -> Result<u32, BlockFault> {
        word(self.blocks.bytes(), at, self.blocks.endianness).ok_or(BlockFault::Short)
    }

    fn scale(&self, interface: u32) -> Result<Scale, BlockFault> {
        let scale = self.scales.get(interface as usize);
        let scale = scale.ok_or(BlockFault::Interface(interface))?;
        scale.ok_or(BlockFault::Undescribed(interface))
    }

    fn interface(&mut self) -> Result<Interface, BlockFault> {
        self.is_long_enough(INTERFACE_DESCRIPTION)?;
        let (block, endianness) = (self.blocks.bytes(), self.blocks.endianness);
        let linktype = half(block, 8, endianness).unwrap_or(0);
        let snaplen = word(block, 12, endianness).unwrap_or(0);
        let mut scale = Scale::DEFAULT;
        let (mut name, mut json) = (None, None);
        for option in options(block, DESCRIPTION_OPTIONS, endianness) {
            let (code, value) = option?;
            let value = &block[value];
            let has_other_length = BlockFault::OptionLength(code, value.len());
            match code {
                IF_NAME if name.is_none() => name = Some(String::from_utf8_lossy(value).into()),
                IF_TSRESOL => {
                    let [tsresol] = *value else {
                        return Err(has_other_length);
                    };
                    scale.tsresol = tsresol;
                }
                IF_TSOFFSET => {
                    let offset_s = long(value, 0, endianness).filter(|_| value.len() == 8);
                    scale.offset_s = offset_s.ok_or(has_other_length)?.cast_signed();
                }
                _ => json = json.or(of_tscap(code, value, endianness)),
            }
        }
        let tscap = json.map(serde_json::from_slice).transpose();
        let tscap = tscap.map_err(|_| BlockFault::Foreign)?;
        let scale = scale.possible()?;
        if self.scales.is_empty() {
            self.first_snaplen = snaplen;
        }
        let longest_frame = if snaplen == 0 { LONGEST_FRAME } else { snaplen };
        self.longest_frame = self.longest_frame.max(longest_frame);
        self.scales.push(Some(scale));
        Ok(Interface {
            section: self.section,
            name,
            linktype: u32::from(linktype).into(),
            is_damaged: false,
            resolution_ns: scale.resolution_ns(),
            tscap: tscap.filter(|_| scale == Scale::NANO),
        })
    }

    fn packet(&self, is_obsolete: bool) -> Result<Packet, BlockFault> {
        let (block, endianness) = (self.blocks.bytes(), self.blocks.endianness);
        let interface = if is_obsolete {
            // The other half counts drops.
            half(block, INTERFACE_OFFSET, endianness).map_or(0, u32::from)
        } else {
            self.word(INTERFACE_OFFSET)?
        };
        let scale = self.scale(interface)?;
        let [high, low] = [STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET].map(|at| self.word(at));
        let ticks = u64::from(high?) << 32 | u64::from(low?);
        let (caplen, origlen) = (self.word(CAPLEN_OFFSET)?, self.word(ORIGLEN_OFFSET)?);
        if caplen > origlen {
            return Err(BlockFault::Caplen(caplen, origlen));
        }
        let data = DATA_OFFSET..DATA_OFFSET + caplen as usize;
        if DATA_OFFSET + padded(caplen as usize) + 4 > block.len() {
            return Err(BlockFault::Short);
        }
        let (mut raw, mut direction) = (None, Direction::In);
        for option in options(block, padded(data.end), endianness) {
            let (code, value) = option?;
            let first = word(&block[value.clone()], 0, endianness);
            match (code, first) {
                // One that is longer is a hardware stamp.
                (CUSTOM_BINARY, Some(PEN)) if value.len() == RAW_LENGTH => {
                    let stamp = long(&block[value], 4, endianness).map(RawStamp);
                    raw = raw.or(stamp);
                }
                (FLAGS, Some(flags)) if value.len() == 4 => {
                    direction = match flags & DIRECTION {
                        FLAGS_OUTBOUND => Direction::Out,
                        _ => direction,
                    };
                }
                (FLAGS, _) => return Err(BlockFault::OptionLength(code, value.len())),
                _ => {}
            }
        }
        Ok(Packet {
            interface: self.earlier as u32 + interface,
            time: scale.time(ticks),
            raw,
            direction,
            origlen,
            data: block[data].to_vec(),
        })
    }

    /// The block says how long the frame was, and the interface how much of it was kept.
    fn simple_packet(&self) -> Result<Record, BlockFault> {
        self.scale(0)?;
        let origlen = self.word(SIMPLE_ORIGLEN)?;
        let caplen = match self.first_snaplen {
            0 => origlen,
            most => most.min(origlen),
        } as usize;
        if SIMPLE_DATA + padded(caplen) + 4 > self.blocks.bytes().len() {
            return Err(BlockFault::Short);
        }
        Ok(Record::Untimed {
            interface: self.earlier as u32,
            origlen,
            data: self.blocks.bytes()[SIMPLE_DATA..SIMPLE_DATA + caplen].to_vec(),
        })
    }

    /// What tscap put into a statistics block, if it did.
    fn statistics(&self) -> Result<Option<Record>, BlockFault> {
        let interface = self.word(8)?;
        self.scale(interface)?;
        let statistics = statistics_in(self.blocks.bytes(), self.blocks.endianness)?;
        let interface = self.earlier as u32 + interface;
        Ok(statistics.map(|it| Record::Statistics(interface, Box::new(it))))
    }
}

/// What tscap put into this statistics block, if it did.
pub(super) fn statistics_in(
    block: &[u8],
    endianness: Endianness,
) -> Result<Option<StatisticsOption>, BlockFault> {
    let mut json = None;
    for option in options(block, STATISTICS_OPTIONS, endianness) {
        let (code, value) = option?;
        json = json.or(of_tscap(code, &block[value], endianness));
    }
    let statistics = json.map(serde_json::from_slice).transpose();
    statistics.map_err(|_| BlockFault::Foreign)
}

/// Where the length on the wire stands in a simple packet block, and its bytes
/// (draft-ietf-opsawg-pcapng, section 4.4).
const SIMPLE_ORIGLEN: usize = 8;
const SIMPLE_DATA: usize = 12;
/// Codes of options (draft-ietf-opsawg-pcapng, sections 3.5, 4.2 and 4.3).
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// The same of an obsolete packet block (section 4.7).
const FLAGS: u16 = 2;
/// The bits of flags that say the direction.
const DIRECTION: u32 = 3;
const CUSTOM_TEXT: u16 = 2988;
const CUSTOM_BINARY: u16 = 2989;
/// Length of a raw stamp's option: enterprise number and stamp, bytes.
const RAW_LENGTH: usize = 12;

/// The JSON of an option of tscap's.
fn of_tscap(code: u16, value: &[u8], endianness: Endianness) -> Option<&[u8]> {
    let is_ours = code == CUSTOM_TEXT && word(value, 0, endianness) == Some(PEN);
    is_ours.then(|| &value[4..])
}

#[cfg(test)]
pub(super) mod tests;
