//! The blocks of a pcapng file as they stand in it (draft-ietf-opsawg-pcapng,
//! section 3).

use std::io::{BufReader, Read};
use std::ops::Range;

use pcap_file::Endianness;

use super::reader::ReadError;

/// Types of blocks.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
/// Type, length and length again: the shortest block, bytes.
pub(super) const SHORTEST: u32 = 12;
/// Longest block that is read, bytes, as by libpcap.
pub(super) const LONGEST: u32 = 16 << 20;

/// What is wrong in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockFault {
    /// The magic of a section header.
    #[error("a section header without a byte order")]
    ByteOrder,
    /// No multiple of four, or too short for what is in every block.
    #[error("no block is {0} bytes long")]
    Length(u32),
    /// More than is read.
    #[error("it is {0} bytes long, and tscap reads blocks of up to 16 MiB")]
    TooLong(u32),
    /// The lengths at its start and end.
    #[error("its length is {0} bytes at its start and {1} at its end")]
    Lengths(u32, u32),
    /// Too short for a block of its type.
    #[error("it is too short for what it holds")]
    Short,
    /// An option that does not end in the block.
    #[error("an option is longer than the block")]
    Option,
    /// A packet of an interface that was not described.
    #[error("it is of interface {0}, which is not described before it")]
    Interface(u32),
    /// More of a packet than there was.
    #[error("it holds {0} bytes of a packet of {1}")]
    Caplen(u32, u32),
    /// More interface descriptions than are read.
    #[error("the file describes more than {0} interfaces, and tscap reads up to so many")]
    Interfaces(usize),
}

/// Reads block by block, in memory of one block.
#[derive(Debug)]
pub(super) struct Blocks<R> {
    from: BufReader<R>,
    /// The latest block, whole.
    pub bytes: Vec<u8>,
    /// The byte order of its section.
    pub endianness: Endianness,
    /// Where in the file it begins.
    pub at: u64,
}

impl<R: Read> Blocks<R> {
    pub fn new(from: R) -> Self {
        Self {
            from: BufReader::with_capacity(1 << 16, from),
            bytes: Vec::new(),
            endianness: Endianness::native(),
            at: 0,
        }
    }

    /// Reads the next block, and gives its type; `None` at the end of the file.
    ///
    /// # Errors
    /// If it is no block. What comes after it can't be read then.
    pub fn next(&mut self) -> Result<Option<u32>, ReadError> {
        self.at += self.bytes.len() as u64;
        self.bytes.clear();
        self.fill(SHORTEST)?;
        let is_section = self.bytes.starts_with(&SECTION_HEADER.to_be_bytes());
        if self.at == 0 && !is_section {
            return Err(ReadError::NotPcapng);
        }
        if self.bytes.is_empty() {
            return Ok(None);
        }
        if self.bytes.len() < SHORTEST as usize {
            return Err(ReadError::Torn);
        }
        if is_section {
            self.endianness = match self.bytes[8..12] {
                [0x1a, 0x2b, 0x3c, 0x4d] => Endianness::Big,
                [0x4d, 0x3c, 0x2b, 0x1a] => Endianness::Little,
                _ => return Err(self.fault(BlockFault::ByteOrder)),
            };
        }
        let length = self.word(4);
        if length < SHORTEST || !length.is_multiple_of(4) {
            return Err(self.fault(BlockFault::Length(length)));
        }
        if length > LONGEST {
            return Err(self.fault(BlockFault::TooLong(length)));
        }
        self.fill(length)?;
        if self.bytes.len() < length as usize {
            return Err(ReadError::Torn);
        }
        match self.word(length as usize - 4) {
            last if last == length => Ok(Some(self.word(0))),
            last => Err(self.fault(BlockFault::Lengths(length, last))),
        }
    }

    /// Reads on until there is so much of the block, or the file ends.
    fn fill(&mut self, length: u32) -> Result<(), ReadError> {
        let missing = u64::from(length) - self.bytes.len() as u64;
        let mut from = self.from.by_ref().take(missing);
        from.read_to_end(&mut self.bytes).map_err(ReadError::Io)?;
        Ok(())
    }

    /// What is wrong in the latest block.
    pub fn fault(&self, fault: BlockFault) -> ReadError {
        let at = self.at;
        ReadError::Block { at, fault }
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.bytes, at, self.endianness).unwrap_or(0)
    }
}

/// Code and value of each option of a block from `at` on.
pub(super) fn options(
    block: &[u8],
    mut at: usize,
    endianness: Endianness,
) -> impl Iterator<Item = Result<(u16, Range<usize>), BlockFault>> {
    let end = block.len() - 4;
    let mut next = move || {
        let (code, length) = (
            half(block, at, endianness)?,
            half(block, at + 2, endianness)?,
        );
        let value = at + 4..at + 4 + usize::from(length);
        if code == 0 || at + 4 > end {
            return None;
        }
        at = value.end.next_multiple_of(4);
        Some(match value.end <= end {
            true => Ok((code, value)),
            false => Err(BlockFault::Option),
        })
    };
    let mut is_broken = false;
    std::iter::from_fn(move || {
        let option = if is_broken { None } else { next() };
        is_broken = matches!(option, Some(Err(_)));
        option
    })
}

pub(super) fn half(block: &[u8], at: usize, endianness: Endianness) -> Option<u16> {
    let bytes = *block.get(at..)?.first_chunk()?;
    Some(match endianness {
        Endianness::Big => u16::from_be_bytes(bytes),
        Endianness::Little => u16::from_le_bytes(bytes),
    })
}

pub(super) fn word(block: &[u8], at: usize, endianness: Endianness) -> Option<u32> {
    let bytes = *block.get(at..)?.first_chunk()?;
    Some(match endianness {
        Endianness::Big => u32::from_be_bytes(bytes),
        Endianness::Little => u32::from_le_bytes(bytes),
    })
}

/// 64 bits that are one value, as of options; a time has its high word first in either
/// byte order.
pub(super) fn long(block: &[u8], at: usize, endianness: Endianness) -> Option<u64> {
    let bytes = *block.get(at..)?.first_chunk()?;
    Some(match endianness {
        Endianness::Big => u64::from_be_bytes(bytes),
        Endianness::Little => u64::from_le_bytes(bytes),
    })
}
