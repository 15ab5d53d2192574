//! The captures that several writers wrote: their files' accounts, and the sum of them.

use std::collections::BTreeMap;
use std::io::Read;

use pcap_file::Endianness;
use serde::Serialize;
use tscap_common::block::PEN;

use super::super::account::{FILTER_ACCEPT, IF_RECV, USER_DELIVERED};
use super::super::block::{STATISTICS_OPTIONS, long, word as word_at};
use super::super::custom::{ClockOption, HardwareStatistics, PartOption, StatisticsOption};
use super::super::describe::{END_TIME, START_TIME, STATISTICS_TIME, put_time};
use super::super::options::{CUSTOM_TEXT, long_value, options_of, with_options, word};
use super::MergeError;
use super::input::{Input, Latest};
use crate::accounting::{Outcomes, Totals};

/// Codes of options (draft-ietf-opsawg-pcapng, section 4.6).
const IF_DROP: u16 = 5;
const OS_DROP: u16 = 7;

/// A capture that several writers wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaptureReport {
    /// What names it in its files.
    pub capture: String,
    /// How many writers wrote the capture, each a part of it.
    pub writers: u32,
    /// Those of which no file was given.
    pub missing: Vec<u32>,
    /// Files that do not have their account, as of a capture that was killed.
    pub without_account: Vec<String>,
    /// The sum of the accounts of the files; `None` if one of them has none.
    #[serde(flatten)]
    pub totals: Option<Totals>,
    /// Whether that says of each frame seen what became of it, and of as many that they were
    /// written as packets are in the files. Whether it does so is not known without it, nor
    /// where it does not and files can't be read wholly.
    pub adds_up: Option<bool>,
}

/// A capture whose files are joined.
#[derive(Debug)]
pub(super) struct Capture {
    pub part: PartOption,
    /// Each interface of its files: its number in the copy, and its description; `None` while
    /// no file has one that can be read.
    pub interfaces: Vec<Option<(u32, Vec<u8>)>>,
    /// The first of its files.
    pub first: String,
}

/// The captures of which there are parts; each file gets the index of its own.
pub(super) fn captures<R: Read>(inputs: &mut [Input<R>]) -> Result<Vec<Capture>, MergeError> {
    let mut captures: Vec<Capture> = Vec::new();
    let mut files: BTreeMap<(String, u32), String> = BTreeMap::new();
    for input in inputs {
        let Some(part) = input.report.part.clone() else {
            continue;
        };
        for writer in &part.parts {
            let file = input.report.file.clone();
            if let Some(first) = files.insert((part.capture.clone(), *writer), file) {
                return Err(MergeError::SameWriter {
                    first,
                    other: input.report.file.clone(),
                    writer: *writer,
                });
            }
        }
        let mut known = captures.iter();
        let known = known.position(|it| it.part.capture == part.capture);
        input.capture = Some(known.unwrap_or(captures.len()));
        match known {
            Some(index) => {
                let capture = &mut captures[index];
                if capture.part.writers != part.writers {
                    return Err(MergeError::Contradict {
                        first: capture.first.clone(),
                        other: input.report.file.clone(),
                        what: "another number of writers",
                    });
                }
                capture.part.parts.extend(part.parts);
            }
            None => captures.push(Capture {
                part,
                interfaces: Vec::new(),
                first: input.report.file.clone(),
            }),
        }
    }
    Ok(captures)
}

impl Latest {
    /// Frames seen and written, as the block counts them.
    pub fn seen_and_written(&self, endianness: Endianness) -> Option<[u64; 2]> {
        let [seen, written] = [IF_RECV, USER_DELIVERED].map(|it| self.count(it, endianness));
        Some([seen?, written?])
    }

    fn count(&self, wanted: u16, endianness: Endianness) -> Option<u64> {
        let options = options_of(&self.block, STATISTICS_OPTIONS, endianness);
        let value = options.iter().find(|(code, _)| *code == wanted);
        long(&value?.1, 0, endianness)
    }

    /// A time, whose high word comes first.
    fn time(&self, wanted: u16, endianness: Endianness) -> Option<u64> {
        let options = options_of(&self.block, STATISTICS_OPTIONS, endianness);
        let value = &options.iter().find(|(code, _)| *code == wanted)?.1;
        let [high, low] = [0, 4].map(|at| word_at(value, at, endianness));
        Some(u64::from(high?) << 32 | u64::from(low?))
    }
}

/// The account over files of one capture, and the last statistics of its interfaces, each as
/// the sum of those of the files. Without the account of one of them there are none.
pub(super) fn account<R: Read>(
    capture: &Capture,
    inputs: &[&Input<R>],
    endianness: Endianness,
) -> (CaptureReport, Vec<Vec<u8>>) {
    let totals = inputs.iter().map(|input| (*input, totals_of(input)));
    let totals: Vec<_> = totals.collect();
    let without = totals.iter().filter(|(_, totals)| totals.is_none());
    let mut report = CaptureReport {
        capture: capture.part.capture.clone(),
        writers: capture.part.writers,
        missing: capture.part.missing().collect(),
        without_account: without.map(|(it, _)| it.report.file.clone()).collect(),
        totals: None,
        adds_up: None,
    };
    if !report.without_account.is_empty() {
        return (report, Vec::new());
    }
    let mut sum = [None; 2];
    for part in totals.iter().filter_map(|(_, totals)| *totals) {
        sum = [0, 1].map(|it| summed(sum[it], part[it]));
    }
    let whole = sum[0].unwrap_or_default();
    let of_interfaces = inputs.iter().flat_map(|input| &input.interfaces);
    let seen = of_interfaces.filter_map(|it| it.latest.as_ref()?.seen_and_written(endianness));
    let seen: u64 = seen.map(|[seen, _]| seen).sum();
    let packets: u64 = inputs.iter().map(|input| input.report.packets).sum();
    let is_right = whole.add_up() && whole.seen == seen && whole.written == packets;
    report.totals = Some(whole);
    let are_whole = inputs.iter().all(|input| input.report.is_whole);
    report.adds_up = (is_right || are_whole).then_some(is_right);
    let blocks = (0..capture.interfaces.len()).filter_map(|index| {
        let of = inputs.iter().filter_map(|it| it.interfaces.get(index));
        let latest: Vec<_> = of.filter_map(|of| of.latest.as_ref()).collect();
        statistics(&latest, sum, endianness)
    });
    (report, blocks.collect())
}

/// The account that a file ends with: all of it, and what was sent of it.
fn totals_of<R: Read>(input: &Input<R>) -> Option<[Option<Totals>; 2]> {
    if input.interfaces.is_empty() && input.report.is_whole {
        return Some([Some(Totals::default()), None]);
    }
    let mut latest = input.interfaces.iter().filter_map(|it| it.latest.as_ref());
    let with = latest.find(|latest| latest.statistics.totals.is_some())?;
    Some([with.statistics.totals, with.statistics.totals_sent])
}

fn summed(one: Option<Totals>, other: Option<Totals>) -> Option<Totals> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one += other;
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

/// A block whose counts are the sums of those of the files. What the interface counted itself
/// each file has of the whole capture.
fn statistics(
    latest: &[&Latest],
    [totals, totals_sent]: [Option<Totals>; 2],
    endianness: Endianness,
) -> Option<Vec<u8>> {
    let first = latest.first()?;
    let all = || latest.iter().map(|it| &*it.statistics);
    let mut outcomes = Outcomes::default();
    all().for_each(|it| outcomes += it.outcomes);
    let statistics = StatisticsOption {
        off_cpu: all().filter_map(|it| it.off_cpu).max(),
        sent: all().fold(None, |sum, it| summed(sum, it.sent)),
        counted_in: all().find_map(|it| it.counted_in),
        counted_out: all().find_map(|it| it.counted_out),
        hardware: all()
            .filter_map(|it| it.hardware)
            .reduce(HardwareStatistics::and),
        totals_sent,
        ..StatisticsOption::new(outcomes, clock(all().map(|it| &it.clock))?, totals)
    };
    let json = serde_json::to_vec(&statistics).expect("plain structs always serialise");
    let count = |code| {
        latest
            .iter()
            .filter_map(move |it| it.count(code, endianness))
    };
    let time = |code| {
        latest
            .iter()
            .filter_map(move |it| it.time(code, endianness))
    };
    let of_time = |time| {
        let mut value = vec![0; 8];
        put_time(&mut value, time, endianness);
        value
    };
    let end = time(END_TIME).max();
    let mut options = Vec::new();
    options.extend(time(START_TIME).min().map(|it| (START_TIME, of_time(it))));
    options.extend(end.map(|it| (END_TIME, of_time(it))));
    for code in [IF_RECV, IF_DROP, FILTER_ACCEPT, OS_DROP, USER_DELIVERED] {
        let value = match code {
            IF_DROP => count(code).max(),
            _ => count(code).reduce(u64::saturating_add),
        };
        options.extend(value.map(|it| (code, long_value(it, endianness))));
    }
    let value = [&word(PEN, endianness)[..], &json].concat();
    options.push((CUSTOM_TEXT, value));
    // Under the number in the copy, which is the same in all of them.
    let mut block = first.block[..STATISTICS_OPTIONS].to_vec();
    if let Some(end) = end {
        put_time(&mut block[STATISTICS_TIME..], end, endianness);
    }
    with_options(&block, STATISTICS_OPTIONS, &options, endianness)
}

/// Bounds that hold for the stamps of all files.
fn clock<'a>(of: impl Iterator<Item = &'a ClockOption>) -> Option<ClockOption> {
    of.map(ClockOption::without_history).reduce(|mut all, it| {
        all.host_bound_ns = all.host_bound_ns.max(it.host_bound_ns);
        all.stamp_error_ns = all.stamp_error_ns.max(it.stamp_error_ns);
        let utc_bounds = all.utc_bound_ns.zip(it.utc_bound_ns);
        all.utc_bound_ns = utc_bounds.map(|(one, other)| one.max(other));
        let references = all.reference.zip(it.reference);
        all.reference = references.map(|(one, other)| one.or_greater(other));
        all.order.add(it.order);
        all
    })
}
