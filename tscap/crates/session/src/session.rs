//! Programs that are loaded, and their clock, which is read.

use std::time::Duration;

use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::{ClockChoice, Clocks, Counter, Event, Reporter, check, first_of};
use tscap_clock::{RawStamp, StampPath, Tracker, TscPath};
use tscap_common::key::KeyOf;
use tscap_filter::Filter;
use tscap_programs::hook::{KEY_PROGRAMS, Keys, LAYER_PROGRAMS, LoadOptions, Loaded, PROGRAMS};
use tscap_programs::ring::Consumer;
use tscap_references::Followed;
use tscap_utc::{DisruptionWatch, Roots, Watched};

use super::drain::Drain;
use super::draining::Draining;
use super::machine::{Machine, open_counter, read_clock};
use super::points::Points;
use super::sink::Sink;

/// What programs record of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The beginnings of frames.
    Frames {
        /// Most bytes of each.
        snaplen: u32,
    },
    /// Keys.
    Keys {
        /// Of what.
        of: KeyOf,
        /// Bytes kept of each packet beside it.
        kept: u32,
    },
    /// Keys, by the programs at the layers of the stack.
    Layers {
        /// Bytes kept of each packet beside it.
        kept: u32,
        /// Whether programs that run for processes, which have rings of their own, are among
        /// them.
        have_processes: bool,
    },
}

/// A live measurement, as far as it is like any other.
#[derive(Clone, Copy, Debug)]
pub struct SessionPlan<'a> {
    /// What the programs record of each packet.
    pub recorded: Recorded,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// By this path to the TSC only.
    pub tsc_path: Option<TscPath>,
    /// The reference whose time the times are, which takes stamps of the TSC; `None` for the
    /// host's clock.
    pub reference: Option<&'a Followed>,
    /// Of all packets, those that match.
    pub filter: Option<&'a Filter>,
    /// Most interfaces that programs are told apart by.
    pub interfaces: u32,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
}

/// Programs that are loaded, and their clock, which is read. Nothing is attached yet.
pub struct Session {
    /// The programs with their maps, loaded and not attached.
    pub loaded: Loaded,
    path: StampPath,
    counter: Option<Counter>,
    consumers: Vec<Consumer>,
    clocks: Clocks,
    tracker: Tracker,
    reference: Option<Followed>,
}

/// How a measurement begins.
#[derive(Debug)]
pub struct Beginning<'a> {
    /// A time behind the attaching of all programs: a packet that was stamped before it may
    /// have met some of them only.
    pub start: RawStamp,
    /// The clock of the stamps.
    pub tracker: &'a Tracker,
    /// How it is read.
    pub path: StampPath,
    /// How many rings there are.
    pub rings: usize,
}

impl Beginning<'_> {
    /// A time in the unit of the stamps: ns, or cycles of the counter.
    pub fn units_of(&self, time: Duration) -> u64 {
        let ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let counter = self.tracker.counter();
        let units = counter.map_or(ns, |counter| counter.rate().cycles_in(ns));
        units.max(0).unsigned_abs()
    }
}

impl Session {
    /// Loads programs as asked for, and reads their clock. `on_event` is told what a user should
    /// know. Safe to cancel.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next.
    pub async fn open(
        machine: &Machine,
        plan: &SessionPlan<'_>,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        let mut producers = machine.cpus.clone();
        let mut possible = machine.possible_cpus;
        if let Recorded::Layers { have_processes, .. } = plan.recorded {
            let others = machine.cpus.iter().map(|cpu| cpu + possible);
            producers.extend(others.filter(|_| have_processes));
            possible *= 2;
        }
        let ring_bytes = check::ring_bytes(plan.ring_bytes, producers.len())?;
        let object = match plan.recorded {
            Recorded::Frames { .. } => PROGRAMS,
            Recorded::Keys { .. } => KEY_PROGRAMS,
            Recorded::Layers { .. } => LAYER_PROGRAMS,
        };
        let mut options = LoadOptions::new(object, (ring_bytes, &producers), possible);
        options.interfaces = plan.interfaces;
        (options.snaplen, options.keys) = match plan.recorded {
            Recorded::Frames { snaplen } => (snaplen, None),
            Recorded::Keys { of, kept } => {
                let process_producers = None;
                (
                    0,
                    Some(Keys {
                        of,
                        kept,
                        process_producers,
                    }),
                )
            }
            Recorded::Layers { kept, .. } => {
                let (of, process_producers) = (KeyOf::Route, Some(machine.possible_cpus));
                (
                    0,
                    Some(Keys {
                        of,
                        kept,
                        process_producers,
                    }),
                )
            }
        };
        // Keys are filtered by programs that are attached to each interface.
        options.filter = match options.keys {
            None => plan.filter.map(|filter| &filter.program),
            Some(_) => None,
        };
        let files = KernelFiles::live();
        let load = |paths: &[StampPath]| first_of(paths, &options, &files);
        let clock = (plan.clock, plan.tsc_path);
        let read = read_clock(clock, machine.takes_tsc, plan.reference, load);
        let (stamping, clocks, mut tracker) = read.await?;
        let (mut loaded, path) = (stamping.loaded, stamping.path);
        let counter = open_counter(path, &producers, loaded.object(), &mut tracker)?;
        let reporter = &mut Reporter::new(on_event);
        counter.iter().for_each(|counter| counter.say(reporter));
        let rings = loaded.rings.take().expect("taken here only");
        let mut consumers = Consumer::all(rings);
        let offsets = counter.as_ref().map(Counter::offsets).unwrap_or_default();
        for (consumer, offset) in consumers.iter_mut().zip(offsets) {
            consumer.set_stamp_offset(offset);
        }
        Ok(Self {
            loaded,
            path,
            counter,
            consumers,
            clocks,
            tracker,
            reference: plan.reference.cloned(),
        })
    }

    /// Reads the clock once more, and starts the thread that takes records out. To be called
    /// when all programs are attached, at `points`.
    ///
    /// # Errors
    /// If the thread can't be started.
    pub fn drain<S: Sink, P: Points>(
        self,
        points: P,
        sink: impl FnOnce(&P, &Beginning<'_>) -> S,
    ) -> Result<Draining<S, P>, Failure> {
        let (path, mut tracker) = (self.path, self.tracker);
        let disruptions = DisruptionWatch::open(&Roots::live().vmclock);
        let mut clocks = Watched::new(self.clocks, disruptions.clone());
        let (cross, _) = tracker.look(&mut clocks);
        let sink = sink(
            &points,
            &Beginning {
                start: tracker.stamp_at(&cross, cross.mono[1]),
                tracker: &tracker,
                path,
                rings: self.consumers.len(),
            },
        );
        let drain = Drain::new(self.consumers, (clocks, tracker), sink);
        let worker = drain.spawn()?;
        Ok(Draining::new(
            points,
            worker,
            (self.loaded, path, self.counter),
            (self.reference, disruptions),
        ))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
