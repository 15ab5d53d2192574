//! The drain loop: rings in, file out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::block_finisher::{BlockFinisher, Frames};
use super::block_writer::BlockWriter;
use super::file_room::FileBoundary;
use super::files::{Files, Open};
use super::finished::Finished;
use super::rings::Rings;
use super::{CloseError, ClosedFile, Guard, Idle, Output, Recalibration, Rotation, Shared};
use tscap_clock::{Conversion, CrossTimestamp, MonoNs, Observation, Reference, StepCause, Tracker};
use tscap_file::pcapng::FileWriter;
use tscap_programs::ring::{Consumer, CorruptBlock};

/// The control task gets the counts of each interface this often.
pub(super) const COUNTS_EVERY_NS: u64 = 100_000_000;

/// What the converter tells the control task.
#[derive(Debug)]
pub enum Event {
    /// As many frames as asked for were written.
    CountReached,
    /// The other end of the pipe is gone.
    ReaderGone,
    /// The output can't be written any more.
    WriteFailed {
        /// Its name, if it is one of several files.
        path: Option<PathBuf>,
        /// Why not.
        error: std::io::Error,
    },
    /// A ring holds something that is no block.
    Corrupt(CorruptBlock),
    /// The next file can't be written.
    NextFileFailed {
        /// Its name.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// As many periods as asked for are over.
    PeriodsOver,
    /// A file is complete.
    FileClosed {
        /// Which.
        file: ClosedFile,
        /// Why it does not hold what was written.
        error: Option<CloseError>,
    },
    /// Everything captured before it was asked for is written.
    Flushed {
        /// The file that began then.
        next: Option<PathBuf>,
    },
    /// A file is gone, by its ring of files or because another took its name.
    FileRemoved {
        /// Its name.
        path: PathBuf,
        /// Frames in it, if it was of this capture.
        frames: Option<u64>,
    },
    /// A file that should be gone is not.
    NotRemoved {
        /// Its name.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The system clock was set.
    Stepped {
        /// By how much, ns.
        step_ns: i64,
        /// Why.
        cause: StepCause,
    },
    /// The raw counter jumped.
    CounterJumped {
        /// By how much the clock went ahead of it, ns.
        jump_ns: i64,
    },
}

/// Where frames come from, and what their stamps mean.
pub struct Source<R> {
    /// The rings.
    pub consumers: Vec<Consumer>,
    /// The clocks that stamps are converted by.
    pub clocks: R,
    /// What is known of them.
    pub tracker: Tracker,
    /// Which frames to write, and how.
    pub frames: Frames,
}

/// The converter: what its thread owns.
pub struct Converter<R> {
    pub(super) rings: Rings,
    reference: R,
    pub(super) tracker: Tracker,
    pub(super) writer: BlockWriter,
    pub(super) files: Files,
    shared: Arc<Shared>,
    next_counts: MonoNs,
    /// Says what happens to the clock.
    tells_of_clock: bool,
}

impl<R: Reference + Reference<MonoNs>> Converter<R> {
    /// Takes over the rings and the output, to which `file` has written its
    /// headers.
    pub fn new(
        source: Source<R>,
        output: Output,
        file: FileWriter,
        shared: Arc<Shared>,
        events: UnboundedSender<Event>,
    ) -> Self {
        let Source {
            consumers,
            clocks: reference,
            tracker,
            frames,
        } = source;
        let finisher = BlockFinisher::new(file.interfaces(), consumers.len(), frames, &tracker);
        let rings = Rings::new(consumers);
        let ring_bytes = rings.ring_bytes();
        shared
            .ring_bytes
            .store(ring_bytes as u64, Ordering::Relaxed);
        let bound = tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
        let output = output.watched(Arc::clone(&shared.writes));
        let output = output.out_of_rings(ring_bytes);
        Self {
            rings,
            reference,
            writer: BlockWriter::new(finisher, output, events),
            shared,
            next_counts: tracker.mono_at(file.start()),
            files: Files::new(file, &tracker),
            tracker,
            tells_of_clock: true,
        }
    }

    /// Is one of several, which writes to `path`. What happens to the clock the first one says.
    #[must_use]
    pub fn of_several(mut self, path: PathBuf, is_first: bool) -> Self {
        self.writer.path.get_or_insert(path);
        self.tells_of_clock = is_first;
        self
    }

    /// Writes statistics this often, not every [`super::STATISTICS_EVERY`].
    #[must_use]
    pub fn with_statistics_every(mut self, period: Duration) -> Self {
        self.files.statistics_every = period;
        self
    }

    /// Writes several files: the one taken over is the first of `rotation`.
    #[must_use]
    pub fn rotating(mut self, rotation: Rotation) -> Self {
        self.files.begin(rotation, &self.tracker, &mut self.writer);
        self
    }

    /// Leaves a part of its core to others by `guard`, which this thread has made.
    pub fn set_guard(&mut self, guard: Guard) {
        self.writer.guard = Some(guard);
    }

    /// Drains until it is asked to stop and the rings are empty.
    pub fn run(mut self) -> Finished {
        let mut idle = Idle::new(self.rings.ring_bytes());
        loop {
            let stopping = self.shared.stop_requested();
            let found = if stopping {
                self.drain_with(Rings::drain_all)
            } else {
                self.drain_with(Rings::drain)
            };
            if stopping && found == 0 {
                let mut looks = 0;
                while self.tracker.wants_last_look(&mut looks) {
                    self.read_clock();
                }
                return self.into_finished();
            }
            if !stopping {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out of the rings what can be in order now; with several of them the
    /// youngest blocks stay for the next drain. Says whether there was anything.
    pub fn drain(&mut self) -> bool {
        self.drain_with(Rings::drain) > 0
    }

    /// Takes out everything: the producers have ended, so nothing is on its way
    /// any more. Says whether there was anything.
    pub fn drain_all(&mut self) -> bool {
        self.drain_with(Rings::drain_all) > 0
    }

    /// Gives how full the fullest ring was, bytes.
    fn drain_with(
        &mut self,
        drain: impl Fn(&mut Rings, &Conversion, &mut BlockWriter) -> Option<FileBoundary>,
    ) -> u64 {
        // A clock reading on either side of the look at the rings. By the first
        // one blocks are held back: what was stamped a window earlier is there.
        // The second one is later than every stamp taken out now.
        self.take_recalibration();
        self.files.asked = self.shared.take_next_file().or(self.files.asked);
        let before: MonoNs = self.reference.read();
        let peak = self.rings.look();
        let is_behind = peak > self.rings.ring_bytes() as u64 / 2;
        self.writer.output.set_behind(is_behind);
        self.writer.output.rings_hold(peak);
        self.take_joined();
        let cross = self.read_clock();
        let after = cross.mono[1];
        self.rings.hold_back(&self.tracker, &cross, before);
        let now = self.tracker.stamp_at(&cross, before);
        self.writer.finisher.clock_is_at(now);

        // An empty drain converts nothing.
        let conversion = match peak {
            0 => self.tracker.conversion(),
            _ => self.tracker.convert(),
        };
        self.writer
            .finisher
            .update_hardware(&self.shared, &self.tracker);
        self.end_file_in_time(&cross);
        while let Some(boundary) = drain(&mut self.rings, &conversion, &mut self.writer) {
            let real = conversion.to_real(boundary.stamp);
            let at = self.tracker.mono_at(real).min(after);
            self.open_file().rotate(at, boundary.begins_period);
            self.end_file_in_time(&cross);
        }
        if let Some(at) = self.files.period_over(before) {
            self.open_file().rotate(at, true);
        }
        self.shared.peak_fill.fetch_max(peak, Ordering::Relaxed);
        self.writer.flush_overdue(after);
        self.publish(after);
        peak
    }

    /// The next period begins, for this drain before the clock reading `cross`, with the
    /// first block stamped after the deadline.
    fn end_file_in_time(&mut self, cross: &CrossTimestamp) {
        self.writer.finisher.file.until = self.files.end_in_time(cross, &self.tracker);
    }

    pub(super) fn open_file(&mut self) -> Open<'_> {
        Open {
            files: &mut self.files,
            tracker: &mut self.tracker,
            writer: &mut self.writer,
            shared: &self.shared,
        }
    }

    /// Stamps from here on go by offsets that the control task has found to have
    /// moved; those before are off by at most the error that comes with them.
    fn take_recalibration(&mut self) {
        let found = self
            .shared
            .recalibrated
            .lock()
            .map(|mut found| found.take());
        if let Ok(Some(Recalibration {
            offsets,
            stamp_error_ns,
        })) = found
        {
            self.rings.set_stamp_offsets(&offsets);
            self.tracker.set_stamp_error_ns(stamp_error_ns);
        }
    }

    /// After a look at the rings: no block there is of an interface that was not announced
    /// before. When the capture ends all of them are described.
    fn take_joined(&mut self) {
        let described = self.writer.finisher.counts.len();
        let announced = self.shared.announced();
        if announced as usize > described {
            let is_over = self.shared.stop_requested();
            self.open_file().describe_joined();
            let finisher = &mut self.writer.finisher;
            finisher.announce(if is_over { 0 } else { announced });
        }
    }

    /// Reads the clock and does what is due by it.
    fn read_clock(&mut self) -> CrossTimestamp {
        let (cross, seen) = self.tracker.look(&mut self.reference);
        match seen {
            Observation::Stepped { step_ns, cause, .. } => {
                self.tell_of_clock(Event::Stepped { step_ns, cause });
                self.files.clock_was_set(cross.mono[1], &self.tracker);
            }
            Observation::CounterJumped { .. } | Observation::Agrees | Observation::Torn => {}
        }
        if let Some(jump_ns) = seen.counter_jump_ns() {
            self.tell_of_clock(Event::CounterJumped { jump_ns });
        }
        let followed = Reference::<CrossTimestamp>::followed(&mut self.reference);
        if let Some(bounds) = followed {
            self.tracker.observe_reference(bounds);
        }
        let now = cross.mono[1];
        self.tracker.look_at_raw(now, &mut self.reference);
        self.open_file().write_statistics_due(now);
        cross
    }

    fn tell_of_clock(&self, event: Event) {
        if self.tells_of_clock {
            self.writer.tell(event);
        }
    }

    fn publish(&mut self, now: MonoNs) {
        let shared = &self.shared;
        shared.drains.fetch_add(1, Ordering::Relaxed);
        let BlockWriter {
            finisher, output, ..
        } = &self.writer;
        shared.written.store(finisher.written(), Ordering::Relaxed);
        let bytes = self.files.earlier_bytes() + output.length();
        shared.bytes.store(bytes, Ordering::Relaxed);
        let bound = self.tracker.host_bound_ns();
        shared.host_bound_ns.store(bound, Ordering::Relaxed);
        if now >= self.next_counts
            && let Ok(mut counts) = shared.counts.try_lock()
        {
            counts.clone_from(&finisher.counts);
            self.next_counts = MonoNs(now.0 + COUNTS_EVERY_NS);
        }
    }

    pub(super) fn into_finished(mut self) -> Finished {
        self.writer.settle();
        Finished {
            output: self.writer.output,
            file: self.files.file,
            rotation: self.files.rotation,
            tracker: self.tracker,
            rests: self.writer.guard.as_ref().map(Guard::rests),
            finisher: self.writer.finisher,
        }
    }
}

impl<R> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl<R> std::fmt::Debug for Converter<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Converter").finish_non_exhaustive()
    }
}
