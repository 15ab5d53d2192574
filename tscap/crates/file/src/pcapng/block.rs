//! The blocks of a pcapng file as they stand in it (draft-ietf-opsawg-pcapng,
//! section 3).

use std::ops::Range;

use pcap_file::Endianness;
use serde::{Serialize, Serializer};
use tscap_common::block::{CAPLEN_OFFSET, DATA_OFFSET, EPB_TYPE, padded};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const OBSOLETE_PACKET: u32 = 2;
pub(super) const SIMPLE_PACKET: u32 = 3;
pub(super) const NAME_RESOLUTION: u32 = 4;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const SYSTEMD_JOURNAL: u32 = 9;
pub(super) const SECRETS: u32 = 10;
pub(super) const CUSTOM: u32 = 0x0bad;
/// A custom block that is not to be copied.
pub(super) const CUSTOM_NOT_TO_COPY: u32 = 0x4000_0bad;
/// Type, length and length again: the shortest block, bytes.
pub(super) const SHORTEST: u32 = 12;
/// Longest block that is read, bytes. libpcap and Wireshark read up to 16 MiB; secrets and
/// custom blocks may be longer.
pub(super) const LONGEST: u32 = 256 << 20;
/// Where a section header's options begin, bytes.
pub(super) const SECTION_OPTIONS: usize = 24;
/// Where an interface description's options begin, bytes.
pub(super) const DESCRIPTION_OPTIONS: usize = 16;
/// Where those of an interface statistics block begin, bytes.
pub(super) const STATISTICS_OPTIONS: usize = 20;

/// Whether a block of this type holds a packet.
pub(super) fn is_packet(kind: u32) -> bool {
    matches!(kind, EPB_TYPE | OBSOLETE_PACKET | SIMPLE_PACKET)
}

/// Whether the type is one that blocks of other programs have as well.
pub(super) fn is_known(kind: u32) -> bool {
    is_packet(kind)
        || matches!(
            kind,
            SECTION_HEADER
                | INTERFACE_DESCRIPTION
                | NAME_RESOLUTION
                | INTERFACE_STATISTICS
                | SYSTEMD_JOURNAL
                | SECRETS
                | CUSTOM
                | CUSTOM_NOT_TO_COPY
        )
}

/// Length of the shortest block of this type, bytes.
pub(super) fn least_length(kind: u32) -> usize {
    match kind {
        SECTION_HEADER => SECTION_OPTIONS + 4,
        INTERFACE_DESCRIPTION => DESCRIPTION_OPTIONS + 4,
        EPB_TYPE | OBSOLETE_PACKET => DATA_OFFSET + 4,
        SIMPLE_PACKET => 16,
        INTERFACE_STATISTICS => STATISTICS_OPTIONS + 4,
        _ => SHORTEST as usize,
    }
}

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
    #[error("it is {0} bytes long, and tscap reads blocks of up to 256 MiB")]
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
    /// The end of the file.
    #[error("the file ends within the block")]
    Torn,
    /// Zeros where blocks should be.
    #[error("nothing but zeros, as where data were not yet on the disk when the power failed")]
    Zeros,
    /// A section of a format that is not known.
    #[error("a section of pcapng {0}.{1}, and tscap reads 1.0 and 1.2")]
    Version(u16, u16),
    /// An option whose value has a fixed length, which is another one.
    #[error("its option {0} has {1} bytes, and can't have so many")]
    OptionLength(u16, usize),
    /// Times finer than 64 bits can count.
    #[error("no file can have times of its resolution (if_tsresol {0:#04x})")]
    Resolution(u8),
    /// An option under tscap's number.
    #[error("a custom option of tscap's number is not as tscap writes it")]
    Foreign,
    /// A packet or statistics of an interface whose description is damaged.
    #[error("it is of interface {0}, whose description can't be read")]
    Undescribed(u32),
    /// Behind bytes that can't be read.
    #[error("it comes behind bytes that can't be read, which may have described its interface")]
    Behind,
}

impl Serialize for BlockFault {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Where the options of a block begin that has some; `None` if it is of no known type, or too
/// short.
pub(super) fn options_at(block: &[u8], endianness: Endianness) -> Option<usize> {
    let kind = word(block, 0, endianness)?;
    let behind = |length_at, data| {
        let length = word(block, length_at, endianness)? as usize;
        Some(data + padded(length))
    };
    match kind {
        SECTION_HEADER => Some(SECTION_OPTIONS),
        INTERFACE_DESCRIPTION => Some(DESCRIPTION_OPTIONS),
        INTERFACE_STATISTICS => Some(STATISTICS_OPTIONS),
        EPB_TYPE | OBSOLETE_PACKET => behind(CAPLEN_OFFSET, DATA_OFFSET),
        SECRETS => behind(12, 16),
        NAME_RESOLUTION => {
            let mut at = 8;
            loop {
                let length = half(block, at + 2, endianness)?;
                let is_end = half(block, at, endianness)? == 0;
                at += 4 + padded(length.into());
                if is_end {
                    return Some(at);
                }
            }
        }
        _ => None,
    }
}

/// Whether the head of a block that is longer than the rest of the file may be right: its type is
/// known, and a frame with some options fills it.
pub(super) fn may_be_torn(head: &[u8], endianness: Endianness) -> bool {
    /// More than the options of a packet are, bytes.
    const OPTIONS: u64 = 1 << 18;
    let at = |at| word(head, at, endianness).map(u64::from);
    let is_filled = || {
        let frame = DATA_OFFSET as u64 + at(CAPLEN_OFFSET)? + 4;
        Some((frame..frame + OPTIONS).contains(&at(4)?))
    };
    match word(head, 0, endianness) {
        Some(EPB_TYPE | OBSOLETE_PACKET) => is_filled().unwrap_or(true),
        kind => kind.is_some_and(is_known),
    }
}

/// How long a block is by what stands in it, if the length behind that says the same.
pub(super) fn length_by_contents(bytes: &[u8], endianness: Endianness) -> Option<usize> {
    let mut at = options_at(bytes, endianness)?;
    loop {
        let ends =
            |at: usize| word(bytes, at, endianness).is_some_and(|length| length as usize == at + 4);
        if ends(at) {
            return Some(at + 4);
        }
        let code = half(bytes, at, endianness)?;
        let length = half(bytes, at + 2, endianness)?;
        at += 4 + padded(length.into());
        if code == 0 {
            return ends(at).then_some(at + 4);
        }
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
        Some(if value.end <= end {
            Ok((code, value))
        } else {
            Err(BlockFault::Option)
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
