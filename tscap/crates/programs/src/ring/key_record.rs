//! The record of a packet that was seen, as the programs of `tscap delay` leave it.

use tscap_common::block::LENGTH_OFFSET;
use tscap_common::block::{INTERFACE_OFFSET, TYPE_OFFSET, padded};
use tscap_common::hook::Slot;
use tscap_common::sighting::{
    AGGREGATE, BYTES, HARDWARE_STAMP_BYTES, KEY_HIGH_OFFSET, KEY_LOW_OFFSET, KEYED, MOST_KEPT,
    ORIGLEN_OFFSET, SPENT_BYTES, STAMPED, TIMED, UNKEYED,
};

use super::block::{CorruptBlock, corrupt, word};
use tscap_clock::{PhcNs, RawStamp};

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord<'a> {
    /// Which program has seen the packet.
    pub slot: Slot,
    /// The stamp as it was taken, with the ring's offset.
    pub stamp: RawStamp,
    /// What tells the packet from others; `None` of a frame without it.
    pub key: Option<u64>,
    /// The stamp of its interface's own clock, where that was asked for and there is one.
    pub hardware: Option<PhcNs>,
    /// Packets that it is an aggregate of; 1 where programs don't tell.
    pub segments: u32,
    /// How long the program took from its stamp until the record was written, ns; 0 where
    /// programs don't tell.
    pub spent_ns: u32,
    /// Length of the frame, bytes.
    pub origlen: u32,
    /// The bytes of the frame that were kept.
    pub kept: &'a [u8],
}

impl<'a> KeyRecord<'a> {
    /// The record at the start of `bytes`, which lies at `position`, and its length.
    #[inline]
    pub(super) fn at_start(
        bytes: &'a [u8],
        position: u64,
        stamp: RawStamp,
    ) -> Result<(Self, usize), CorruptBlock> {
        let length = word(bytes, LENGTH_OFFSET) as usize;
        let kind = word(bytes, TYPE_OFFSET);
        let spent = match kind & TIMED {
            0 => 0,
            _ => SPENT_BYTES,
        };
        let kind = kind & !TIMED;
        // What lies behind the bytes that are kept.
        let hardware = match kind {
            STAMPED => HARDWARE_STAMP_BYTES,
            _ => 0,
        };
        let behind = hardware + spent;
        let is_record = matches!(kind, KEYED | UNKEYED | AGGREGATE | STAMPED)
            && length.is_multiple_of(4)
            && (BYTES + behind..=BYTES + MOST_KEPT + behind).contains(&length)
            && length <= bytes.len();
        if !is_record {
            return Err(corrupt(bytes, position));
        }
        let origlen = word(bytes, ORIGLEN_OFFSET);
        let (kept, behind) = bytes[BYTES..length].split_at(length - BYTES - behind);
        let (hardware, spent) = behind.split_at(hardware);
        let key =
            u64::from(word(bytes, KEY_HIGH_OFFSET)) << 32 | u64::from(word(bytes, KEY_LOW_OFFSET));
        let place = word(bytes, INTERFACE_OFFSET);
        let (slot, segments) = match kind {
            AGGREGATE => (place & 0xffff, place >> 16),
            _ => (place, 1),
        };
        let record = Self {
            slot: Slot(slot),
            stamp,
            key: (kind != UNKEYED).then_some(key),
            spent_ns: match spent {
                [] => 0,
                spent => word(spent, 0),
            },
            hardware: hardware
                .first_chunk()
                .copied()
                .map(|it| PhcNs(u64::from_ne_bytes(it))),
            segments,
            origlen,
            // What pads a frame that is shorter than what is kept is none of it.
            kept: if kept.len() == padded(origlen as usize) {
                &kept[..origlen as usize]
            } else {
                kept
            },
        };
        Ok((record, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, length: u32, origlen: u32, more: usize) -> Vec<u8> {
        let words = [kind, length, 5, 1, 2, 0x89ab_cdef, 0x0123_4567, origlen];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend((0..more).map(|byte| byte as u8));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<(KeyRecord<'_>, usize), CorruptBlock> {
        KeyRecord::at_start(bytes, 77, RawStamp(9))
    }

    #[test]
    fn a_record_is_read_as_the_program_wrote_it() {
        let bytes = record(KEYED, 40, 1500, 12);
        let (read_record, length) = read(&bytes).unwrap();
        let wanted = KeyRecord {
            slot: Slot(5),
            stamp: RawStamp(9),
            key: Some(0x0123_4567_89ab_cdef),
            hardware: None,
            segments: 1,
            spent_ns: 0,
            origlen: 1500,
            kept: &[0, 1, 2, 3, 4, 5, 6, 7],
        };
        assert_eq!((read_record, length), (wanted, 40));
        let mut bytes = record(AGGREGATE, 32, 4500, 0);
        bytes[INTERFACE_OFFSET..][..4].copy_from_slice(&(3_u32 << 16 | 5).to_ne_bytes());
        let (aggregate, _) = read(&bytes).unwrap();
        assert_eq!((aggregate.slot, aggregate.segments), (Slot(5), 3));
        assert_eq!(aggregate.key, wanted.key);
        // Behind the bytes that are kept, which the pad bytes are none of.
        let mut bytes = record(STAMPED, 44, 2, 4);
        bytes.extend(37_000_000_001_u64.to_ne_bytes());
        let (stamped, length) = read(&bytes).unwrap();
        assert_eq!(stamped.hardware, Some(PhcNs(37_000_000_001)));
        assert_eq!(
            (stamped.kept, stamped.key, length),
            (&[0, 1][..], wanted.key, 44)
        );
        // How long the program took is behind all of it.
        for (kind, hardware) in [(KEYED, None), (STAMPED, Some(PhcNs(37_000_000_001)))] {
            let more = hardware.map_or(0, |_| HARDWARE_STAMP_BYTES as u32);
            let mut bytes = record(kind | TIMED, 40 + more, 2, 4);
            let stamp = 37_000_000_001_u64.to_ne_bytes();
            bytes.extend(hardware.map_or(&[][..], |_| &stamp));
            bytes.extend(451_u32.to_ne_bytes());
            let (timed, _) = read(&bytes).unwrap();
            assert_eq!((timed.spent_ns, timed.hardware), (451, hardware));
            assert_eq!((timed.kept, timed.key), (&[0, 1][..], wanted.key));
        }
        // As many as can be.
        let bytes = record(STAMPED, (BYTES + MOST_KEPT + 8) as u32, 1500, MOST_KEPT + 8);
        assert_eq!(read(&bytes).unwrap().0.kept.len(), MOST_KEPT);
        // Of a short frame without its pad bytes.
        let bytes = record(UNKEYED, 36, 3, 4);
        let (short, _) = read(&bytes).unwrap();
        assert_eq!((short.key, short.kept), (None, &[0, 1, 2][..]));
        let bytes = record(KEYED, 32, 60, 0);
        assert!(read(&bytes).unwrap().0.kept.is_empty());
    }

    #[test]
    fn what_is_no_record_is_told() {
        for bytes in [
            record(6, 32, 60, 0),
            record(KEYED, 28, 60, 0),
            record(KEYED, 34, 60, 8),
            record(KEYED, 36, 60, 0),
            record(KEYED | TIMED, 32, 60, 0),
            record(TIMED, 36, 60, 4),
            record(STAMPED, 36, 60, 4),
            record(KEYED, (BYTES + MOST_KEPT + 4) as u32, 60, MOST_KEPT + 4),
            vec![0; 8],
        ] {
            let corrupt = read(&bytes).unwrap_err();
            assert_eq!(corrupt.position, 77);
        }
    }
}
