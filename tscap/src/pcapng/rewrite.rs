//! Copies a capture byte for byte but for the times of its packets.

use std::io::{self, ErrorKind, Read, Write};

use pcap_file::Endianness;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::interface_description::InterfaceTsResolution;
use tscap_common::block::{STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET};

use super::reader::{Packet, ReadError, interface, packet};
use crate::clock::RealNs;

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The capture can't be read any further.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Nor its copy written.
    #[error("cannot write a block")]
    Copy(#[source] io::Error),
}

/// Copies every block of a capture, which is read twice: `parsed` and `copied` are
/// both at its start. `time` gives what time a packet is to have, ns, or `None` to
/// leave it. Raw stamps are those of tscap's own interfaces, whose times are in
/// nanoseconds: packets of others show none, and are left. Nothing else changes. What
/// was copied before an error is whole.
pub fn rewrite(
    parsed: impl Read,
    mut copied: impl Read,
    to: &mut impl Write,
    mut time: impl FnMut(&Packet) -> Option<RealNs>,
) -> Result<(), RewriteError> {
    let mut reader = PcapNgReader::new(parsed).map_err(ReadError::from)?;
    let mut bytes = Vec::new();
    let mut end = 0;
    let mut new = None;
    let mut is_ours = Vec::new();
    loop {
        let length = reader.bytes_parsed() - end;
        end += length;
        bytes.clear();
        let read = copied.by_ref().take(length).read_to_end(&mut bytes);
        if read.map_err(ReadError::from)? as u64 != length {
            return Err(ReadError::from(io::Error::from(ErrorKind::UnexpectedEof)).into());
        }
        if let Some((time, endianness)) = new.take() {
            put(&mut bytes, time, endianness);
        }
        to.write_all(&bytes).map_err(RewriteError::Copy)?;
        match reader.next_block() {
            None => return Ok(()),
            Some(Err(error)) => return Err(ReadError::from(error).into()),
            Some(Ok((Block::SectionHeader(_), _))) => is_ours.clear(),
            Some(Ok((Block::InterfaceDescription(description), _))) => {
                let is_nano = description.ts_resolution() == InterfaceTsResolution::NANO;
                is_ours.push(is_nano && interface(&description)?.tscap.is_some());
            }
            Some(Ok((Block::EnhancedPacket(block), state))) => {
                let endianness = state.endianness();
                let mut packet = packet(&block, endianness);
                if is_ours.get(packet.interface as usize) != Some(&true) {
                    packet.raw = None;
                }
                new = time(&packet)
                    .filter(|_| packet.raw.is_some())
                    .map(|time| (time, endianness));
            }
            Some(Ok(_)) => {}
        }
    }
}

/// Changes the stamp of an enhanced packet block.
fn put(block: &mut [u8], time: RealNs, endianness: Endianness) {
    let words = [
        (STAMP_HIGH_OFFSET, time.0 >> 32),
        (STAMP_LOW_OFFSET, time.0 & 0xffff_ffff),
    ];
    for (offset, word) in words {
        let word = u32::try_from(word).expect("half of it");
        let bytes = match endianness {
            Endianness::Big => word.to_be_bytes(),
            Endianness::Little => word.to_le_bytes(),
        };
        block[offset..offset + 4].copy_from_slice(&bytes);
    }
}
