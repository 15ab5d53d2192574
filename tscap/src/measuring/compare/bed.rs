//! What measures one burst, one way to stamp, or one capture.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Stamp;
use super::clocks::Clocks;
use super::experiment::{ExperimentError, FrameSource};
use super::programs::{Measured, Programs};
use super::stamp_samples::FrameCounts;
use super::whole_program::WholeProgram;
use crate::capturing::accounting::Direction;
use crate::capturing::clock::{NsPerCycle, StampPath, TscPath};
use crate::capturing::hook::HookChoice;
use crate::capturing::host::bpf::{InterfaceLink, LinkPoint};
use crate::capturing::host::system;
use crate::measuring::load::{Burst, Capture, Setup, Stop, Tool, Traffic};

/// Captures have short rings, so that a burst is many of them: each holds 10,922
/// blocks of frames of 64 bytes.
const RING_BYTES: u64 = 1 << 20;
/// A capture ends by itself after this, should we be killed.
const LONGEST: Duration = Duration::from_secs(60);
/// How often it is looked whether enough live traffic has come.
const LOOK_EACH: Duration = Duration::from_millis(5);

/// The measuring thread's things.
pub struct CompareBed {
    /// They measure.
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
    /// The CPUs for captures.
    pub tool_cpus: Vec<u32>,
    /// Tells to end.
    pub stop: Arc<Stop>,
}

impl CompareBed {
    /// An error once it is to end.
    pub fn go_on(&self) -> Result<(), ExperimentError> {
        match self.stop.is_asked() {
            true => Err(ExperimentError::Stopped),
            false => Ok(()),
        }
    }

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

    fn wait_for_traffic(&self, frames: u64) -> Result<(), ExperimentError> {
        let FrameSource::Live { timeout, link } = &self.frame_source else {
            return Ok(());
        };
        let deadline = Instant::now() + *timeout;
        loop {
            self.go_on()?;
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

    /// Into nothing: what comes before the file is measured.
    fn setup(&self, path: StampPath) -> io::Result<Setup> {
        let rings = system::online_cpus().map_err(io::Error::other)?;
        Ok(Setup {
            snaplen: 96,
            buffer_bytes: RING_BYTES * rings.len() as u64,
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
            cpus: self.tool_cpus.clone(),
            longest: LONGEST,
        })
    }

    /// Captures a burst; returns frames sent and written, and the rate.
    pub fn capture(&mut self, path: StampPath, burst: Burst) -> io::Result<(u64, u64, f64)> {
        let setup = self.setup(path)?;
        let (Some(traffic), FrameSource::Own { pair, executable }) =
            (&mut self.traffic, &self.frame_source)
        else {
            return Ok((0, 0, 0.0));
        };
        // There is room for one program only.
        self.link.detach()?;
        let tscap = Tool::Tscap.find(executable).map_err(io::Error::other)?;
        let capture = Capture::start(&tscap, pair, &setup, &self.stop)?;
        let sent = traffic.send(burst);
        let written = capture.finish()?.said.written;
        let program = self.programs.cost_program(None)?;
        let rx = pair.rx.index;
        self.link = pair
            .rx_netns
            .within(|| InterfaceLink::attach(program, rx, LinkPoint::NativeXdp))?;
        let (_, sent) = sent?;
        let rate = sent.rate(burst.pacing).unwrap_or(0.0);
        Ok((sent.sent + sent.refused, written, rate))
    }
}
