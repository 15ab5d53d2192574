//! The runs of a round, in turns.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tscap_clock::StampSource;
use tscap_engine::Io;
use tscap_file::accounting::Direction;
use tscap_lab::loss::{Disk, DiskRate};
use tscap_programs::hook::HookChoice;
use tscap_traffic::load::{Burst, Point, Program, Setup, Stop, TestBed};

use super::amount::{Amount, Kind};
use super::cells::{Bare, KindReport, ToolRuns};
use super::ground::{Folder, Ground};

/// After loss the next rate is this part of what was written a second…
const OF_WRITTEN: f64 = 0.95;
/// …and at most this part of the last one.
const OF_LAST: f64 = 0.85;
/// A rate between one without loss and one with it is tried while the former is less than this
/// part of the latter.
const OF_BETWEEN: f64 = 0.95;
/// A program that has failed so often is not started any more: each hang costs its
/// deadline.
const MOST_FAILED: usize = 5;
/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(300);

/// What is needed for a run, and what the runs gave.
pub struct Runs<'a> {
    ground: &'a Ground,
    amount: &'a Amount,
    kinds: Vec<(Kind, u64)>,
    programs: &'a [Program],
    cpus: &'a [u32],
    bed: TestBed,
    stop: Arc<Stop>,
    folder: Folder,
    /// By round: what the disk takes alone.
    disk: Vec<DiskRate>,
    /// By kind: without a capture, flat out; and by program.
    taken: Vec<(Kind, Bare, Vec<ToolRuns>)>,
}

impl<'a> Runs<'a> {
    /// For this thread, pinned to the sender's CPU; each kind with its frames flat out.
    pub fn open(
        ground: &'a Ground,
        amount: &'a Amount,
        kinds: Vec<(Kind, u64)>,
        programs: &'a [Program],
        cpus: &'a [u32],
        stop: Arc<Stop>,
    ) -> Result<Self> {
        let folder = ground.folder(amount.largest_file(&kinds))?;
        stop.set_file(folder.file());
        let taken = |kind| {
            let enough = amount.slower_frames(kind);
            let of = programs.iter();
            of.map(move |it| ToolRuns::new(it.tool, amount.rates, enough))
        };
        let taken = kinds
            .iter()
            .map(|(kind, _)| (*kind, Bare::default(), taken(*kind).collect()))
            .collect();
        Ok(Self {
            ground,
            amount,
            kinds,
            programs,
            cpus,
            bed: ground.bed(&stop)?,
            stop,
            folder,
            disk: Vec::new(),
            taken,
        })
    }

    /// All kinds; every other round in the opposite order.
    pub fn round(&mut self, round: u32) -> Result<()> {
        let mut order: Vec<_> = (0..self.programs.len()).map(Some).chain([None]).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        self.disk_alone()?;
        for (index, (kind, frames)) in self.kinds.clone().into_iter().enumerate() {
            eprintln!("  {}", kind.name());
            for program in &order {
                match program {
                    None => self.bare(index, kind, frames)?,
                    Some(program) => self.flat_out(index, *program, frames)?,
                }
            }
            for rate in 0..self.amount.rates.len() {
                for program in order.iter().flatten() {
                    self.paced(index, *program, rate)?;
                }
            }
            for program in order.iter().flatten() {
                self.slower(index, *program)?;
            }
        }
        Ok(())
    }

    /// What the disk takes, if there is one, before captures write to it.
    fn disk_alone(&mut self) -> Result<()> {
        let Ground::Disk(folder) = self.ground else {
            return Ok(());
        };
        let disk = Disk::open(folder, Io::Direct)?.context("it is in memory")?;
        let rate = disk.measure(self.amount.disk_alone, &self.stop, |_| ())?;
        self.disk.push(rate);
        Ok(())
    }

    /// Flat out, and no capture.
    fn bare(&mut self, index: usize, kind: Kind, frames: u64) -> Result<()> {
        self.go_on()?;
        let burst = flat_out(kind, frames);
        let sent = self.bed.send(burst)?;
        let rate = sent.rate(burst.pacing).context("no rate")?;
        let ns = self.ns_per_frame(frames);
        let bare = &mut self.taken[index].1;
        bare.mpps.push(rate / 1e6);
        bare.ns.push(ns);
        if self.ground.is_tap() {
            let sent = self.bed.send_dropped(burst)?;
            let rate = sent.rate(burst.pacing).context("no rate")?;
            self.taken[index].1.dropped_mpps.push(rate / 1e6);
        }
        Ok(())
    }

    fn flat_out(&mut self, index: usize, program: usize, frames: u64) -> Result<()> {
        let kind = self.taken[index].0;
        let flat = self.capture(index, program, flat_out(kind, frames))?;
        let ns = flat.as_ref().map(|_| self.ns_per_frame(frames));
        let taken = &mut self.taken[index].2[program];
        taken.flat_out.push(flat);
        taken.ns.push(ns);
        Ok(())
    }

    /// Slower than flat out until nothing is lost, and faster than the set rates at which
    /// nothing was.
    fn slower(&mut self, index: usize, program: usize) -> Result<()> {
        let taken = &self.taken[index].2[program];
        let lossless = 1e6 * taken.lossless_at_set_rates();
        let flat_out = taken.flat_out.last().cloned().flatten();
        let mut tried: Vec<_> = flat_out.into_iter().collect();
        for _ in 0..self.amount.attempts {
            let Some(lossy) = tried.last().filter(|point| point.lost.total() > 0) else {
                break;
            };
            let written = lossy.written as f64 / lossy.seconds;
            let rate = (OF_WRITTEN * written).min(OF_LAST * lossy.rate);
            if rate <= lossless || !self.try_rate(index, program, rate, &mut tried)? {
                break;
            }
        }
        for _ in 0..self.amount.refinements {
            let Some(rate) = between(&tried) else { break };
            if !self.try_rate(index, program, rate, &mut tried)? {
                break;
            }
        }
        // The first is the one flat out, unless that failed: then there are none.
        let slower = tried.into_iter().skip(1).collect();
        self.taken[index].2[program].slower.push(slower);
        Ok(())
    }

    /// A run at a rate; whether it gave something.
    fn try_rate(
        &mut self,
        index: usize,
        program: usize,
        rate: f64,
        tried: &mut Vec<Point>,
    ) -> Result<bool> {
        let kind = self.taken[index].0;
        let Some(burst) = at_rate(kind, rate, self.amount.slower_frames(kind)) else {
            return Ok(false);
        };
        let point = self.capture(index, program, burst)?;
        let gave = point.is_some();
        tried.extend(point);
        Ok(gave)
    }

    fn paced(&mut self, index: usize, program: usize, rate: usize) -> Result<()> {
        let (kind, asked) = (self.taken[index].0, self.amount.rates[rate]);
        let burst = at_rate(kind, asked, self.amount.paced_frames(asked));
        let burst = burst.with_context(|| format!("{asked} frames a second is no rate"))?;
        let point = self.capture(index, program, burst)?;
        self.taken[index].2[program].paced[rate].push(point);
        Ok(())
    }

    /// One run; none if it failed, which is told at the end, or has failed too often.
    fn capture(&mut self, index: usize, program: usize, burst: Burst) -> Result<Option<Point>> {
        self.go_on()?;
        let failed = self
            .taken
            .iter()
            .map(|(.., taken)| taken[program].failed.len());
        if failed.sum::<usize>() >= MOST_FAILED {
            return Ok(None);
        }
        let (kind, ..) = self.taken[index];
        let setup = Setup {
            snaplen: kind.snaplen,
            buffer_bytes: self.amount.buffer_bytes,
            direction: Direction::In,
            hook: HookChoice::Auto,
            tap: self.ground.is_tap(),
            expression: None,
            clock: StampSource::Ktime,
            tsc_path: None,
            output: self.folder.file(),
            cpus: self.cpus.to_vec(),
            longest: LONGEST,
        };
        let point = self.bed.capture(&self.programs[program], &setup, burst);
        match fs::remove_file(self.folder.file()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        match point {
            Ok(point) => Ok(Some(point)),
            Err(error) => {
                self.go_on()?;
                let what = format!(
                    "{}, {burst:?}: {:#}",
                    kind.name(),
                    anyhow::Error::from(error)
                );
                eprintln!("  failed: {what}");
                self.taken[index].2[program].failed.push(what);
                // What was killed may have left something attached.
                self.bed = self.ground.bed(&self.stop)?;
                Ok(None)
            }
        }
    }

    /// CPU time that a frame of the last burst took to be sent and received.
    fn ns_per_frame(&self, frames: u64) -> f64 {
        self.bed.burst_cpu().as_nanos() as f64 / frames as f64
    }

    fn go_on(&self) -> Result<()> {
        if self.stop.is_asked() {
            bail!("told to end");
        }
        Ok(())
    }

    /// What all rounds gave: the kinds, and what the disk took alone, if there is one.
    pub fn finish(self) -> (Vec<KindReport>, Vec<DiskRate>) {
        let frames = self.kinds.iter().map(|(_, frames)| *frames);
        let kinds = self.taken.into_iter().zip(frames);
        let part = self.ground.part();
        let kinds = kinds.map(|((kind, bare, taken), frames)| KindReport {
            part,
            ..KindReport::new(kind, frames, bare, taken)
        });
        (kinds.collect(), self.disk)
    }
}

/// As fast as can be.
fn flat_out(kind: Kind, frames: u64) -> Burst {
    Burst::flat_out(kind.size, frames).of_sizes(kind.sizes())
}

/// At so many frames a second, in bulks; none if that is no rate.
fn at_rate(kind: Kind, rate: f64, frames: u64) -> Option<Burst> {
    let burst = Burst::at_rate(kind.size, rate, frames)?;
    Some(burst.of_sizes(kind.sizes()).in_bulks())
}

/// A rate between the highest without loss and the lowest with it, unless they are as good as
/// the same; none without either.
fn between(tried: &[Point]) -> Option<f64> {
    let rates = |is_lossy: bool| {
        let points = tried.iter();
        let points = points.filter(move |point| (point.lost.total() > 0) == is_lossy);
        points.map(|point| point.rate)
    };
    let lossless = rates(false).max_by(f64::total_cmp)?;
    let lossy = rates(true).filter(|rate| *rate > lossless);
    let lossy = lossy.min_by(f64::total_cmp)?;
    (lossless < OF_BETWEEN * lossy).then(|| (lossless * lossy).sqrt())
}
