//! From a capture file to what came through.
//!
//! The file is read twice: what it says of its clock stands in statistics
//! blocks behind the packets, and all of it has to be known before the first
//! delay is counted.

use std::io::{Read, Seek, SeekFrom};

use pcap_file::DataLink;

use super::namesakes;
use super::receive_clock::{DelayBasis, ReceiveClock};
use super::report::{InterfaceReport, StreamReport};
use super::streams::{Sent, Source, Streams};
use tscap_base::text::causes::chain;
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::counted;
use tscap_file::pcapng::{Damage, Interface, ReadError, Record, records};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It does not begin as a pcapng file does.
    #[error("not a pcapng file")]
    NotPcapng(#[source] ReadError),
    /// It can't be read twice.
    #[error("cannot go back to its start")]
    Seek(#[source] std::io::Error),
}

/// Reads a pcapng file, of tscap or of another program. What can't be read of it is left out,
/// with a warning.
pub fn read<R: Read + Seek>(file: &mut R, sent: &Sent) -> Result<StreamReport, CaptureError> {
    let mut interfaces: Vec<(Interface, ReceiveClock)> = Vec::new();
    let (mut length, mut untimed) = (0, 0u64);
    let end = each_record(file, usize::MAX, |record| {
        length += 1;
        match record {
            Record::Interface(interface) => {
                let clock = ReceiveClock::of(interfaces.len(), interface.tscap.as_ref());
                interfaces.push((interface, clock));
            }
            Record::Statistics(interface, statistics) => {
                if let Some((_, clock)) = interfaces.get_mut(interface as usize) {
                    clock.take(&statistics);
                }
            }
            Record::Section(_) | Record::Packet(_) | Record::Damaged(_) => {}
            Record::Untimed { .. } => untimed += 1,
        }
    })?;
    let sources = sources(interfaces);
    let mut warnings: Vec<String> = sources.iter().filter_map(not_looked_into).collect();
    if untimed > 0 {
        warnings.push(format!(
            "not looked into: {} in simple packet blocks, which hold no times",
            counted(untimed, "frame")
        ));
    }
    let is_tscaps = sources.iter().any(|source| source.is_ours);
    let mut streams = Streams::new(sources);
    // No further than the first time: the file may be growing.
    each_record(file, length, |record| {
        if let Record::Packet(packet) = record {
            streams.add(&packet);
        }
    })?;
    let mut report = streams.report(sent);
    report.is_whole = end.is_whole();
    warnings.extend(end.warnings(is_tscaps));
    warnings.extend(report.interfaces.iter().filter_map(changed_offset));
    report.warnings = warnings;
    Ok(report)
}

/// What statistics that can't be read may hold.
pub const HIDDEN_STEPS: &str =
    "what can't be read may say that the clock was set during the capture";

/// How far a file could be read.
#[derive(Debug, Default)]
pub struct End {
    /// What was left out.
    damage: Damage,
    /// Why it was not read to its end.
    error: Option<ReadError>,
}

impl End {
    /// Whether all of it was read.
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && self.error.is_none()
    }

    /// Whether statistics of tscap's, and with them steps of the clock, may be among what could
    /// not be read.
    pub fn may_hide_steps(&self) -> bool {
        self.error.is_some() || !(self.damage.is_of_packets() || self.damage.is_torn_end())
    }

    /// What a reader must know. Of captures of tscap's, bounds are said.
    pub fn warnings(&self, is_tscaps: bool) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.damage.is_torn_end() {
            warnings.push(
                "the file ends in the middle of a block, as that of a killed capture may: read up \
                 to there"
                    .into(),
            );
        } else if !self.damage.is_none() {
            warnings.push(format!("left out: {}", self.damage.lines().join("; ")));
        }
        if is_tscaps && self.may_hide_steps() {
            warnings.push(format!(
                "{HIDDEN_STEPS}: times may be off by more than is said"
            ));
        }
        let error = self.error.as_ref();
        warnings.extend(error.map(|error| format!("read up to there: {}", chain(error))));
        warnings
    }
}

/// Hands over the first records, from the start of the file on, and what can't be read among
/// them, which does not count as a record.
pub fn each_record<R: Read + Seek>(
    file: &mut R,
    most: usize,
    mut then: impl FnMut(Record),
) -> Result<End, CaptureError> {
    file.seek(SeekFrom::Start(0)).map_err(CaptureError::Seek)?;
    let mut end = End::default();
    let mut left = most;
    let mut records = records(file).map_err(CaptureError::NotPcapng)?;
    while left > 0 {
        match records.next() {
            None => break,
            Some(Ok(Record::Damaged(damaged))) => end.damage.add(damaged),
            Some(Ok(record)) => {
                left -= 1;
                then(record);
            }
            Some(Err(error)) => {
                end.error = Some(error);
                break;
            }
        }
    }
    Ok(end)
}

fn sources(interfaces: Vec<(Interface, ReceiveClock)>) -> Vec<Source> {
    let described = interfaces.iter().map(|(it, clock)| (it, clock.times()));
    let names = namesakes::names(&described.collect::<Vec<_>>());
    let sources = interfaces.into_iter().zip(names);
    let source = |((interface, clock), name): ((Interface, ReceiveClock), _)| Source {
        name,
        is_ethernet: interface.linktype == DataLink::ETHERNET,
        is_ours: interface.tscap.is_some(),
        resolution_ns: interface.resolution_ns,
        clock,
    };
    sources.map(source).collect()
}

fn not_looked_into(source: &Source) -> Option<String> {
    let name = source
        .name
        .as_deref()
        .map_or("an interface".into(), escaped);
    (!source.is_ethernet)
        .then(|| format!("{name} is not Ethernet: its frames were counted and not looked into"))
}

fn changed_offset(interface: &InterfaceReport) -> Option<String> {
    match &interface.delay_basis {
        DelayBasis::Clocks { tai_offsets_s, .. } if tai_offsets_s.len() > 1 => Some(format!(
            "the offset of CLOCK_TAI was changed during the capture ({} s): path delays of \
             frames near a change may be wrong by as much",
            tai_offsets_s
                .iter()
                .map(i64::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
