//! The end of a capture: the accounting, and the last statistics.

use serde::{Deserialize, Serialize};

use super::{Batch, Observed, Outcomes, Output, Rotation, StampOrder};
use crate::capturing::clock::{MonoNs, Tracker};
use crate::capturing::pcapng::{Counts, FileWriter, WriteError};

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
    /// The counts.
    pub batch: Batch,
}

/// The accounting over all interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Frames that entered the program, counted at its entry.
    pub seen: u64,
    /// Frames written to the file.
    pub written: u64,
    /// Frames not written, by reason.
    pub outcomes: Outcomes,
}

impl Totals {
    /// Whether every frame seen is accounted for, exactly once.
    pub fn add_up(&self) -> bool {
        self.seen == self.written + self.outcomes.total()
    }
}

impl Finished {
    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        let earlier = self.rotation.as_ref().map_or(0, Rotation::earlier_bytes);
        earlier + self.output.length()
    }

    /// Stamps out of order.
    pub fn order(&self) -> StampOrder {
        self.batch.order(&self.tracker)
    }

    /// The accounting: `seen` as the programs counted it, `observed` their
    /// losses, both read after detaching; `other` what no interface owns.
    pub fn totals(&self, seen: u64, observed: &Observed, other: Outcomes) -> Totals {
        let mut outcomes = other;
        outcomes.unknown_interface += self.batch.unknown_interface;
        for counts in &observed.interfaces {
            outcomes += counts.losses;
        }
        for counts in &self.batch.counts {
            outcomes += counts.outcomes;
        }
        Totals {
            seen,
            written: self.batch.written(),
            outcomes,
        }
    }

    /// Writes the last statistics. A broken output is left as it is.
    pub fn write_last_statistics(
        &mut self,
        at: MonoNs,
        observed: &Observed,
        totals: &Totals,
    ) -> Result<(), WriteError> {
        // Nor behind a torn block.
        let is_torn = self.batch.is_broken() && !self.output.can_be_cut();
        if self.batch.is_reader_gone() || is_torn {
            return Ok(());
        }
        let counts = Counts {
            written: self.batch.counts.clone(),
            observed: observed.clone(),
        };
        let order = self.batch.order_in_file(&self.tracker);
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
