//! Flows of a capture.
//!
//! The file is read twice: which stamps intervals can be measured by, and what is said of their
//! errors, is known only when all of it was looked at.

mod interfaces;

use std::io::{Read, Seek};

use super::flow::Packet;
use super::flows::{FlowOptions, Flows, places};
use super::schema::{Account, FlowBy, FlowReport, Place, SortOrder};
use interfaces::{Source, sources, times, warnings};
use tscap_clock::{RawStamp, RealNs};
use tscap_file::pcapng::{Origin, Packet as Captured, Record};
use tscap_filter::{Frame, Program, packet_type};
use tscap_streams::{CaptureError, Survey};

/// What is to be found in a capture.
#[derive(Clone, Debug)]
pub struct FilePlan {
    /// What flows are.
    pub options: FlowOptions,
    /// Which ones come first.
    pub sort: SortOrder,
    /// So many have histogram and series.
    pub top: usize,
    /// Only the packets that match.
    pub filter: Option<Program>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct FileResult {
    /// The time of the first packet; `None` if there is none.
    pub started: Option<RealNs>,
    /// From the first packet to the last one, s.
    pub seconds: f64,
    /// What became of the packets.
    pub account: Account,
    /// Where they were stamped.
    pub places: Vec<Place>,
    /// The flows.
    pub flows: Vec<FlowReport>,
    /// Where it was captured, as its sections say, each answer once.
    pub captured: Vec<Origin>,
    /// Whether all of the file was read.
    pub is_whole: bool,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// Gathers the flows of a pcapng file, of tscap or of another program. What can't be
/// read of it is left out, with a warning.
///
/// # Errors
/// If it is no capture, or can't be read twice.
pub fn measure_file<R: Read + Seek>(
    file: &mut R,
    plan: &FilePlan,
) -> Result<FileResult, CaptureError> {
    let survey = Survey::of(file)?;
    let (sources, clocks) = sources(&survey);
    let times = times(&survey);
    let [first_ns, last_ns] = times.map_or([0; 2], |times| times.map(|it| it.0));
    let is_gen = plan.options.by == FlowBy::Gen;
    let mut flows = Flows::new(plan.options.clone(), is_gen);
    let mut filtered = 0;
    survey.again(file, |record| match record {
        Record::Packet(packet) => {
            let source = &sources[packet.interface as usize];
            match &plan.filter {
                _ if !source.is_ethernet => flows.add_not_ethernet(source.place(packet.direction)),
                Some(filter) if !is_wanted(filter, &packet) => filtered += 1,
                _ => flows.add(&seen(&packet, source, first_ns), &clocks),
            }
        }
        Record::Untimed { .. } => flows.add_untimed(),
        Record::Section(_) | Record::Interface(_) | Record::Statistics(..) | Record::Damaged(_) => {
        }
    })?;
    let mut account = flows.account().clone();
    account.note_unrecorded("filtered", filtered);
    let frames = flows.frames();
    let flows = flows.reports(plan.top, plan.sort, &clocks);
    Ok(FileResult {
        started: times.map(|[first, _]| RealNs(first.0)),
        seconds: (last_ns - first_ns) as f64 / 1e9,
        flows,
        warnings: warnings(&survey, is_gen, &account),
        account,
        places: places(clocks, frames),
        captured: survey.captured,
        is_whole: survey.end.is_whole(),
    })
}

fn is_wanted(filter: &Program, packet: &Captured) -> bool {
    let frame = Frame {
        length: packet.origlen,
        packet_type: packet_type(packet.direction),
        ..Frame::received(&packet.data)
    };
    filter.verdict(&frame) > 0
}

fn seen<'a>(packet: &'a Captured, source: &Source, first_ns: u64) -> Packet<'a> {
    let raw = packet.raw.filter(|_| source.is_raw);
    Packet {
        place: source.place(packet.direction),
        stamp: raw.unwrap_or(RawStamp(packet.time.0)),
        at_ns: packet.time.0.saturating_sub(first_ns),
        tai: source.clock.to_tai(packet.time),
        host: source.clock.moment(packet.time, raw),
        data: &packet.data,
        origlen: packet.origlen,
    }
}

#[cfg(test)]
mod tests;
