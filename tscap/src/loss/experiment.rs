//! The sweep: costs first, then every point.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::calibrate::{calibrate, runs};
use super::error::LossError;
use super::grid::{Grid, Pace, Spot};
use super::model::{Costs, Load, foretell};
use super::rig::{Place, Rig};
use super::schema::{Calibration, Foretold, Point};
use crate::load::{Absent, Burst, Pair, Point as Run, Program, Stop, Tool};

/// Fewest frames of a point.
const FEWEST: f64 = 1_000.0;
/// Bytes a second that the files are likely to grow by, to warm so much of the folder.
const LIKELY: f64 = 1e9;

/// What the sweep gave.
pub struct Results {
    /// What the stages cost, for each stamp.
    pub calibrations: Vec<Calibration>,
    /// The points that were whole.
    pub points: Vec<Point>,
    /// CPUs that the captures ran on.
    pub capture_cpus: Vec<u32>,
    /// CPUs with a ring.
    pub rings: usize,
    /// The other programs, as they call themselves.
    pub peers: Vec<String>,
    /// Why it ended before all was measured.
    pub ended_by: Option<LossError>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How many captures a sweep takes.
pub fn captures(grid: &Grid, place: &Place) -> u32 {
    let calibration = runs(place.file_bytes_per_s.is_some());
    (calibration as usize * grid.clocks.len() + grid.len()) as u32
}

/// Finds the programs, so that one that is not there is missed before anything runs.
///
/// # Errors
/// The first one that is not installed.
pub fn programs(grid: &Grid, place: &Place) -> Result<Vec<Program>, Absent> {
    let tools = [Tool::Tscap].into_iter().chain(grid.peers.iter().copied());
    tools.map(|tool| tool.find(&place.executable)).collect()
}

/// Does it all, in this thread, which it pins and moves into another namespace; says
/// how many captures are over after each. What ends it after the costs are known
/// leaves the points that were whole by then.
pub fn run(
    pair: Pair,
    place: Place,
    grid: &Grid,
    stop: Arc<Stop>,
    mut tell: impl FnMut(u32),
) -> Result<Results, LossError> {
    let programs = programs(grid, &place)?;
    let peers = programs.iter().skip(1).map(Program::version);
    let peers = peers.collect::<Result<_, _>>()?;
    let mut rig = Rig::new(pair, place, stop)?;
    rig.warm((LIKELY * grid.duration.as_secs_f64()) as u64)?;
    let mut done = 0;
    let mut tell = || {
        done += 1;
        tell(done);
    };
    let mut results = Results {
        calibrations: Vec::new(),
        points: Vec::new(),
        capture_cpus: rig.capture_cpus().to_vec(),
        rings: rig.rings(),
        peers,
        ended_by: None,
        warnings: Vec::new(),
    };
    for clock in &grid.clocks {
        let probes = calibrate(&mut rig, &programs[0], *clock, &mut tell)?;
        let costs = probes.costs().ok_or(LossError::NoCosts)?;
        results.calibrations.push(Calibration {
            clock: *clock,
            costs,
            probes,
        });
    }
    for spot in grid.spots() {
        match point(&mut rig, &programs, &spot, grid.duration, &results.calibrations) {
            Ok(point) => results.points.push(point),
            // The sweep is tscap's: it goes on without another program's point.
            Err(LossError::Capture { tool, source, size }) if tool != Tool::Tscap => {
                let why = crate::causes::with_causes(source.to_string(), std::error::Error::source(&source));
                results.warnings.push(format!("{}, {size} B: no point: {why}", tool.name()));
            }
            Err(error) => {
                results.ended_by = Some(error);
                break;
            }
        }
        tell();
    }
    Ok(results)
}

fn point(
    rig: &mut Rig,
    programs: &[Program],
    spot: &Spot,
    lasting: Duration,
    calibrations: &[Calibration],
) -> Result<Point, LossError> {
    rig.go_on()?;
    let program = programs.iter().find(|program| program.tool == spot.tool);
    let program = program.ok_or(Absent(spot.tool))?;
    let calibration = calibrations.iter().find(|it| it.clock == spot.clock);
    let costs = &calibration.ok_or(LossError::NoCosts)?.costs;
    let pacing = spot.pace.pacing(spot.size);
    let burst = Burst {
        size: spot.size,
        pacing: pacing.ok_or_else(|| io::Error::other("no such pace"))?,
        frames: frames(costs, spot, lasting).min(rig.frames_in_room(spot.caplen())),
    };
    let run = rig.capture_point(program, spot, burst);
    let run = run.map_err(|source| LossError::Capture {
        size: spot.size,
        tool: spot.tool,
        source,
    })?;
    Ok(Point::new(spot, costs, run))
}

/// As many as are sent in that time.
fn frames(costs: &Costs, spot: &Spot, lasting: Duration) -> u64 {
    let load = load_of(spot, 1e9);
    let rate = load.frames / foretell(costs, &load).seconds;
    (rate * lasting.as_secs_f64()).max(FEWEST) as u64
}

fn load_of(spot: &Spot, frames: f64) -> Load {
    Load {
        frames,
        caplen: spot.caplen(),
        rate: spot.pace.rate(spot.size),
        ring_bytes: spot.ring as f64,
    }
}

impl Point {
    fn new(spot: &Spot, costs: &Costs, run: Run) -> Self {
        let is_ours = spot.tool == Tool::Tscap;
        let foretold = is_ours.then(|| {
            let forecast = foretell(costs, &load_of(spot, run.sent as f64));
            Foretold {
                before: forecast.before,
                ring: forecast.ring,
            }
        });
        let (gap, line) = match spot.pace {
            Pace::Gap { gap, line } => (Some(gap), Some(line.0)),
            Pace::FlatOut | Pace::Rate(_) => (None, None),
        };
        let rate = spot.pace.rate(spot.size);
        Self {
            tool: spot.tool,
            clock: is_ours.then_some(spot.clock),
            size: spot.size,
            gap,
            line,
            rate_asked: rate.is_finite().then_some(rate),
            snaplen: spot.snaplen,
            ring_bytes: spot.ring as u64,
            run,
            foretold,
        }
    }
}
