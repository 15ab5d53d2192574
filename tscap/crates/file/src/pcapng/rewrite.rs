//! Copies a capture byte for byte but for the times of its packets, and for packets that
//! are left out.

use std::io::{self, Read, Write};

use pcap_file::Endianness;
use tscap_common::block::{STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET};

use super::account::{AccountError, LeftOut};
use super::block::{CUSTOM_NOT_TO_COPY, SECTION_OPTIONS, options, word};
use super::custom::{InterfaceOption, StatisticsOption};
use super::damage::Damage;
use super::describe::{describe, describe_filter, move_statistics, put_time, undescribed};
use super::options::{options_of, to_copy, with_options};
use super::reader::Reader;
use super::record::{Interface, Packet, ReadError, Record};
use crate::accounting::Direction;
use tscap_base::failure::Failure;
use tscap_clock::{FileClock, FileNs};
use tscap_filter::{Filter, Frame, LinkType, packet_type};

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The capture can't be read any further.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its statistics can't count what is left out.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The filter has no meaning for the frames of an interface.
    #[error("{}", .0.chain())]
    Filter(Failure),
    /// A packet that no filter can decide on.
    #[error("a packet of {interface} is of link type {linktype}, which filters are not for")]
    LinkType {
        /// Name of its interface, or its number.
        interface: String,
        /// What its frames begin with, as a number of pcapng's.
        linktype: u32,
    },
    /// Nor its copy written.
    #[error("cannot write a block")]
    Copy(#[source] io::Error),
}

/// What is to be different in a copy.
#[derive(Default)]
pub struct Changes<'a> {
    /// The times.
    pub times: Option<Times<'a>>,
    /// The packets: those that do not match are left out.
    pub filter: Option<&'a Filter>,
}

/// Other times of the packets of tscap's interfaces, which are described with it.
/// Interfaces whose times are not in nanoseconds, and those of others, are left.
pub struct Times<'a> {
    /// Which clock they are of.
    pub clock: FileClock,
    /// What time a packet is to have, ns of `clock`, or `None` to leave it. It is asked for
    /// each packet of the copy; one without interface is not tscap's.
    pub time: Box<NewTime<'a>>,
    /// By how much a statistics block's start and the time of its making move.
    pub moved: Box<Moved<'a>>,
}

type NewTime<'a> = dyn FnMut(&Packet, Option<&InterfaceOption>) -> Option<FileNs> + 'a;
type Moved<'a> = dyn FnMut(&StatisticsOption) -> [i64; 2] + 'a;

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Packets in the copy.
    pub packets: u64,
    /// Packets that are not: they do not match the filter.
    pub filtered: u64,
    /// What can't be read of the capture, and is not in the copy.
    pub damage: Damage,
}

/// Copies every block of a capture, with these changes. With a filter, interface
/// descriptions name it, and tscap's statistics count as filtered what it left out; those
/// of others stay as they are. Nothing else changes, but that the length of a section is left
/// open, and that what is not to be copied is left out: such custom blocks, such options of
/// other programs, and what can't be read. What was copied before an error is whole.
///
/// # Errors
/// If the capture can't be read, its packets not filtered, or the copy not written.
pub fn rewrite(
    from: impl Read,
    to: &mut impl Write,
    changes: Changes<'_>,
) -> Result<Copied, RewriteError> {
    let mut reader = Reader::new(from)?;
    let mut copy = Copy::new(changes);
    let mut record = Some(Record::Section(reader.origin()));
    loop {
        let (block, endianness) = reader.block();
        let anew;
        let block = match copy.change(record, block, endianness)? {
            Changed::LeftOut => None,
            Changed::InPlace => Some(&*block),
            Changed::Anew(changed) => {
                anew = changed;
                Some(&anew[..])
            }
        };
        if let Some(block) = block {
            let less = to_copy(block, endianness, false);
            let block = less.as_deref().unwrap_or(block);
            to.write_all(block).map_err(RewriteError::Copy)?;
        }
        record = match reader.next()? {
            Some(record) => record,
            None => return Ok(copy.copied),
        };
    }
}

/// What became of a block.
enum Changed {
    /// It is where it was, whether changed or not.
    InPlace,
    /// It has another length.
    Anew(Vec<u8>),
    /// It is not in the copy.
    LeftOut,
}

/// A copy at work.
struct Copy<'a> {
    changes: Changes<'a>,
    interfaces: Vec<Interface>,
    left_out: LeftOut,
    copied: Copied,
}

impl<'a> Copy<'a> {
    fn new(changes: Changes<'a>) -> Self {
        Self {
            changes,
            interfaces: Vec::new(),
            left_out: LeftOut::default(),
            copied: Copied::default(),
        }
    }

    fn change(
        &mut self,
        record: Option<Record>,
        block: &mut [u8],
        endianness: Endianness,
    ) -> Result<Changed, RewriteError> {
        match record {
            None if word(block, 0, endianness) == Some(CUSTOM_NOT_TO_COPY) => {
                return Ok(Changed::LeftOut);
            }
            None => {}
            Some(Record::Section(_)) => return Ok(self.section(block, endianness)),
            Some(Record::Damaged(damaged)) => {
                self.copied.damage.add(damaged);
                return Ok(Changed::LeftOut);
            }
            Some(Record::Interface(interface)) => {
                return self.interface(interface, block, endianness);
            }
            Some(Record::Packet(packet)) => return self.packet(packet, block, endianness),
            Some(Record::Untimed {
                interface,
                origlen,
                data,
            }) => {
                return if self.is_wanted(interface, Direction::In, origlen, &data)? {
                    Ok(Changed::InPlace)
                } else {
                    Ok(Changed::LeftOut)
                };
            }
            Some(Record::Statistics(interface, statistics)) => {
                return self.statistics(interface, &statistics, block, endianness);
            }
        }
        Ok(Changed::InPlace)
    }

    /// The length of a section is left open: the copy may have another. Options that can't be
    /// read are left out.
    fn section(&mut self, block: &mut [u8], endianness: Endianness) -> Changed {
        if self.changes.filter.is_some() {
            self.left_out.section();
        }
        block[SECTION_LENGTH..SECTION_LENGTH + 8].fill(0xff);
        if options(block, SECTION_OPTIONS, endianness).all(|option| option.is_ok()) {
            Changed::InPlace
        } else {
            let options = options_of(block, SECTION_OPTIONS, endianness);
            let less = with_options(block, SECTION_OPTIONS, &options, endianness);
            less.map_or(Changed::InPlace, Changed::Anew)
        }
    }

    fn interface(
        &mut self,
        interface: Interface,
        block: &[u8],
        endianness: Endianness,
    ) -> Result<Changed, RewriteError> {
        let mut described = interface.is_damaged.then(|| undescribed(block, endianness));
        let from = interface.tscap.as_ref().map(InterfaceOption::clock);
        if let Some((from, times)) = from.zip(self.changes.times.as_ref())
            && from != times.clock
        {
            let changed = describe(block, from, times.clock, endianness);
            described = Some(changed.ok_or(ReadError::NoRoom)?);
        }
        let expression = self.changes.filter.map(|filter| filter.expression.trim());
        if let Some(expression) = expression.filter(|it| !it.is_empty())
            && !interface.is_damaged
            && LinkType::of_file(interface.linktype.into()).is_some()
        {
            let block = described.as_deref().unwrap_or(block);
            let changed = describe_filter(block, expression, endianness);
            described = Some(changed.ok_or(ReadError::NoRoom)?);
        }
        self.interfaces.push(interface);
        Ok(described.map_or(Changed::InPlace, Changed::Anew))
    }

    fn packet(
        &mut self,
        mut packet: Packet,
        block: &mut [u8],
        endianness: Endianness,
    ) -> Result<Changed, RewriteError> {
        let (interface, direction) = (packet.interface, packet.direction);
        if !self.is_wanted(interface, direction, packet.origlen, &packet.data)? {
            return Ok(Changed::LeftOut);
        }
        let of = self.interfaces.get(packet.interface as usize);
        let of = of.and_then(|it| it.tscap.as_ref());
        if of.is_none() {
            packet.raw = None;
        }
        let times = self.changes.times.as_mut();
        let time = times.and_then(|times| (times.time)(&packet, of));
        if let Some(time) = time.filter(|_| of.is_some()) {
            put_time(&mut block[STAMP_HIGH_OFFSET..], time.0, endianness);
        }
        Ok(Changed::InPlace)
    }

    fn statistics(
        &mut self,
        interface: u32,
        statistics: &StatisticsOption,
        block: &mut [u8],
        endianness: Endianness,
    ) -> Result<Changed, RewriteError> {
        if !self.is_ours(interface) {
            return Ok(Changed::InPlace);
        }
        if let Some(times) = &mut self.changes.times {
            move_statistics(block, (times.moved)(statistics), endianness);
        }
        if self.changes.filter.is_none() {
            return Ok(Changed::InPlace);
        }
        let counted = self
            .left_out
            .account(block, interface, statistics, endianness);
        counted.map(Changed::Anew)
    }

    fn is_ours(&self, interface: u32) -> bool {
        let interface = self.interfaces.get(interface as usize);
        interface.is_some_and(|it| it.tscap.is_some())
    }

    /// Counts a packet. The filter sees what was captured of it.
    fn is_wanted(
        &mut self,
        interface: u32,
        direction: Direction,
        length: u32,
        data: &[u8],
    ) -> Result<bool, RewriteError> {
        if let Some(filter) = self.changes.filter {
            let program = filter.program_for(self.link_type(interface)?, None);
            let program = program.map_err(RewriteError::Filter)?;
            let frame = Frame {
                length,
                packet_type: packet_type(direction),
                ..Frame::received(data)
            };
            if program.verdict(&frame) == 0 {
                self.copied.filtered += 1;
                if self.is_ours(interface) {
                    self.left_out.add(interface, direction);
                }
                return Ok(false);
            }
        }
        self.copied.packets += 1;
        Ok(true)
    }

    fn link_type(&self, index: u32) -> Result<LinkType, RewriteError> {
        let interface = &self.interfaces[index as usize];
        let number = interface.linktype.into();
        LinkType::of_file(number).ok_or_else(|| RewriteError::LinkType {
            interface: match &interface.name {
                Some(name) => name.clone(),
                None => format!("interface {index}"),
            },
            linktype: number,
        })
    }
}

/// Where a section header says how long the section is, bytes; all ones say nothing.
const SECTION_LENGTH: usize = 16;

const _: () = assert!(STAMP_LOW_OFFSET == STAMP_HIGH_OFFSET + 4);

#[cfg(test)]
mod tests;
