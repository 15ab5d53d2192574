//! The rounds: every stamp takes its turn in each, so that a slow spell of the
//! machine hits all of them.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tscap_common::compare::{MOST_SAMPLES, Sample};

use super::capturing::Capturing;
use super::clocks::Clocks;
use super::pair::Pair;
use super::plan::Amount;
use super::programs::{Programs, ProgramsError, Settings};
use super::taken::{FrameCounts, Taken};
use super::traffic::{Burst, Traffic};
use super::whole::{Whole, WholeError};
use super::{Stamp, schema};
use crate::clock::{NsPerCycle, StampSource, measure_tsc_rate};
use crate::generator::Pattern;
use crate::sys::bpf::{XDP_FLAGS_DRV_MODE, XdpLink};
use crate::sys::netdev::Link;
use crate::sys::{affinity, system, tsc};

/// The paper's patterns, by the name of each.
pub const PATTERNS: [(&str, Pattern); 2] = [("voip", Pattern::Voip), ("hd", Pattern::Hd)];
/// `enum xdp_action`.
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
/// Frames in the search for the highest rate: some tenths of a second.
const RATE_FRAMES: u64 = 300_000;
/// Frames at one point of a loss curve.
const LOSS_FRAMES: u64 = 20_000;
/// Each step of the search for the highest rate goes down by this factor.
const RATE_STEP: f64 = 0.85;
/// Steps of that search.
const RATE_STEPS: u32 = 6;
/// How often it is looked whether enough live traffic has come.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// Where frames come from.
pub enum Place {
    /// The generator, through a veth pair of our own; loss is measured by captures
    /// of this executable.
    Own {
        /// The pair.
        pair: Box<Pair>,
        /// `tscap`.
        executable: PathBuf,
    },
    /// Whatever an interface receives.
    Live {
        /// The interface.
        link: Link,
        /// Longest wait for the frames of a turn.
        timeout: Duration,
    },
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The program could not be attached natively.
    #[error("cannot attach to {interface} in native mode")]
    Native {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing came in on an interface.
    #[error("no frame came in on CPU {cpu} of {interface} within {timeout:?}")]
    NoTraffic {
        /// The CPU.
        cpu: u32,
        /// The interface.
        interface: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// None of the frames sent was measured.
    #[error("none of the frames sent came in on the CPU that they were sent from")]
    AllLost,
    /// The measuring programs failed.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// A whole capture program failed.
    #[error(transparent)]
    Whole(#[from] WholeError),
    /// Another step of it failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

/// Told after every round, and asked whether to stop.
pub trait Watcher {
    /// So many rounds are over; false ends the experiment.
    fn round(&mut self, rounds: u32) -> bool;
}

/// What the rounds gave.
pub struct Results {
    /// One for each stamp, the floor first.
    pub taken: Vec<Taken>,
    /// Rounds that were whole.
    pub rounds: u32,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// The measuring thread's things.
struct Bench {
    programs: Programs,
    link: XdpLink,
    place: Place,
    traffic: Option<Traffic>,
    whole: Vec<Whole>,
    rate: Option<NsPerCycle>,
    cpu: u32,
}

/// Does it all, in this thread, which it pins and moves into another namespace.
pub fn run(
    place: Place,
    amount: &Amount,
    cpu: u32,
    more_reads: u32,
    watcher: &mut dyn Watcher,
) -> Result<Results, ExperimentError> {
    affinity::pin_to(cpu)?;
    let mut warnings = Vec::new();
    let (mut bench, stamps) = prepare(place, cpu, more_reads, &mut warnings)?;
    let mut taken: Vec<_> = stamps.iter().copied().map(Taken::new).collect();
    let mut rounds = 0;
    for round in 1..=amount.rounds {
        // Spread evenly over all rounds.
        let is_one_of =
            |some: u32| (round * some) / amount.rounds > ((round - 1) * some) / amount.rounds;
        for index in order(stamps.len(), round) {
            bench.turn(
                &mut taken[index],
                index,
                amount,
                is_one_of(amount.pattern_rounds),
            )?;
            if is_one_of(amount.rate_rounds) {
                bench.find_rate(&mut taken[index])?;
            }
        }
        rounds = round;
        if !watcher.round(round) {
            break;
        }
    }
    if rounds == amount.rounds {
        for taken in &mut taken {
            bench.loss(taken, amount)?;
        }
    }
    Ok(Results {
        taken,
        rounds,
        warnings,
    })
}

/// Every other round goes backwards, so that none always follows the same one.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).collect();
    if round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

fn prepare(
    place: Place,
    cpu: u32,
    more_reads: u32,
    warnings: &mut Vec<String>,
) -> Result<(Bench, Vec<Stamp>), ExperimentError> {
    let mut programs = Programs::load(Settings {
        cpu,
        action: match place {
            Place::Own { .. } => XDP_DROP,
            Place::Live { .. } => XDP_PASS,
        },
        more_reads,
        more_work: 0,
    })?;
    let mut stamps = vec![None, Some(StampSource::Ktime)];
    match programs.load_tai() {
        Ok(()) => stamps.push(Some(StampSource::Tai)),
        Err(error) => warnings.push(format!("no tai here: {}", causes(&error))),
    }
    let rate = tsc::check().ok().and_then(|()| measure_tsc_rate());
    let with_tsc = rate.map(|rate| programs.load_tsc(rate));
    match with_tsc {
        Some(Ok(_)) => stamps.push(Some(StampSource::Tsc)),
        Some(Err(error)) => warnings.push(format!("no tsc here: {}", causes(&error))),
        None => warnings.push("no tsc here: the counter is not constant".into()),
    }
    let possible = system::possible_cpus().map_err(io::Error::other)?;
    // Without a program that reads the TSC nobody needs it.
    let rate = rate.filter(|_| stamps.contains(&Some(StampSource::Tsc)));
    let whole = stamps
        .iter()
        .map(|stamp| Whole::load(*stamp, cpu, possible));
    let whole = whole.collect::<Result<_, _>>()?;
    let attach =
        |ifindex| XdpLink::attach(programs.cost_program(None)?, ifindex, XDP_FLAGS_DRV_MODE);
    let (link, traffic) = match &place {
        Place::Own { pair, .. } => {
            let link = pair.rx_netns.within(|| attach(pair.rx.index))?;
            pair.tx_netns.enter()?;
            (link, Some(Traffic::new(pair, cpu, rate)?))
        }
        Place::Live { link, .. } => {
            let attached = attach(link.index);
            let link = attached.map_err(|source| ExperimentError::Native {
                interface: link.name.clone(),
                source,
            })?;
            (link, None)
        }
    };
    let bench = Bench {
        programs,
        link,
        place,
        traffic,
        whole,
        rate,
        cpu,
    };
    Ok((bench, stamps))
}

fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    crate::causes::with_causes(error.to_string(), error.source())
}

impl Bench {
    fn turn(
        &mut self,
        taken: &mut Taken,
        index: usize,
        amount: &Amount,
        with_patterns: bool,
    ) -> Result<(), ExperimentError> {
        if let Some(source) = taken.stamp {
            taken.read_ns.push(self.programs.read_ns(source)?);
        }
        let program_ns = self.whole[index].ns_per_frame();
        taken.program_ns.push(program_ns.map_err(io::Error::other)?);
        self.link
            .replace(self.programs.cost_program(taken.stamp)?)?;
        let (_, samples) = self.measure(Burst::fast(amount.frames.into()), &mut taken.fast)?;
        if samples.is_empty() {
            return Err(ExperimentError::AllLost);
        }
        taken.round(samples.iter().map(|sample| sample.cost_ns));
        if with_patterns && self.traffic.is_some() {
            for (index, (_, pattern)) in PATTERNS.into_iter().enumerate() {
                let mut left = u64::from(amount.pattern_frames[index]);
                // In pieces that the array of samples holds.
                while left > 0 {
                    let frames = left.min(MOST_SAMPLES.into());
                    left -= frames;
                    let burst = Burst::of_pattern(pattern, frames);
                    let pattern = &mut taken.patterns[index];
                    let (run, samples) = self.measure(burst, &mut pattern.counts)?;
                    let clocks = self.clocks(taken.stamp)?;
                    pattern.take(taken.stamp, run, &samples, clocks.as_ref());
                }
            }
        }
        Ok(())
    }

    /// The clocks as they are now; `None` if somebody sets them.
    fn clocks(&mut self, stamp: Stamp) -> io::Result<Option<Clocks>> {
        let offset = match (stamp, self.rate) {
            (Some(StampSource::Tsc), Some(rate)) => self.programs.tsc_offset(rate)?.middle().0,
            _ => 0,
        };
        Ok(Clocks::read(self.rate, offset))
    }

    /// Lets the attached program see a burst, or what comes by itself; accounts
    /// for every frame sent.
    fn measure(
        &mut self,
        burst: Burst,
        counts: &mut FrameCounts,
    ) -> Result<(u16, Vec<Sample>), ExperimentError> {
        let taken = match &mut self.traffic {
            None => {
                self.programs.reset()?;
                self.wait_for_traffic(burst.frames)?;
                (0, self.programs.samples()?)
            }
            Some(traffic) => {
                let measured = traffic.measure(&mut self.programs, burst)?;
                counts.sent += measured.sent;
                counts.received += measured.samples.len() as u64;
                (measured.run, measured.samples)
            }
        };
        let seen = self.programs.counts()?;
        counts.elsewhere += seen.elsewhere;
        counts.unstamped += seen.bad;
        Ok(taken)
    }

    fn wait_for_traffic(&self, frames: u64) -> Result<(), ExperimentError> {
        let Place::Live { timeout, link } = &self.place else {
            return Ok(());
        };
        let deadline = Instant::now() + *timeout;
        loop {
            let measured = self.programs.counts()?.measured;
            if measured >= frames {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return match measured {
                    0 => Err(ExperimentError::NoTraffic {
                        cpu: self.cpu,
                        interface: link.name.clone(),
                        timeout: *timeout,
                    }),
                    _ => Ok(()),
                };
            }
            std::thread::sleep(LOOK_EACH);
        }
    }

    /// Captures a burst; returns frames sent and written, and the rate.
    fn capture(&mut self, source: StampSource, burst: Burst) -> io::Result<(u64, u64, f64)> {
        let (Some(traffic), Place::Own { pair, executable }) = (&mut self.traffic, &self.place)
        else {
            return Ok((0, 0, 0.0));
        };
        // There is room for one program only.
        self.link.detach()?;
        let capturing = Capturing::start(executable, pair, source)?;
        let sent = traffic.send(burst);
        let written = capturing.finish()?;
        let program = self.programs.cost_program(None)?;
        let rx = pair.rx.index;
        self.link = pair
            .rx_netns
            .within(|| XdpLink::attach(program, rx, XDP_FLAGS_DRV_MODE))?;
        let (_, sent) = sent?;
        let rate = sent.rate(burst.pacing).unwrap_or(0.0);
        Ok((sent.sent + sent.refused, written, rate))
    }

    /// The highest rate that loses nothing: flat out, or as much below as it takes.
    fn find_rate(&mut self, taken: &mut Taken) -> io::Result<()> {
        let Some(source) = taken.stamp.filter(|_| self.traffic.is_some()) else {
            return Ok(());
        };
        let mut burst = Burst::flat_out(64, RATE_FRAMES);
        let mut tried = f64::INFINITY;
        for _ in 0..RATE_STEPS {
            let (sent, written, rate) = self.capture(source, burst)?;
            if written >= sent {
                taken.lossless_rate.push(rate.min(tried));
                return Ok(());
            }
            tried = rate * RATE_STEP;
            let Some(slower) = Burst::at_rate(64, tried, RATE_FRAMES) else {
                break;
            };
            burst = slower;
        }
        taken.rates_with_loss += 1;
        Ok(())
    }

    fn loss(&mut self, taken: &mut Taken, amount: &Amount) -> io::Result<()> {
        let Some(source) = taken.stamp.filter(|_| self.traffic.is_some()) else {
            return Ok(());
        };
        let point = |size, gap, (sent, written, _): (u64, u64, f64)| schema::LossPoint {
            size,
            gap,
            sent,
            received: written.min(sent),
            lost: sent.saturating_sub(written),
        };
        for size in amount.sizes.iter().copied() {
            let captured = self.capture(source, Burst::flat_out(size, LOSS_FRAMES))?;
            taken.loss_by_size.push(point(size, None, captured));
        }
        for gap in amount.gaps.iter().copied() {
            let captured = self.capture(source, Burst::with_gap(64, gap, LOSS_FRAMES))?;
            taken.loss_by_gap.push(point(64, Some(gap), captured));
        }
        Ok(())
    }
}
