//! What measures one burst, one way to stamp, or one capture.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Stamp;
use super::clocks::Clocks;
use super::kernel_stamp::KernelStamps;
use super::programs::{Measured, Programs};
use super::request::{ExperimentError, FrameSource};
use super::stamp_samples::FrameCounts;
use super::whole_program::WholeProgram;
use tscap_clock::{NsPerCycle, StampPath, TscPath};
use tscap_file::accounting::Direction;
use tscap_host::system;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_programs::hook::HookChoice;
use tscap_traffic::load::{Burst, Capture, Pair, Setup, Stop, Tool, Traffic};

/// Captures have short rings, so that a burst is many of them: each holds 10,922
/// blocks of frames of 64 bytes.
const RING_BYTES: u64 = 1 << 20;
/// A capture ends by itself after this, should we be killed: no burst takes longer.
const LONGEST: Duration = Duration::from_secs(120);
/// How often it is looked whether enough live traffic has come.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// The measuring thread's things.
pub struct CompareBed {
    pub programs: Programs,
    /// One of them, attached.
    pub link: InterfaceLink,
    /// Where frames come from.
    pub frame_source: FrameSource,
    /// What sends, if we do.
    pub traffic: Option<Traffic>,
    /// A whole capture program for each stamp.
    pub whole: Vec<WholeProgram>,
    /// The TSC's rate, where it stamps.
    pub rate: Option<NsPerCycle>,
    /// The CPU that is measured.
    pub cpu: u32,
    /// The CPUs that all of it may run on.
    pub allowed: Vec<u32>,
    /// Of these, the CPUs for captures.
    pub tool_cpus: Vec<u32>,
    /// The kernel's own stamp, if we send.
    pub kernel: Option<KernelStamps>,
    pub stop: Arc<Stop>,
}

/// What came of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct CapturedBurst {
    /// Frames that were sent or refused by the driver.
    pub sent: u64,
    /// Frames in the file.
    pub written: u64,
    /// Frames a second; 0 if it is not known.
    pub rate: f64,
}

impl CompareBed {
    /// The clocks as they are now; `None` if somebody sets them.
    pub fn clocks(&mut self, stamp: Stamp) -> io::Result<Option<Clocks>> {
        let offset = match (stamp, self.rate) {
            (Some(StampPath::Tsc(TscPath::Perf)), Some(rate)) => {
                self.programs.tsc_offset(rate)?.middle().0
            }
            _ => 0,
        };
        Ok(Clocks::read(self.rate, offset))
    }

    /// Lets the attached program see a burst, or what comes by itself; accounts
    /// for every frame sent.
    pub fn measure(
        &mut self,
        burst: Burst,
        counts: &mut FrameCounts,
    ) -> Result<Measured, ExperimentError> {
        let measured = match &mut self.traffic {
            None => {
                self.programs.reset()?;
                self.wait_for_traffic(burst.frames)?;
                Measured {
                    run: 0,
                    sent: 0,
                    samples: self.programs.samples()?,
                    tsc_moved_ns: 0,
                }
            }
            Some(traffic) => {
                let measured = self.programs.measure(traffic, burst)?;
                counts.sent += measured.sent;
                counts.received += measured.samples.len() as u64;
                measured
            }
        };
        let seen = self.programs.counts()?;
        counts.elsewhere += seen.elsewhere;
        counts.unstamped += seen.bad;
        Ok(measured)
    }

    /// Lets a burst up to the stack, whose stamps a packet socket is told; `None` on live
    /// traffic.
    pub fn measure_kernel(&mut self, burst: Burst) -> io::Result<Option<Measured>> {
        let (Some(kernel), Some(traffic), FrameSource::Own { pair, .. }) =
            (&mut self.kernel, &mut self.traffic, &self.frame_source)
        else {
            return Ok(None);
        };
        self.link.detach()?;
        let measured = kernel.measure(traffic, burst);
        self.link = attach(&self.programs, pair)?;
        measured.map(Some)
    }

    fn wait_for_traffic(&self, frames: u64) -> Result<(), ExperimentError> {
        let FrameSource::Live { timeout, link } = &self.frame_source else {
            return Ok(());
        };
        let deadline = Instant::now() + *timeout;
        loop {
            self.stop.go_on()?;
            let measured = self.programs.counts()?.measured;
            if measured >= frames {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return match measured {
                    0 => Err(ExperimentError::NoTraffic {
                        cpu: self.cpu,
                        interface: link.name.clone(),
                        timeout: *timeout,
                    }),
                    _ => Ok(()),
                };
            }
            std::thread::sleep(LOOK_EACH);
        }
    }

    /// Captures a burst with tscap itself.
    pub fn capture(&mut self, path: StampPath, burst: Burst) -> io::Result<CapturedBurst> {
        let setup = setup(path, RING_BYTES, &self.tool_cpus)?;
        let (Some(traffic), FrameSource::Own { pair, executable }) =
            (&mut self.traffic, &self.frame_source)
        else {
            return Ok(CapturedBurst::default());
        };
        // There is room for one program only.
        self.link.detach()?;
        let tscap = Tool::Tscap.find(executable).map_err(io::Error::other)?;
        let capture = Capture::start(&tscap, pair, &setup, &self.stop)?;
        let sent = traffic.send(burst);
        let written = capture.finish()?.said.written;
        self.link = attach(&self.programs, pair)?;
        let (_, sent) = sent?;
        Ok(CapturedBurst {
            sent: sent.sent + sent.refused,
            written,
            rate: sent.rate(burst.pacing).unwrap_or(0.0),
        })
    }
}

/// The floor's program, at the receiving end.
fn attach(programs: &Programs, pair: &Pair) -> io::Result<InterfaceLink> {
    let program = programs.cost_program(None)?;
    let rx = pair.rx.index;
    let attach = || InterfaceLink::attach(program, rx, LinkPoint::NativeXdp);
    pair.rx_netns.within(attach)
}

/// A capture with a stamp and rings so long, into nothing: what comes before the file is
/// measured.
pub(super) fn setup(path: StampPath, ring_bytes: u64, cpus: &[u32]) -> io::Result<Setup> {
    let rings = system::online_cpus().map_err(io::Error::other)?;
    Ok(Setup {
        snaplen: 96,
        buffer_bytes: ring_bytes * rings.len() as u64,
        direction: Direction::In,
        hook: HookChoice::Auto,
        tap: false,
        expression: None,
        clock: path.source(),
        tsc_path: match path {
            StampPath::Tsc(path) => Some(path),
            StampPath::Ktime | StampPath::Tai => None,
        },
        output: "/dev/null".into(),
        cpus: cpus.to_vec(),
        longest: LONGEST,
    })
}
