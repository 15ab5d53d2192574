//! Frames whose every byte a reader can check.
//!
//! ```text
//! destination, source, [VLAN tags], type 0x88b5, 16 bytes of zero,
//! sequence number (u64, big endian), sequence number + offset in each byte
//! ```
//! The zeros are where `probe_bracket_*` leave their readings.

use crate::port::Port;

/// "Local experimental" (IEEE 802): no protocol listens to it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Ethernet header.
const HEADER: usize = 14;

/// A kind of frame: all that is the same in a row of frames.
#[derive(Clone, Debug)]
pub struct Frame {
    destination: [u8; 6],
    source: [u8; 6],
    tags: Vec<[u8; 4]>,
    size: usize,
}

impl Frame {
    /// Frames of `size` bytes (header included) from one end of a pair to the other.
    pub fn new(from: &Port, to: &Port, size: usize) -> Self {
        Self::between(from.mac, to.mac, size)
    }

    /// The same between two hardware addresses.
    pub fn between(source: [u8; 6], destination: [u8; 6], size: usize) -> Self {
        assert!(size >= HEADER);
        Self {
            destination,
            source,
            tags: Vec::new(),
            size,
        }
    }

    /// Adds a VLAN tag: outer first. The size grows by its four bytes.
    pub fn tagged(mut self, protocol: u16, id: u16) -> Self {
        let [p, q] = protocol.to_be_bytes();
        let [i, d] = id.to_be_bytes();
        self.tags.push([p, q, i, d]);
        self.size += 4;
        self
    }

    /// For someone else: received only in promiscuous mode.
    pub fn for_a_stranger(mut self) -> Self {
        self.destination = [0x02, 0, 0, 0, 0xbe, 0xef];
        self
    }

    /// Length in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Offset of the sequence number.
    fn number_at(&self) -> usize {
        HEADER + 4 * self.tags.len() + 16
    }

    /// The frame with the given number; frames too short for one are all alike.
    pub fn bytes(&self, number: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size);
        bytes.extend(self.destination);
        bytes.extend(self.source);
        for tag in &self.tags {
            bytes.extend(tag);
        }
        bytes.extend(ETHERTYPE);
        bytes.resize(bytes.len() + 16, 0);
        bytes.extend(number.to_be_bytes());
        for offset in bytes.len()..self.size {
            bytes.push((number as u8).wrapping_add(offset as u8));
        }
        bytes.truncate(self.size);
        bytes
    }

    /// The number in the captured bytes of such a frame.
    pub fn number(&self, bytes: &[u8]) -> u64 {
        let at = self.number_at();
        u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Panics unless `bytes` are the first bytes of frame `number`.
    #[track_caller]
    pub fn check(&self, bytes: &[u8], number: u64) {
        let expected = self.bytes(number);
        assert!(
            expected.starts_with(bytes),
            "frame {number} is not what was sent:\n{bytes:02x?}\n{expected:02x?}"
        );
    }
}
