//! The record in the ring: a finished pcapng Enhanced Packet Block (EPB,
//! draft-ietf-opsawg-pcapng section 4.3) in the host's byte order.
//!
//! Two words are provisional until the converter rewrites them in place: the
//! interface word holds the program's [`crate::hook::Slot`], and the stamp words hold
//! the raw stamp of the source. Everything else is final.

/// Block type of an Enhanced Packet Block.
pub const EPB_TYPE: u32 = 6;

/// Byte offset of the block type (u32).
pub const TYPE_OFFSET: usize = 0;
/// Byte offset of the first total length (u32).
pub const LENGTH_OFFSET: usize = 4;
/// Byte offset of the interface word (u32): a [`crate::hook::Slot`] in the ring, the index
/// of the interface description in the file.
pub const INTERFACE_OFFSET: usize = 8;
/// Byte offset of the stamp's high word (u32).
pub const STAMP_HIGH_OFFSET: usize = 12;
/// Byte offset of the stamp's low word (u32).
pub const STAMP_LOW_OFFSET: usize = 16;
/// Byte offset of the captured length (u32).
pub const CAPLEN_OFFSET: usize = 20;
/// Byte offset of the frame's length on the wire (u32).
pub const ORIGLEN_OFFSET: usize = 24;
/// Byte offset of the frame's bytes.
pub const DATA_OFFSET: usize = 28;

/// Shortest frame that is recorded at XDP, bytes: an Ethernet header.
pub const MIN_FRAME: usize = 14;
/// Longest record, bytes: `bpf_xdp_load_bytes` takes no length above 0xffff
/// (kernel `net/core/filter.c`, `__bpf_xdp_load_bytes`).
pub const MAX_RECORD: usize = 0xffff;
/// Room kept in a record for options and the trailing length, bytes: raw stamp
/// (16), hardware stamp (24), flags (8), queue (8), drop count (12), end of options (4),
/// length (4).
pub const MAX_TAIL: usize = 76;
/// Most bytes of one frame that a record holds; a multiple of four.
pub const MAX_CAPLEN: usize = (MAX_RECORD - DATA_OFFSET - MAX_TAIL) & !3;

/// `epb_flags` option header: code 2, length 4.
pub const OPT_FLAGS: u32 = 2 | 4 << 16;
/// `epb_flags` value: inbound (bits 0-1 = 01).
pub const FLAGS_INBOUND: u32 = 1;
/// `epb_flags` value: outbound (bits 0-1 = 10).
pub const FLAGS_OUTBOUND: u32 = 2;
/// `epb_flags` value: the checksum was not ready, whoever sends the frame fills it in
/// (bit 9).
pub const FLAGS_CHECKSUM_NOT_READY: u32 = 1 << 9;
/// `epb_flags` value: an aggregate that is segmented later (bit 11).
pub const FLAGS_SEGMENTED_LATER: u32 = 1 << 11;
/// `epb_dropcount` option header: code 4, length 8.
pub const OPT_DROPCOUNT: u32 = 4 | 8 << 16;
/// `epb_queue` option header: code 6, length 4.
pub const OPT_QUEUE: u32 = 6 | 4 << 16;
/// Private enterprise number of our custom options: the one for documentation
/// (RFC 5612) until tscap is assigned its own.
pub const PEN: u32 = 32473;
/// Header of the raw stamp: a custom option in binary that may be copied, code
/// 2989, length 12: [`PEN`] (u32), the stamp (u64), both in the byte order of
/// the section.
pub const OPT_RAW: u32 = 2989 | 12 << 16;
/// Length of the raw stamp's option with its header, bytes.
pub const RAW_BYTES: usize = 16;
/// Offset of the raw stamp in its option, bytes.
pub const RAW_STAMP_OFFSET: usize = 8;
/// Header of the hardware stamp: a custom option in binary that may be copied, code 2989,
/// length 20: [`PEN`] (u32), the stamp of the interface's own clock (u64, ns), and how much
/// later than that the frame's own stamp was taken (i64, ns), or [`NOT_CONVERTED`]; all in
/// the byte order of the section.
pub const OPT_HARDWARE: u32 = 2989 | 20 << 16;
/// Length of the hardware stamp's option with its header, bytes.
pub const HARDWARE_BYTES: usize = 24;
/// Offset of the hardware stamp in its option, bytes.
pub const HARDWARE_STAMP_OFFSET: usize = 8;
/// Offset of the time from the hardware stamp to the frame's own, bytes.
pub const HARDWARE_DELAY_OFFSET: usize = 16;
/// In the place of that time: the interface's clock was not known well enough.
pub const NOT_CONVERTED: i64 = i64::MIN;
/// Length of the `epb_dropcount` option with its header, bytes.
pub const DROPCOUNT_BYTES: usize = 12;
/// Length of the `epb_flags` option with its header, bytes.
pub const FLAGS_BYTES: usize = 8;
/// Length of the `epb_queue` option with its header, bytes.
pub const QUEUE_BYTES: usize = 8;

/// Rounds a length up to the next multiple of four, as pcapng pads.
#[inline(always)]
pub const fn padded(len: usize) -> usize {
    (len + 3) & !3
}

/// The options that a block has, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The raw stamp.
    pub raw: bool,
    /// The hardware stamp.
    pub hardware: bool,
    /// Direction and state of the frame.
    pub flags: bool,
    /// The queue that it came by.
    pub queue: bool,
    /// Frames lost before it.
    pub drop_count: bool,
}

impl Options {
    /// Every one.
    pub const ALL: Self = Self {
        raw: true,
        hardware: true,
        flags: true,
        queue: true,
        drop_count: true,
    };

    /// Their length in bytes, with the end-of-options marker if there are any.
    #[inline(always)]
    pub const fn bytes(self) -> usize {
        let raw = if self.raw { RAW_BYTES } else { 0 };
        let hardware = if self.hardware { HARDWARE_BYTES } else { 0 };
        let flags = if self.flags { FLAGS_BYTES } else { 0 };
        let queue = if self.queue { QUEUE_BYTES } else { 0 };
        let drops = if self.drop_count { DROPCOUNT_BYTES } else { 0 };
        match raw + hardware + flags + queue + drops {
            0 => 0,
            length => length + 4,
        }
    }
}

/// Total length in bytes of a block that holds `caplen` bytes of a frame.
#[inline(always)]
pub const fn block_len(caplen: usize, options: usize) -> usize {
    DATA_OFFSET + padded(caplen) + options + 4
}

const _: () = assert!(MAX_CAPLEN.is_multiple_of(4));
const _: () = assert!(block_len(MAX_CAPLEN, Options::ALL.bytes()) <= MAX_RECORD);

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of the options with their headers as the pcapng draft has them, and 4 bytes
    /// for the end of the options.
    #[test]
    fn options_have_the_room_of_all_that_are_there_and_of_their_end() {
        const LENGTHS: [usize; 5] = [16, 24, 8, 8, 12];
        for there in 0..32 {
            let [raw, hardware, flags, queue, drop_count] =
                [0, 1, 2, 3, 4].map(|it| there >> it & 1 == 1);
            let present = LENGTHS
                .iter()
                .enumerate()
                .filter(|(it, _)| there >> it & 1 == 1);
            let sum: usize = present.map(|(_, length)| length).sum();
            let expected = if there == 0 { 0 } else { sum + 4 };
            let options = Options {
                raw,
                hardware,
                flags,
                queue,
                drop_count,
            };
            assert_eq!(options.bytes(), expected, "{there:#b}");
        }
    }
}
