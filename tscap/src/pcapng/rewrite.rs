//! Copies a capture byte for byte but for the times of its packets.

use std::io::{self, ErrorKind, Read, Write};

use pcap_file::Endianness;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::interface_description::InterfaceTsResolution;
use tscap_common::block::{STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET};

use super::custom::{InterfaceOption, StatisticsOption};
use super::describe::{describe, move_statistics, put_time};
use super::reader::{Packet, ReadError, interface, packet, statistics};
use crate::clock::{FileNs, TimeBase};

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
/// both at its start. `time` gives what time a packet of an interface of tscap's, which
/// is described with it, is to have, ns in `base`, or `None` to leave it; `moved` by how
/// much a statistics block's start and the time of its making move. Interfaces whose
/// times are not in nanoseconds, and those of others, are left. Nothing else changes.
/// What was copied before an error is whole.
pub fn rewrite(
    parsed: impl Read,
    mut copied: impl Read,
    to: &mut impl Write,
    base: TimeBase,
    mut time: impl FnMut(&Packet, Option<&InterfaceOption>) -> Option<FileNs>,
    mut moved: impl FnMut(&StatisticsOption) -> [i64; 2],
) -> Result<(), RewriteError> {
    let mut reader = PcapNgReader::new(parsed).map_err(ReadError::from)?;
    let mut bytes = Vec::new();
    let mut end = 0;
    let mut change = Change::None;
    let mut endianness = Endianness::native();
    let mut ours = Vec::new();
    loop {
        let length = reader.bytes_parsed() - end;
        end += length;
        bytes.clear();
        let read = copied.by_ref().take(length).read_to_end(&mut bytes);
        if read.map_err(ReadError::from)? as u64 != length {
            return Err(ReadError::from(io::Error::from(ErrorKind::UnexpectedEof)).into());
        }
        match std::mem::replace(&mut change, Change::None) {
            Change::None => {}
            Change::Packet(time) => put_time(&mut bytes[STAMP_HIGH_OFFSET..], time.0, endianness),
            Change::Description(from) => {
                let described = describe(&bytes, from, base, endianness);
                bytes = described.ok_or(ReadError::NoRoom)?;
            }
            Change::Statistics(by_ns) => move_statistics(&mut bytes, by_ns, endianness),
        }
        to.write_all(&bytes).map_err(RewriteError::Copy)?;
        change = match reader.next_block() {
            None => return Ok(()),
            Some(Err(error)) => return Err(ReadError::from(error).into()),
            Some(Ok((block, state))) => {
                endianness = state.endianness();
                match &block {
                    Block::SectionHeader(_) => ours.clear(),
                    Block::InterfaceDescription(description) => {
                        let is_nano = description.ts_resolution() == InterfaceTsResolution::NANO;
                        let interface = interface(description)?;
                        ours.push(interface.tscap.filter(|_| is_nano));
                    }
                    _ => {}
                }
                let of = |interface: u32| ours.get(interface as usize)?.as_ref();
                match &block {
                    Block::InterfaceDescription(_) => match ours.last() {
                        Some(Some(described)) if described.time_base != base => {
                            Change::Description(described.time_base)
                        }
                        _ => Change::None,
                    },
                    Block::EnhancedPacket(block) => {
                        let mut packet = packet(block, endianness);
                        let of = of(packet.interface);
                        if of.is_none() {
                            packet.raw = None;
                        }
                        let time = time(&packet, of).filter(|_| of.is_some());
                        time.map_or(Change::None, Change::Packet)
                    }
                    Block::InterfaceStatistics(block) if of(block.interface_id).is_some() => {
                        let ours = statistics(block)?;
                        ours.map_or(Change::None, |ours| Change::Statistics(moved(&ours)))
                    }
                    _ => Change::None,
                }
            }
        };
    }
}

/// What is to be changed in a block.
enum Change {
    None,
    Packet(FileNs),
    /// From this base.
    Description(TimeBase),
    Statistics([i64; 2]),
}

const _: () = assert!(STAMP_LOW_OFFSET == STAMP_HIGH_OFFSET + 4);
