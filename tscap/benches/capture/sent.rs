//! What capturing sent frames costs the sender: tscap and tcpdump by `-Q out`.
//!
//! Frames go through the network stack, as those of programs do, in bursts that fit a
//! buffer. The sender's CPU time for a frame, less the same without a capture, is what the
//! capture costs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tscap_clock::StampSource;
use tscap_file::accounting::Direction;
use tscap_programs::hook::HookChoice;
use tscap_testkit::command::tscap_path;
use tscap_traffic::load::{Burst, Pair, Program, Setup, Stop, TestBed, Tool};

use super::amount::{BEGINNINGS, Kind, LONG, SHORT};
use super::common::rounds::{self, Subject};
use super::common::tmpfs::{OwnFolder, own_warm_folder};
use super::sent_report::{KindCosts, Run, SentReport};

/// Memory of each program between kernel and file, bytes.
const BUFFER_BYTES: u64 = 64 << 20;
/// Frames of a burst: less than half of that.
const BURSTS: [(Kind, u64); 3] = [(SHORT, 100_000), (BEGINNINGS, 100_000), (LONG, 15_000)];
/// A run that loses more tells nothing, per cent.
const MOST_LOST: f64 = 10.0;
/// Longer than any run.
const LONGEST: Duration = Duration::from_secs(300);

/// What is measured with each kind of frame.
#[derive(Clone, Copy)]
enum What {
    /// No capture.
    Bare,
    /// tscap, or tcpdump, of the frames.
    Capture(Tool),
    /// tscap on an interface that sends nothing.
    Elsewhere,
    /// tscap of the frames as they are received, in the same softirq.
    Received(HookChoice),
}

const SUBJECTS: [(&str, What); 6] = [
    ("no capture", What::Bare),
    ("tscap", What::Capture(Tool::Tscap)),
    ("tcpdump", What::Capture(Tool::Tcpdump)),
    ("tscap on another interface", What::Elsewhere),
    ("tscap, generic XDP", What::Received(HookChoice::Generic)),
    ("tscap, tcx ingress", What::Received(HookChoice::Tcx)),
];

/// Measures on this thread, pinned to the sender's CPU; each burst is sent `times` times.
pub fn measure(cpus: &[u32], rounds: u32, times: u32, stop: Arc<Stop>) -> Result<SentReport> {
    let largest = BURSTS.map(|(kind, frames)| kind.file_bytes(frames) * u64::from(times));
    let bench = Bench {
        folder: own_warm_folder(largest.into_iter().max().unwrap_or(0))?,
        programs: [find(Tool::Tscap)?, find(Tool::Tcpdump)?],
        elsewhere: Pair::new()?,
        cpus: cpus.to_vec(),
        times,
    };
    let mut bed = TestBed::through_stack(Pair::new()?, Arc::clone(&stop))?;
    let mut kinds = Vec::new();
    for (kind, frames) in BURSTS {
        let burst = Burst::flat_out(kind.size, frames);
        let bed = std::cell::RefCell::new(&mut bed);
        let mut subjects = SUBJECTS.map(|(name, what)| {
            let (bench, bed, stop) = (&bench, &bed, &stop);
            Subject::new(name, move || {
                if stop.is_asked() {
                    bail!("told to end");
                }
                bench.run(&mut bed.borrow_mut(), what, kind, burst)
            })
        });
        let part = format!("sent, {}", kind.name());
        rounds::run(&part, rounds, &mut subjects)?;
        kinds.push(KindCosts::new(
            kind,
            subjects.map(|subject| subject.results),
        ));
    }
    Ok(SentReport {
        rounds,
        versions: bench.versions()?,
        kinds,
    })
}

struct Bench {
    programs: [Program; 2],
    elsewhere: Pair,
    cpus: Vec<u32>,
    folder: OwnFolder,
    times: u32,
}

impl Bench {
    fn run(&self, bed: &mut TestBed, what: What, kind: Kind, burst: Burst) -> Result<Run> {
        let mut setup = Setup {
            snaplen: kind.snaplen,
            buffer_bytes: BUFFER_BYTES,
            direction: Direction::Out,
            hook: HookChoice::Auto,
            tap: false,
            expression: None,
            clock: StampSource::Ktime,
            tsc_path: None,
            output: self.file(),
            cpus: self.cpus.clone(),
            longest: LONGEST,
        };
        let times = self.times;
        let mut lost_percent = 0.0;
        match what {
            What::Bare => {
                bed.send_repeatedly(burst, times)?;
            }
            What::Capture(tool) => {
                lost_percent = self.capture(bed, tool, &setup, burst)?;
            }
            What::Received(hook) => {
                (setup.direction, setup.hook) = (Direction::In, hook);
                lost_percent = self.capture(bed, Tool::Tscap, &setup, burst)?;
            }
            What::Elsewhere => {
                let program = self.program(Tool::Tscap)?;
                bed.capture_elsewhere(program, &self.elsewhere, &setup, burst, times)?;
            }
        }
        if !matches!(what, What::Bare) {
            fs::remove_file(self.file())?;
        }
        let frames = burst.frames * u64::from(times);
        Ok(Run {
            ns: bed.burst_cpu().as_nanos() as f64 / frames as f64,
            least_ns: bed.least_burst_cpu().as_nanos() as f64 / burst.frames as f64,
            lost_percent,
        })
    }

    /// Frames lost, per cent.
    fn capture(&self, bed: &mut TestBed, tool: Tool, setup: &Setup, burst: Burst) -> Result<f64> {
        let program = self.program(tool)?;
        let point = bed.capture_repeatedly(program, setup, burst, self.times)?;
        let lost_percent = point.loss() * 100.0;
        // Frames that are lost cost less.
        ensure!(lost_percent < MOST_LOST, "{lost_percent:.1} % lost");
        Ok(lost_percent)
    }

    fn program(&self, tool: Tool) -> Result<&Program> {
        let mut programs = self.programs.iter();
        let program = programs.find(|program| program.tool == tool);
        program.context("tscap and tcpdump only")
    }

    fn versions(&self) -> Result<Vec<String>> {
        let versions = self.programs.iter().map(Program::version);
        Ok(versions.collect::<Result<_, _>>()?)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("sent")
    }
}

fn find(tool: Tool) -> Result<Program> {
    Ok(tool.find(Path::new(tscap_path()))?)
}
