//! The end of a capture: the accounting, and the last statistics.

use std::time::Duration;

use super::{BlockFinisher, Output, Rotation, SleepTotals};
use tscap_clock::{MonoNs, Tracker};
use tscap_file::accounting::{Directed, Observed, StampOrder, Totals};
use tscap_file::pcapng::{FileWriter, WriteError};

/// What a converter leaves when its thread has ended.
#[derive(Debug)]
pub struct Finished {
    /// The output, all blocks written.
    pub output: Output,
    pub(super) file: FileWriter,
    /// The files before the last one, if there may be any.
    pub rotation: Option<Rotation>,
    /// The clock, with every segment.
    pub tracker: Tracker,
    /// With a guard: what it took from the thread.
    pub rests: Option<SleepTotals>,
    /// The counts.
    pub finisher: BlockFinisher,
}

impl Finished {
    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        let earlier = self.rotation.as_ref().map_or(0, Rotation::earlier_bytes);
        earlier + self.output.length()
    }

    /// Bytes in all files that were written past the page cache.
    pub fn written_direct(&self) -> u64 {
        self.output.written_direct()
    }

    /// How long the disk has taken for a write at most, and the bytes that went by way of the page
    /// cache for that; `None` without a disk.
    pub fn pauses(&self) -> Option<(Duration, u64)> {
        self.output.has_disk().then(|| self.output.pauses())
    }

    /// Stamps out of order.
    pub fn order(&self) -> StampOrder {
        self.finisher.order(&self.tracker)
    }

    /// The accounting: `seen` as the programs counted it, `observed` their
    /// losses, both read after detaching; `other` what no interface owns.
    pub fn totals(&self, seen: Directed<u64>, observed: &Observed) -> Directed<Totals> {
        self.finisher.counts(observed).totals(seen)
    }

    /// Writes the last statistics. A broken output is left as it is.
    pub fn write_last_statistics(
        &mut self,
        at: MonoNs,
        observed: &Observed,
        totals: &Directed<Totals>,
    ) -> Result<(), WriteError> {
        // Nor behind a torn block.
        let is_torn = self.finisher.is_broken() && !self.output.can_be_truncated();
        if self.finisher.is_reader_gone() || is_torn {
            return Ok(());
        }
        let counts = self.finisher.counts(observed);
        let order = self.finisher.order_in_file(&self.tracker);
        let totals = Some(totals);
        let blocks = self
            .file
            .statistics(&mut self.tracker, at, &counts, order, totals)?;
        match self.output.write_final(&blocks) {
            Err(error) if !error.is_reader_gone() => Err(WriteError::Output(error.source)),
            _ => Ok(()),
        }
    }
}
