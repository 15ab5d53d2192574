//! The loads of a phase, while they go on.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::phase::Stress;
use super::schema::Captured;
use tscap_clock::StampSource;
use tscap_delay::stress::{BUSY, PaperLoad};
use tscap_file::accounting::Direction;
use tscap_host::affinity;
use tscap_programs::hook::HookChoice;
use tscap_traffic::load::{
    Burst, Capture, FAST_BYTES, LoadError, Pair, Setup, Stop, Tool, Traffic, tool_cpus,
};

/// Frames of a burst: a tenth of a second, after which the sender looks whether to go on.
const BURST: u64 = 50_000;
/// Memory of the capture's rings, bytes.
const BUFFER_BYTES: u64 = 64 << 20;
/// The capture ends by itself so long after the phase, should we be killed.
const LONGER: Duration = Duration::from_secs(60);
/// The file: a disk would be another load.
const OUTPUT: &str = "/dev/null";

#[derive(Clone, Debug)]
pub(super) struct Means {
    /// `tscap`.
    pub executable: PathBuf,
    /// Where the counters are read.
    pub cpu: u32,
    /// All CPUs that may be used.
    pub allowed: Vec<u32>,
}

/// A load that goes on.
pub(super) enum Load {
    Idle,
    Cpu(PaperLoad),
    Net(Box<NetLoad>),
}

impl Load {
    /// Starts it, and waits until it is there; `seconds` is how long the phase is to be.
    pub fn start(
        stress: Stress,
        means: &Means,
        phase: Duration,
        stop: &Arc<Stop>,
    ) -> Result<Self, LoadError> {
        Ok(match stress {
            Stress::Idle => Self::Idle,
            Stress::Cpu => Self::Cpu(PaperLoad::of(&BUSY, &means.allowed)?),
            Stress::Net => Self::Net(Box::new(NetLoad::start(means, phase, stop)?)),
        })
    }

    /// Ends it; says what was captured, if anything was.
    pub fn end(self) -> Result<Option<Captured>, LoadError> {
        match self {
            Self::Idle => Ok(None),
            Self::Cpu(load) => {
                drop(load);
                Ok(None)
            }
            Self::Net(load) => load.end().map(Some),
        }
    }
}

/// A capture of frames that are sent as fast as can be. They are sent and received on the CPU
/// where the counters are read, so that its softirqs come between their readings.
pub(super) struct NetLoad {
    sender: Sender,
    capture: Capture,
}

impl NetLoad {
    fn start(means: &Means, phase: Duration, stop: &Arc<Stop>) -> Result<Self, LoadError> {
        let pair = Arc::new(Pair::new()?);
        pair.take_redirected()?;
        let program = Tool::Tscap.find(&means.executable);
        let program = program.map_err(io::Error::other)?;
        let setup = Setup {
            snaplen: 0,
            buffer_bytes: BUFFER_BYTES,
            direction: Direction::In,
            hook: HookChoice::default(),
            tap: false,
            expression: None,
            clock: StampSource::Ktime,
            tsc_path: None,
            output: PathBuf::from(OUTPUT),
            cpus: tool_cpus(means.cpu, &means.allowed),
            longest: phase + LONGER,
        };
        let capture = Capture::start(&program, &pair, &setup, stop)?;
        let sender = Sender::start(pair, means.cpu)?;
        Ok(Self { sender, capture })
    }

    fn end(self) -> Result<Captured, LoadError> {
        let sent = self.sender.end()?;
        let said = self.capture.finish()?.said;
        Ok(Captured {
            sent,
            seen: said.seen,
            written: said.written,
        })
    }
}

/// A thread that sends until it is told to end, or until this is dropped.
struct Sender {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<u64>>>,
}

impl Sender {
    /// Sends on `cpu` into the pair from now on.
    fn start(pair: Arc<Pair>, cpu: u32) -> io::Result<Self> {
        let ends = Arc::<AtomicBool>::default();
        let (ready, is_ready): (_, Receiver<()>) = channel();
        let theirs = Arc::clone(&ends);
        let thread = thread::Builder::new().name("tscap-sender".into());
        let thread = thread.spawn(move || {
            affinity::pin_to(cpu)?;
            pair.tx_netns.enter()?;
            let mut traffic = Traffic::new(&pair, cpu, None)?;
            // The starter waits for it.
            let _ = ready.send(());
            let mut sent = 0;
            while !theirs.load(Ordering::Relaxed) {
                sent += traffic.send(Burst::flat_out(FAST_BYTES, BURST))?.1.sent;
            }
            Ok(sent)
        })?;
        let mut sender = Self {
            ends,
            thread: Some(thread),
        };
        match is_ready.recv() {
            Ok(()) => Ok(sender),
            // It has ended, and says why.
            Err(_) => sender.join().and(Err(io::Error::other("nothing was sent"))),
        }
    }

    fn end(mut self) -> io::Result<u64> {
        self.join()
    }

    fn join(&mut self) -> io::Result<u64> {
        self.ends.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        let ended = ended.and_then(Result::ok);
        ended.unwrap_or_else(|| Err(io::Error::other("the thread that sends panicked")))
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.thread.is_some() {
            // What it sent nobody wants to know.
            let _ = self.join();
        }
    }
}
