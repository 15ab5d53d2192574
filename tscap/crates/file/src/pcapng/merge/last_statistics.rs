//! The statistics at the end of a capture, read from there: their bounds hold for all of it.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};

use pcap_file::Endianness;

use super::super::block::{INTERFACE_STATISTICS, SHORTEST, word};
use super::super::custom::StatisticsOption;
use super::super::reader::statistics_in;

/// Longest block of statistics that is looked for, bytes.
const LONGEST: u32 = 16 << 20;

/// The last statistics of each interface, as far as they stand behind all packets. It leaves
/// the place from which the file is read on at its start.
///
/// # Errors
/// If the system refuses.
pub(super) fn last_statistics(
    from: &mut (impl Read + Seek),
    endianness: Endianness,
) -> io::Result<BTreeMap<u32, StatisticsOption>> {
    let mut found = BTreeMap::new();
    let mut end = from.seek(SeekFrom::End(0))?;
    while let Some(block) = block_before(from, end, endianness)? {
        let is_statistics = word(&block, 0, endianness) == Some(INTERFACE_STATISTICS);
        let interface = word(&block, 8, endianness).filter(|_| is_statistics);
        let Some(interface) = interface else { break };
        // What can't be read is found again, and named, on the way there.
        if let Ok(Some(statistics)) = statistics_in(&block, endianness) {
            found.entry(interface).or_insert(statistics);
        }
        end -= block.len() as u64;
    }
    from.rewind()?;
    Ok(found)
}

/// The block that ends there; `None` if none does, as in a file that was cut.
fn block_before(
    from: &mut (impl Read + Seek),
    end: u64,
    endianness: Endianness,
) -> io::Result<Option<Vec<u8>>> {
    if end < u64::from(SHORTEST) {
        return Ok(None);
    }
    let mut last = [0; 4];
    from.seek(SeekFrom::Start(end - 4))?;
    from.read_exact(&mut last)?;
    let length = word(&last, 0, endianness).unwrap_or(0);
    let is_possible = (20..=LONGEST).contains(&length) && length.is_multiple_of(4);
    let Some(start) = end.checked_sub(length.into()).filter(|_| is_possible) else {
        return Ok(None);
    };
    from.seek(SeekFrom::Start(start))?;
    let mut block = vec![0; length as usize];
    from.read_exact(&mut block)?;
    let is_block = word(&block, 4, endianness) == Some(length);
    Ok(Some(block).filter(|_| is_block))
}
