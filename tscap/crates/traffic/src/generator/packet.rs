//! Frames through an AF_PACKET socket, paced by reading the TSC until each is
//! due. Works on every Ethernet interface and for every frame that the MTU
//! allows, at about a microsecond a frame.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tscap_common::gaps::BUCKETS;
use tscap_common::generator::{BULK, Gaps};
use tscap_common::stream::{STAMP_MASK, StreamHeader};

use super::due::{self, SLEEPS_FROM_NS};
use super::gaps;
use super::sender::{Orders, Sent};
use super::target::Target;
use super::{Pacing, Period, Template};
use tscap_clock::{MonoNs, NsPerCycle, TaiNs, TscCycles};
use tscap_network::packet::PacketSocket;
use tscap_time::tsc;

/// The first frame is due this much after the start.
const SET_UP_NS: u64 = 1_000_000;

/// Why sending through a packet socket failed.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// No socket.
    #[error("cannot open a packet socket on {name}")]
    Open {
        /// The interface.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A frame could not be sent.
    #[error("cannot send on {name}")]
    Send {
        /// The interface.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The sender could not sleep until the next frame.
    #[error("cannot wait for the next frame")]
    Wait(#[source] io::Error),
}

/// What another thread may do with a sender at work.
#[derive(Debug, Default)]
pub struct PacketControl {
    stop: AtomicBool,
    sent: AtomicU64,
}

impl PacketControl {
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn release(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.stop.store(false, Ordering::Relaxed);
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Sends through a packet socket.
#[derive(Debug)]
pub struct PacketSender {
    interface: String,
    target: Target,
    socket: PacketSocket,
    rate: NsPerCycle,
    control: Arc<PacketControl>,
}

impl PacketSender {
    /// For interface `name`, number `ifindex`, in this thread's network namespace,
    /// on a machine whose TSC has this rate.
    pub fn open(name: &str, ifindex: u32, rate: NsPerCycle) -> Result<Self, PacketError> {
        Self::by(PacketSocket::open(ifindex), name, ifindex, rate)
    }

    /// The same through the network stack, where captures see what is sent.
    pub fn through_stack(name: &str, ifindex: u32, rate: NsPerCycle) -> Result<Self, PacketError> {
        Self::by(PacketSocket::through_stack(ifindex), name, ifindex, rate)
    }

    fn by(
        socket: io::Result<PacketSocket>,
        name: &str,
        ifindex: u32,
        rate: NsPerCycle,
    ) -> Result<Self, PacketError> {
        let socket = socket.map_err(|source| PacketError::Open {
            name: name.into(),
            source,
        })?;
        Ok(Self {
            interface: name.into(),
            target: Target::new(name, ifindex),
            socket,
            rate,
            control: Arc::default(),
        })
    }

    pub(super) fn control(&self) -> Arc<PacketControl> {
        Arc::clone(&self.control)
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn send(&mut self, orders: &Orders<'_>) -> (Sent, Result<(), PacketError>) {
        let mut progress = Progress::new(orders, self.rate);
        let result = match orders.pacing {
            Pacing::Paced(period) => self.send_paced(period, &mut progress),
            Pacing::FlatOut => self.send_flat_out(&mut progress),
        };
        (progress.sent, result)
    }

    fn send_paced(&self, period: Period, progress: &mut Progress<'_>) -> Result<(), PacketError> {
        let mut frame = progress.template.bytes().to_vec();
        let start = MonoNs(progress.origin.0.0 + SET_UP_NS);
        for number in 0..progress.frames {
            let due_ns = period.due_ns(number);
            let due = MonoNs(start.0.saturating_add(due_ns));
            let mut is_near = period.ns() < SLEEPS_FROM_NS;
            while !is_near && !self.is_stopped() {
                is_near = due::sleep_until_shortly_before(due).map_err(PacketError::Wait)?;
            }
            if self.is_stopped() {
                return Ok(());
            }
            let due = progress.tsc_at(due);
            let stamp = due::spin_until_tsc(due);
            if self.rate.duration_ns(stamp.0 - due.0) > period.ns() {
                progress.sent.late += 1;
            }
            progress.stamped(stamp, period.ns());
            progress.fill(&mut frame, stamp, TaiNs::now());
            self.took(self.socket.send(&frame).map(|()| 1), 1, progress)?;
        }
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.control.stop.load(Ordering::Relaxed)
    }

    /// As many at a time as share a stamp.
    fn send_flat_out(&self, progress: &mut Progress<'_>) -> Result<(), PacketError> {
        let mut frames = vec![progress.template.bytes().to_vec(); BULK as usize];
        let mut left = progress.frames;
        while left > 0 && !self.is_stopped() {
            let bulk = usize::try_from(left).map_or(frames.len(), |left| left.min(frames.len()));
            let (stamp, tai) = (tsc::read(), TaiNs::now());
            progress.stamped(stamp, 0);
            for frame in &mut frames[..bulk] {
                progress.fill(frame, stamp, tai);
            }
            let mut unsent = &frames[..bulk];
            while !unsent.is_empty() {
                let took = self.socket.send_many(unsent);
                // The first one of them was refused.
                let past = took.as_ref().map_or(1, |took| *took);
                self.took(took, past, progress)?;
                unsent = &unsent[past..];
            }
            left -= bulk as u64;
        }
        Ok(())
    }

    /// Accounts for a call that went past `past` frames.
    fn took(
        &self,
        took: io::Result<usize>,
        past: usize,
        progress: &mut Progress<'_>,
    ) -> Result<(), PacketError> {
        match took {
            Ok(took) => progress.sent.sent += took as u64,
            // The interface's queue was full, or it has no carrier.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => {
                progress.sent.refused += past as u64;
            }
            Err(source) => {
                return Err(PacketError::Send {
                    name: self.interface.clone(),
                    source,
                });
            }
        }
        self.control
            .sent
            .store(progress.sent.sent, Ordering::Relaxed);
        Ok(())
    }
}

/// A step under way.
struct Progress<'a> {
    template: &'a Template,
    frames: u64,
    flows: u32,
    header: StreamHeader,
    rate: NsPerCycle,
    /// One moment on both clocks.
    origin: (MonoNs, TscCycles),
    last: Option<TscCycles>,
    sent: Sent,
}

impl<'a> Progress<'a> {
    fn new(orders: &Orders<'a>, rate: NsPerCycle) -> Self {
        Self {
            template: orders.template,
            frames: orders.frames.unwrap_or(u64::MAX),
            flows: orders.flows,
            header: StreamHeader {
                run: orders.run,
                flow: 0,
                seq: 0,
                tsc: 0,
                tai: 0,
            },
            rate,
            origin: (MonoNs::now(), tsc::read()),
            last: None,
            sent: Sent {
                sent: 0,
                refused: 0,
                late: 0,
                between: None,
                tsc_moved_ns: 0,
                gaps: Box::new([0; BUCKETS]),
            },
        }
    }

    /// The TSC at a moment after the origin.
    fn tsc_at(&self, time: MonoNs) -> TscCycles {
        let ns = i64::try_from(time.0 - self.origin.0.0).unwrap_or(i64::MAX);
        TscCycles(self.origin.1.0.wrapping_add_signed(self.rate.cycles_in(ns)))
    }

    /// Notes that a frame, or a bulk, leaves now.
    fn stamped(&mut self, stamp: TscCycles, period_ns: u64) {
        let since_origin = self.rate.duration_ns(stamp.0 - self.origin.1.0);
        let time = MonoNs(self.origin.0.0 + since_origin);
        if let Some(last) = self.last.replace(stamp) {
            let gap = self.rate.duration_ns(stamp.0 - last.0);
            let gaps: &mut Gaps = &mut self.sent.gaps;
            gaps::count(gaps, gap, period_ns);
        }
        let first = self.sent.between.map_or(time, |[first, _]| first);
        self.sent.between = Some([first, time]);
    }

    /// Makes the next frame.
    fn fill(&mut self, frame: &mut [u8], tsc: TscCycles, tai: TaiNs) {
        self.header.tsc = tsc.0 & STAMP_MASK;
        self.header.tai = tai.0 & STAMP_MASK;
        self.template.fill(frame, &self.header);
        self.header.flow += 1;
        if u32::from(self.header.flow) >= self.flows {
            self.header.flow = 0;
            self.header.seq = self.header.seq.wrapping_add(1);
        }
    }
}
