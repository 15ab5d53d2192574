//! The rounds: every watcher takes its turn in each, so that a slow spell of the machine hits
//! all of them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use tempfile::NamedTempFile;

use super::peers::Peers;
use super::plan::Amount;
use super::schema::Subject;
use super::watcher::{NONE_MATCH, Watcher};
use crate::early_end::{EarlyEnd, with_results};
use tscap_base::kernel_files::KernelFiles;
use tscap_file::accounting::Direction;
use tscap_host::{affinity, process, system};
use tscap_statistics::{Summary, median, quantile};
use tscap_time::tsc;
use tscap_traffic::load::{
    Capture, LoadError, NotInstalled, Pair, Program, Setup, Stop, Stopped, cpu_apart, tool_cpus,
};

/// Most bytes of a frame that are kept.
pub(super) const SNAPLEN: u32 = 128;
/// Memory between kernel and file of each capture, bytes.
const BUFFER_BYTES: u64 = 32 << 20;
/// A capture ends by itself after this, should we be killed.
const LONGEST: Duration = Duration::from_secs(60);
/// Round trips before those that count: addresses are resolved, and caches warm.
const WARM_UP: u32 = 100;
/// The file's name begins so.
const PREFIX: &str = "tscap-observer-";

/// Where and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `tscap`.
    pub executable: PathBuf,
    /// CPU of the program that asks and sends.
    pub sender_cpu: u32,
    /// Where captures are written.
    pub folder: PathBuf,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    /// It was told to end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A capture failed.
    #[error("with {watcher}")]
    Capture {
        /// Which.
        watcher: String,
        /// Why.
        source: LoadError,
    },
    /// Another step failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

impl EarlyEnd for ObserverError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}

/// What the rounds gave.
pub struct Results {
    /// One for each watcher, nobody first.
    pub subjects: Vec<Subject>,
    /// Rounds that were whole.
    pub rounds: u32,
    /// CPU of the program that answers and takes.
    pub receive_cpu: u32,
    /// CPUs that captures could run on.
    pub capture_cpus: Vec<u32>,
    /// The other programs, as they call themselves.
    pub programs: Vec<String>,
    /// Why it ended before all was measured.
    pub ended_by: Option<ObserverError>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// What there is to measure with.
struct Bed {
    /// Before the pair: its threads hold sockets there.
    peers: Peers,
    pair: Pair,
    /// The kernel's threads of both CPUs for softirqs that are left over.
    softirqs: Vec<Pid>,
    programs: Vec<Program>,
    file: NamedTempFile,
    cpus: Vec<u32>,
    stop: Arc<Stop>,
}

/// What one turn gave.
struct TurnResult {
    round_trips: Vec<i64>,
    unanswered: u64,
    stream_ns_per_kib: f64,
    cpu_ns_per_kib: f64,
}

/// Does it all, in this thread, which it pins and moves into another namespace; says how many
/// rounds are over before the first and after each. What ends it after the first round leaves the rounds that were
/// whole by then.
pub fn run(
    pair: Pair,
    placement: &Placement,
    amount: &Amount,
    stop: Arc<Stop>,
    mut tell: impl FnMut(u32),
) -> Result<Results, ObserverError> {
    let (watchers, programs, warnings) = present(placement);
    let allowed = affinity::allowed_cpus()?;
    let sender = placement.sender_cpu;
    affinity::pin_to(sender)?;
    let receive_cpu = cpu_apart(sender, &allowed).unwrap_or(sender);
    pair.tx_netns.enter()?;
    let softirqs = softirq_threads([sender, receive_cpu])?;
    let file = NamedTempFile::with_prefix_in(PREFIX, &placement.folder)?;
    stop.set_file(file.path().to_owned());
    let names = programs.iter().skip(1).map(Program::version);
    let mut results = Results {
        subjects: watchers.iter().copied().map(subject).collect(),
        rounds: 0,
        receive_cpu,
        capture_cpus: tool_cpus(sender, &allowed),
        programs: names.collect::<Result<_, _>>()?,
        ended_by: None,
        warnings,
    };
    let mut bed = Bed {
        peers: Peers::new(&pair, receive_cpu)?,
        pair,
        softirqs,
        programs,
        file,
        cpus: results.capture_cpus.clone(),
        stop,
    };
    let mut all: Vec<Vec<i64>> = watchers.iter().map(|_| Vec::new()).collect();
    let ended = bed.rounds(&watchers, amount, &mut results, &mut all, &mut tell);
    for (subject, round_trips) in results.subjects.iter_mut().zip(all) {
        subject.round_trip_ns = Summary::of(round_trips);
    }
    results.ended_by = with_results(ended, results.rounds > 0)?;
    Ok(results)
}

fn subject(watcher: Watcher) -> Subject {
    Subject {
        watcher,
        round_trip_ns: None,
        unanswered: 0,
        median_ns: Vec::new(),
        p99_ns: Vec::new(),
        stream_ns_per_kib: Vec::new(),
        cpu_ns_per_kib: Vec::new(),
    }
}

/// Those that this machine has, their programs, tscap first, and a warning for each other.
fn present(placement: &Placement) -> (Vec<Watcher>, Vec<Program>, Vec<String>) {
    let (mut watchers, mut programs, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for watcher in Watcher::ALL {
        if watcher.clock() == tscap_clock::StampSource::Tsc
            && let Err(why) = tsc::check()
        {
            warnings.push(format!("no {} here: {why}", watcher.name()));
            continue;
        }
        let found: Result<_, NotInstalled> = watcher
            .tool()
            .map(|tool| tool.find(&placement.executable))
            .transpose();
        match found {
            Ok(program) => {
                watchers.push(watcher);
                programs.extend(program.filter(|program| !programs.contains(program)));
            }
            Err(absent) => warnings.push(format!("{absent}: it is left out")),
        }
    }
    (watchers, programs, warnings)
}

impl Bed {
    fn rounds(
        &mut self,
        watchers: &[Watcher],
        amount: &Amount,
        results: &mut Results,
        all: &mut [Vec<i64>],
        tell: &mut impl FnMut(u32),
    ) -> Result<(), ObserverError> {
        tell(0);
        for round in 1..=amount.rounds {
            // Every other round goes backwards.
            let mut order: Vec<_> = (0..watchers.len()).collect();
            if round.is_multiple_of(2) {
                order.reverse();
            }
            let mut turns = Vec::with_capacity(order.len());
            for index in order {
                self.stop.go_on()?;
                let turn = self.turn(watchers[index], amount);
                // A capture that was killed because of that is no fault.
                self.stop.go_on()?;
                turns.push((index, turn?));
            }
            for (index, turn) in turns {
                let subject = &mut results.subjects[index];
                let mut sorted = turn.round_trips.clone();
                sorted.sort_unstable();
                let exact: Vec<f64> = sorted.iter().map(|ns| *ns as f64).collect();
                subject.median_ns.push(median(&exact).unwrap_or(f64::NAN));
                let p99 = quantile(&sorted, 0.99).map_or(f64::NAN, |ns| ns as f64);
                subject.p99_ns.push(p99);
                subject.stream_ns_per_kib.push(turn.stream_ns_per_kib);
                subject.cpu_ns_per_kib.push(turn.cpu_ns_per_kib);
                subject.unanswered += turn.unanswered;
                all[index].extend(turn.round_trips);
            }
            results.rounds = round;
            tell(round);
        }
        Ok(())
    }

    fn turn(&mut self, watcher: Watcher, amount: &Amount) -> Result<TurnResult, ObserverError> {
        let failed = |source| ObserverError::Capture {
            watcher: watcher.name(),
            source,
        };
        let capture = self.start(watcher).map_err(failed)?;
        self.peers.ask(WARM_UP)?;
        let round_trips = self.peers.ask(amount.exchanges)?;
        let before = self.cpu_time(capture.as_ref())?;
        let stream = self.peers.stream(amount.stream)?;
        let spent = self.cpu_time(capture.as_ref())?.saturating_sub(before);
        if let Some(capture) = capture {
            capture.finish().map_err(failed)?;
        }
        let kib = stream.bytes as f64 / 1024.0;
        Ok(TurnResult {
            unanswered: u64::from(amount.exchanges) - round_trips.len() as u64,
            round_trips,
            stream_ns_per_kib: stream.ns as f64 / kib,
            cpu_ns_per_kib: (spent + stream.taker).as_nanos() as f64 / kib,
        })
    }

    fn start(&self, watcher: Watcher) -> Result<Option<Capture>, LoadError> {
        let program = self
            .programs
            .iter()
            .find(|it| Some(it.tool) == watcher.tool());
        let Some(program) = program else {
            return Ok(None);
        };
        let rings = system::online_cpus().map_err(io::Error::other)?;
        let setup = Setup {
            snaplen: SNAPLEN,
            buffer_bytes: (BUFFER_BYTES / rings.len() as u64) * rings.len() as u64,
            direction: Direction::In,
            hook: watcher.hook(),
            tap: false,
            expression: (watcher == Watcher::Filtered).then(|| NONE_MATCH.to_owned()),
            clock: watcher.clock(),
            tsc_path: None,
            output: self.file.path().to_owned(),
            cpus: self.cpus.clone(),
            longest: LONGEST,
        };
        Capture::start(program, &self.pair, &setup, &self.stop).map(Some)
    }

    /// CPU time so far of what sends and captures, and of softirqs that are left over: that of
    /// a softirq counts to the thread that it interrupts or that raised it (unless the kernel
    /// has CONFIG_IRQ_TIME_ACCOUNTING).
    fn cpu_time(&self, capture: Option<&Capture>) -> io::Result<Duration> {
        let mut all = process::thread_cpu_time()?;
        all += capture.map_or(Ok(Duration::ZERO), Capture::cpu_time)?;
        for thread in &self.softirqs {
            all += process::cpu_time(*thread)?;
        }
        Ok(all)
    }
}

/// Those of these CPUs; in a PID namespace none is seen.
fn softirq_threads(cpus: [u32; 2]) -> io::Result<Vec<Pid>> {
    let files = KernelFiles::live();
    let mut threads = Vec::new();
    for cpu in cpus {
        let name = format!("ksoftirqd/{cpu}");
        let found = process::running(&files, &[&name]).map_err(io::Error::other)?;
        let pid = found.map(|(pid, _)| Pid::from_raw(pid.cast_signed()));
        threads.extend(pid.filter(|pid| !threads.contains(pid)));
    }
    Ok(threads)
}
