//! A made-up sweep for tests.

use super::accuracy::accuracy;
use super::fit::{Probe, Probes};
use super::grid::{Arrival, Grid, GridPoint, Pace};
use super::model::{Costs, Load, Receiving, fixtures::costs, predict};
use super::schema::{Calibration, Method, Point, Sweep, VERSION};
use tscap_clock::StampSource;
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_traffic::load::{CpuLoad, Lost, Point as Run, Tool};

/// What such a machine would do, to the frame.
pub fn run(costs: &Costs, load: &Load) -> Run {
    let prediction = predict(costs, load);
    let frames = |share: f64| (share * load.frames).round() as u64;
    let sent = load.frames as u64;
    let lost = Lost {
        before: frames(prediction.before),
        ring: frames(prediction.ring),
        writer: 0,
    };
    let written = sent - lost.total();
    Run {
        sent,
        seen: sent - lost.before,
        filtered: 0,
        written,
        said_written: written,
        lost,
        losses: Vec::new(),
        rate: load.frames / prediction.seconds,
        seconds: prediction.seconds,
        late: 0,
        cpu_s: written as f64 * costs.convert.of(load.caplen) / 1e9,
        file_bytes: 0,
        cached_bytes: None,
        busy: vec![1.0, 0.25],
        load: [(0.1, 0.9), (0.05, 0.2)]
            .map(|(user, softirq)| CpuLoad {
                user,
                softirq,
                ..CpuLoad::default()
            })
            .to_vec(),
    }
}

/// The runs by which its costs would be found out.
pub fn probes(costs: &Costs) -> Probes {
    let probe = |size, ring_bytes: u64, frames, costs: &Costs| {
        let load = Load {
            frames,
            caplen: size,
            rate: f64::INFINITY,
            ring_bytes: ring_bytes as f64,
        };
        Probe {
            size,
            ring_bytes,
            run: run(costs, &load),
        }
    };
    // A converter that takes nothing out.
    let held = Costs {
        turn_ns: 1e15,
        converter_shares: false,
        ..*costs
    };
    let fast = Costs {
        writer: None,
        ..*costs
    };
    Probes {
        receiving: costs.receiving,
        converter_shares: costs.converter_shares,
        idle: probe(64, 16 << 20, 16.0, &fast),
        short: probe(64, 16 << 20, 500_000.0, &fast),
        long: probe(1514, 16 << 20, 500_000.0, &fast),
        held: probe(64, 128 << 10, 500_000.0, &held),
        small: probe(64, 128 << 10, 500_000.0, &fast),
        slow: costs
            .writer
            .map(|_| probe(1514, 1 << 20, 1_000_000.0, costs)),
        slow_buffer_bytes: costs.writer.map_or(0.0, |it| it.buffer_bytes),
        send_ns: (costs.receiving == Receiving::OnSender).then_some(costs.send_ns),
    }
}

/// A quick sweep, and tcpdump beside it.
pub fn sweep() -> Sweep {
    let costs = Costs {
        turn_ns: 4e6,
        ..costs(Receiving::OnSender)
    };
    let grid = Grid {
        peers: vec![Tool::Tcpdump],
        snaplens: vec![96, 0],
        ..Grid::quick()
    };
    let point = |grid_point: &GridPoint| {
        let load = Load {
            frames: 400_000.0,
            caplen: grid_point.caplen(),
            rate: grid_point.pace.rate(grid_point.size),
            ring_bytes: grid_point.ring as f64,
        };
        Point::new(grid_point, &costs, run(&costs, &load))
    };
    let points: Vec<_> = grid.grid_points().iter().map(point).collect();
    assert_eq!(grid.paces, [Pace::FlatOut]);
    Sweep {
        about: about("loss").envelope(Kind::Loss, VERSION, false),
        method: Method {
            sender_cpu: 0,
            receive_cpu: 0,
            capture_cpus: vec![1],
            rings: 2,
            point_seconds: 0.1,
            folder: "/dev/shm".into(),
            file_bytes_per_s: None,
            peers: vec!["tcpdump version 4.99".into()],
        },
        calibrations: vec![Calibration {
            clock: StampSource::Ktime,
            arrival: Arrival::InBursts,
            costs,
            probes: probes(&costs),
        }],
        accuracy: accuracy(&points),
        points,
        warnings: Vec::new(),
    }
}
