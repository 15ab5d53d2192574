//! What `tscap gen` puts at the start of each frame's UDP payload: enough to
//! find the frame again and to tell when it was sent. Network byte order,
//! [`LENGTH`] bytes; what follows is zeros up to the frame's size.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 2 | [`MAGIC`] |
//! | 2 | 2 | run: the same for all frames of one run, or of one step of a sweep |
//! | 4 | 2 | flow, from 0 |
//! | 6 | 4 | sequence number within the flow, from 0; wraps |
//! | 10 | 6 | TSC at the sending, low 48 bits; 0 if the sender could not read it |
//! | 16 | 6 | CLOCK_TAI at the sending, ns, low 48 bits (wraps after 78 hours) |
//!
//! Every field begins at an even offset, so that it is made of whole words of
//! the UDP checksum.

/// "tS": marks the payload.
pub const MAGIC: u16 = 0x7453;
/// Length of the header, bytes: the payload of a 64-byte IPv4 frame.
pub const LENGTH: usize = 22;
/// Bits that a stamp has on the wire.
pub const STAMP_BITS: u32 = 48;
/// The bits of a stamp that go onto the wire.
pub const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
/// Most flows of a run.
pub const MOST_FLOWS: u32 = 1 << 14;
/// UDP source port of flow 0; the next ones follow (RFC 6335: dynamic ports).
pub const FIRST_PORT: u16 = 49_152;

/// The header, without its magic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Which run.
    pub run: u16,
    /// Which flow of it.
    pub flow: u16,
    /// Which frame of the flow.
    pub seq: u32,
    /// TSC at the sending, cycles, low 48 bits; 0 for none.
    pub tsc: u64,
    /// CLOCK_TAI at the sending, ns, low 48 bits.
    pub tai: u64,
}

impl StreamHeader {
    /// The header as the words of the checksum, in host byte order.
    #[inline(always)]
    pub const fn words(&self) -> [u16; LENGTH / 2] {
        [
            MAGIC,
            self.run,
            self.flow,
            (self.seq >> 16) as u16,
            self.seq as u16,
            (self.tsc >> 32) as u16,
            (self.tsc >> 16) as u16,
            self.tsc as u16,
            (self.tai >> 32) as u16,
            (self.tai >> 16) as u16,
            self.tai as u16,
        ]
    }

    /// The header of a payload; `None` if it has none.
    pub fn of(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = payload.first_chunk()?;
        let number = |from: usize, length: usize| {
            let bytes = bytes[from..from + length].iter();
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        (number(0, 2) == u64::from(MAGIC)).then(|| Self {
            run: number(2, 2) as u16,
            flow: number(4, 2) as u16,
            seq: number(6, 4) as u32,
            tsc: number(10, 6),
            tai: number(16, 6),
        })
    }
}

/// The sum of a checksum's words, folded and complemented (RFC 1071).
#[inline(always)]
pub const fn checksum(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The UDP checksum of a frame whose payload is zeros behind the header.
/// `fixed` is the sum of all its other words: pseudo header, destination port and
/// length. Never 0, which would mean that there is none (RFC 768).
#[inline(always)]
pub const fn udp_checksum(fixed: u32, source_port: u16, header: &[u16; LENGTH / 2]) -> u16 {
    let mut sum = fixed as u64 + source_port as u64;
    let mut word = 0;
    while word < header.len() {
        sum += header[word] as u64;
        word += 1;
    }
    match checksum(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back() {
        let header = StreamHeader {
            run: 0x1234,
            flow: 7,
            seq: 0xdead_beef,
            tsc: 0x0102_0304_0506,
            tai: STAMP_MASK,
        };
        let mut payload = [0xff; LENGTH + 1];
        for (at, word) in header.words().into_iter().enumerate() {
            payload[2 * at..2 * at + 2].copy_from_slice(&word.to_be_bytes());
        }
        assert_eq!(
            payload[..10],
            [0x74, 0x53, 0x12, 0x34, 0, 7, 0xde, 0xad, 0xbe, 0xef]
        );
        assert_eq!(StreamHeader::of(&payload), Some(header));
        assert_eq!(StreamHeader::of(&payload[..LENGTH]), Some(header));
        assert_eq!(StreamHeader::of(&payload[..LENGTH - 1]), None);
        payload[1] ^= 1;
        assert_eq!(StreamHeader::of(&payload), None);
    }

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // Section 3's example: the sum of 0001 f203 f4f5 f6f7 is 2ddf0, ddf2.
        assert_eq!(checksum(0x0001 + 0xf203 + 0xf4f5 + 0xf6f7), !0xddf2);
        assert_eq!(checksum(0xffff_ffff_ffff), !0xffff);
        // Carries in each of the folds: the sum is its value modulo 0xffff.
        for sum in [
            1 << 32,
            0x1_0001_fffe,
            0xffff_fffe_0002_ffff,
            0xffff_0001_ffff_0000,
            u64::MAX - 1,
        ] {
            assert_eq!(u64::from(!checksum(sum)), sum % 0xffff, "{sum:x}");
        }
    }

    #[test]
    fn a_udp_checksum_is_over_all_words() {
        let header = [0x8001_u16; LENGTH / 2];
        let sum = 0x1_2345 + 0x89ab + header.len() as u64 * 0x8001;
        assert_eq!(udp_checksum(0x1_2345, 0x89ab, &header), checksum(sum));
    }

    #[test]
    fn a_udp_checksum_is_never_zero() {
        assert_eq!(udp_checksum(0xfffe, 0, &[0; LENGTH / 2]), 1);
        assert_eq!(udp_checksum(0xfffe, 1, &[0; LENGTH / 2]), 0xffff);
    }
}
