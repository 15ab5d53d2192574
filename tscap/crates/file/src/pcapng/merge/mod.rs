//! Joins captures by the times of their packets, block by block.

mod error;
mod input;
mod last_statistics;
mod neighbours;
mod output;
mod parts;
mod section;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{Read, Seek, Write};

pub use error::MergeError;
pub use input::{Contradiction, InputReport};
pub use neighbours::Neighbours;
pub use parts::CaptureReport;

use input::Input;
use neighbours::Placed;
use output::Output;

/// A capture to join.
#[derive(Debug)]
pub struct Source<R> {
    /// Its name, for what is said of it.
    pub name: String,
    /// The capture, from its first byte on.
    pub from: R,
}

/// What was joined.
#[derive(Debug)]
pub struct Merged {
    /// Packets in the copy.
    pub packets: u64,
    /// Interfaces that it describes.
    pub interfaces: u32,
    /// Each file, in the order in which they were given.
    pub inputs: Vec<InputReport>,
    /// Each capture by several writers of which there are files.
    pub captures: Vec<CaptureReport>,
    /// Packets beside each other, of different files.
    pub neighbours: Neighbours,
}

/// Joins captures into one section: the packets by their times, those of the same time in
/// the order of the files. Each is as it was but for the number of its interface. The packets
/// of a file stay in their order, also where its times go back.
///
/// The interfaces of different captures stay apart; those of the files of one capture, which
/// several writers wrote, become one, with one block of statistics, whose counts are their
/// sum. Reads as it writes, in memory of a block a file. What was written before an error is
/// not a whole capture.
///
/// # Errors
/// If a file can't be read or joined with the others, or the copy not be written.
pub fn merge<R: Read + Seek>(
    sources: Vec<Source<R>>,
    to: impl Write,
) -> Result<Merged, MergeError> {
    let inputs = sources.into_iter().map(Input::open);
    let mut inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let mut output = Output::begin(&mut inputs, to)?;
    let mut heads = BinaryHeap::with_capacity(inputs.len());
    for (index, input) in inputs.iter_mut().enumerate() {
        let time = output.advance(input)?;
        heads.extend(time.map(|time| Reverse((time, index))));
    }
    let mut neighbours = Neighbours::default();
    let mut before: Option<Placed> = None;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((time, index)) = *head;
        let input = &mut inputs[index];
        output.packet(input)?;
        let placed = input.placed(index, time);
        if let Some(before) = before.replace(placed)
            && before.input != index
        {
            neighbours.count(&before, &placed, &mut output.clocks);
        }
        match output.advance(input)? {
            // The heap is put in order once it is let go.
            Some(time) => *head = Reverse((time, index)),
            None => drop(PeekMut::pop(head)),
        }
    }
    output.end(inputs, neighbours)
}

#[cfg(test)]
mod tests;
