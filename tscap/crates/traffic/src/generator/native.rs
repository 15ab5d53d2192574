//! Native frames: `BPF_PROG_TEST_RUN` with live frames (kernel 5.18) makes
//! frames in the kernel, runs a program on each, and redirects them to a veth
//! interface, at whose other end they come in as native XDP frames.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::maps::MapError;
use tscap_common::gaps::BUCKETS;
use tscap_common::generator::{self, BULK};

use super::due::{self, SLEEPS_FROM_NS};
use super::sender::{Orders, Sent};
use super::target::Target;
use super::{Pacing, Period, Template};
use tscap_clock::{MonoNs, NsPerCycle, TscPath};
use tscap_network::bpf::InterfaceLink;
use tscap_network::ethtool::EthtoolError;
use tscap_network::netdev::NetdevError;
use tscap_programs::hook::{Generator, GeneratorProgram, GeneratorState, LoadError, TscError};

/// Frames that the kernel makes and sends in one go when flat out or in bulks: several
/// bulks, and well under the 256 entries of a veth queue, which is emptied after
/// each go.
const BATCH: u32 = 4 * BULK as u32;
/// With single calls the first frame is due this much after the start; a long
/// call begins when it has been set up, which takes it up to 30 ms.
const FIRST_AFTER_NS: u64 = 1_000_000;
/// A call for a single frame is made this much before the frame is due: its set-up
/// takes 15 µs, after a sleep with cold caches 60 µs and more.
const CALL_NS: u64 = 150_000;

/// Why native frames can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    /// The program could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A map could not be read or written.
    #[error("cannot use an eBPF map of the generator")]
    Map(#[from] MapError),
    /// The kernel has no live frames, or the frames are too long for it.
    #[error(
        "the kernel takes no live frames of {size} bytes (Linux 5.18 and later do, up to about \
         3.4 kB)"
    )]
    NoLiveFrames {
        /// The longest frame to be sent, bytes.
        size: usize,
        /// What it answered.
        source: io::Error,
    },
    /// The call failed.
    #[error("cannot run the generator's program")]
    Run(#[source] io::Error),
    /// The interface's counters could not be read.
    #[error("cannot tell how many frames the interface took")]
    Counters(#[from] EthtoolError),
    /// The interface could not be looked up again.
    #[error(transparent)]
    LookUp(#[from] NetdevError),
    /// The TSC could not be looked at again.
    #[error(transparent)]
    Tsc(#[from] TscError),
    /// The interface went while frames were sent.
    #[error("interface {name} is gone")]
    Gone {
        /// Its name.
        name: String,
    },
}

/// What another thread may do with a sender at work.
pub struct NativeControl {
    state: Mutex<GeneratorState>,
    target: Target,
    /// What the interface had taken before this step.
    taken_before: AtomicU64,
}

impl NativeControl {
    fn state(&self) -> MutexGuard<'_, GeneratorState> {
        // A panic leaves nothing half done: each use is one system call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.given() > 0
    }

    pub(super) fn sent(&self) -> u64 {
        let given = self.given();
        let before = self.taken_before.load(Ordering::Relaxed);
        // If it doesn't say, all counts as taken, as at the end.
        let taken = self.target.taken();
        taken.map_or(given, |taken| given.min(taken.saturating_sub(before)))
    }

    /// Frames that the interface was given so far in this step.
    fn given(&self) -> u64 {
        let sending = self.state().sending();
        sending.map_or(0, |sending| sending.sent)
    }

    pub(super) fn has_failed(&self) -> bool {
        let sending = self.state().sending();
        sending.is_ok_and(|sending| sending.failed > 0)
    }

    pub(super) fn release(&self) -> io::Result<()> {
        let mut state = self.state();
        state.begin(0).map_err(io::Error::other)?;
        state.set_stopped(false).map_err(io::Error::other)
    }

    pub(super) fn stop(&self) -> io::Result<()> {
        self.state().set_stopped(true).map_err(io::Error::other)
    }
}

/// Sends native frames.
pub struct NativeSender {
    generator: Generator,
    control: Arc<NativeControl>,
}

impl NativeSender {
    /// For interface `name`, number `ifindex`, in this thread's network namespace,
    /// with payloads from byte `payload_at` on and frames of up to `longest`
    /// bytes. Nothing is sent before it is released.
    pub fn open(
        name: &str,
        ifindex: u32,
        payload_at: usize,
        longest: usize,
    ) -> Result<Self, NativeError> {
        let (generator, mut state) = Generator::load(ifindex, payload_at)?;
        // Told to stop, the program drops what it is given.
        state.set_stopped(true)?;
        generator
            .run(GeneratorProgram::FlatOut, &vec![0; longest], 1, 1)
            .map_err(|source| NativeError::NoLiveFrames {
                size: longest,
                source,
            })?;
        Ok(Self {
            generator,
            control: Arc::new(NativeControl {
                state: Mutex::new(state),
                target: Target::new(name, ifindex),
                taken_before: AtomicU64::new(0),
            }),
        })
    }

    /// Makes the program read the TSC when it runs on `cpu`, and says by which way and
    /// how well, ns. Without this the TSC stamps of the payloads are 0.
    pub fn read_tsc(&mut self, cpu: u32, rate: NsPerCycle) -> Result<(TscPath, u64), TscError> {
        self.generator.read_tsc(cpu, rate)
    }

    /// Makes calls of few frames cheap, as long as the link lives, by XDP on the interface that
    /// frames go to; nothing must be received there.
    ///
    /// # Errors
    /// EBUSY if an XDP program is there.
    pub(super) fn stay_dispatched(&self, pacing: Pacing) -> io::Result<InterfaceLink> {
        let program = match pacing {
            Pacing::FlatOut => GeneratorProgram::FlatOut,
            Pacing::Paced(_) => GeneratorProgram::Paced,
        };
        let ifindex = self.control.target.ifindex();
        self.generator.stay_dispatched(program, ifindex)
    }

    pub(super) fn control(&self) -> Arc<NativeControl> {
        Arc::clone(&self.control)
    }

    pub(super) fn target(&self) -> &Target {
        &self.control.target
    }

    pub(super) fn send(&mut self, orders: &Orders<'_>) -> (Sent, Result<(), NativeError>) {
        self.send_in_turns(orders, &[(orders.template, orders.frames)])
    }

    /// Sends frames of one template after those of another, so many of each, in place of those
    /// of `orders`; without a number until stopped. One is due after the other as if all had
    /// one template.
    pub(super) fn send_in_turns(
        &mut self,
        orders: &Orders<'_>,
        turns: &[(&Template, Option<u64>)],
    ) -> (Sent, Result<(), NativeError>) {
        let target = &self.control.target;
        let before = target.taken();
        let so_far = *before.as_ref().unwrap_or(&0);
        self.control.taken_before.store(so_far, Ordering::Relaxed);
        let run = self.run(orders, turns);
        let target = &self.control.target;
        let sending = self.control.state().sending().unwrap_or_default();
        let taken = before.and_then(|before| Ok(target.taken()?.saturating_sub(before)));
        // Frames that others send there by XDP meanwhile count as taken, and all
        // frames do if the interface is gone with its counters.
        let refused = taken
            .as_ref()
            .map_or(0, |taken| sending.sent.saturating_sub(*taken));
        let moved = self.generator.tsc_moved_ns();
        let sent = Sent {
            sent: sending.sent - refused,
            refused: refused + sending.failed,
            late: sending.late,
            between: (sending.first_ns != 0)
                .then_some([MonoNs(sending.first_ns), MonoNs(sending.last_ns)]),
            tsc_moved_ns: *moved.as_ref().unwrap_or(&0),
            gaps: self
                .generator
                .gaps()
                .unwrap_or_else(|_| Box::new([0; BUCKETS])),
        };
        let result = if sending.failed > 0 {
            Err(self.control.target.gone())
        } else {
            run.and(taken.map(drop))
                .and(moved.map(drop).map_err(NativeError::from))
        };
        (sent, result)
    }

    fn run(
        &mut self,
        orders: &Orders<'_>,
        turns: &[(&Template, Option<u64>)],
    ) -> Result<(), NativeError> {
        self.generator.forget_gaps()?;
        let start = MonoNs(MonoNs::now().0 + FIRST_AFTER_NS);
        let is_single = matches!(orders.pacing, Pacing::Paced(period) if sleeps(period));
        let first_due = if is_single { start.0 } else { 0 };
        self.control.state().begin(first_due)?;
        let mut until = 0_u64;
        for (template, frames) in turns {
            until = frames.map_or(u64::MAX, |frames| until.saturating_add(frames));
            if !self.run_until(until, orders, template, start)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs until so many frames have been sent; false if there are to be no more.
    fn run_until(
        &mut self,
        until: u64,
        orders: &Orders<'_>,
        template: &Template,
        start: MonoNs,
    ) -> Result<bool, NativeError> {
        let (period_ns, period_fraction) = match orders.pacing {
            Pacing::Paced(period) => (period.ns(), period.fraction()),
            Pacing::FlatOut => (0, 0),
        };
        self.generator.order(generator::Orders {
            headers: template.headers(),
            checksum: template.checksum(),
            flows: orders.flows,
            period_ns,
            period_fraction,
            run: orders.run,
            reads_tsc: 0,
            tsc_offset: 0,
        })?;
        let frame = template.bytes();
        loop {
            let sending = self.control.state().sending()?;
            if sending.failed > 0 || self.control.state().is_stopped()? {
                return Ok(false);
            }
            let left = until.saturating_sub(sending.sent);
            if left == 0 {
                return Ok(true);
            }
            let many = u32::try_from(left).unwrap_or(u32::MAX);
            let run = match orders.pacing {
                Pacing::FlatOut => {
                    self.generator
                        .run(GeneratorProgram::FlatOut, frame, many, BATCH)
                }
                Pacing::Paced(period) if !sleeps(period) => {
                    let batch = if orders.in_bulks { bulk(period) } else { 1 };
                    self.generator
                        .run(GeneratorProgram::Paced, frame, many, batch)
                }
                Pacing::Paced(period) => self.send_one(frame, start, period, sending.sent),
            };
            match run {
                // Told to stop, or some other signal: found out above.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                run => run.map_err(NativeError::Run)?,
            }
        }
    }

    /// Sleeps, then sends frame `number`; the program waits out the rest.
    fn send_one(
        &mut self,
        frame: &[u8],
        start: MonoNs,
        period: Period,
        number: u64,
    ) -> io::Result<()> {
        let due = MonoNs(start.0.saturating_add(period.due_ns(number)));
        if !due::sleep_until_shortly_before(due)? {
            return Err(io::ErrorKind::Interrupted.into());
        }
        due::spin_until(MonoNs(due.0.saturating_sub(CALL_NS)));
        self.generator.run(GeneratorProgram::Paced, frame, 1, 1)
    }
}

/// Frames of a bulk: as many as are due before a single one would be slept for, as the
/// CPU does nothing else meanwhile, not even receive.
fn bulk(period: Period) -> u32 {
    let due = SLEEPS_FROM_NS / period.ns().max(1);
    u32::try_from(due).map_or(BATCH, |due| due.clamp(1, BATCH))
}

/// Whether frames are so far apart that each is a call of its own.
fn sleeps(period: Period) -> bool {
    period.ns() >= SLEEPS_FROM_NS
}
