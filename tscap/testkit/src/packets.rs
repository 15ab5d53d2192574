//! The packets of a pcapng file one by one, in little memory and time: for files
//! of millions of frames. Only what tscap writes on this machine is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes read at a time; no block is longer.
const CHUNK: usize = 4 << 20;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ENHANCED_PACKET: u32 = 6;
/// Where the data of an enhanced packet begin.
const DATA: usize = 28;
/// `epb_dropcount`: code 4, length 8.
const DROP_COUNT: u32 = 4 | 8 << 16;

/// A packet as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Index of its interface.
    pub interface: usize,
    /// Its stamp, ns since the epoch.
    pub nanos: u64,
    /// Captured bytes.
    pub data: &'a [u8],
    /// `epb_dropcount`, the only option that is looked for.
    pub drops: Option<u64>,
}

/// Hands each packet of `path` to `then`, and gives their number. A file that is
/// not of whole pcapng blocks from its first to its last byte is an error.
pub fn each(path: &Path, mut then: impl FnMut(Packet<'_>)) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; 2 * CHUNK];
    let (mut filled, mut at_start, mut packets) = (0, true, 0);
    loop {
        let read = file.read(&mut bytes[filled..])?;
        filled += read;
        let mut taken = 0;
        while let Some(block) = block(&bytes[taken..filled])? {
            if at_start && (word(block, 0), word(block, 8)) != (SECTION_HEADER, BYTE_ORDER) {
                return Err(broken("no section header of this machine's byte order"));
            }
            at_start = false;
            if word(block, 0) == ENHANCED_PACKET {
                packets += 1;
                then(packet(block)?);
            }
            taken += block.len();
        }
        bytes.copy_within(taken..filled, 0);
        filled -= taken;
        match (read, filled) {
            (0, 0) if at_start => return Err(broken("an empty file")),
            (0, 0) => return Ok(packets),
            (0, _) => return Err(broken("it ends within a block")),
            _ => {}
        }
    }
}

/// The first block of `bytes`; `None` if it is not all there.
fn block(bytes: &[u8]) -> io::Result<Option<&[u8]>> {
    if bytes.len() < 12 {
        return Ok(None);
    }
    let length = word(bytes, 4) as usize;
    if !(12..=CHUNK).contains(&length) || !length.is_multiple_of(4) {
        return Err(broken("a block of an impossible length"));
    }
    let Some(block) = bytes.get(..length) else {
        return Ok(None);
    };
    if word(block, length - 4) as usize == length {
        Ok(Some(block))
    } else {
        Err(broken("a block whose two lengths differ"))
    }
}

fn packet(block: &[u8]) -> io::Result<Packet<'_>> {
    let end = block.len() - 4;
    if end < DATA || end - DATA < word(block, 20) as usize {
        return Err(broken("a packet longer than its block"));
    }
    let data = &block[DATA..][..word(block, 20) as usize];
    let mut options = &block[DATA + data.len().next_multiple_of(4)..end];
    let mut drops = None;
    while options.len() >= 4 && word(options, 0) != 0 {
        let length = 4 + ((word(options, 0) >> 16) as usize).next_multiple_of(4);
        let option = options.get(..length);
        let option = option.ok_or_else(|| broken("an option longer than its block"))?;
        if word(option, 0) == DROP_COUNT {
            let count = option[4..].first_chunk().expect("eight bytes");
            drops = Some(u64::from_ne_bytes(*count));
        }
        options = &options[length..];
    }
    Ok(Packet {
        interface: word(block, 8) as usize,
        nanos: u64::from(word(block, 12)) << 32 | u64::from(word(block, 16)),
        data,
        drops,
    })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk().expect("four bytes");
    u32::from_ne_bytes(*word)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
