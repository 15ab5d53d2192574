//! A sender of either kind, and what is told to it and by it.

use std::io;
use std::sync::Arc;

use tscap_common::generator::{BULK, Gaps};

use super::native::{NativeControl, NativeError, NativeSender};
use super::packet::{PacketControl, PacketError, PacketSender};
use super::{GapReport, Pacing, Template};
use tscap_clock::MonoNs;

/// What to send.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    /// The frames.
    pub template: &'a Template,
    /// How they follow each other.
    pub pacing: Pacing,
    /// Native frames at a rate: whether the kernel may hand them on up to 64 at a time,
    /// each no earlier than it is due. The sender reaches higher rates then.
    pub in_bulks: bool,
    /// Number of flows; frames take turns.
    pub flows: u32,
    /// Names the run in each payload.
    pub run: u16,
    /// How many; `None` until stopped.
    pub frames: Option<u64>,
}

/// What was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the interface took.
    pub sent: u64,
    /// Frames that it was given and did not take.
    pub refused: u64,
    /// Frames that went out more than a period after their time.
    pub late: u64,
    /// When the first and the last frame were sent.
    pub between: Option<[MonoNs; 2]>,
    /// Farthest that the TSC stamps may be off besides their bound, ns: a native
    /// sender's perf event pauses when somebody opens another.
    pub tsc_moved_ns: u64,
    /// Gaps less the period.
    pub gaps: Box<Gaps>,
}

impl Sent {
    /// Adds what was sent later; the gap between both is not one of the gaps.
    pub fn add(&mut self, later: &Self) {
        self.sent += later.sent;
        self.refused += later.refused;
        self.late += later.late;
        self.between = match (self.between, later.between) {
            (Some([first, _]), Some([_, last])) => Some([first, last]),
            (mine, theirs) => mine.or(theirs),
        };
        self.tsc_moved_ns = self.tsc_moved_ns.max(later.tsc_moved_ns);
        for (mine, theirs) in self.gaps.iter_mut().zip(later.gaps.iter()) {
            *mine += theirs;
        }
    }

    /// How well time was kept.
    pub fn gap_report(&self, pacing: Pacing) -> Option<GapReport> {
        match pacing {
            Pacing::Paced(period) => GapReport::new(&self.gaps, period.ns(), 1),
            Pacing::FlatOut => GapReport::new(&self.gaps, 0, BULK),
        }
    }

    /// Frames a second that the interface took, from the first to the last; flat
    /// out to the first of the last bulk, whose time is all that is known.
    pub fn rate(&self, pacing: Pacing) -> Option<f64> {
        let [first, last] = self.between?;
        let ns = last.0.checked_sub(first.0).filter(|ns| *ns > 0)?;
        let given = self.sent + self.refused;
        let gaps = match pacing {
            Pacing::Paced(_) => given.checked_sub(1)?,
            Pacing::FlatOut => given.checked_sub(1)? / BULK * BULK,
        };
        let taken = self.sent as f64 / given as f64;
        Some(gaps as f64 * taken * 1e9 / ns as f64)
    }
}

/// Why not everything was sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// By live frames.
    #[error(transparent)]
    Native(#[from] NativeError),
    /// By a packet socket.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The interface refused frames, and takes none now.
    #[error("interface {name} is down, or its other end is")]
    Down {
        /// Its name.
        name: String,
    },
}

/// A sender, for a thread of its own.
pub enum Sender {
    /// Live frames.
    Native(Box<NativeSender>),
    /// A packet socket.
    Packet(PacketSender),
}

impl Sender {
    /// Sends until all has been sent or it is told to stop. What was sent before
    /// an error is told too.
    pub fn send(&mut self, orders: &Orders<'_>) -> (Sent, Result<(), SendError>) {
        let (sent, result, target) = match self {
            Self::Native(sender) => {
                let (sent, result) = sender.send(orders);
                (sent, result.map_err(SendError::from), sender.target())
            }
            Self::Packet(sender) => {
                let (sent, result) = sender.send(orders);
                (sent, result.map_err(SendError::from), sender.target())
            }
        };
        let down = match sent.refused {
            0 => None,
            _ => target.if_down(),
        };
        let is_up = down.map_or(Ok(()), |name| Err(SendError::Down { name }));
        (sent, result.and(is_up))
    }

    /// Sends natively frames of several templates, so many of each, in place of those of
    /// `orders`. The interface must receive nothing: meanwhile an XDP program is there.
    ///
    /// # Errors
    /// Of a packet socket ([`io::ErrorKind::Unsupported`]), and as [`Self::send`].
    pub(crate) fn send_in_turns(
        &mut self,
        orders: &Orders<'_>,
        turns: &[(&Template, u64)],
    ) -> io::Result<Sent> {
        let Self::Native(sender) = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let turns = turns
            .iter()
            .map(|(template, frames)| (*template, Some(*frames)));
        let turns: Vec<_> = turns.collect();
        let _dispatched = sender.stay_dispatched(orders.pacing)?;
        let (sent, result) = sender.send_in_turns(orders, &turns);
        result.map_err(io::Error::other)?;
        Ok(sent)
    }

    /// Name as on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Packet(_) => "packet",
        }
    }

    /// What another thread needs to watch and to stop it.
    pub fn control(&self) -> Control {
        match self {
            Self::Native(sender) => Control::Native(sender.control()),
            Self::Packet(sender) => Control::Packet(sender.control()),
        }
    }
}

/// Watches and stops a sender that is at work in another thread.
#[derive(Clone)]
pub enum Control {
    /// Of live frames.
    Native(Arc<NativeControl>),
    /// Of a packet socket.
    Packet(Arc<PacketControl>),
}

impl Control {
    /// Whether a frame of this step has been sent.
    pub fn has_begun(&self) -> bool {
        match self {
            Self::Native(control) => control.has_begun(),
            Self::Packet(control) => control.sent() > 0,
        }
    }

    /// Frames that the interface took so far in this step.
    pub fn sent(&self) -> u64 {
        match self {
            Self::Native(control) => control.sent(),
            Self::Packet(control) => control.sent(),
        }
    }

    /// Lets the sender send, with nothing sent so far; to be called before it
    /// begins.
    pub fn release(&self) -> io::Result<()> {
        match self {
            Self::Native(control) => control.release(),
            Self::Packet(control) => {
                control.release();
                Ok(())
            }
        }
    }

    /// Whether sending has failed, so that the sender should be stopped: it may
    /// be in a system call that goes on without sending anything.
    pub fn has_failed(&self) -> bool {
        match self {
            Self::Native(control) => control.has_failed(),
            Self::Packet(_) => false,
        }
    }

    /// No more frames after this. A system call that the sender is in must be
    /// interrupted besides ([`tscap_host::wake`]).
    pub fn stop(&self) -> io::Result<()> {
        match self {
            Self::Native(control) => control.stop(),
            Self::Packet(control) => {
                control.stop();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tscap_common::gaps::BUCKETS;

    use super::*;
    use crate::generator::LineRate;

    #[test]
    fn the_rate_is_that_of_the_time_known() {
        let sent = |sent, refused, ns: u64| Sent {
            sent,
            refused,
            late: 0,
            between: Some([MonoNs(1_000), MonoNs(1_000 + ns)]),
            tsc_moved_ns: 0,
            gaps: Box::new([0; BUCKETS]),
        };
        let paced = Pacing::Paced(LineRate::GIGABIT.period(64, 12).unwrap());
        assert_eq!(sent(11, 0, 1_000).rate(paced), Some(1e7));
        // A bulk and one: what is known is the time of the first bulk.
        assert_eq!(sent(17, 0, 1_600).rate(Pacing::FlatOut), Some(1e7));
        assert_eq!(sent(32, 0, 1_600).rate(Pacing::FlatOut), Some(1e7));
        assert_eq!(sent(33, 0, 3_200).rate(Pacing::FlatOut), Some(1e7));
        // What was refused is no rate.
        assert_eq!(sent(0, 11, 1_000).rate(paced), Some(0.0));
        assert_eq!(sent(1, 0, 0).rate(paced), None);
    }
}
