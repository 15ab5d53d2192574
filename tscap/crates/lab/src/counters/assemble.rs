//! From what was read to what is said.

use std::collections::BTreeMap;

use super::access::{Quartiles, course, histogram};
use super::counter::{Counter, Place};
use super::experiment::{READINGS, Request, Results, Taken};
use super::phase::Stress;
use super::rates::{Rates, Seen};
use super::schema::{Characteristics, Method, Phase, Reference, Subject, VERSION};
use crate::early_end::early_end;
use tscap_base::kernel_files::KernelFiles;
use tscap_references::CounterTrend;
use tscap_results::envelope::{Circumstances, Kind};
use tscap_statistics::Distribution;

/// What the paper's load kept a CPU busy at least.
const BUSY: f64 = 0.95;

/// What reading the counters keeps it busy at most.
const IDLE: f64 = 0.5;

/// Puts it together.
pub fn assemble(
    results: Results,
    request: &Request,
    about: Circumstances,
    files: &KernelFiles,
) -> Characteristics {
    let Results {
        phases,
        taken,
        courses,
        turns,
        empty,
        empty_program,
        tsc_hertz,
        ptp,
        absent,
        ended_by,
        mut warnings,
    } = results;
    let every_seconds = request.every().as_secs_f64();
    let reference = match (&request.reference, ptp) {
        (Some(_), Some(path)) => Reference::of_device(&path, files),
        _ => Reference::Tsc,
    };
    let held = HeldAgainst {
        by: match reference {
            Reference::Tsc => Counter::Tsc,
            Reference::Ptp { .. } => Counter::Ptp,
        },
        courses,
        turns,
        tsc_hertz,
    };
    let idle = idle_phases(&phases);
    let [empty, empty_program] =
        [empty, empty_program].map(|of| of.into_iter().map(Quartiles::of).collect::<Vec<_>>());
    let mut subjects: Vec<_> = taken
        .into_iter()
        .map(|taken| {
            let empty = match taken.counter.place() {
                Place::User => &empty,
                Place::Program(_) => &empty_program,
            };
            let rates = held.rates(taken.counter);
            let medians = course(&taken.medians, &held.turns, empty, every_seconds);
            let mut subject = subject(taken, empty, tsc_hertz);
            subject.latency_course = medians;
            if let Some(rates) = rates {
                subject.clock = rates.clock_error(subject.hertz, every_seconds);
                subject.rate = rates.by_phase(phases.len(), &idle);
                subject.course = rates.over_time(&idle);
                if reference.is_independent() {
                    subject.scales = rates.scales(every_seconds);
                }
            }
            subject
        })
        .collect();
    if about.machine.clocksource == tscap_arch::CLOCK_SOURCE {
        add_interfaces(&mut subjects);
    }
    warnings.extend(disturbances(&about, &phases, request.cpu));
    warnings.extend(subjects.iter().filter_map(failures));
    warnings.extend(ended_by.iter().map(early_end));
    Characteristics {
        about: about.envelope(Kind::Counters, VERSION, ended_by.is_some()),
        method: Method {
            cpu: request.cpu,
            phase_seconds: request.phase.as_secs_f64(),
            every_seconds,
            readings: READINGS,
            tsc_hertz,
            empty,
            empty_program,
        },
        phases,
        counters: subjects,
        absent,
        reference,
        warnings,
    }
}

/// Counters beside the one that they are held against.
struct HeldAgainst {
    by: Counter,
    courses: BTreeMap<Counter, CounterTrend>,
    /// The phase of each turn.
    turns: Vec<usize>,
    tsc_hertz: f64,
}

impl HeldAgainst {
    /// `None` for the reference itself, and for what was not read.
    fn rates(&self, counter: Counter) -> Option<Rates> {
        let (held, against) = (self.seen(counter)?, self.seen(self.by)?);
        let by_hertz = match self.by {
            Counter::Ptp => 1e9,
            _ => self.tsc_hertz,
        };
        let hertz = [by_hertz, self.tsc_hertz];
        (counter != self.by).then(|| Rates::new(held, against, hertz, &self.turns))
    }

    fn seen(&self, counter: Counter) -> Option<Seen<'_>> {
        match counter {
            Counter::Tsc => Some(Seen::Tsc),
            counter => self.courses.get(&counter).map(Seen::Other),
        }
    }
}

/// What else the machine did meanwhile.
fn disturbances(about: &Circumstances, phases: &[Phase], cpu: u32) -> Vec<String> {
    let steal = about.machine.noisy_steal();
    let steal = steal
        .map(|steal| format!("a noisy machine: its host took {steal:.1} % of the time meanwhile"));
    let loads = phases.iter().filter_map(|phase| other_load(phase, cpu));
    steal.into_iter().chain(loads).collect()
}

/// Indices of the phases without load.
fn idle_phases(phases: &[Phase]) -> Vec<usize> {
    let phases = phases.iter().enumerate();
    let idle = phases.filter(|(_, phase)| phase.stress == Stress::Idle);
    idle.map(|(index, _)| index).collect()
}

fn subject(taken: Taken, empty: &[Option<Quartiles>], tsc_hertz: f64) -> Subject {
    let hertz = taken.facts.hertz.unwrap_or(tsc_hertz);
    let less_empty = |(cycles, empty): (Distribution, &Option<Quartiles>)| {
        let empty = empty.and_then(|empty| empty.p50)?;
        Some(Quartiles::of(cycles)?.less(empty))
    };
    let bins = |(cycles, empty): (&Distribution, &Option<Quartiles>)| {
        let empty = empty.and_then(|empty| empty.p50);
        empty.map_or_else(Vec::new, |empty| histogram(cycles, empty))
    };
    let latency_histogram = taken.cycles.iter().zip(empty).map(bins).collect();
    let latency = taken.cycles.into_iter().zip(empty).map(less_empty);
    Subject {
        counter: taken.counter,
        hertz,
        bits: taken.facts.bits,
        wraps_seconds: 2f64.powi(taken.facts.bits.cast_signed()) / hertz,
        step_ticks: taken.step,
        step_ns: taken.step as f64 / hertz * 1e9,
        failed: taken.failed,
        latency: latency.collect(),
        latency_course: Vec::new(),
        latency_histogram,
        interface: Vec::new(),
        rate: Vec::new(),
        course: Vec::new(),
        scales: Vec::new(),
        clock: None,
    }
}

/// V-A: what the kernel's interface to the TSC takes more than the TSC read alone, in user space
/// and in programs.
fn add_interfaces(subjects: &mut [Subject]) {
    let alone = |counters: [Counter; 2]| {
        let latency = |counter| {
            let subject = subjects.iter().find(|it| it.counter == counter)?;
            Some(subject.latency.clone())
        };
        counters.into_iter().find_map(latency).unwrap_or_default()
    };
    // The kernel reads it in order (`rdtsc_ordered`), too.
    let in_user = alone([Counter::TscOrdered, Counter::Tsc]);
    let in_programs = alone([Counter::TscModuleOrdered, Counter::TscModule]);
    for subject in subjects
        .iter_mut()
        .filter(|it| it.counter.is_by_interface())
    {
        let alone = match subject.counter.place() {
            Place::User => &in_user,
            Place::Program(_) => &in_programs,
        };
        let more = |(through, alone): (&Option<Quartiles>, &Option<Quartiles>)| {
            Some((*through)?.less((*alone)?.p50?))
        };
        subject.interface = subject.latency.iter().zip(alone).map(more).collect();
    }
}

/// That a load was not the paper's, or that there was another one.
fn other_load(phase: &Phase, cpu: u32) -> Option<String> {
    let busy = *phase.busy.get(cpu as usize)?;
    let percent = 100.0 * busy;
    match phase.stress {
        Stress::Idle if busy > IDLE => Some(format!(
            "CPU {cpu} was busy for {percent:.0} % of a phase that was to be idle: something else \
             ran there"
        )),
        Stress::Cpu if busy < BUSY => Some(format!(
            "CPU {cpu} was busy for {percent:.0} % of a phase with its load only: the paper's was \
             over 95 %"
        )),
        _ => None,
    }
}

fn failures(subject: &Subject) -> Option<String> {
    (subject.failed > 0).then(|| {
        let name = subject.counter.name();
        format!("{name}: {} readings failed", subject.failed)
    })
}

#[cfg(test)]
mod tests;
