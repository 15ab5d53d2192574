//! A program that writes into tscap's ring.

use anyhow::{Context, Result, ensure};
use tscap_clock::RawStamp;
use tscap_common::block::block_len;
use tscap_common::hook::{Direction, Slot};
use tscap_file::accounting::Outcome;
use tscap_filter as filter;
use tscap_host::perf::EventPriority;
use tscap_host::system::possible_cpus;
use tscap_programs::hook::{LoadOptions, Loaded, Shares, TscEvents};
use tscap_programs::ring::Consumer;

use super::Subject;

/// Number of the loopback, to which test frames belong.
const LOOPBACK: u32 = 1;

/// One of tscap's programs, with the ring of one CPU.
pub struct RingOutput {
    name: &'static str,
    loaded: Loaded,
    /// For a program that reads the TSC.
    _events: Option<TscEvents>,
    consumer: Consumer,
    /// Frames that entered the program so far, and those of them that it did not record.
    counted: [u64; 2],
}

impl RingOutput {
    /// Loads the program `name` of `object` with a filter, if one is given, and a ring
    /// for `cpu`.
    pub fn load(
        object: &[u8],
        name: &'static str,
        filter: Option<&filter::Program>,
        cpu: u32,
        snaplen: u32,
        ring_bytes: usize,
    ) -> Result<Self> {
        let cpus = [cpu];
        let mut options = LoadOptions::new(object, (ring_bytes, &cpus), possible_cpus()?);
        (options.program, options.filter, options.snaplen) = (name, filter, snaplen);
        let mut loaded = Loaded::load(&options)?;
        let rings = loaded.rings.take().context("no rings")?;
        let consumer = Consumer::all(rings).pop().context("no ring")?;
        let events = match name {
            "tscap_tsc_perf" => Some(loaded.open_tsc_events(&[cpu], EventPriority::Pinned)?),
            _ => None,
        };
        Ok(Self {
            name,
            loaded,
            _events: events,
            consumer,
            counted: [0; 2],
        })
    }

    /// An error unless the filter rejected all of the last `frames` frames.
    pub fn all_filtered(&mut self, frames: usize) -> Result<()> {
        let published = self.consumer.head() - self.consumer.next();
        ensure!(published == 0, "{published} bytes in the ring");
        self.account(frames, frames)
    }

    /// An error unless `frames` frames have entered the program since the last account,
    /// of which the filter rejected `filtered` and none was lost.
    fn account(&mut self, frames: usize, filtered: usize) -> Result<()> {
        let counters = &self.loaded.counters;
        let slot = Slot::of(0, Direction::In);
        let outcomes = counters
            .losses(&[slot], &Shares::all())?
            .remove(0)
            .remove(0);
        let lost = outcomes.lost();
        ensure!(lost == 0, "{lost} frames lost");
        let counted = [counters.seen()?.sum(), outcomes[Outcome::Filtered]];
        let before = std::mem::replace(&mut self.counted, counted);
        let [seen, rejected] = [0, 1].map(|index| counted[index] - before[index]);
        ensure!(seen == frames as u64, "{seen} frames seen");
        ensure!(rejected == filtered as u64, "{rejected} frames rejected");
        Ok(())
    }

    /// Takes every block out; returns how many there were.
    fn take_all(&mut self, caplen: usize) -> Result<usize> {
        let head = self.consumer.head();
        let mut blocks = 0;
        while let Some(mut run) = self.consumer.run(head, RawStamp::NEVER) {
            while let Some(block) = run.next_block() {
                let captured = block?.data().len();
                ensure!(captured == caplen, "captured {captured} bytes of a frame");
                blocks += 1;
            }
            let taken = run.taken();
            self.consumer.take(taken);
            self.consumer.release();
        }
        Ok(blocks)
    }
}

impl Subject for RingOutput {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, frame: &[u8], repeat: u32) -> Result<f64> {
        Ok(f64::from(self.loaded.program.run(frame, repeat)?))
    }

    fn drain(&mut self, frames: usize, caplen: usize) -> Result<()> {
        let published = self.consumer.head() - self.consumer.next();
        let expected = (frames * block_len(caplen, 0)) as u64;
        ensure!(
            published == expected,
            "{published} bytes in the ring instead of {expected}"
        );
        let blocks = self.take_all(caplen)?;
        ensure!(blocks == frames, "{blocks} blocks in the ring");
        self.account(frames, 0)
    }
}
