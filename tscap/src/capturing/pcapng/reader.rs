//! Reads a capture back with what tscap put into it: raw stamps and clock.

use std::io::{self, Read};

use pcap_file::{DataLink, Endianness};
use tscap_common::block::{
    CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, FLAGS_OUTBOUND, INTERFACE_OFFSET, ORIGLEN_OFFSET,
    STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET, padded,
};

use super::block::{
    BlockFault, Blocks, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, OBSOLETE_PACKET,
    SECTION_HEADER, SIMPLE_PACKET, half, long, options, word,
};
use super::custom::{InterfaceOption, PEN, StatisticsOption};
use crate::capturing::accounting::Direction;
use crate::capturing::clock::{CounterReport, FileNs, Impossible, RawStamp};

/// Why a capture can't be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("cannot read on")]
    Io(#[source] io::Error),
    /// It does not begin with a section header.
    #[error("it does not begin with a section header")]
    NotPcapng,
    /// It ends within a block.
    #[error("it ends within a block")]
    Torn,
    /// A block that can't be read.
    #[error("cannot read the block at byte {at}")]
    Block {
        /// Where it begins in the file.
        at: u64,
        /// What is wrong in it.
        #[source]
        fault: BlockFault,
    },
    /// An option under our number that is not ours.
    #[error("a custom option of tscap's number is not as tscap writes it")]
    Option(#[from] serde_json::Error),
    /// The history of the clock can't be one.
    #[error(transparent)]
    Clock(#[from] Impossible),
    /// Of another capture.
    #[error("it holds the clocks of several captures")]
    OtherClock,
    /// Of several writers, merged.
    #[error("it was merged of several writers' files, without the history of their clocks")]
    NoHistory,
    /// An option is full.
    #[error("a block has no room for what changes in it: an option holds 64 KiB at most")]
    NoRoom,
}

impl ReadError {
    /// Whether the file ends within a block, as that of a killed capture may.
    pub fn is_torn_end(&self) -> bool {
        matches!(self, Self::Torn)
    }
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// What its frames begin with.
    pub linktype: DataLink,
    /// Step of its stamps, ns; 1 if they are finer.
    pub resolution_ns: u64,
    /// How its frames were taken; `None` if another program wrote it, or its times are not
    /// in nanoseconds.
    pub tscap: Option<InterfaceOption>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its interface in the file.
    pub interface: u32,
    /// Its time in the file.
    pub time: FileNs,
    /// The stamp as it was taken, if the capture kept it: for the TSC already
    /// with its CPU's offset, so that stamps of all CPUs compare.
    pub raw: Option<RawStamp>,
    /// Which way it went, by its flags; received if it has none.
    pub direction: Direction,
    /// Its length on the wire, bytes.
    pub origlen: u32,
    /// What was captured of it.
    pub data: Vec<u8>,
}

/// What a capture holds, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "read one at a time, and descriptions are few"
)]
pub enum Record {
    /// An interface: they are numbered from 0 on, also in a file of several
    /// sections.
    Interface(Interface),
    /// A frame.
    Packet(Packet),
    /// A frame in a simple packet block, which has no time. It is of the first interface of
    /// its section.
    Untimed {
        /// Index of its interface in the file.
        interface: u32,
        /// Its length on the wire, bytes.
        origlen: u32,
        /// What was captured of it.
        data: Vec<u8>,
    },
    /// Statistics with counts and clock of the interface with this index.
    Statistics(u32, Box<StatisticsOption>),
}

/// The records of a capture: packets, descriptions and statistics of interfaces. They end
/// with the first error.
///
/// # Errors
/// If it does not begin as a pcapng file does.
pub fn records<R: Read>(
    from: R,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    let mut reader = Reader::new(from)?;
    let mut has_ended = false;
    Ok(std::iter::from_fn(move || {
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
    }))
}

/// Most interface descriptions that are read: more than any capture has, and as many as
/// obsolete packet blocks can name.
pub(super) const MOST_INTERFACES: usize = 1 << 16;

/// A capture block by block, in memory of one block and 16 bytes an interface.
#[derive(Debug)]
pub(super) struct Reader<R> {
    blocks: Blocks<R>,
    /// Interfaces of the sections before.
    earlier: usize,
    /// How each interface of the section tells times.
    scales: Vec<Scale>,
    /// Most bytes captured of a frame of the section's first interface; 0 for any.
    first_snaplen: u32,
}

impl<R: Read> Reader<R> {
    /// Reads the first section header.
    pub fn new(from: R) -> Result<Self, ReadError> {
        let mut blocks = Blocks::new(from);
        blocks.next()?;
        Ok(Self {
            blocks,
            earlier: 0,
            scales: Vec::new(),
            first_snaplen: 0,
        })
    }

    /// The latest block, whole, and its byte order.
    pub fn block(&mut self) -> (&mut [u8], Endianness) {
        (&mut self.blocks.bytes, self.blocks.endianness)
    }

    /// Where the latest block begins in the file.
    pub fn at(&self) -> u64 {
        self.blocks.at
    }

    /// Reads the next block: `None` at the end, and no record if none is in it.
    pub fn next(&mut self) -> Result<Option<Option<Record>>, ReadError> {
        let Some(kind) = self.blocks.next()? else {
            return Ok(None);
        };
        let record = match kind {
            SECTION_HEADER => {
                self.earlier += self.scales.len();
                self.scales.clear();
                None
            }
            INTERFACE_DESCRIPTION => Some(Record::Interface(self.interface()?)),
            EPB_TYPE | OBSOLETE_PACKET => {
                let packet = self.packet(kind == OBSOLETE_PACKET);
                Some(Record::Packet(packet.map_err(|it| self.blocks.fault(it))?))
            }
            SIMPLE_PACKET => {
                let packet = self.simple_packet();
                Some(packet.map_err(|it| self.blocks.fault(it))?)
            }
            INTERFACE_STATISTICS => self.statistics()?,
            _ => None,
        };
        Ok(Some(record))
    }

    fn word(&self, at: usize) -> Result<u32, BlockFault> {
        word(&self.blocks.bytes, at, self.blocks.endianness).ok_or(BlockFault::Short)
    }

    fn interface(&mut self) -> Result<Interface, ReadError> {
        if self.earlier + self.scales.len() == MOST_INTERFACES {
            return Err(self.blocks.fault(BlockFault::Interfaces(MOST_INTERFACES)));
        }
        let (block, endianness) = (&self.blocks.bytes[..], self.blocks.endianness);
        let linktype = half(block, 8, endianness).unwrap_or(0);
        let mut scale = Scale::DEFAULT;
        let (mut name, mut json) = (None, None);
        for option in options(block, 16, endianness) {
            let (code, value) = option.map_err(|it| self.blocks.fault(it))?;
            let value = &block[value];
            match code {
                IF_NAME if name.is_none() => name = Some(String::from_utf8_lossy(value).into()),
                IF_TSRESOL => scale.tsresol = *value.first().unwrap_or(&scale.tsresol),
                IF_TSOFFSET => {
                    let offset_s = long(value, 0, endianness).map(u64::cast_signed);
                    scale.offset_s = offset_s.unwrap_or(scale.offset_s);
                }
                _ => json = json.or(of_tscap(code, value, endianness)),
            }
        }
        let tscap = json.map(serde_json::from_slice).transpose()?;
        if self.scales.is_empty() {
            self.first_snaplen = word(block, 12, endianness).unwrap_or(0);
        }
        self.scales.push(scale);
        Ok(Interface {
            name,
            linktype: u32::from(linktype).into(),
            resolution_ns: scale.resolution_ns(),
            tscap: tscap.filter(|_| scale == Scale::NANO),
        })
    }

    fn packet(&self, is_obsolete: bool) -> Result<Packet, BlockFault> {
        let (block, endianness) = (&self.blocks.bytes, self.blocks.endianness);
        let interface = match is_obsolete {
            false => self.word(INTERFACE_OFFSET)?,
            // The other half counts drops.
            true => half(block, INTERFACE_OFFSET, endianness).map_or(0, u32::from),
        };
        let scale = self.scales.get(interface as usize);
        let scale = scale.ok_or(BlockFault::Interface(interface))?;
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
                (FLAGS, Some(flags)) if flags & DIRECTION == FLAGS_OUTBOUND => {
                    direction = Direction::Out;
                }
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
        if self.scales.is_empty() {
            return Err(BlockFault::Interface(0));
        }
        let origlen = self.word(SIMPLE_ORIGLEN)?;
        let caplen = match self.first_snaplen {
            0 => origlen,
            most => most.min(origlen),
        } as usize;
        if SIMPLE_DATA + padded(caplen) + 4 > self.blocks.bytes.len() {
            return Err(BlockFault::Short);
        }
        Ok(Record::Untimed {
            interface: self.earlier as u32,
            origlen,
            data: self.blocks.bytes[SIMPLE_DATA..SIMPLE_DATA + caplen].to_vec(),
        })
    }

    /// What tscap put into a statistics block, if it did.
    fn statistics(&self) -> Result<Option<Record>, ReadError> {
        let (block, endianness) = (&self.blocks.bytes, self.blocks.endianness);
        let interface = self.word(8).map_err(|it| self.blocks.fault(it))?;
        let statistics = statistics_in(block, endianness, |it| self.blocks.fault(it))?;
        let interface = (self.earlier as u32).saturating_add(interface);
        Ok(statistics.map(|it| Record::Statistics(interface, Box::new(it))))
    }
}

/// What tscap put into this statistics block, if it did.
pub(super) fn statistics_in(
    block: &[u8],
    endianness: Endianness,
    fault: impl Fn(BlockFault) -> ReadError,
) -> Result<Option<StatisticsOption>, ReadError> {
    let mut json = None;
    for option in options(block, 20, endianness) {
        let (code, value) = option.map_err(&fault)?;
        json = json.or(of_tscap(code, &block[value], endianness));
    }
    Ok(json.map(serde_json::from_slice).transpose()?)
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

/// How an interface tells times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    /// Ticks are 10^−n s, or 2^−n s if the highest bit is set (`if_tsresol`).
    tsresol: u8,
    /// From 1970 to tick 0, s (`if_tsoffset`).
    offset_s: i64,
}

impl Scale {
    const DEFAULT: Self = Self {
        tsresol: 6,
        offset_s: 0,
    };
    const NANO: Self = Self {
        tsresol: 9,
        offset_s: 0,
    };

    /// The time of a tick, rounded down; the nearest that there is before 1970 and after
    /// 2554.
    fn time(self, tick: u64) -> FileNs {
        let ns = i128::try_from(self.ns(tick)).unwrap_or(i128::MAX);
        let time = ns.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        FileNs(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
    }

    fn ns(self, ticks: u64) -> u128 {
        let (ticks, exponent) = (u128::from(ticks), u32::from(self.tsresol & 0x7f));
        match (self.tsresol & 0x80 == 0, exponent.checked_sub(9)) {
            (false, _) => (ticks * 1_000_000_000) >> exponent,
            (true, None) => ticks * 10u128.pow(9 - exponent),
            (true, Some(finer)) => 10u128.checked_pow(finer).map_or(0, |part| ticks / part),
        }
    }

    /// A tick, ns; 1 if it is shorter.
    fn resolution_ns(self) -> u64 {
        u64::try_from(self.ns(1)).map_or(u64::MAX, |ns| ns.max(1))
    }
}

/// Nanoseconds from one raw stamp to another, by the difference clock: `p̂·ΔN`
/// for a counter; for `ktime` and `tai`, which count nanoseconds, `ΔN` itself.
pub fn interval_ns(from: RawStamp, to: RawStamp, counter: Option<&CounterReport>) -> i64 {
    let cycles = to.0.abs_diff(from.0);
    let ns = counter.map_or(cycles, |counter| {
        counter.interval_rate().duration_ns(cycles)
    });
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    if to >= from { ns } else { -ns }
}

#[cfg(test)]
mod tests;
