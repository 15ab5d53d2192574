//! Finds the blocks of a file one behind the other, also behind bytes that are none.
//!
//! A block is taken for one if it has its length at its start and at its end. Where that is not
//! so, its end is sought where its first length says, and then where what it holds and the
//! length behind that say. If blocks follow there, it is one damaged block. Otherwise the next
//! place is sought at which a block of a known type begins. A frame may hold blocks too, as
//! where a capture is sent over a network. That is why the blocks must go on for longer than any
//! frame of the section, or up to the end of the file.

use std::collections::HashSet;
use std::io::{self, Read};

use pcap_file::Endianness;
use tscap_common::block::DATA_OFFSET;

use super::block::{
    BlockFault, LONGEST, SECTION_HEADER, SHORTEST, is_known, length_by_contents, may_be_torn, word,
};
use super::damage::Damaged;
use super::record::ReadError;

/// Least that is read at once, and most, bytes.
const LEAST_READ: usize = 1 << 18;
const MOST_READ: usize = 1 << 20;
/// So many bytes are sought through before they are let go.
const SOUGHT: usize = 1 << 20;
/// The shortest block, bytes.
const LEAST: usize = SHORTEST as usize;

/// What stands in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A block of this type.
    Block(u32),
    /// What can't be read, and whether a section header is seen in it.
    Damaged(Damaged, bool),
}

/// Reads block by block, in memory of one block.
#[derive(Debug)]
pub(super) struct Blocks<R> {
    window: Window<R>,
    /// The byte order of the section.
    pub endianness: Endianness,
    /// Where in the file the latest part begins.
    pub at: u64,
    /// Its length, bytes.
    length: u64,
    /// How much of it is in memory, from its start on: all of a block.
    there: usize,
}

/// What stands at a place.
enum Frame {
    /// A block of this length, in a section of this byte order.
    Block(usize, Endianness),
    /// The end of the file.
    End,
    /// The framing is broken: where the next block begins is not known.
    Broken(BlockFault),
}

impl<R: Read> Blocks<R> {
    pub fn new(from: R) -> Self {
        Self {
            window: Window {
                from,
                bytes: Vec::new(),
                start: 0,
            },
            endianness: Endianness::native(),
            at: 0,
            length: 0,
            there: 0,
        }
    }

    /// The latest block, whole.
    pub fn bytes(&self) -> &[u8] {
        &self.window.ahead()[..self.there]
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.window.start;
        &mut self.window.bytes[start..start + self.there]
    }

    /// Length of the latest part, bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads what comes next; `None` at the end of the file. Frames of the section have
    /// `longest_frame` bytes at most.
    ///
    /// # Errors
    /// If the file does not begin with a section header, or the system refuses.
    pub fn next(&mut self, longest_frame: usize) -> Result<Option<Part>, ReadError> {
        self.at += self.length;
        self.window.start += self.there;
        (self.length, self.there) = (0, 0);
        let head = self.window.fill(LEAST).map_err(ReadError::Io)?;
        if self.at == 0 && !head.starts_with(&SECTION_HEADER.to_be_bytes()) {
            return Err(ReadError::NotPcapng);
        }
        let fault = match self.frame_at(0, self.endianness).map_err(ReadError::Io)? {
            Frame::End => return Ok(None),
            Frame::Block(length, endianness) => {
                self.endianness = endianness;
                (self.length, self.there) = (length as u64, length);
                let kind = word(self.bytes(), 0, endianness).unwrap_or(0);
                return Ok(Some(Part::Block(kind)));
            }
            Frame::Broken(fault) if self.at == 0 => return Err(ReadError::Block { at: 0, fault }),
            Frame::Broken(fault) => fault,
        };
        let passed = self.pass_over(fault, longest_frame);
        passed.map(Some).map_err(ReadError::Io)
    }

    /// What stands at a place behind the start of the latest part.
    fn frame_at(&mut self, at: usize, endianness: Endianness) -> io::Result<Frame> {
        let head = self.window.fill(at + LEAST)?.get(at..).unwrap_or_default();
        if head.is_empty() {
            return Ok(Frame::End);
        }
        if head.len() < LEAST {
            return Ok(Frame::Broken(BlockFault::Torn));
        }
        let endianness = if !head.starts_with(&SECTION_HEADER.to_be_bytes()) {
            endianness
        } else {
            match byte_order(head) {
                Some(endianness) => endianness,
                None => return Ok(Frame::Broken(BlockFault::ByteOrder)),
            }
        };
        let length = word(head, 4, endianness).unwrap_or(0);
        if length < SHORTEST || !length.is_multiple_of(4) {
            return Ok(Frame::Broken(BlockFault::Length(length)));
        }
        if length > LONGEST {
            return Ok(Frame::Broken(BlockFault::TooLong(length)));
        }
        let end = at + length as usize;
        let there = self.window.fill(end)?;
        Ok(match word(there, end - 4, endianness) {
            Some(last) if last == length => Frame::Block(length as usize, endianness),
            Some(last) => Frame::Broken(BlockFault::Lengths(length, last)),
            None => Frame::Broken(BlockFault::Torn),
        })
    }

    /// Takes what is here as damaged: a block, or all bytes up to the next one.
    fn pass_over(&mut self, fault: BlockFault, longest_frame: usize) -> io::Result<Part> {
        let damaged = |at, bytes, block, fault| Damaged {
            at,
            bytes,
            block,
            fault,
        };
        if let Some((length, kind)) = self.one_block(fault, longest_frame)? {
            (self.length, self.there) = (length as u64, length);
            let damaged = damaged(self.at, self.length, Some(kind), fault);
            return Ok(Part::Damaged(damaged, kind == SECTION_HEADER));
        }
        let is_torn = fault == BlockFault::Torn
            && may_be_torn(self.window.fill(DATA_OFFSET)?, self.endianness);
        let (are_zeros, has_section) = self.seek_block(longest_frame, is_torn)?;
        let fault = if are_zeros { BlockFault::Zeros } else { fault };
        let damaged = damaged(self.at, self.length, None, fault);
        Ok(Part::Damaged(damaged, has_section))
    }

    /// Length and type of the damaged block that is here, if its end is certain.
    fn one_block(
        &mut self,
        fault: BlockFault,
        longest_frame: usize,
    ) -> io::Result<Option<(usize, u32)>> {
        let endianness = self.endianness;
        let bytes = self.window.fill(SOUGHT)?;
        let Some(kind) = word(bytes, 0, endianness).filter(|kind| is_known(*kind)) else {
            return Ok(None);
        };
        let by_start = match fault {
            BlockFault::Lengths(first, _) => Some(first as usize),
            _ => None,
        };
        let by_contents = length_by_contents(bytes, endianness);
        for length in [by_start, by_contents].into_iter().flatten() {
            if self.go_on_at(length, longest_frame, false, &mut HashSet::new())? {
                return Ok(Some((length, kind)));
            }
        }
        Ok(None)
    }

    /// Goes on to the next place at which blocks begin, or to the end of the file. Says whether
    /// all bytes before are zeros, and whether a section header is seen in them. The last block
    /// of a file that was cut holds a frame, which may itself end with whole blocks: then none
    /// are taken for those of the file because they end where that ends.
    fn seek_block(&mut self, longest_frame: usize, is_torn: bool) -> io::Result<(bool, bool)> {
        let (mut are_zeros, mut has_section) = (true, self.is_section_header(0));
        let mut failed = HashSet::new();
        let mut at = 1;
        loop {
            let there = self.window.fill(SOUGHT)?.len();
            let is_end = there < SOUGHT;
            let mut found = None;
            while found.is_none() && at + LEAST <= there {
                let place = self.at + self.length + at as u64;
                if self.may_begin(at) && !failed.remove(&place) {
                    if self.go_on_at(at, longest_frame, is_torn, &mut failed)? {
                        found = Some(at);
                    }
                    has_section |= found.is_none() && self.is_section_header(at);
                }
                at += 1;
            }
            let end = if is_end { there } else { at };
            let passed = found.unwrap_or(end);
            are_zeros &= self.window.ahead()[..passed].iter().all(|byte| *byte == 0);
            self.length += passed as u64;
            self.window.start += passed;
            if found.is_some() || is_end {
                return Ok((are_zeros, has_section));
            }
            at = 0;
        }
    }

    /// Whether blocks follow from here on, for longer than any frame or up to the end of the
    /// file. Places from which none do are remembered, so that each is looked at once.
    fn go_on_at(
        &mut self,
        from: usize,
        longest_frame: usize,
        is_torn: bool,
        failed: &mut HashSet<u64>,
    ) -> io::Result<bool> {
        let (mut at, mut endianness) = (from, self.endianness);
        let mut places = Vec::new();
        let go_on = loop {
            let place = self.at + self.length + at as u64;
            if at - from > longest_frame {
                break true;
            }
            if failed.contains(&place) {
                break false;
            }
            match self.frame_at(at, endianness)? {
                Frame::End => break !is_torn,
                Frame::Broken(_) => break false,
                Frame::Block(length, order) => {
                    places.push(place);
                    (at, endianness) = (at + length, order);
                }
            }
        };
        if !go_on {
            failed.extend(places);
        }
        Ok(go_on)
    }

    /// Whether the type of a known block stands there.
    fn may_begin(&self, at: usize) -> bool {
        word(self.window.ahead(), at, self.endianness).is_some_and(is_known)
    }

    fn is_section_header(&self, at: usize) -> bool {
        let bytes = self.window.ahead().get(at..).unwrap_or_default();
        bytes.starts_with(&SECTION_HEADER.to_be_bytes()) && (at == 0 || byte_order(bytes).is_some())
    }
}

/// By the magic of a section header.
fn byte_order(header: &[u8]) -> Option<Endianness> {
    match header.get(8..12)? {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(Endianness::Big),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(Endianness::Little),
        _ => None,
    }
}

/// The part of a file that is in memory.
#[derive(Debug)]
struct Window<R> {
    from: R,
    bytes: Vec<u8>,
    /// What comes before is over.
    start: usize,
}

impl<R: Read> Window<R> {
    fn ahead(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Reads on until there are so many bytes, or the file ends. Gives all that are there.
    fn fill(&mut self, length: usize) -> io::Result<&[u8]> {
        while let Some(missing) = length.checked_sub(self.ahead().len()).filter(|it| *it > 0) {
            self.bytes.drain(..self.start);
            self.start = 0;
            let room = missing.clamp(LEAST_READ, MOST_READ) as u64;
            let mut from = self.from.by_ref().take(room);
            if from.read_to_end(&mut self.bytes)? == 0 {
                break;
            }
        }
        Ok(self.ahead())
    }
}

#[cfg(test)]
mod tests;
