//! Finishes the blocks of a run in place, and keeps the counts.

use tscap_common::hook::Slot;

use super::Shared;
use super::file_room::FileRoom;
use super::hardware::{Delays, HardwareStamps};
use super::order::LatestStamp;
use super::rotation::Limits;
use tscap_clock::{Conversion, RawStamp, RealNs, Tracker, TscCycles};
use tscap_file::accounting::{Counts, Directed, Observed, Outcome, StampOrder, Written};
use tscap_programs::ring::{Block, CorruptBlock, FinalFrame, Run};

/// Which frames to write, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// At most so many; `None` for all.
    pub count: Option<u64>,
    /// With their raw stamps, which the program must have been loaded to keep.
    pub keep_raw: bool,
    /// With their hardware stamps, which the programs must have been loaded to ask for.
    pub hardware_stamps: bool,
}

/// What is done with frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Write,
    /// The capture is over: count the rest as `after_stop`.
    Stopped,
    /// The output is broken: count the rest as `write_failed`.
    Broken,
}

/// How far a run was finished.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunProgress {
    /// Bytes from the start of the run to write.
    pub to_write: usize,
    /// The last frame asked for is among them.
    pub count_reached: bool,
    /// No block where one should be.
    pub corrupt: Option<CorruptBlock>,
    /// The next block is of an interface that is not described yet.
    pub awaits_description: bool,
}

impl RunProgress {
    /// Whether it ended for a reason of its own.
    pub(super) fn is_news(&self) -> bool {
        self.count_reached || self.corrupt.is_some() || self.awaits_description
    }
}

/// Finishes blocks: their interface and their time. Counts what became of each frame.
pub struct BlockFinisher {
    /// By interface, in the file's order.
    pub counts: Vec<Directed<Written>>,
    /// Interfaces that blocks can be of; those beyond `counts` are to be described.
    announced: u32,
    /// Stamps out of order in the current file, in units of the stamp. A frame
    /// whose write fails may be among the late.
    order: StampOrder,
    /// The same in the files before it.
    earlier_order: StampOrder,
    /// Stamps that may belong to either side of a step.
    pub ambiguous: u64,
    last_stamp: Vec<RawStamp>,
    youngest: LatestStamp,
    /// Frames finished so far, those too whose write has failed since.
    finished: u64,
    /// As many as were asked for.
    last: u64,
    /// What the current file may hold.
    pub(super) file: FileRoom,
    keep_raw: bool,
    /// If they are taken.
    hardware: Option<Box<HardwareStamps>>,
    mode: Mode,
    reader_gone: bool,
    /// Of which program the latest frame was, which many others follow. Its interface is in
    /// `counts`.
    latest: Option<Slot>,
}

impl BlockFinisher {
    pub(super) fn new(interfaces: usize, rings: usize, frames: Frames, tracker: &Tracker) -> Self {
        let hardware = frames.hardware_stamps.then(|| HardwareStamps::new(tracker));
        Self {
            counts: vec![Directed::default(); interfaces],
            announced: 0,
            order: StampOrder::default(),
            earlier_order: StampOrder::default(),
            ambiguous: 0,
            last_stamp: vec![RawStamp(0); rings],
            youngest: LatestStamp::new(),
            finished: 0,
            last: frames.count.unwrap_or(u64::MAX),
            file: FileRoom::UNLIMITED,
            keep_raw: frames.keep_raw,
            hardware: hardware.map(Box::new),
            mode: Mode::Write,
            reader_gone: false,
            latest: None,
        }
    }

    /// Stamps out of order, spans in nanoseconds.
    pub fn order(&self, tracker: &Tracker) -> StampOrder {
        let mut order = self.earlier_order;
        order.add(self.order);
        in_ns(order, tracker)
    }

    /// The same in the current file.
    pub(super) fn order_in_file(&self, tracker: &Tracker) -> StampOrder {
        in_ns(self.order, tracker)
    }

    /// All counts, with what the control task has `observed`.
    pub(super) fn counts(&self, observed: &Observed) -> Counts {
        Counts {
            written: self.counts.clone(),
            observed: observed.clone(),
            hardware_bounds_ns: self.hardware_bounds_ns(),
        }
    }

    /// By interface, the greatest error of its delays so far, ns, where they are known.
    pub fn hardware_bounds_ns(&self) -> Vec<Option<u64>> {
        let hardware = self.hardware.as_ref();
        hardware.map(|it| it.bounds_ns()).unwrap_or_default()
    }

    /// Before a drain: what has been read of the interfaces' clocks.
    pub(super) fn update_hardware(&mut self, shared: &Shared, tracker: &Tracker) {
        if let Some(hardware) = &mut self.hardware {
            hardware.update(shared, tracker, &mut self.counts);
        }
    }

    /// The delays from hardware stamps to the programs, of an interface.
    pub fn delays(&self, interface: usize) -> Option<&Delays> {
        self.hardware.as_ref()?.delays(interface)
    }

    /// Frames written so far.
    pub fn written(&self) -> u64 {
        self.counts.iter().map(|counts| counts.sum().written).sum()
    }

    /// Whether the other end of the pipe is gone.
    pub(super) fn is_reader_gone(&self) -> bool {
        self.reader_gone
    }

    /// Whether the output has failed.
    pub(super) fn is_broken(&self) -> bool {
        self.mode == Mode::Broken
    }

    pub(super) fn is_writing(&self) -> bool {
        self.mode == Mode::Write
    }

    /// One more interface is described.
    pub(super) fn add_interface(&mut self) {
        self.counts.push(Directed::default());
    }

    /// Blocks can be of so many interfaces.
    pub(super) fn announce(&mut self, interfaces: u32) {
        self.announced = interfaces;
    }

    /// A file begins, with these limits.
    pub(super) fn begin_file(&mut self, limits: Limits) {
        self.earlier_order.add(std::mem::take(&mut self.order));
        self.file = FileRoom::of(limits, self.finished);
    }

    /// Whether the current file, of `length` bytes, holds as much as it may.
    #[inline]
    pub(super) fn is_file_full(&self, length: u64) -> bool {
        self.file.is_full(length, self.finished)
    }

    /// Counts the frames from here on as after the capture's end.
    pub(super) fn stop(&mut self) {
        self.mode = Mode::Stopped;
    }

    /// Counts the frames from here on as not written.
    pub(super) fn break_off(&mut self) {
        self.mode = Mode::Broken;
    }

    /// Stamps later than `now` are of a clock that has been set back since.
    pub(super) fn clock_is_at(&mut self, now: RawStamp) {
        self.youngest.forget_after(now);
    }

    /// Finishes blocks of `run`, which is of `ring`, until about `limit` bytes are taken.
    #[inline]
    pub(super) fn finish(
        &mut self,
        run: &mut Run<'_>,
        ring: usize,
        conversion: &Conversion,
        limit: usize,
    ) -> RunProgress {
        // One loop for each, with few values in it: those that are not in registers are stored
        // each time, and the stores to the ring wait behind them. 15 ns a frame of 64 bytes
        // from another CPU, where one loop for all took 21 (an EPYC, `cargo xtask bench xdp`).
        match (self.mode, conversion) {
            (Mode::Write, Conversion::Offset(offset)) => {
                let to_real = |stamp| offset.to_real(stamp);
                self.finish_by::<true>(to_real, run, ring, conversion, limit)
            }
            (Mode::Write, Conversion::Counter { clock, .. }) => {
                let to_real = |stamp: RawStamp| clock.to_real(TscCycles(stamp.0));
                self.finish_by::<true>(to_real, run, ring, conversion, limit)
            }
            _ => self.finish_by::<false>(|_| RealNs(0), run, ring, conversion, limit),
        }
    }

    /// The same by this conversion; without files it counts.
    #[inline]
    fn finish_by<const WRITES: bool>(
        &mut self,
        to_real: impl Fn(RawStamp) -> RealNs,
        run: &mut Run<'_>,
        ring: usize,
        conversion: &Conversion,
        limit: usize,
    ) -> RunProgress {
        let mut progress = RunProgress::default();
        let younger = self.youngest.elsewhere(ring);
        let perhaps_ambiguous = conversion.perhaps_ambiguous();
        let has_options = self.keep_raw || self.hardware.is_some();
        let left = self.file.full_at().min(self.last) - self.finished;
        let (mut last_stamp, mut youngest) = (self.last_stamp[ring], RawStamp(0));
        let (mut finished, mut latest, mut counted) = (0, self.latest, 0);
        while run.taken() < limit {
            let start = run.taken();
            let mut block = match run.next_block() {
                None => break,
                Some(Ok(block)) => block,
                Some(Err(corrupt)) => {
                    progress.corrupt = Some(corrupt);
                    break;
                }
            };
            let (stamp, slot) = (block.raw_stamp(), block.slot());
            if Some(slot) != latest {
                if slot.interface() as usize >= self.counts.len() {
                    run.put_back_from(start);
                    progress.awaits_description = slot.interface() < self.announced;
                    progress.corrupt = (!progress.awaits_description).then(|| run.corrupt());
                    break;
                }
                self.count_written(latest, finished - counted);
                (latest, counted) = (Some(slot), finished);
            }
            if stamp < last_stamp {
                self.order.count_decrease(last_stamp.0 - stamp.0);
                if finished > 0 {
                    youngest = youngest.max(last_stamp);
                }
            }
            last_stamp = stamp;
            if !WRITES {
                self.count_unwritten(slot);
                continue;
            }
            if stamp < younger {
                self.order.count_late(younger.0 - stamp.0);
            }
            if perhaps_ambiguous.contains(stamp) && conversion.is_ambiguous(stamp) {
                self.ambiguous += 1;
            }
            if has_options {
                block = self.with_options(block, conversion);
            }
            block.finish(slot.interface(), to_real(stamp));
            finished += 1;
            if finished == left {
                break;
            }
        }
        self.last_stamp[ring] = last_stamp;
        self.latest = latest;
        if WRITES {
            self.count_written(latest, finished - counted);
            self.finished += finished;
            progress.to_write = run.taken();
            progress.count_reached = self.finished == self.last;
            if progress.count_reached {
                self.mode = Mode::Stopped;
            }
            if finished > 0 {
                self.youngest.wrote(ring, youngest.max(last_stamp));
            }
        }
        progress
    }

    #[inline]
    fn count_written(&mut self, slot: Option<Slot>, frames: u64) {
        if let Some(slot) = slot {
            self.counts[slot.interface() as usize][slot.direction()].written += frames;
        }
    }

    /// The block with its options rewritten, where there are any. Not in the loop, which has no
    /// registers for it.
    #[cold]
    #[inline(never)]
    fn with_options<'a>(&mut self, mut block: Block<'a>, conversion: &Conversion) -> Block<'a> {
        let (stamp, slot) = (block.raw_stamp(), block.slot());
        if self.keep_raw {
            block.set_raw_option(stamp);
        }
        if let Some(hardware) = &mut self.hardware {
            let frames = hardware.finish(&mut block, slot, stamp, conversion);
            self.counts[slot.interface() as usize][slot.direction()].hardware += frames;
        }
        block
    }

    fn count_unwritten(&mut self, slot: Slot) {
        let outcomes = &mut self.counts[slot.interface() as usize][slot.direction()].outcomes;
        match self.mode {
            Mode::Broken => outcomes[Outcome::WriteFailed] += 1,
            Mode::Write | Mode::Stopped => outcomes[Outcome::AfterStop] += 1,
        }
    }

    /// After a write that failed: counts the frames that it `lost`, and writes no more from
    /// here on.
    pub(super) fn unwrite(&mut self, lost: &[FinalFrame], reader_gone: bool) {
        self.reader_gone = reader_gone;
        self.mode = if reader_gone {
            Mode::Stopped
        } else {
            Mode::Broken
        };
        for FinalFrame {
            slot,
            has_hardware_stamp,
            is_converted,
        } in lost
        {
            let counts = &mut self.counts[slot.interface() as usize][slot.direction()];
            counts.written -= 1;
            counts.hardware.with -= u64::from(*has_hardware_stamp);
            counts.hardware.unconverted -= u64::from(*has_hardware_stamp && !is_converted);
            self.count_unwritten(*slot);
        }
    }
}

fn in_ns(order: StampOrder, tracker: &Tracker) -> StampOrder {
    StampOrder {
        largest_decrease_ns: tracker.span_ns(order.largest_decrease_ns),
        largest_lateness_ns: tracker.span_ns(order.largest_lateness_ns),
        ..order
    }
}

impl std::fmt::Debug for BlockFinisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockFinisher")
            .field("counts", &self.counts)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
