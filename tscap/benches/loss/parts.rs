//! The parts: where frames are lost, and at which rates.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tscap_clock::StampSource;
use tscap_lab::loss::model::{Costs, record_bytes};
use tscap_lab::loss::schema::{Calibration, Point};
use tscap_lab::loss::{Arrival, Experiment, Grid, GridPoint, Pace, Placement};
use tscap_testkit::command::tscap_path;
use tscap_traffic::generator::Rate;
use tscap_traffic::load::{Pair, Stop};

/// Most bytes a second that the file takes where it alone is slow.
const SLOW: u64 = 40_000_000;
/// Where frames are lost in both stages it takes this part of what can be received.
const SLOWER: f64 = 0.75;
/// Frames of the size by which that is told, bytes.
const MIDDLE: u32 = 256;
/// Rates, as multiples of what the stage that is to lose frames can take.
const MULTIPLES: [f64; 4] = [0.7, 1.15, 1.5, 2.2];
/// A multiple each of a quick run.
const QUICK: [f64; 2] = [0.7, 1.5];
/// How long frames are sent at each point.
const LASTING: Duration = Duration::from_millis(600);
/// Runs of each calibration, of which the middle one counts.
const CALIBRATIONS: u32 = 3;
/// Of ktime, with frames that come one by one, as they do at a rate.
const COSTS: (StampSource, Arrival) = (StampSource::Ktime, Arrival::Singly);

/// Where frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Before the program: received on a CPU of their own
    Receive,
    /// In the ring: the file is slow
    Writer,
    /// In both
    Both,
}

/// What one round of a part gave.
#[derive(Debug, Serialize)]
pub struct Measured {
    /// Which.
    pub part: Part,
    /// What the stages cost in it.
    pub calibration: Calibration,
    /// The points.
    pub points: Vec<Point>,
}

impl Part {
    /// Measures a round of it.
    pub fn measure(
        self,
        sender_cpu: u32,
        receive_cpu: u32,
        quick: bool,
        stop: &Arc<Stop>,
    ) -> Result<Measured> {
        let placement = Placement {
            executable: tscap_path().into(),
            sender_cpu,
            receive_cpu: (self != Self::Writer).then_some(receive_cpu),
            folder: "/dev/shm".into(),
            file_bytes_per_s: (self == Self::Writer).then_some(SLOW),
        };
        let placement = match self {
            Self::Receive | Self::Writer => placement,
            Self::Both => {
                let costs = in_thread(placement.clone(), stop, |it| {
                    Ok(it.calibrate(COSTS, 1, || {})?.costs)
                })?;
                let received = record_bytes(MIDDLE) / costs.receive.of(MIDDLE) * 1e9;
                Placement {
                    file_bytes_per_s: Some((SLOWER * received) as u64),
                    ..placement
                }
            }
        };
        in_thread(placement, stop, move |experiment| {
            self.points(experiment, quick)
        })
    }

    fn points(self, experiment: &mut Experiment, quick: bool) -> Result<Measured> {
        let calibration = experiment.calibrate(COSTS, CALIBRATIONS, || {})?.clone();
        let mut points = Vec::new();
        for grid_point in self.grid_points(&calibration.costs, quick) {
            let point = experiment.point(&grid_point, LASTING)?;
            let run = &point.run;
            ensure!(
                run.sent == run.written + run.lost.total(),
                "not accounted for: {point:?}"
            );
            points.push(point);
        }
        Ok(Measured {
            part: self,
            calibration,
            points,
        })
    }

    fn grid_points(self, costs: &Costs, quick: bool) -> Vec<GridPoint> {
        let (sizes, snaplens, rings): (&[u32], &[u32], &[usize]) = match (self, quick) {
            (Self::Receive, false) => (&[64, 512, 1500], &[96, 0], &[16 << 20]),
            (Self::Writer | Self::Both, false) => (&[64, 256, 1024], &[0], &[256 << 10, 2 << 20]),
            (Self::Receive, true) => (&[128, 1024], &[0], &[16 << 20]),
            (Self::Writer | Self::Both, true) => (&[MIDDLE], &[0], &[256 << 10, 2 << 20]),
        };
        let multiples: &[f64] = if quick { &QUICK } else { &MULTIPLES };
        let mut grid_points = Vec::new();
        for &size in sizes {
            for &snaplen in snaplens.iter().filter(|snaplen| **snaplen < size) {
                let caplen = if snaplen == 0 { size } else { snaplen };
                let paces = multiples.iter().map(|multiple| {
                    let digits = (self.can_take(costs, caplen) * multiple) as u64;
                    Pace::Rate(Rate {
                        digits,
                        exponent: 0,
                        is_bits: false,
                    })
                });
                let grid = Grid {
                    sizes: vec![size],
                    paces: paces.collect(),
                    snaplens: vec![snaplen],
                    rings: rings.to_vec(),
                    ..Grid::quick()
                };
                grid_points.extend(grid.grid_points());
            }
        }
        grid_points
    }

    /// Frames a second that the stage can take that is to lose some.
    fn can_take(self, costs: &Costs, caplen: u32) -> f64 {
        let received = 1e9 / costs.receive.of(caplen);
        let written = SLOW as f64 / record_bytes(caplen);
        match self {
            Self::Receive | Self::Both => received,
            Self::Writer => written,
        }
    }
}

/// Works with an experiment, which keeps its thread.
fn in_thread<T: Send + 'static>(
    placement: Placement,
    stop: &Arc<Stop>,
    work: impl FnOnce(&mut Experiment) -> Result<T> + Send + 'static,
) -> Result<T> {
    let stop = Arc::clone(stop);
    let thread = std::thread::spawn(move || {
        let pair = Pair::new().context("cannot make a veth pair")?;
        let mut experiment = Experiment::new(pair, placement, &[], stop)?;
        work(&mut experiment)
    });
    let worked = thread.join();
    worked.map_err(|_| anyhow::anyhow!("the measuring thread panicked"))?
}
