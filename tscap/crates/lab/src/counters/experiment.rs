//! The phases, one after the other: at each look every counter is read in bursts, and beside the
//! TSC.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::access::{Burst, common_step};
use super::counter::{Counter, Facts};
use super::phase::Stress;
use super::programs::Probes;
use super::readers::Readers;
use super::schema::{MissingCounter, Phase};
use super::stress::{Load, Means};
use crate::compare::ProgramsError;
use crate::early_end::{EarlyEnd, with_results};
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::{NsPerCycle, measure_tsc_rate};
use tscap_host::affinity;
use tscap_references::CounterTrend;
use tscap_statistics::{Distribution, quantile};
use tscap_time::ptp::PtpError;
use tscap_time::tsc;
use tscap_traffic::load::{CpuLoad, LoadError, Stop, Stopped, Ticks};

/// Most readings of a counter in a row.
pub(super) const READINGS: usize = 250;
/// Fewest, of one that takes long.
const FEWEST: usize = 10;
/// A counter may be read for this part of the time between two looks.
const PART: i64 = 40;
/// Looks are so far apart in phases up to [`SHORT`], and [`SELDOM`] in longer ones: the paper's
/// pulses came every second.
const OFTEN: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(1);
const SHORT: Duration = Duration::from_secs(60);
/// How often it is looked whether to end.
const LOOK_EACH: Duration = Duration::from_millis(50);

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The CPU to read on.
    pub cpu: u32,
    /// What the machine does meanwhile.
    pub phases: Vec<Stress>,
    /// How long each of them is.
    pub phase: Duration,
    /// A PTP hardware clock that rates are by.
    pub reference: Option<PathBuf>,
    /// `tscap`.
    pub executable: PathBuf,
}

impl Request {
    /// From one look to the next.
    pub(super) fn every(&self) -> Duration {
        if self.phase <= SHORT { OFTEN } else { SELDOM }
    }
}

/// Why there are no results, or no more.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// It was told to end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// There is no unit for latencies.
    #[error("the rate of the TSC can't be measured: every reading of it was interrupted")]
    NoTsc,
    /// The reference can't be read.
    #[error(transparent)]
    Reference(#[from] PtpError),
    /// A load could not be made.
    #[error("cannot load the machine ({})", stress.name())]
    Load {
        /// Which.
        stress: Stress,
        /// Why.
        source: LoadError,
    },
    /// A BPF program could not be run.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Another step failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

impl EarlyEnd for CountersError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

/// What was read of a counter.
pub(super) struct Taken {
    pub counter: Counter,
    pub facts: Facts,
    /// What readings took, by phase.
    pub cycles: Vec<Distribution>,
    /// The turn of each look and the median of its readings, cycles.
    pub medians: Vec<(usize, i64)>,
    /// [`common_step`] so far.
    pub step: u64,
    pub failed: u64,
    /// Readings in a row at the next look.
    readings: usize,
}

/// What all of it gave.
pub struct Results {
    /// Phases that began.
    pub phases: Vec<Phase>,
    pub(super) taken: Vec<Taken>,
    pub(super) courses: BTreeMap<Counter, CounterTrend>,
    /// The phase of each turn.
    pub(super) turns: Vec<usize>,
    /// Of brackets by user space that nothing is read in, by phase.
    pub(super) empty: Vec<Distribution>,
    /// The same by BPF programs.
    pub(super) empty_program: Vec<Distribution>,
    pub(super) tsc_hertz: f64,
    pub(super) ptp: Option<PathBuf>,
    /// Counters that could not be read.
    pub absent: Vec<MissingCounter>,
    /// Why it ended before all was measured.
    pub ended_by: Option<CountersError>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// What there is to read with.
struct Bed {
    readers: Readers,
    probes: Option<Probes>,
    every: Duration,
    start: Instant,
    /// All of it, s.
    seconds: u64,
    /// Seconds that are told to be over.
    reported: u32,
}

/// Does it all, in this thread, which it pins; says how many seconds are over. What ends it early
/// leaves what was measured by then.
///
/// # Errors
/// [`CountersError`], if nothing was measured.
pub fn run(
    request: &Request,
    stop: &Arc<Stop>,
    mut tell: impl FnMut(u32),
) -> Result<Results, CountersError> {
    let means = Means {
        executable: request.executable.clone(),
        cpu: request.cpu,
        allowed: affinity::allowed_cpus()?,
    };
    affinity::pin_to(request.cpu)?;
    let files = KernelFiles::live();
    let (readers, mut absent) = Readers::open(&files, request.reference.as_deref())?;
    let rate = measure_tsc_rate().ok_or(CountersError::NoTsc)?;
    let (probes, not_loaded) = Probes::load(request.cpu, rate, &files);
    absent.extend(not_loaded);
    absent.sort_by_key(|absent| absent.counter);
    let warnings = tsc::check().err().map(|why| {
        format!("{why}: a cycle of it is no fixed time, and rates beside it mean nothing")
    });
    let mut results = Results {
        phases: Vec::new(),
        taken: Vec::new(),
        courses: BTreeMap::new(),
        turns: Vec::new(),
        empty: Vec::new(),
        empty_program: Vec::new(),
        // A rate for people, who see six digits of it.
        tsc_hertz: 1e9 * NsPerCycle::ONE.0 as f64 / rate.0 as f64,
        ptp: readers.ptp_path().map(Into::into),
        absent,
        ended_by: None,
        warnings: warnings.into_iter().collect(),
    };
    let mut bed = Bed {
        readers,
        probes,
        every: request.every(),
        start: Instant::now(),
        seconds: (request.phase * request.phases.len() as u32).as_secs(),
        reported: 0,
    };
    results.begin(&bed);
    let ended = bed.phases(request, &means, &mut results, stop, &mut tell);
    results.ended_by = with_results(ended, !results.turns.is_empty())?;
    Ok(results)
}

impl Results {
    /// A place for what each counter gives.
    fn begin(&mut self, bed: &Bed) {
        for counter in Counter::ALL {
            let Some(facts) = bed.facts(counter) else {
                continue;
            };
            self.taken.push(Taken::new(counter, facts, Vec::new(), 0));
            if let (true, Some(hertz)) = (counter.is_source(), facts.hertz) {
                let course = CounterTrend::new(facts.bits, hertz, self.tsc_hertz);
                self.courses.insert(counter, course);
            }
        }
    }

    fn begin_phase(&mut self) {
        let of_counters = self.taken.iter_mut().map(|taken| &mut taken.cycles);
        let empty = [&mut self.empty, &mut self.empty_program];
        for cycles in of_counters.chain(empty) {
            cycles.push(Distribution::new());
        }
    }
}

/// To the latest phase.
fn add(phases: &mut [Distribution], burst: &Burst) {
    if let Some(cycles) = phases.last_mut() {
        burst.cycles.iter().for_each(|took| cycles.add(*took));
    }
}

impl Taken {
    /// With what was read so far.
    pub fn new(counter: Counter, facts: Facts, cycles: Vec<Distribution>, step: u64) -> Self {
        Self {
            counter,
            facts,
            cycles,
            medians: Vec::new(),
            step,
            failed: 0,
            readings: READINGS,
        }
    }

    /// Takes in a burst, and fits the next one to `budget` cycles.
    fn take(&mut self, turn: usize, burst: &Burst, budget: i64) {
        self.failed += burst.failed;
        self.step = common_step(self.step, &burst.values, self.facts.bits);
        add(&mut self.cycles, burst);
        let mut sorted = burst.cycles.clone();
        sorted.sort_unstable();
        // Of one that something interrupted the mean would be too long.
        let median = quantile(&sorted, 0.5);
        self.medians.extend(median.map(|cycles| (turn, cycles)));
        let usual = median.unwrap_or_default();
        let fitting = usize::try_from(budget / usual.max(1)).unwrap_or(FEWEST);
        self.readings = fitting.clamp(FEWEST, READINGS);
    }
}

impl Bed {
    fn facts(&self, counter: Counter) -> Option<Facts> {
        let of_probes = self.probes.as_ref().and_then(|it| it.facts(counter));
        self.readers.facts(counter).or(of_probes)
    }

    fn phases(
        &mut self,
        request: &Request,
        means: &Means,
        results: &mut Results,
        stop: &Arc<Stop>,
        tell: &mut impl FnMut(u32),
    ) -> Result<(), CountersError> {
        for stress in request.phases.iter().copied() {
            let failed = |source| CountersError::Load { stress, source };
            stop.go_on()?;
            let load = Load::start(stress, means, request.phase, stop).map_err(failed)?;
            let files = KernelFiles::live();
            let (before, start) = (Ticks::read(&files), Instant::now());
            results.phases.push(Phase {
                stress,
                seconds: 0.0,
                busy: Vec::new(),
                captured: None,
            });
            results.begin_phase();
            let looked = self.looks(start + request.phase, results, stop, tell);
            let busy = Ticks::read(&files).load_since(&before);
            let seconds = start.elapsed().as_secs_f64();
            let captured = load.end().map_err(failed);
            if let Some(phase) = results.phases.last_mut() {
                phase.seconds = seconds;
                phase.busy = busy.iter().map(CpuLoad::busy).collect();
                phase.captured = captured.as_ref().ok().copied().flatten();
            }
            looked?;
            captured?;
        }
        Ok(())
    }

    /// Looks until `end`.
    fn looks(
        &mut self,
        end: Instant,
        results: &mut Results,
        stop: &Stop,
        tell: &mut impl FnMut(u32),
    ) -> Result<(), CountersError> {
        let phase = results.phases.len() - 1;
        while Instant::now() < end {
            stop.go_on()?;
            let turn = self.turn();
            if turn < results.turns.len() {
                self.wait_for(self.next_turn(), end, stop);
                continue;
            }
            results.turns.resize(turn + 1, phase);
            self.look(turn, results)?;
            let seconds = self.start.elapsed().as_secs().min(self.seconds) as u32;
            if seconds > self.reported {
                self.reported = seconds;
                tell(seconds);
            }
        }
        Ok(())
    }

    /// The turn that it is.
    fn turn(&self) -> usize {
        (self.start.elapsed().as_nanos() / self.every.as_nanos()) as usize
    }

    /// When the next one begins.
    fn next_turn(&self) -> Instant {
        self.start + self.every * (self.turn() as u32 + 1)
    }

    fn wait_for(&self, then: Instant, end: Instant, stop: &Stop) {
        let then = then.min(end);
        while let Some(left) = then.checked_duration_since(Instant::now()) {
            if left.is_zero() || stop.is_asked() {
                return;
            }
            thread::sleep(left.min(LOOK_EACH));
        }
    }

    /// Reads each counter; every other time in the opposite order.
    fn look(&mut self, turn: usize, results: &mut Results) -> Result<(), CountersError> {
        // First, so that the looks are as far apart as the turns.
        for (counter, course) in &mut results.courses {
            if let Some(sighting) = self.readers.sight(*counter) {
                course.take(turn, sighting);
            }
        }
        add(&mut results.empty, &Readers::empty(READINGS));
        if let Some(probes) = &mut self.probes {
            add(&mut results.empty_program, &probes.empty(READINGS)?);
        }
        let budget = results.tsc_hertz * self.every.as_secs_f64();
        let budget = budget as i64 / PART;
        let mut order: Vec<_> = results.taken.iter_mut().collect();
        if turn.is_multiple_of(2) {
            order.reverse();
        }
        for taken in order {
            let burst = match &mut self.probes {
                Some(probes) if probes.facts(taken.counter).is_some() => {
                    probes.burst(taken.counter, taken.readings)?
                }
                _ => self.readers.burst(taken.counter, taken.readings),
            };
            taken.take(turn, &burst, budget);
        }
        Ok(())
    }
}
