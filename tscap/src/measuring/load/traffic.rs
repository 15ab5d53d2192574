//! What sends into a pair.

use std::io;

use crate::capturing::clock::{NsPerCycle, measure_tsc_rate};
use crate::measuring::generator::{
    Addresses, Control, DISCARD, Layout, LineRate, NativeSender, Network, Orders, Pacing,
    PacketSender, Pattern, Period, Rate, SendError, Sender, Sent, Template,
};

use super::pair::Pair;
use crate::capturing::hook::TscError;

/// Frames of the fast traffic: the shortest, 20 µs apart.
pub const FAST_BYTES: u32 = 64;
const FAST: Rate = Rate {
    digits: 50,
    exponent: 3,
    is_bits: false,
};
/// Longest frame that is sent.
const LONGEST: u32 = 1514;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Length of the frames, bytes.
    pub size: u32,
    /// How they follow each other.
    pub pacing: Pacing,
    /// Whether at a rate many may follow each other at once: the sender reaches higher
    /// rates then.
    pub in_bulks: bool,
    /// How many.
    pub frames: u64,
}

impl Burst {
    /// Frames of `size` bytes, one at a time.
    fn new(size: u32, pacing: Pacing, frames: u64) -> Self {
        Self {
            size,
            pacing,
            in_bulks: false,
            frames,
        }
    }

    /// Short frames 20 µs apart.
    pub fn fast(frames: u64) -> Self {
        Self::new(FAST_BYTES, paced(FAST.period(FAST_BYTES)), frames)
    }

    /// At most so many of these frames go out in a second; at least one.
    pub fn in_a_second(&self) -> u64 {
        match self.pacing {
            Pacing::Paced(period) => (1_000_000_000 / period.ns().max(1)).max(1),
            Pacing::FlatOut => u64::MAX,
        }
    }

    /// A pattern of the paper.
    pub fn of_pattern(pattern: Pattern, frames: u64) -> Self {
        let (size, gap) = pattern.size_and_gap();
        Self::with_gap(size, gap, frames)
    }

    /// With a gap in byte times at 1 Gbit/s.
    pub fn with_gap(size: u32, gap: u64, frames: u64) -> Self {
        Self::new(size, paced(LineRate::GIGABIT.period(size, gap)), frames)
    }

    /// At so many frames a second, whole ones; `None` if that is no rate.
    pub fn at_rate(size: u32, rate: f64, frames: u64) -> Option<Self> {
        let rate = Rate {
            digits: rate as u64,
            exponent: 0,
            is_bits: false,
        };
        Some(Self::new(size, Pacing::Paced(rate.period(size)?), frames))
    }

    /// The same in bulks.
    #[must_use]
    pub fn in_bulks(self) -> Self {
        Self {
            in_bulks: true,
            ..self
        }
    }

    /// As fast as can be.
    pub fn flat_out(size: u32, frames: u64) -> Self {
        Self::new(size, Pacing::FlatOut, frames)
    }
}

fn paced(period: Option<Period>) -> Pacing {
    Pacing::Paced(period.expect("a period that a clock can pace"))
}

/// What frames are made of.
const LAYOUT: Layout = Layout {
    vlan: None,
    network: Network::BENCHMARK_V4,
    port: DISCARD,
};

/// Sends into the pair from the CPU that this thread is pinned to.
pub struct Traffic {
    sender: Sender,
    control: Control,
    run: u16,
    no_tsc: Option<TscError>,
}

impl Traffic {
    /// Natively, for a thread in the sending end's namespace. The receiving end must have
    /// an XDP program, or GRO. With a rate the frames carry the TSC of `cpu`, if it
    /// can be read.
    pub fn new(pair: &Pair, cpu: u32, rate: Option<NsPerCycle>) -> io::Result<Self> {
        let (name, index) = (&pair.tx.name, pair.tx.index);
        let mut sender = NativeSender::open(name, index, LAYOUT.payload_at(), LONGEST as usize)
            .map_err(io::Error::other)?;
        let no_tsc = rate.and_then(|rate| sender.read_tsc(cpu, rate).err());
        Ok(Self {
            no_tsc,
            ..Self::by(Sender::Native(Box::new(sender)))
        })
    }

    /// Through the network stack, as programs send, for a thread in the sending end's
    /// namespace.
    pub fn through_stack(pair: &Pair) -> io::Result<Self> {
        let rate = measure_tsc_rate();
        let rate = rate.ok_or_else(|| io::Error::other("the TSC's rate can't be measured"))?;
        let sender = PacketSender::through_stack(&pair.tx.name, pair.tx.index, rate);
        Ok(Self::by(Sender::Packet(sender.map_err(io::Error::other)?)))
    }

    fn by(sender: Sender) -> Self {
        Self {
            control: sender.control(),
            sender,
            run: 0,
            no_tsc: None,
        }
    }

    /// Why the frames don't carry the TSC although they should.
    pub fn no_tsc(&self) -> Option<&TscError> {
        self.no_tsc.as_ref()
    }

    /// Sends; returns the run that the frames belong to, and what was sent.
    pub fn send(&mut self, burst: Burst) -> io::Result<(u16, Sent)> {
        let addresses = Addresses {
            source: [2, 0, 0, 0, 0, 1],
            destination: [2, 0, 0, 0, 0, 2],
        };
        let template = Template::new(&LAYOUT, addresses, burst.size);
        let template = template.map_err(io::Error::other)?;
        // 0 stands for frames that are not ours.
        self.run = self.run.wrapping_add(1).max(1);
        self.control.release()?;
        let (sent, result) = self.sender.send(&Orders {
            template: &template,
            pacing: burst.pacing,
            in_bulks: burst.in_bulks,
            flows: 1,
            run: self.run,
            frames: Some(burst.frames),
        });
        result.map_err(|error: SendError| io::Error::other(error))?;
        Ok((self.run, sent))
    }
}
