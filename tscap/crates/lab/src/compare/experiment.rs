//! The rounds: every stamp takes its turn in each, so that a slow spell of the
//! machine hits all of them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::early_end::with_results;
use tscap_common::compare::MOST_SAMPLES;

use super::bed::CompareBed;
use super::causes::Trace;
use super::loss_bed::{self, LossBed};
use super::plan::Amount;
use super::prepare::prepare;
use super::request::{ExperimentError, FrameSource, Request};
use super::schema::{LossMethod, LossPoint};
use super::stamp_samples::{PatternSamples, StampSamples};
use tscap_clock::{StampPath, StampSource};
use tscap_host::affinity;
use tscap_traffic::generator::Pattern;
use tscap_traffic::load::{Burst, Stop, tool_cpus};

/// The paper's patterns, by the name of each.
pub const PATTERNS: [(&str, Pattern); 2] = [("voip", Pattern::Voip), ("hd", Pattern::Hd)];
/// Frames in the search for the highest rate: some tenths of a second, and 27 times
/// what a ring of the captures holds.
const RATE_FRAMES: u64 = 300_000;
/// Each step of the search for the highest rate goes down by this factor.
const RATE_STEP: f64 = 0.85;
/// Steps of that search.
const RATE_STEPS: u32 = 6;

/// What the rounds gave.
pub struct Results {
    /// One for each stamp, the floor first; then those with interrupts off.
    pub taken: Vec<StampSamples>,
    /// Rounds that were whole.
    pub rounds: u32,
    /// How loss was measured, if a round of it was whole.
    pub loss: Option<LossMethod>,
    /// The kernel's own stamp by pattern, if we send.
    pub kernel: Option<[PatternSamples; 2]>,
    /// Why it ended before all was measured.
    pub ended_by: Option<ExperimentError>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// Does it all, in this thread, which it pins and moves into another namespace; says
/// how many rounds are over before the first and after each. What ends it after the
/// first round leaves what was whole by then.
pub fn run(
    frame_source: FrameSource,
    request: &Request,
    stop: Arc<Stop>,
    mut tell: impl FnMut(u32),
) -> Result<Results, ExperimentError> {
    let allowed = affinity::allowed_cpus()?;
    let tool_cpus = tool_cpus(request.cpu, &allowed);
    affinity::pin_to(request.cpu)?;
    let mut warnings = Vec::new();
    let cpus = (allowed, tool_cpus);
    let (mut bench, turns) = prepare(frame_source, request, cpus, stop, &mut warnings)?;
    let mut results = Results {
        taken: turns.into_iter().map(StampSamples::new).collect(),
        rounds: 0,
        loss: None,
        kernel: None,
        ended_by: None,
        warnings,
    };
    let ended = bench.measure_all(&mut results, &request.amount, &mut tell);
    results.kernel = bench.kernel.take().map(|kernel| kernel.patterns);
    results.ended_by = with_results(ended, results.rounds > 0)?;
    Ok(results)
}

/// Every other round goes backwards, so that none always follows the same one.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).collect();
    if round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// The same turns with nothing taken yet.
fn empty(turns: &[StampSamples]) -> Vec<StampSamples> {
    turns.iter().map(|of| StampSamples::new(of.turn)).collect()
}

fn append(taken: &mut [StampSamples], later: Vec<StampSamples>) {
    for (taken, later) in taken.iter_mut().zip(later) {
        taken.append(later);
    }
}

impl CompareBed {
    fn measure_all(
        &mut self,
        results: &mut Results,
        amount: &Amount,
        tell: &mut impl FnMut(u32),
    ) -> Result<(), ExperimentError> {
        tell(0);
        for round in 1..=amount.rounds {
            let taken = self.round(&results.taken, amount, round)?;
            append(&mut results.taken, taken);
            results.rounds = round;
            tell(round);
        }
        if let FrameSource::Own { executable, .. } = &self.frame_source {
            let executable = executable.clone();
            self.loss(&executable, results, amount, tell)?;
        }
        Ok(())
    }

    /// Loss at each size and gap, on a pair of its own: every stamp takes its turn at each
    /// point in each round.
    fn loss(
        &mut self,
        executable: &Path,
        results: &mut Results,
        amount: &Amount,
        tell: &mut impl FnMut(u32),
    ) -> Result<(), ExperimentError> {
        let stop = Arc::clone(&self.stop);
        let mut bed = LossBed::new(
            executable,
            self.cpu,
            &self.allowed,
            amount.loss_frames,
            stop,
        )?;
        let is_measured = |taken: &StampSamples| !taken.turn.interrupts_off;
        let cases = loss_bed::cases(amount);
        for taken in results.taken.iter_mut().filter(|it| is_measured(it)) {
            let points = cases.iter().map(|(size, gap)| LossPoint::new(*size, *gap));
            taken.loss = points.filter(|_| taken.turn.stamp.is_some()).collect();
        }
        for round in 1..=amount.loss_rounds {
            for (at, case) in cases.iter().enumerate() {
                for index in order(results.taken.len(), round) {
                    let taken = &mut results.taken[index];
                    if let Some((path, point)) = taken.turn.stamp.zip(taken.loss.get_mut(at)) {
                        self.stop.go_on()?;
                        let captured = bed.take(path, *case, point);
                        // A capture that was killed because of that is no fault.
                        self.stop.go_on()?;
                        captured?;
                    }
                }
            }
            bed.method.rounds = round;
            results.loss = Some(bed.method.clone());
            tell(amount.rounds + round);
        }
        Ok(())
    }

    /// A round by itself: one that something ends is no round.
    fn round(
        &mut self,
        turns: &[StampSamples],
        amount: &Amount,
        round: u32,
    ) -> Result<Vec<StampSamples>, ExperimentError> {
        // Spread evenly over all rounds.
        let is_one_of =
            |some: u32| (round * some) / amount.rounds > ((round - 1) * some) / amount.rounds;
        let mut taken = empty(turns);
        let sends_patterns = is_one_of(amount.pattern_rounds);
        // First in every other round, as the stamps turn round.
        let kernel_is_first = round.is_multiple_of(2);
        if sends_patterns && kernel_is_first {
            self.kernel_patterns(amount)?;
        }
        for index in order(turns.len(), round) {
            let taken = &mut taken[index];
            self.turn(taken, index, amount)?;
            if taken.turn.interrupts_off {
                continue;
            }
            if sends_patterns {
                self.patterns(taken, amount)?;
            }
            if is_one_of(amount.rate_rounds) {
                self.find_rate(taken)?;
            }
        }
        if sends_patterns && !kernel_is_first {
            self.kernel_patterns(amount)?;
        }
        Ok(taken)
    }

    fn turn(
        &mut self,
        taken: &mut StampSamples,
        index: usize,
        amount: &Amount,
    ) -> Result<(), ExperimentError> {
        self.stop.go_on()?;
        self.programs.reload(taken.turn)?;
        if taken.turn.stamp.is_some() {
            taken.read_ns.push(self.programs.read_ns(taken.turn)?);
        }
        // With interrupts off there is none.
        if let Some(whole) = self.whole.get_mut(index) {
            whole.reload()?;
            let program_ns = whole.ns_per_frame();
            taken.program_ns.push(program_ns.map_err(io::Error::other)?);
        }
        self.link.replace(self.programs.cost_program(taken.turn)?)?;
        let measured = self.measure(Burst::fast(amount.frames.into()), &mut taken.fast)?;
        if measured.samples.is_empty() {
            return Err(ExperimentError::AllLost);
        }
        taken.round(measured.samples.iter().map(|sample| sample.cost_ns));
        if self.programs.has_counters() {
            taken.traces.extend(Trace::of(&measured.samples));
        }
        Ok(())
    }

    fn patterns(
        &mut self,
        taken: &mut StampSamples,
        amount: &Amount,
    ) -> Result<(), ExperimentError> {
        let Some(traffic) = &self.traffic else {
            return Ok(());
        };
        let by_tsc = taken.turn.stamp.map(StampPath::source) == Some(StampSource::Tsc);
        let lacks_tsc = by_tsc && traffic.no_tsc().is_some();
        for (index, (_, pattern)) in PATTERNS.into_iter().enumerate() {
            let mut left = u64::from(amount.pattern_frames[index]);
            let mut burst = Burst::of_pattern(pattern, left);
            // In pieces that the array of samples holds, and that end soon.
            let most = burst.in_a_second().min(MOST_SAMPLES.into());
            while left > 0 {
                self.stop.go_on()?;
                burst.frames = left.min(most);
                left -= burst.frames;
                let pattern = &mut taken.patterns[index];
                let measured = self.measure(burst, &mut pattern.counts)?;
                let mut clocks = self.clocks(taken.turn.stamp)?;
                if lacks_tsc {
                    clocks = None;
                }
                if by_tsc && measured.tsc_moved_ns > 0 {
                    pattern.moved += 1;
                    clocks = None;
                }
                pattern.take(
                    taken.turn.stamp,
                    measured.run,
                    &measured.samples,
                    clocks.as_ref(),
                );
            }
            taken.patterns[index].end_round();
        }
        Ok(())
    }

    /// The patterns as the kernel's own stack stamps them.
    fn kernel_patterns(&mut self, amount: &Amount) -> Result<(), ExperimentError> {
        for (index, (_, pattern)) in PATTERNS.into_iter().enumerate() {
            let mut left = u64::from(amount.pattern_frames[index]);
            let mut burst = Burst::of_pattern(pattern, left);
            let most = burst.in_a_second().min(MOST_SAMPLES.into());
            while left > 0 {
                self.stop.go_on()?;
                burst.frames = left.min(most);
                left -= burst.frames;
                let measured = self.measure_kernel(burst)?;
                // Frames were sent by CLOCK_TAI.
                let (stamp, clocks) = (Some(StampPath::Tai), self.clocks(None)?);
                if let (Some(kernel), Some(measured)) = (&mut self.kernel, measured) {
                    let pattern = &mut kernel.patterns[index];
                    pattern.counts.sent += measured.sent;
                    pattern.counts.received += measured.samples.len() as u64;
                    pattern.take(stamp, measured.run, &measured.samples, clocks.as_ref());
                }
            }
        }
        Ok(())
    }

    /// The highest rate that loses nothing: flat out, or as much below as it takes.
    fn find_rate(&mut self, taken: &mut StampSamples) -> Result<(), ExperimentError> {
        let Some(path) = taken.turn.stamp.filter(|_| self.traffic.is_some()) else {
            return Ok(());
        };
        let mut burst = Burst::flat_out(64, RATE_FRAMES);
        let mut tried = f64::INFINITY;
        for _ in 0..RATE_STEPS {
            self.stop.go_on()?;
            let captured = self.capture(path, burst);
            // A capture that was killed because of that is no fault.
            self.stop.go_on()?;
            let captured = captured?;
            if captured.written >= captured.sent {
                taken.lossless_rate.push(captured.rate.min(tried));
                return Ok(());
            }
            tried = captured.rate * RATE_STEP;
            let Some(slower) = Burst::at_rate(64, tried, RATE_FRAMES) else {
                break;
            };
            burst = slower;
        }
        taken.rates_with_loss += 1;
        Ok(())
    }
}
