//! The account of a copy that lacks packets: statistics say that they were filtered.

use std::ops::Range;

use pcap_file::Endianness;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{STATISTICS_OPTIONS, long};
use super::custom::StatisticsOption;
use super::options::{json_of_ours, long_value, options_of, with_json, with_options};
use super::record::ReadError;
use super::rewrite::RewriteError;
use crate::accounting::{Directed, Direction, Outcome, Outcomes, Totals};

/// Codes of options (draft-ietf-opsawg-pcapng, section 4.6).
pub(super) const IF_RECV: u16 = 4;
pub(super) const FILTER_ACCEPT: u16 = 6;
pub(super) const USER_DELIVERED: u16 = 8;

/// Why statistics can't say that packets were filtered.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// Of statistics that are damaged, or of another file.
    #[error("statistics count fewer packets written than stand before them in the file")]
    Written,
    /// As when captures were joined: nobody knows which packets are of which capture.
    #[error("it holds the accounts of several captures in one section")]
    Several,
}

/// How many packets are not in a copy, so far.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// By interface of the file.
    of_interface: Vec<Directed<u64>>,
    /// Of the capture, over its interfaces.
    of_capture: Directed<u64>,
    /// The capture's account, once it was read: in its last section.
    totals: Option<Totals>,
}

impl LeftOut {
    /// A packet of this interface of tscap's was left out.
    pub fn add(&mut self, interface: u32, direction: Direction) {
        let index = interface as usize;
        let length = self.of_interface.len().max(index + 1);
        self.of_interface.resize(length, Directed::default());
        self.of_interface[index][direction] += 1;
        self.of_capture[direction] += 1;
    }

    /// A section begins. It is of the next capture if the one before had the account of its
    /// capture; otherwise it is the next file of the same one.
    pub fn section(&mut self) {
        if self.totals.take().is_some() {
            self.of_capture = Directed::default();
        }
    }

    /// A block of statistics of tscap's, with those packets counted as filtered.
    pub fn account(
        &mut self,
        block: &[u8],
        interface: u32,
        statistics: &StatisticsOption,
        endianness: Endianness,
    ) -> Result<Vec<u8>, RewriteError> {
        if let Some(totals) = statistics.totals
            && *self.totals.get_or_insert(totals) != totals
        {
            return Err(AccountError::Several.into());
        }
        let left_out = self.of_interface.get(interface as usize).copied();
        let left_out = left_out.unwrap_or_default();
        let filtered = filtered(statistics.outcomes, left_out.sum());
        let mut options = Vec::new();
        for (code, value) in options_of(block, STATISTICS_OPTIONS, endianness) {
            let number = long(&value, 0, endianness).unwrap_or(0);
            let put = |number| (code, long_value(number, endianness));
            if let Some(json) = json_of_ours(code, &value, endianness) {
                let json = self.changed(json, statistics, left_out)?;
                options.push((code, with_json(&value, &json)));
                continue;
            }
            match code {
                USER_DELIVERED => options.push(put(less(number, left_out.sum())?)),
                IF_RECV => {
                    let accepted = long_value(number.saturating_sub(filtered), endianness);
                    options.extend([(code, value), (FILTER_ACCEPT, accepted)]);
                }
                FILTER_ACCEPT => {}
                _ => options.push((code, value)),
            }
        }
        let block = with_options(block, STATISTICS_OPTIONS, &options, endianness);
        Ok(block.ok_or(ReadError::NoRoom)?)
    }

    /// The JSON with other numbers. Everything else in it stays, also what a later version
    /// may add.
    fn changed(
        &self,
        json: &str,
        statistics: &StatisticsOption,
        left_out: Directed<u64>,
    ) -> Result<String, RewriteError> {
        let text: StatisticsText<'_> = serde_json::from_str(json).map_err(ReadError::Option)?;
        let count = filtered(statistics.outcomes, left_out.sum());
        let mut changes = vec![text.outcomes.change(json, count)?];
        let (sent, of_capture) = (Direction::Out, self.of_capture);
        for (text, totals, left_out) in [
            (text.sent, statistics.sent, left_out[sent]),
            (text.totals, statistics.totals, of_capture.sum()),
            (text.totals_sent, statistics.totals_sent, of_capture[sent]),
        ] {
            if let Some((text, totals)) = text.zip(totals) {
                let written = less(totals.written, left_out)?;
                changes.push((place(json, text.written.get()), written.to_string()));
                let count = filtered(totals.outcomes, left_out);
                changes.push(text.outcomes.change(json, count)?);
            }
        }
        // The last one first: the places of the others stay.
        changes.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut changed = json.to_owned();
        for (place, text) in changes {
            changed.replace_range(place, &text);
        }
        Ok(changed)
    }
}

fn filtered(outcomes: Outcomes, left_out: u64) -> u64 {
    outcomes[Outcome::Filtered].saturating_add(left_out)
}

fn less(count: u64, left_out: u64) -> Result<u64, AccountError> {
    count.checked_sub(left_out).ok_or(AccountError::Written)
}

/// Where the numbers stand in the JSON.
#[derive(Deserialize)]
struct StatisticsText<'a> {
    #[serde(borrow)]
    outcomes: OutcomesText<'a>,
    #[serde(borrow)]
    totals: Option<TotalsText<'a>>,
    #[serde(borrow)]
    sent: Option<TotalsText<'a>>,
    #[serde(borrow)]
    totals_sent: Option<TotalsText<'a>>,
}

#[derive(Deserialize)]
struct TotalsText<'a> {
    #[serde(borrow)]
    written: &'a RawValue,
    #[serde(borrow)]
    outcomes: OutcomesText<'a>,
}

/// An object of numbers by name.
#[derive(Deserialize)]
#[serde(transparent)]
struct OutcomesText<'a>(#[serde(borrow)] &'a RawValue);

impl OutcomesText<'_> {
    /// What to write where, so that `filtered` is this number. Early versions don't have it.
    fn change(&self, json: &str, filtered: u64) -> Result<(Range<usize>, String), ReadError> {
        let object = self.0.get();
        let text: FilteredText<'_> = serde_json::from_str(object)?;
        if let Some(number) = text.filtered {
            return Ok((place(json, number.get()), filtered.to_string()));
        }
        let inside = place(json, object).start + 1;
        let comma = if object[1..].trim_start().starts_with('}') {
            ""
        } else {
            ","
        };
        let text = format!("\"{}\":{filtered}{comma}", Outcome::Filtered.entry().name);
        Ok((inside..inside, text))
    }
}

#[derive(Deserialize)]
struct FilteredText<'a> {
    #[serde(borrow)]
    filtered: Option<&'a RawValue>,
}

/// Where in `json` its part stands.
fn place(json: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - json.as_ptr().addr();
    start..start + part.len()
}
