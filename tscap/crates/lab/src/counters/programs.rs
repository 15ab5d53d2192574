//! The counters that BPF programs read: those of `tscap compare` that measure a stamp.

use super::access::Burst;
use super::counter::{Counter, Facts, Place};
use super::schema::MissingCounter;
use crate::compare::{Programs, ProgramsError, Settings, Stamp};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_clock::{NsPerCycle, StampPath, TscPath};
use tscap_programs::hook::Kfunc;

/// `enum xdp_action`.
const XDP_PASS: u32 = 2;
/// Longest reason: a verifier's log may follow.
const LONGEST_REASON: usize = 300;

/// Loaded programs, for a thread on the CPU that they were loaded for.
pub(super) struct Probes {
    programs: Programs,
    counters: Vec<Counter>,
    rate: NsPerCycle,
}

impl Probes {
    /// Loads what this kernel takes and this user may; the reason for each of the others. A
    /// reading is told in cycles by `rate`.
    pub fn load(
        cpu: u32,
        rate: NsPerCycle,
        files: &KernelFiles,
    ) -> (Option<Self>, Vec<MissingCounter>) {
        let (kfuncs, mut absent) = kfuncs(files);
        let settings = Settings {
            cpu,
            action: XDP_PASS,
            more_reads: 0,
            more_work: 0,
        };
        let programs = match Programs::load(settings, &kfuncs, None, None) {
            Ok(programs) => programs,
            Err(error) => {
                let of_all = Counter::ALL.into_iter().filter(|it| path(*it).is_some());
                return (None, of_all.map(|it| lacking(it, &error)).collect());
            }
        };
        let mut probes = Self {
            programs,
            counters: vec![Counter::Ktime],
            rate,
        };
        for counter in Counter::ALL {
            let loaded = match path(counter) {
                Some(StampPath::Tai) => probes.programs.load_tai(),
                Some(StampPath::Tsc(TscPath::Perf)) => probes.load_perf(),
                Some(StampPath::Tsc(path)) if kfuncs.iter().any(|it| it.path == path) => {
                    probes.programs.load_kfunc(path)
                }
                _ => continue,
            };
            match loaded {
                Ok(()) => probes.counters.push(counter),
                Err(error) => absent.push(lacking(counter, &error)),
            }
        }
        (Some(probes), absent)
    }

    fn load_perf(&mut self) -> Result<(), ProgramsError> {
        self.programs.load_tsc(self.rate).map(drop)
    }

    /// What is known of a counter; `None` if no program reads it.
    pub fn facts(&self, counter: Counter) -> Option<Facts> {
        let is_read = self.counters.contains(&counter);
        is_read.then_some(match counter {
            Counter::Ktime | Counter::Tai => Facts::NANOSECONDS,
            _ => Facts::CYCLES,
        })
    }

    /// About so many readings in a row, each between two of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// If a program can't be run.
    pub fn burst(&mut self, counter: Counter, readings: usize) -> Result<Burst, ProgramsError> {
        match self.facts(counter) {
            Some(_) => self.run(path(counter), readings),
            None => Ok(Burst::default()),
        }
    }

    /// What a bracket takes that nothing is read in.
    ///
    /// # Errors
    /// If a program can't be run.
    pub fn empty(&mut self, readings: usize) -> Result<Burst, ProgramsError> {
        self.run(None, readings)
    }

    fn run(&mut self, stamp: Stamp, readings: usize) -> Result<Burst, ProgramsError> {
        let readings = u32::try_from(readings).unwrap_or(u32::MAX);
        let samples = self.programs.costs(stamp, readings)?;
        let mut burst = Burst::default();
        for sample in samples {
            // Errors of the perf event are negative.
            if sample.stamp.cast_signed() < 0 {
                burst.failed += 1;
                continue;
            }
            let cost_ns = i64::try_from(sample.cost_ns).unwrap_or(i64::MAX);
            burst.cycles.push(self.rate.cycles_in(cost_ns));
            burst.values.push(sample.stamp);
        }
        Ok(burst)
    }
}

fn path(counter: Counter) -> Option<StampPath> {
    match counter.place() {
        Place::Program(path) => Some(path),
        Place::User => None,
    }
}

/// The kfuncs that read the TSC, and why others do not.
fn kfuncs(files: &KernelFiles) -> (Vec<Kfunc>, Vec<MissingCounter>) {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for counter in Counter::ALL {
        let Some(StampPath::Tsc(path)) = path(counter) else {
            continue;
        };
        if path == TscPath::Perf {
            continue;
        }
        match Kfunc::find(path, files) {
            Ok(kfunc) => found.push(kfunc),
            Err(error) => absent.push(MissingCounter {
                counter,
                why: chain(&error),
            }),
        }
    }
    (found, absent)
}

fn lacking(counter: Counter, error: &ProgramsError) -> MissingCounter {
    let why = chain(error);
    let first = why.lines().next().unwrap_or_default();
    let why = first.chars().take(LONGEST_REASON).collect();
    MissingCounter { counter, why }
}
