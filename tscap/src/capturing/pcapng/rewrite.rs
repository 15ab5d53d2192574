//! Copies a capture byte for byte but for the times of its packets.

use std::io::{self, Read, Write};

use tscap_common::block::{STAMP_HIGH_OFFSET, STAMP_LOW_OFFSET};

use super::custom::{InterfaceOption, StatisticsOption};
use super::describe::{describe, move_statistics, put_time};
use super::reader::{Packet, ReadError, Reader, Record};
use crate::capturing::clock::{FileClock, FileNs};

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

/// Copies every block of a capture. `time` gives what time a packet of an interface of
/// tscap's, which is described with it, is to have, ns of `clock`, or `None` to leave it;
/// `moved` by how much a statistics block's start and the time of its making move.
/// Interfaces whose times are not in nanoseconds, and those of others, are left. Nothing
/// else changes. What was copied before an error is whole.
///
/// # Errors
/// If the capture can't be read, or the copy written.
pub fn rewrite(
    from: impl Read,
    to: &mut impl Write,
    clock: FileClock,
    mut time: impl FnMut(&Packet, Option<&InterfaceOption>) -> Option<FileNs>,
    mut moved: impl FnMut(&StatisticsOption) -> [i64; 2],
) -> Result<(), RewriteError> {
    let mut reader = Reader::new(from)?;
    let mut ours = Vec::new();
    let mut record = Some(None);
    while let Some(latest) = record {
        let (block, endianness) = reader.block();
        let of = |interface: u32| -> Option<&InterfaceOption> {
            ours.get(interface as usize).and_then(Option::as_ref)
        };
        let mut description = None;
        match latest {
            Some(Record::Interface(interface)) => {
                let other = interface.tscap.as_ref().map(InterfaceOption::clock);
                if let Some(from) = other.filter(|other| *other != clock) {
                    let described = describe(block, from, clock, endianness);
                    description = Some(described.ok_or(ReadError::NoRoom)?);
                }
                ours.push(interface.tscap);
            }
            Some(Record::Packet(mut packet)) => {
                let of = of(packet.interface);
                if of.is_none() {
                    packet.raw = None;
                }
                if let Some(time) = time(&packet, of).filter(|_| of.is_some()) {
                    put_time(&mut block[STAMP_HIGH_OFFSET..], time.0, endianness);
                }
            }
            Some(Record::Statistics(interface, statistics)) if of(interface).is_some() => {
                move_statistics(block, moved(&statistics), endianness);
            }
            _ => {}
        }
        let copied = to.write_all(description.as_deref().unwrap_or(block));
        copied.map_err(RewriteError::Copy)?;
        record = reader.next()?;
    }
    Ok(())
}

const _: () = assert!(STAMP_LOW_OFFSET == STAMP_HIGH_OFFSET + 4);
