//! The sweep: costs first, then every point.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::bed::{LossBed, Placement};
use super::calibrate::{calibrate, runs};
use super::error::LossError;
use super::grid::{Arrival, Grid, GridPoint, Pace};
use super::model::{Costs, Load, predict};
use super::schema::{Calibration, Point, PredictedLoss};
use tscap_base::text::causes::chain;
use tscap_clock::StampSource;
use tscap_traffic::load::{Burst, NotInstalled, Pair, Point as Run, Program, Sizes, Stop, Tool};

/// Fewest frames of a point, if they don't take longer than…
const FEWEST: f64 = 1_000.0;
const LONGEST: Duration = Duration::from_secs(10);
/// Bytes a second that the files are likely to grow by, to warm so much of the folder.
const LIKELY: f64 = 1e9;

/// What the sweep gave.
pub struct Results {
    /// What the stages cost, for each stamp.
    pub calibrations: Vec<Calibration>,
    /// The points that were whole.
    pub points: Vec<Point>,
    /// How it was done.
    pub setting: Setting,
    /// Why it ended before all was measured.
    pub ended_by: Option<LossError>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// What there is to measure with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// CPUs that the captures ran on.
    pub capture_cpus: Vec<u32>,
    /// CPUs with a ring.
    pub rings: usize,
    /// The other programs, as they call themselves.
    pub peers: Vec<String>,
}

/// The experiment. It stays in the thread that made it.
pub struct Experiment {
    bed: LossBed,
    programs: Vec<Program>,
    calibrations: Vec<Calibration>,
}

/// How many captures a sweep takes.
pub fn captures(grid: &Grid, placement: &Placement) -> u32 {
    let calibration = grid.rounds * runs(placement.file_bytes_per_s.is_some());
    (calibration as usize * grid.costs().len() + grid.len()) as u32
}

/// Does it all, in this thread, which it pins and moves into another namespace; says
/// how many captures are over after each. What ends it after the costs are known
/// leaves the points that were whole by then.
pub fn run(
    pair: Pair,
    placement: Placement,
    grid: &Grid,
    stop: Arc<Stop>,
    mut tell: impl FnMut(u32),
) -> Result<Results, LossError> {
    let mut done = 0;
    let mut tell = || {
        done += 1;
        tell(done);
    };
    let mut experiment = Experiment::new(pair, placement, &grid.peers, stop)?;
    let setting = experiment.setting()?;
    experiment.warm(grid.duration)?;
    for (clock, arrival) in grid.costs() {
        experiment.calibrate((clock, arrival), grid.rounds, &mut tell)?;
    }
    let (mut points, mut ended_by, mut warnings) = (Vec::new(), None, Vec::new());
    for grid_point in grid.grid_points() {
        match experiment.point(&grid_point, grid.duration) {
            Ok(point) => points.push(point),
            // The sweep is tscap's: it goes on without another program's point.
            Err(LossError::Capture { tool, size, source }) if tool != Tool::Tscap => {
                let why = chain(&source);
                warnings.push(format!("{} at {size} B: no point: {why}", tool.name()));
            }
            Err(error) => {
                ended_by = Some(error);
                break;
            }
        }
        tell();
    }
    Ok(Results {
        setting,
        calibrations: experiment.calibrations,
        points,
        ended_by,
        warnings,
    })
}

impl Experiment {
    /// In this thread, which it pins and moves into another namespace.
    pub fn new(
        pair: Pair,
        placement: Placement,
        peers: &[Tool],
        stop: Arc<Stop>,
    ) -> Result<Self, LossError> {
        let tools = [Tool::Tscap].into_iter().chain(peers.iter().copied());
        let programs = tools.map(|tool| tool.find(&placement.executable));
        Ok(Self {
            programs: programs.collect::<Result<_, _>>()?,
            bed: LossBed::new(pair, placement, stop)?,
            calibrations: Vec::new(),
        })
    }

    /// Warms the memory of the folder for points that last so long.
    pub fn warm(&mut self, lasting: Duration) -> io::Result<()> {
        self.bed.warm((LIKELY * lasting.as_secs_f64()) as u64)
    }

    /// Finds out what the stages cost with a stamp when frames come so, in so many
    /// rounds; says after each capture that it is over.
    pub fn calibrate(
        &mut self,
        (clock, arrival): (StampSource, Arrival),
        rounds: u32,
        tell: impl FnMut(),
    ) -> Result<&Calibration, LossError> {
        let tscap = &self.programs[0];
        let probes = calibrate(&mut self.bed, tscap, (clock, arrival), rounds, tell)?;
        let costs = probes.costs().ok_or(LossError::NoCosts)?;
        self.calibrations.push(Calibration {
            clock,
            arrival,
            costs,
            probes,
        });
        self.calibrations.last().ok_or(LossError::NoCosts)
    }

    /// Measures and predicts one point, for whose stamp and arrival the costs are known.
    pub fn point(&mut self, grid_point: &GridPoint, lasting: Duration) -> Result<Point, LossError> {
        self.bed.stop.go_on()?;
        let program = self.programs.iter().find(|it| it.tool == grid_point.tool);
        let program = program.ok_or(NotInstalled(grid_point.tool))?;
        let arrival = grid_point.pace.arrival(grid_point.size);
        let mut calibrations = self.calibrations.iter();
        let calibration =
            calibrations.rfind(|it| (it.clock, it.arrival) == (grid_point.clock, arrival));
        let costs = &calibration.ok_or(LossError::NoCosts)?.costs;
        let pacing = grid_point.pace.pacing(grid_point.size);
        let most = self.bed.frames_in_room(grid_point);
        let burst = Burst {
            sizes: Sizes::Same(grid_point.size),
            pacing: pacing.ok_or_else(|| io::Error::other("no such pace"))?,
            in_bulks: arrival == Arrival::InBursts,
            frames: frames(costs, grid_point, lasting).min(most),
        };
        let run = self.bed.capture_point(program, grid_point, burst);
        // Told to end, it is not waited until a capture has come to rest, or that is killed.
        self.bed.stop.go_on()?;
        let run = run.map_err(|source| LossError::Capture {
            size: grid_point.size,
            tool: grid_point.tool,
            source,
        })?;
        Ok(Point::new(grid_point, costs, run))
    }

    /// What there is to measure with.
    pub fn setting(&self) -> io::Result<Setting> {
        let peers = self.programs.iter().skip(1).map(Program::version);
        Ok(Setting {
            capture_cpus: self.bed.capture_cpus().to_vec(),
            rings: self.bed.rings(),
            peers: peers.collect::<Result<_, _>>()?,
        })
    }
}

/// As many as are sent in that time.
fn frames(costs: &Costs, grid_point: &GridPoint, lasting: Duration) -> u64 {
    let load = load_of(grid_point, 1e9);
    let rate = load.frames / predict(costs, &load).seconds;
    frames_at(rate, lasting)
}

fn frames_at(rate: f64, lasting: Duration) -> u64 {
    let fewest = FEWEST.min(rate * LONGEST.as_secs_f64());
    (rate * lasting.as_secs_f64()).max(fewest).max(1.0) as u64
}

fn load_of(grid_point: &GridPoint, frames: f64) -> Load {
    Load {
        frames,
        caplen: grid_point.caplen(),
        rate: grid_point.pace.rate(grid_point.size),
        ring_bytes: grid_point.ring as f64,
    }
}

impl Point {
    pub(super) fn new(grid_point: &GridPoint, costs: &Costs, run: Run) -> Self {
        let is_ours = grid_point.tool == Tool::Tscap;
        let predicted = is_ours.then(|| {
            let load = load_of(grid_point, run.sent as f64);
            let load = Load {
                // What came, not what was asked for: a sender may be late.
                rate: if load.rate.is_finite() {
                    load.rate.min(run.sent as f64 / run.seconds)
                } else {
                    load.rate
                },
                ..load
            };
            let prediction = predict(costs, &load);
            PredictedLoss {
                before: prediction.before,
                ring: prediction.ring,
            }
        });
        let (gap, line) = match grid_point.pace {
            Pace::Gap { gap, line } => (Some(gap), Some(line.0)),
            Pace::FlatOut | Pace::Rate(_) => (None, None),
        };
        let rate = grid_point.pace.rate(grid_point.size);
        Self {
            tool: grid_point.tool,
            clock: is_ours.then_some(grid_point.clock),
            size: grid_point.size,
            gap,
            line,
            rate_asked: rate.is_finite().then_some(rate),
            arrival: Some(grid_point.pace.arrival(grid_point.size)),
            snaplen: grid_point.snaplen,
            ring_bytes: grid_point.ring as u64,
            run,
            predicted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_frames_do_not_last_for_minutes() {
        let second = Duration::from_secs(1);
        assert_eq!(frames_at(1e6, second), 1_000_000);
        assert_eq!(frames_at(500.0, second), 1_000);
        assert_eq!(frames_at(5.0, second), 50);
        assert_eq!(frames_at(5.0, 60 * second), 300);
        assert_eq!(frames_at(0.01, second), 1);
    }
}
