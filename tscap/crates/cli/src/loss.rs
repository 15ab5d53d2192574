//! `tscap loss`.

mod checks;
mod prediction;

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};

use checks::{check, check_drain, check_sizes};
pub use prediction::{Load, PredictionPlan, PredictionScope};

use super::capture::ring_bytes;
use super::{Cli, Plan, ResultOutput, units};
use tscap_capture::ClockChoice;
use tscap_engine::Io;
use tscap_lab::loss::{Grid, Pace};
use tscap_traffic::generator::{LineRate, Rate};
use tscap_traffic::load::Tool;

/// Measure where a capture loses frames, and predict it
///
/// Repeats Skopkó's experiment: frames of one size after the other, through a veth
/// pair of its own into a capture, in namespaces that it removes at the end. At each
/// point every frame sent is accounted for: written, or lost before the program, in
/// the ring or in the writer. The costs of the stages are measured first, at a few
/// points of their own. A queueing model predicts the loss at all points from these
/// costs; the output shows both.
///
/// With --plan it sweeps nothing. It says whether a load will fit, or without --rate from
/// which rate on each stage loses frames: receiving, converting, and the disk under
/// --folder, each measured alone.
#[derive(Debug, Args)]
#[command(after_long_help = super::examples::before("loss", "\
Exit codes: 0 all was measured, also up to Ctrl-C; with --plan: it fits; 1 something failed; \
with --plan: it does not fit; 2 wrong arguments; 130 aborted by a second Ctrl-C"))]
pub struct LossArgs {
    /// Measure a few points in about 10 seconds
    #[arg(long, conflicts_with_all = ["paper", "plan"])]
    quick: bool,

    /// Measure the paper's sweep: 72..1200/8 bytes at line rate, 5 s each, whole and
    /// with three snaplens, buffers of 2 and 32 MB, received on a CPU of its own, with
    /// dumpcap beside: takes hours (the estimate is printed first)
    #[arg(long, conflicts_with = "plan")]
    paper: bool,

    /// Frame sizes in bytes, from the Ethernet header to the end of the payload,
    /// without the frame check sequence: 64,512 or 64..1500/100
    #[arg(long, value_name = "BYTES", value_parser = units::steps)]
    size: Option<units::Steps>,

    /// Send as fast as possible [default, unless --gap or --rate is given]
    #[arg(long, conflicts_with = "plan")]
    flat_out: bool,

    /// Send with these gaps, byte times on a line of --line-rate: 12 or 12,100,1000
    #[arg(
        long,
        value_name = "GAPS",
        value_delimiter = ',',
        value_parser = units::byte_times,
        conflicts_with = "plan"
    )]
    gap: Vec<u64>,

    /// Send at these rates: frames a second (2Mpps, 500k), or bits a second (8Mbit)
    #[arg(long, value_name = "RATES", value_delimiter = ',', value_parser = units::rate)]
    rate: Vec<Rate>,

    /// Rate of the line on which --gap is counted
    #[arg(long, value_name = "BIT/S", default_value = "1G", value_parser = units::line_rate)]
    line_rate: LineRate,

    /// Most bytes to capture of each frame; 0 or whole for all: 96,128,whole
    #[arg(short, long, alias = "snapshot-length", value_name = "BYTES", value_delimiter = ',',
          value_parser = snaplen)]
    snaplen: Vec<u32>,

    /// Rings of each CPU: powers of two, 128K to 256M; other programs get as much
    /// memory in total
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = ring_bytes)]
    ring_size: Vec<usize>,

    /// Stamp sources
    #[arg(long, value_enum, value_name = "CLOCKS", value_delimiter = ',')]
    clock: Vec<ClockChoice>,

    /// Time for which frames are sent at each point; with --plan: for which the disk under
    /// --folder is written to [default there: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    duration: Option<Duration>,

    /// Measure other programs beside tscap [default: none; with --paper: dumpcap, if it is
    /// installed]
    #[arg(
        long,
        value_enum,
        value_name = "PROGRAM",
        value_delimiter = ',',
        conflicts_with = "plan"
    )]
    peer: Vec<Peer>,

    /// Receive on this CPU rather than on the sender's, as with a network card: frames
    /// that it cannot receive in time are lost before the program [default: the sender's;
    /// with --paper: the last other one allowed]
    #[arg(long, value_name = "CPU", value_parser = units::cpu, conflicts_with = "plan")]
    receive_cpu: Option<u32>,

    /// CPU to send from, and to receive on unless --receive-cpu is given [default:
    /// the first one allowed]
    #[arg(long, value_name = "CPU", value_parser = units::cpu)]
    cpu: Option<u32>,

    /// Folder for the captures, which are removed again [default: /dev/shm, which is
    /// memory, as in the paper]. With --plan: measure what the disk under it takes alone;
    /// the file that is written has no name and goes with the process
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// With --plan: how to write to the disk under --folder, as captures do [default: auto]
    #[arg(long, value_enum, value_name = "WAY", requires_all = ["plan", "folder"],
          conflicts_with = "file_rate")]
    io: Option<Io>,

    /// Most bytes a second that the files take, such as 200M, as a slow disk would:
    /// sweeps write through a pipe that is read at this rate [default: what --folder
    /// takes]. With --plan the disk is not measured
    #[arg(long, value_name = "BYTES/S", value_parser = units::byte_rate, conflicts_with = "peer")]
    file_rate: Option<u64>,

    /// Say whether --rate frames of --size will fit --for some time, which loss they
    /// have, and which ring they need; without --rate: from which rate on each stage
    /// loses frames of each --size and --snaplen
    #[arg(long)]
    plan: bool,

    /// With --plan: how long the load lasts
    #[arg(id = "lasting", long = "for", value_name = "TIME", value_parser = units::duration,
          requires_all = ["plan", "rate"])]
    lasting: Option<Duration>,

    /// With --plan: say which CPUs, memory and disks a port of this bit rate needs that is
    /// full of frames of each --size: 10G, 100G
    #[arg(long, value_name = "BIT/S", value_parser = units::line_rate, requires = "plan",
          conflicts_with = "rate")]
    port: Option<LineRate>,

    /// With --plan: take the costs from this file of `tscap loss --json` instead of
    /// measuring them
    #[arg(
        long,
        value_name = "FILE.json",
        requires = "plan",
        conflicts_with = "cpu"
    )]
    from: Option<PathBuf>,

    /// Print all of the result: also what the stages cost, and the whole machine
    #[arg(short, long, conflicts_with = "plan")]
    verbose: bool,

    /// Write everything as one JSON object to standard output
    #[arg(long)]
    json: bool,

    /// Write a page with plots
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    report: Option<PathBuf>,
}

/// `--peer`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Peer {
    Tcpdump,
    Dumpcap,
    NetsniffNg,
    Xdpdump,
}

/// Where frames are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveCpu {
    /// On the sender's CPU.
    Senders,
    /// On any other.
    Apart,
    /// On this one, which is not the sender's.
    Cpu(u32),
}

/// A sweep, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossPlan {
    /// Its points.
    pub grid: Grid,
    /// CPU to send from.
    pub cpu: Option<u32>,
    /// Where to receive.
    pub receive_cpu: ReceiveCpu,
    /// Peers that are left out where they are not installed: nobody named them.
    pub optional_peers: bool,
    /// Where captures are written.
    pub folder: Option<PathBuf>,
    /// Most bytes a second that the files take.
    pub file_rate: Option<u64>,
    /// How it is told.
    pub output: ResultOutput,
}

fn snaplen(text: &str) -> Result<u32, String> {
    match text {
        "whole" => Ok(0),
        _ => text
            .parse::<u16>()
            .map(u32::from)
            .map_err(|_| "a snaplen is a number of bytes, or whole".to_owned()),
    }
}

impl LossArgs {
    pub(super) fn into_plan(self) -> Result<Plan, clap::Error> {
        let refuse = |text: String| Cli::command().error(ErrorKind::ValueValidation, text);
        if let Some(sizes) = &self.size {
            check_sizes(&sizes.0).map_err(refuse)?;
        }
        if self.plan {
            return prediction::plan(self).map_err(refuse);
        }
        let grid = self.grid().map_err(refuse)?;
        if let Some(rate) = self.file_rate {
            check_drain(rate, &grid.rings).map_err(refuse)?;
        }
        Ok(Plan::Loss(Box::new(LossPlan {
            grid,
            cpu: self.cpu,
            receive_cpu: match self.receive_cpu {
                Some(cpu) => ReceiveCpu::Cpu(cpu),
                None if self.paper => ReceiveCpu::Apart,
                None => ReceiveCpu::Senders,
            },
            optional_peers: self.paper && self.peer.is_empty(),
            folder: self.folder,
            file_rate: self.file_rate,
            output: ResultOutput {
                json: self.json,
                verbose: self.verbose,
                report: self.report,
            },
        })))
    }

    fn grid(&self) -> Result<Grid, String> {
        let usual = match (self.quick, self.paper) {
            (true, _) => Grid::quick(),
            (_, true) => Grid::paper(),
            _ => Grid::usual(),
        };
        let or = |given: &[u32], usual| match given {
            [] => usual,
            given => given.to_vec(),
        };
        let clocks: Vec<_> = self.clock.iter().map(|clock| clock.source()).collect();
        let sizes = self.size.as_ref().map_or(&[][..], |sizes| &sizes.0);
        let paces = self.paces();
        let grid = Grid {
            sizes: or(sizes, usual.sizes),
            paces: if paces.is_empty() { usual.paces } else { paces },
            snaplens: or(&self.snaplen, usual.snaplens),
            rings: match &self.ring_size[..] {
                [] => usual.rings,
                rings => rings.to_vec(),
            },
            clocks: if clocks.is_empty() {
                usual.clocks
            } else {
                clocks
            },
            peers: match &self.peer[..] {
                [] => usual.peers,
                peers => peers.iter().map(|peer| peer.tool()).collect(),
            },
            duration: self.duration.unwrap_or(usual.duration),
            rounds: usual.rounds,
        };
        check(&grid)?;
        Ok(grid)
    }

    fn paces(&self) -> Vec<Pace> {
        let line = self.line_rate;
        let flat_out = self.flat_out.then_some(Pace::FlatOut);
        let gaps = self.gap.iter().map(|&gap| Pace::Gap { gap, line });
        let rates = self.rate.iter().map(|rate| Pace::Rate(*rate));
        flat_out.into_iter().chain(gaps).chain(rates).collect()
    }
}

impl Peer {
    fn tool(self) -> Tool {
        match self {
            Self::Tcpdump => Tool::Tcpdump,
            Self::Dumpcap => Tool::Dumpcap,
            Self::NetsniffNg => Tool::NetsniffNg,
            Self::Xdpdump => Tool::Xdpdump,
        }
    }
}

#[cfg(test)]
mod tests;
