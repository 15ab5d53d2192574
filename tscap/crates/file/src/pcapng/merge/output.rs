//! The copy: descriptions and statistics of the files' interfaces under their new numbers.

use std::io::{Read, Seek, Write};

use pcap_file::Endianness;
use tscap_common::block::INTERFACE_OFFSET;

use super::super::block::{
    CUSTOM_NOT_TO_COPY, INTERFACE_STATISTICS, OBSOLETE_PACKET, word as word_at,
};
use super::super::custom::{InterfaceOption, StatisticsOption};
use super::super::options::{to_copy, word};
use super::super::reader::MOST_INTERFACES;
use super::super::record::{Interface, Record};
use super::input::{Input, Latest, OfInput};
use super::neighbours::{Bounds, Clocks, Neighbours};
use super::parts::{Capture, account, captures};
use super::section::header;
use super::{MergeError, Merged};
use tscap_clock::{FileClock, FileNs, TimeBase};

/// Where a statistics block names its interface, bytes.
const STATISTICS_INTERFACE: usize = 8;

/// The copy at work.
pub(super) struct Output<W> {
    to: W,
    endianness: Endianness,
    packets: u64,
    interfaces: u32,
    /// The clock of all times, and the file that was the first to name it.
    clock: Option<(FileClock, Option<String>, String)>,
    /// Those of all interfaces.
    pub clocks: Clocks,
    captures: Vec<Capture>,
}

impl<W: Write> Output<W> {
    /// Writes the section header.
    pub fn begin<R: Read>(inputs: &mut [Input<R>], to: W) -> Result<Self, MergeError> {
        let endianness = inputs
            .first()
            .map_or(Endianness::native(), |it| it.endianness);
        if let Some(other) = inputs.iter().find(|it| it.endianness != endianness) {
            return Err(MergeError::ByteOrder {
                first: inputs[0].report.file.clone(),
                other: other.report.file.clone(),
            });
        }
        let mut output = Self {
            to,
            endianness,
            packets: 0,
            interfaces: 0,
            clock: None,
            clocks: Clocks::default(),
            captures: captures(inputs)?,
        };
        if !inputs.is_empty() {
            let is_one = inputs.iter().all(|it| it.capture == Some(0));
            let part = output.captures.first().filter(|_| is_one);
            let header = header(inputs, part.map(|it| &it.part));
            output.write(&header)?;
        }
        Ok(output)
    }

    /// Reads on to the next packet, whose time it gives, and copies what comes before it.
    pub fn advance<R: Read + Seek>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<FileNs>, MergeError> {
        while let Some(record) = input.next()? {
            match record {
                Some(Record::Packet(packet)) => {
                    self.write_waiting(input)?;
                    input.read(packet.interface, packet.time, packet.raw);
                    return Ok(Some(packet.time));
                }
                Some(Record::Interface(interface)) => self.interface(input, &interface)?,
                Some(Record::Statistics(interface, statistics)) => {
                    self.statistics(input, interface, statistics)?;
                }
                Some(Record::Untimed { .. }) => {
                    return Err(MergeError::Untimed(input.report.file.clone()));
                }
                Some(Record::Damaged(damaged)) => input.pass_over(damaged),
                Some(Record::Section(_)) => {
                    return Err(MergeError::Sections(input.report.file.clone()));
                }
                None => self.other(input)?,
            }
        }
        Ok(None)
    }

    /// Copies the packet that was read last.
    pub fn packet<R: Read + Seek>(&mut self, input: &mut Input<R>) -> Result<(), MergeError> {
        let (number, endianness) = (input.number_of_head(), self.endianness);
        let block = input.block();
        match word_at(block, 0, endianness) {
            // The other half of the word counts drops.
            Some(OBSOLETE_PACKET) => {
                let half = number as u16;
                let half = match endianness {
                    Endianness::Big => half.to_be_bytes(),
                    Endianness::Little => half.to_le_bytes(),
                };
                block[INTERFACE_OFFSET..INTERFACE_OFFSET + 2].copy_from_slice(&half);
            }
            _ => put_word(block, INTERFACE_OFFSET, number, endianness),
        }
        self.packets += 1;
        copy(&mut self.to, block, endianness)
    }

    fn interface<R: Read + Seek>(
        &mut self,
        input: &mut Input<R>,
        interface: &Interface,
    ) -> Result<(), MergeError> {
        let index = input.interfaces.len();
        if interface.is_damaged {
            self.undescribed(input);
            return Ok(());
        }
        let file = &input.report.file;
        let described = interface.tscap.as_ref();
        self.is_of_one_clock(file, described)?;
        let bounds = described.and_then(|described| {
            let last = input.last.get(&(index as u32));
            let last = last.or_else(|| input.last.values().next())?;
            Some(Bounds {
                stamp_ns: last.clock.stamp_error_ns,
                counter: last.clock.counter,
                clock: self.clocks.add(described, last),
            })
        });
        let block = input.reader.block().0;
        let less = to_copy(block, self.endianness, true);
        let block = less.as_deref().unwrap_or(block);
        let joined = input.capture.map(|it| &self.captures[it]);
        let known = joined.and_then(|capture| capture.interfaces.get(index)?.as_ref());
        let number = match known {
            Some((number, known)) if *known == *block => *number,
            Some(_) => {
                return Err(MergeError::Contradict {
                    first: joined.map_or_else(String::new, |it| it.first.clone()),
                    other: file.clone(),
                    what: "an interface in different ways",
                });
            }
            None => {
                let number = self.interfaces;
                if number as usize == MOST_INTERFACES {
                    return Err(MergeError::Interfaces(MOST_INTERFACES));
                }
                self.interfaces += 1;
                if let Some(capture) = input.capture {
                    let known = &mut self.captures[capture].interfaces;
                    known.resize(known.len().max(index + 1), None);
                    known[index] = Some((number, block.to_vec()));
                }
                self.to.write_all(block).map_err(MergeError::Copy)?;
                number
            }
        };
        if let Some(reference) = described.and_then(|it| it.reference.clone()) {
            input.report.reference = Some(reference);
        }
        let name = interface.name.clone();
        input.interfaces.push(OfInput {
            name: name.unwrap_or_else(|| format!("interface {index}")),
            number,
            bounds,
            packets: 0,
            latest: None,
        });
        Ok(())
    }

    /// An interface whose description can't be read is not in the copy, nor is anything of it.
    fn undescribed<R>(&mut self, input: &mut Input<R>) {
        let index = input.interfaces.len();
        if let Some(capture) = input.capture {
            let known = &mut self.captures[capture].interfaces;
            known.resize(known.len().max(index + 1), None);
        }
        input.interfaces.push(OfInput {
            name: format!("interface {index}"),
            number: 0,
            bounds: None,
            packets: 0,
            latest: None,
        });
    }

    /// Times of other programs' interfaces are of CLOCK_REALTIME.
    fn is_of_one_clock(
        &mut self,
        file: &str,
        described: Option<&InterfaceOption>,
    ) -> Result<(), MergeError> {
        let mut clock = described.map_or_else(FileClock::default, InterfaceOption::clock);
        if clock.base == TimeBase::Peer {
            // CLOCK_REALTIME of another host: whose, its neighbours ask.
            clock = FileClock::default();
        }
        if clock.base == TimeBase::Ntp {
            return Err(MergeError::OfServer(file.to_owned()));
        }
        let reference = described.and_then(|it| it.reference.clone());
        let (of, by, first) = self
            .clock
            .get_or_insert_with(|| (clock, reference.clone(), file.to_owned()));
        if *by != reference {
            let name = |it: &Option<String>| it.as_deref().unwrap_or("the host's clock").to_owned();
            return Err(MergeError::References {
                first: first.clone(),
                of: name(by),
                other: file.to_owned(),
                is: name(&reference),
            });
        }
        if *of == clock {
            Ok(())
        } else {
            Err(MergeError::Clocks {
                first: first.clone(),
                of: of.base,
                other: file.to_owned(),
                is: clock.base,
            })
        }
    }

    /// Statistics wait for what comes next in their file, so that the last ones of all files
    /// are at the end. Those of files that are joined to one capture become one block there.
    fn statistics<R: Read + Seek>(
        &mut self,
        input: &mut Input<R>,
        interface: u32,
        statistics: Box<StatisticsOption>,
    ) -> Result<(), MergeError> {
        let is_part = input.capture.is_some();
        let block = input.block();
        let less = to_copy(block, self.endianness, true);
        let mut block = less.unwrap_or_else(|| block.to_vec());
        // The reader gives those of described interfaces alone.
        let of = &mut input.interfaces[interface as usize];
        put_word(&mut block, STATISTICS_INTERFACE, of.number, self.endianness);
        let latest = Latest {
            block,
            statistics,
            after: of.packets,
            is_waiting: !is_part,
        };
        input.has_waiting |= !is_part;
        if let Some(before) = of.latest.replace(latest).filter(|it| it.is_waiting) {
            self.write(&before.block)?;
        }
        Ok(())
    }

    fn write_waiting<R>(&mut self, input: &mut Input<R>) -> Result<(), MergeError> {
        if !std::mem::take(&mut input.has_waiting) {
            return Ok(());
        }
        for of in &mut input.interfaces {
            if let Some(latest) = of.latest.as_mut().filter(|it| it.is_waiting) {
                latest.is_waiting = false;
                self.to.write_all(&latest.block).map_err(MergeError::Copy)?;
            }
        }
        Ok(())
    }

    /// A block in which tscap reads nothing.
    fn other<R: Read + Seek>(&mut self, input: &mut Input<R>) -> Result<(), MergeError> {
        let (block, endianness) = input.reader.block();
        match word_at(block, 0, endianness) {
            Some(CUSTOM_NOT_TO_COPY) => return Ok(()),
            Some(INTERFACE_STATISTICS) => {
                let interface = word_at(block, STATISTICS_INTERFACE, endianness).unwrap_or(0);
                let of = input.interfaces.get(interface as usize);
                let number = of.map_or(0, |it| it.number);
                put_word(block, STATISTICS_INTERFACE, number, endianness);
            }
            _ => {}
        }
        copy(&mut self.to, block, endianness)
    }

    /// Writes the last statistics, and says what was joined.
    pub fn end<R: Read + Seek>(
        mut self,
        mut inputs: Vec<Input<R>>,
        neighbours: Neighbours,
    ) -> Result<Merged, MergeError> {
        for input in &mut inputs {
            self.write_waiting(input)?;
            input.find_contradictions();
        }
        let mut reports = Vec::new();
        for (index, capture) in std::mem::take(&mut self.captures).iter().enumerate() {
            let of: Vec<_> = inputs
                .iter()
                .filter(|it| it.capture == Some(index))
                .collect();
            let (report, blocks) = account(capture, &of, self.endianness);
            reports.push(report);
            for block in blocks {
                self.write(&block)?;
            }
        }
        self.to.flush().map_err(MergeError::Copy)?;
        Ok(Merged {
            packets: self.packets,
            interfaces: self.interfaces,
            inputs: inputs.into_iter().map(|input| input.report).collect(),
            captures: reports,
            neighbours,
        })
    }

    fn write(&mut self, block: &[u8]) -> Result<(), MergeError> {
        self.to.write_all(block).map_err(MergeError::Copy)
    }
}

/// Writes a block that was changed.
fn copy(to: &mut impl Write, block: &[u8], endianness: Endianness) -> Result<(), MergeError> {
    let less = to_copy(block, endianness, true);
    let block = less.as_deref().unwrap_or(block);
    to.write_all(block).map_err(MergeError::Copy)
}

fn put_word(block: &mut [u8], at: usize, value: u32, endianness: Endianness) {
    block[at..at + 4].copy_from_slice(&word(value, endianness));
}
