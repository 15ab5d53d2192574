//! The thread of a measurement: takes records out of the rings, reads the clock, and tells what
//! there is once a second.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use tscap_base::failure::{Context as _, Failure};
use tscap_capture::Clocks;
use tscap_clock::{CrossTimestamp, MonoNs, Observation, RawStamp, Reference, Tracker};
use tscap_engine::{Idle, Recalibration};
use tscap_host::{affinity, caps};
use tscap_programs::ring::{Consumer, CorruptBlock};
use tscap_utc::Watched;

use super::records::{Moment, Records, Rings};
use super::sink::{ClockChange, Sink, Times};

/// A record is in its ring so long after its stamp, unless its CPU is held up for longer, ns.
const PUBLISHED_NS: u64 = 20_000_000;
/// The latest figures are told this often, ns.
const REPORT_EVERY_NS: u64 = 1_000_000_000;

/// What the thread and the control task tell each other.
#[derive(Debug)]
pub(super) struct Shared<T> {
    /// Drain what is there, and end.
    stop: AtomicBool,
    pub counted: AtomicU64,
    pub open: AtomicU64,
    /// Something else than records is in a ring.
    pub is_corrupt: AtomicBool,
    /// What a reader must know of the figures.
    warnings: Mutex<Vec<String>>,
    /// New offsets of the rings' stamps.
    pub recalibrated: Mutex<Option<Recalibration>>,
    /// The latest second, until it is told.
    pub latest: Mutex<Option<T>>,
}

/// What the thread owns.
pub(super) struct Drain<S: Sink> {
    rings: Rings,
    records: S::Records,
    clocks: Watched<Clocks>,
    tracker: Tracker,
    sink: S,
    shared: Arc<Shared<S::Latest>>,
    next_report: MonoNs,
    is_corrupt: bool,
}

/// What is left of it.
pub(super) struct Drained<S> {
    pub sink: S,
    pub tracker: Tracker,
    /// Of a time right before the last look at the rings.
    pub end: RawStamp,
}

/// The thread. When it is dropped, it ends.
pub(super) struct Worker<S: Sink> {
    pub shared: Arc<Shared<S::Latest>>,
    /// Gives nothing if it never took anything out.
    thread: Option<JoinHandle<Option<Drained<S>>>>,
}

impl<S: Sink> Drain<S> {
    pub fn new(
        consumers: Vec<Consumer>,
        (mut clocks, tracker): (Watched<Clocks>, Tracker),
        sink: S,
    ) -> Self {
        let now: MonoNs = clocks.read();
        Self {
            records: S::Records::new(consumers.len()),
            rings: Rings {
                heads: vec![0; consumers.len()],
                consumers,
            },
            clocks,
            tracker,
            sink,
            shared: Arc::new(Shared {
                stop: AtomicBool::new(false),
                counted: AtomicU64::new(0),
                open: AtomicU64::new(0),
                is_corrupt: AtomicBool::new(false),
                warnings: Mutex::default(),
                recalibrated: Mutex::default(),
                latest: Mutex::default(),
            }),
            next_report: MonoNs(now.0 + REPORT_EVERY_NS),
            is_corrupt: false,
        }
    }

    /// Starts the thread, on the last CPU that this process may run on, without capabilities.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn spawn(self) -> Result<Worker<S>, Failure> {
        let what = format!("cannot start the thread {}", S::THREAD);
        let cpus = affinity::allowed_cpus().context(&*what)?;
        let cpu = cpus.last().copied().unwrap_or_default();
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(S::THREAD.into());
        let (report, reported) = mpsc::sync_channel(1);
        let thread = thread.spawn(move || {
            // Best effort: it works wherever it runs.
            let _ = affinity::pin_to(cpu);
            let given_up = caps::keep_only(&[]);
            let goes_on = given_up.is_ok();
            // Who waits for it is there.
            let _ = report.send(given_up);
            goes_on.then(|| self.run())
        });
        let worker = Worker {
            shared,
            thread: Some(thread.context(&*what)?),
        };
        let given_up = reported
            .recv()
            .unwrap_or_else(|gone| Err(io::Error::other(gone)));
        given_up.context(format!("{what} without capabilities"))?;
        Ok(worker)
    }

    /// Drains until it is asked to stop and the rings are empty.
    fn run(mut self) -> Drained<S> {
        let mut idle = Idle::new(self.rings.consumers.first().map_or(0, Consumer::ring_bytes));
        loop {
            // Before the look at the rings: what was recorded until then is taken out.
            let is_last = self.shared.stop.load(Ordering::Acquire);
            let (found, end) = self.drain(is_last);
            if is_last && found == 0 {
                let mut looks = 0;
                while self.tracker.wants_last_look(&mut looks) {
                    self.read_clock();
                }
                return Drained {
                    sink: self.sink,
                    tracker: self.tracker,
                    end,
                };
            }
            if !is_last {
                std::thread::park_timeout(idle.sleep(found));
            }
        }
    }

    /// Takes out what is there; unless it is the last time, only what its order allows. Gives
    /// how full the fullest ring was, bytes, and the stamp of a time before the look at them.
    fn drain(&mut self, is_last: bool) -> (u64, RawStamp) {
        self.take_recalibration();
        let before: MonoNs = self.clocks.read();
        let mut peak = 0;
        let rings = self.rings.heads.iter_mut().zip(&self.rings.consumers);
        for (head, consumer) in rings {
            *head = consumer.head();
            peak = peak.max(*head - consumer.next());
        }
        let cross = self.read_clock();
        let now = cross.mono[1];
        let end = self.tracker.stamp_at(&cross, before);
        self.sink.begin(&self.tracker);
        if peak > 0 || S::WAITS {
            let times = Times::of(&mut self.tracker);
            if peak > 0 && !self.is_corrupt {
                let moment = Moment {
                    tracker: &self.tracker,
                    before,
                    cross,
                    is_last,
                };
                let sink = &mut self.sink;
                let taken = self
                    .records
                    .take_out(&mut self.rings, &moment, sink, &times);
                if let Err(corrupt) = taken {
                    self.give_up(&corrupt);
                }
            }
            if S::WAITS {
                let until = MonoNs(before.0.saturating_sub(PUBLISHED_NS));
                let until = self.tracker.stamp_at(&cross, until);
                self.sink.settled(until, &times);
            }
        }
        if self.is_corrupt {
            self.skip();
        }
        self.publish(now);
        (peak, end)
    }

    /// Nothing in the rings can be trusted from here on.
    fn give_up(&mut self, corrupt: &CorruptBlock) {
        self.is_corrupt = true;
        self.shared.is_corrupt.store(true, Ordering::Relaxed);
        self.warn(Some(format!("{corrupt}: please report this")));
    }

    fn skip(&mut self) {
        let rings = self.rings.consumers.iter_mut().zip(&self.rings.heads);
        for (consumer, head) in rings {
            let run = consumer.run(*head, RawStamp::NEVER);
            let length = run.map(|mut run| run.skip_to_head());
            consumer.take(length.unwrap_or(0));
            consumer.release();
        }
    }

    fn warn(&self, what: Option<String>) {
        if let Ok(mut warnings) = self.shared.warnings.lock() {
            warnings.extend(what);
        }
    }

    fn take_recalibration(&mut self) {
        let found = self.shared.recalibrated.lock();
        if let Some(found) = found.ok().and_then(|mut found| found.take()) {
            let consumers = self.rings.consumers.iter_mut();
            for (consumer, offset) in consumers.zip(&found.offsets) {
                consumer.set_stamp_offset(*offset);
            }
            self.tracker.set_stamp_error_ns(found.stamp_error_ns);
            let warning = self.sink.clock_changed(ClockChange::Recalibrated);
            self.warn(warning);
        }
    }

    fn read_clock(&mut self) -> CrossTimestamp {
        let (cross, seen) = self.tracker.look(&mut self.clocks);
        let jumped = seen.counter_jump_ns().map(ClockChange::CounterJumped);
        let stepped = match seen {
            Observation::Stepped { step_ns, .. } => Some(ClockChange::Stepped(step_ns)),
            _ => None,
        };
        for change in jumped.into_iter().chain(stepped) {
            let warning = self.sink.clock_changed(change);
            self.warn(warning);
        }
        let followed = Reference::<CrossTimestamp>::followed(&mut self.clocks);
        if let Some(bounds) = followed {
            self.tracker.observe_reference(bounds);
        }
        self.tracker.look_at_raw(cross.mono[1], &mut self.clocks);
        cross
    }

    fn publish(&mut self, now: MonoNs) {
        let progress = self.sink.progress();
        let shared = &self.shared;
        shared.counted.store(progress.counted, Ordering::Relaxed);
        shared.open.store(progress.open, Ordering::Relaxed);
        if now >= self.next_report
            && let Ok(mut latest) = shared.latest.try_lock()
        {
            *latest = Some(self.sink.latest(&self.tracker));
            self.next_report = MonoNs(now.0 + REPORT_EVERY_NS);
        }
    }
}

impl<S: Sink> Worker<S> {
    /// Has it take out what is left, and end. Gives what a reader must know of the figures too.
    ///
    /// # Errors
    /// If it has panicked.
    pub fn end(mut self) -> Result<(Drained<S>, Vec<String>), Failure> {
        let drained = self.stop().expect("it is ended once");
        let drained = drained.ok().flatten().ok_or_else(|| {
            Failure::new(format!(
                "the thread {} panicked: please report this",
                S::THREAD
            ))
        })?;
        let warnings = self.shared.warnings.lock();
        let warnings = warnings.map(|mut all| std::mem::take(&mut *all));
        Ok((drained, warnings.unwrap_or_default()))
    }

    fn stop(&mut self) -> Option<std::thread::Result<Option<Drained<S>>>> {
        let thread = self.thread.take()?;
        self.shared.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        Some(thread.join())
    }
}

impl<S: Sink> Drop for Worker<S> {
    fn drop(&mut self) {
        // A panic there has been told already.
        let _ = self.stop();
    }
}
