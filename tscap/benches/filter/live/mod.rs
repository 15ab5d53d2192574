//! What a filter costs the receiving side of live frames, beside tcpdump with the same
//! expression.
//!
//! All frames are rejected, or all are accepted. The CPU time that a frame takes flat out,
//! less the same without a capture, is what the capture costs the receiving side.

mod floor;
mod report;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tscap_clock::StampSource;
use tscap_file::accounting::Direction;
use tscap_programs::hook::HookChoice;
use tscap_testkit::command::tscap_path;
use tscap_testkit::process::{cpus, on_cpu};
use tscap_traffic::generator::DISCARD;
use tscap_traffic::load::{
    Burst, FAST_BYTES, Pair, Point, Program, Setup, Stop, TestBed, Tool, tool_cpus,
};

use crate::common::tmpfs::{OwnFolder, own_warm_folder};
use crate::expressions::{HOSTS, OUTSIDERS, addresses, host_and_not_port, hosts};
use floor::{FLOORS, Floor};
pub use report::LiveReport;
use report::{Case, RoundResult, Run};

/// The programs, tscap first.
pub const TOOLS: [Tool; 2] = [Tool::Tscap, Tool::Tcpdump];
/// Memory that each has between kernel and file, bytes.
const BUFFER_BYTES: u64 = 64 << 20;
/// More than a file has for one of the frames, bytes.
const IN_FILE: u64 = 136;
/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(300);

/// How much of everything.
#[derive(Debug)]
pub struct Amount {
    /// Rounds.
    pub rounds: u32,
    /// Frames in a run.
    pub frames: u64,
}

/// Somewhat more than ten minutes.
pub const FULL: Amount = Amount {
    rounds: 5,
    frames: 2_000_000,
};

/// A minute.
pub const QUICK: Amount = Amount {
    rounds: 2,
    frames: 1_000_000,
};

/// Measures both programs with the first `number` of the kinds of expressions, in turns,
/// with the sender on CPU `cpu`.
pub fn measure(
    cpu: usize,
    number: usize,
    amount: &Amount,
    rounds: u32,
    stop: Arc<Stop>,
) -> Result<LiveReport> {
    let allowed: Vec<u32> = cpus().into_iter().map(|cpu| cpu as u32).collect();
    ensure!(
        allowed.len() > 1,
        "captures need a CPU besides the sender's"
    );
    let capture_cpus = tool_cpus(u32::try_from(cpu)?, &allowed);
    on_cpu(cpu, || {
        let mut live = Live::open(capture_cpus, amount.frames, stop)?;
        let mut cases: Vec<_> = cases().into_iter().take(2 * number).collect();
        let mut floors = Vec::new();
        for round in 1..=rounds {
            eprintln!("live: round {round} of {rounds}");
            floors.push(live.floors()?);
            for case in &mut cases {
                case.turns.push(live.turn(case, round.is_multiple_of(2))?);
            }
        }
        let versions = live.versions()?;
        Ok(LiveReport::new(
            cpu,
            amount.frames,
            versions,
            &floors,
            cases,
        ))
    })
}

/// Each kind of expression, rejecting and accepting all frames of the generator.
fn cases() -> Vec<Case> {
    let [_, to] = addresses();
    let [outsider, _] = OUTSIDERS;
    let port = |port: u16| format!("udp port {port}");
    let [some, many] = HOSTS.map(|number| move |last: Ipv4Addr| hosts(number, last));
    [
        ("udp port", [port(443), port(DISCARD)]),
        ("host and not port", [outsider, to].map(host_and_not_port)),
        ("100 hosts", [outsider, to].map(some)),
        ("800 hosts", [outsider, to].map(many)),
    ]
    .into_iter()
    .flat_map(|(name, expressions)| {
        let case = |(expression, accepts)| Case::new(name, accepts, expression);
        expressions.into_iter().zip([false, true]).map(case)
    })
    .collect()
}

/// What is needed for a run.
struct Live {
    programs: [Program; TOOLS.len()],
    cpus: Vec<u32>,
    bed: TestBed,
    floors: [Floor; FLOORS.len()],
    stop: Arc<Stop>,
    folder: OwnFolder,
    frames: u64,
}

impl Live {
    fn open(cpus: Vec<u32>, frames: u64, stop: Arc<Stop>) -> Result<Self> {
        let [tscap, tcpdump] = TOOLS.map(|tool| tool.find(Path::new(tscap_path())));
        let pair = Pair::new()?;
        let [empty, stamp] = FLOORS.map(|name| Floor::load(name, &pair));
        Ok(Self {
            floors: [empty?, stamp?],
            programs: [tscap?, tcpdump?],
            cpus,
            folder: own_warm_folder(frames * IN_FILE)?,
            bed: TestBed::new(pair, Arc::clone(&stop))?,
            stop,
            frames,
        })
    }

    fn versions(&self) -> Result<Vec<String>> {
        let versions = self.programs.iter().map(Program::version);
        Ok(versions.collect::<Result<_, _>>()?)
    }

    /// CPU time of a frame without a capture, ns.
    fn bare(&mut self) -> Result<f64> {
        self.go_on()?;
        self.bed.send(self.burst())?;
        Ok(self.ns_per_frame())
    }

    /// What a frame takes more with each of the programs that record nothing, ns.
    fn floors(&mut self) -> Result<[f64; FLOORS.len()]> {
        let bare = self.bare()?;
        let burst = self.burst();
        let mut more = [0.0; FLOORS.len()];
        for (more, floor) in more.iter_mut().zip(&mut self.floors) {
            floor.attached(|| Ok(self.bed.send(burst)?))?;
            *more = self.bed.burst_cpu().as_nanos() as f64 / self.frames as f64 - bare;
        }
        Ok(more)
    }

    /// No program, and each, or in the opposite order if `reversed`.
    fn turn(&mut self, case: &Case, reversed: bool) -> Result<RoundResult> {
        if reversed {
            let tcpdump = self.run(1, case)?;
            let tscap = self.run(0, case)?;
            let bare_ns = self.bare()?;
            return Ok(RoundResult {
                bare_ns,
                runs: [tscap, tcpdump],
            });
        }
        Ok(RoundResult {
            bare_ns: self.bare()?,
            runs: [self.run(0, case)?, self.run(1, case)?],
        })
    }

    fn run(&mut self, program: usize, case: &Case) -> Result<Run> {
        self.go_on()?;
        let setup = Setup {
            snaplen: 0,
            buffer_bytes: BUFFER_BYTES,
            direction: Direction::In,
            hook: HookChoice::Auto,
            tap: false,
            expression: Some(case.expression.clone()),
            clock: StampSource::Ktime,
            tsc_path: None,
            output: self.file(),
            cpus: self.cpus.clone(),
            longest: LONGEST,
        };
        let burst = self.burst();
        let program = &self.programs[program];
        let what = || format!("{}, {}", program.tool.name(), case.title());
        let point = self
            .bed
            .capture(program, &setup, burst)
            .with_context(what)?;
        fs::remove_file(self.file())?;
        check(&point, case.accepts).with_context(what)?;
        Ok(Run {
            ns: self.ns_per_frame(),
            point,
        })
    }

    fn burst(&self) -> Burst {
        Burst::flat_out(FAST_BYTES, self.frames)
    }

    /// CPU time that a frame of the last burst took to be sent and received.
    fn ns_per_frame(&self) -> f64 {
        self.bed.burst_cpu().as_nanos() as f64 / self.frames as f64
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn go_on(&self) -> Result<()> {
        if self.stop.is_asked() {
            bail!("told to end");
        }
        Ok(())
    }
}

/// An error unless the filter did the same to all frames that were not lost.
fn check(point: &Point, accepts: bool) -> Result<()> {
    let Point {
        written, filtered, ..
    } = point;
    let wrong = if accepts { filtered } else { written };
    ensure!(*wrong == 0, "{written} frames written, {filtered} filtered");
    Ok(())
}
