//! What sends into a pair.

use std::io;

use crate::generator::{
    Addresses, Control, DISCARD, Layout, LineRate, NativeSender, Network, Orders, Pacing,
    PacketSender, Pattern, Period, Rate, SendError, Sender, Sent, Template,
};
use tscap_clock::{NsPerCycle, measure_tsc_rate};

use super::pair::Pair;
use tscap_programs::hook::TscError;

/// Frames of the fast traffic: the shortest, 20 µs apart.
pub const FAST_BYTES: u32 = 64;
const FAST: Rate = Rate {
    digits: 50,
    exponent: 3,
    is_bits: false,
};
/// Longest frame that is sent.
const LONGEST: u32 = 1514;
/// The simple IMIX (RFC 6985, appendix): lengths, bytes, and so many of each. The longest one is
/// 1518 with the check sequence; the shortest has room for the payload's header.
pub const IMIX: [(u32, u64); 3] = [(FAST_BYTES, 7), (594, 4), (LONGEST, 1)];
/// Frames of the longest length that follow each other in a mix. A call of the native sender has
/// frames of one length, and a set-up that fewer would pay too dearly for.
const MIXED: u64 = 256;

/// Frames that follow each other in less are sent in bulks, ns: one at a time the sender
/// takes 2.1 to 2.7 µs for each (2 CPUs of an AMD EPYC as a virtual machine, Linux 6.18).
const SINGLY_FROM_NS: u64 = 4_000;

/// Whether a sender of single frames cannot keep this pace: such frames are sent in bulks, and
/// come as from a card that is polled.
pub fn needs_bulks(pacing: Pacing) -> bool {
    match pacing {
        Pacing::FlatOut => true,
        Pacing::Paced(period) => period.ns() < SINGLY_FROM_NS,
    }
}

/// Lengths of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All the same, bytes.
    Same(u32),
    /// [`IMIX`], in turns.
    Imix,
}

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Length of the frames.
    pub sizes: Sizes,
    /// How they follow each other.
    pub pacing: Pacing,
    /// Whether at a rate many may follow each other at once: the sender reaches higher
    /// rates then.
    pub in_bulks: bool,
    /// Frames in the burst.
    pub frames: u64,
}

impl Burst {
    /// Frames of `size` bytes, one at a time.
    fn new(size: u32, pacing: Pacing, frames: u64) -> Self {
        Self {
            sizes: Sizes::Same(size),
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

    /// The same in bulks, if it could not be sent otherwise.
    #[must_use]
    pub fn in_bulks_if_needed(self) -> Self {
        Self {
            in_bulks: needs_bulks(self.pacing),
            ..self
        }
    }

    /// As many frames of these lengths.
    #[must_use]
    pub fn of_sizes(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// As fast as can be.
    pub fn flat_out(size: u32, frames: u64) -> Self {
        Self::new(size, Pacing::FlatOut, frames)
    }
}

/// So many frames as a mix, turn by turn: which of [`IMIX`], and how many of it follow each
/// other. The last turn is a short one.
fn mixed(frames: u64) -> Vec<(usize, u64)> {
    let weights: u64 = IMIX.iter().map(|(_, weight)| weight).sum();
    let mut turns = Vec::new();
    let mut left = frames;
    while left > 0 {
        let turn = left.min(weights * MIXED);
        // The first length, which has the most frames, takes what does not divide.
        let shares = IMIX.map(|(_, weight)| turn / weights * weight);
        let rest = turn - shares.iter().sum::<u64>();
        let shares = shares.into_iter().enumerate();
        turns.extend(shares.map(|(which, share)| match which {
            0 => (which, share + rest),
            _ => (which, share),
        }));
        left -= turn;
    }
    turns.retain(|(_, frames)| *frames > 0);
    turns
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
    ///
    /// # Errors
    /// A mix is sent natively only.
    pub fn send(&mut self, burst: Burst) -> io::Result<(u16, Sent)> {
        let (first, templates) = match burst.sizes {
            Sizes::Same(size) => (template(size)?, None),
            Sizes::Imix => (
                template(LONGEST)?,
                Some(IMIX.map(|(size, _)| template(size))),
            ),
        };
        // 0 stands for frames that are not ours.
        self.run = self.run.wrapping_add(1).max(1);
        self.control.release()?;
        let orders = Orders {
            template: &first,
            pacing: burst.pacing,
            in_bulks: burst.in_bulks,
            flows: 1,
            run: self.run,
            frames: Some(burst.frames),
        };
        let sent = match templates {
            None => {
                let (sent, result) = self.sender.send(&orders);
                result.map_err(|error: SendError| io::Error::other(error))?;
                sent
            }
            Some([short, middling, long]) => {
                let templates = [short?, middling?, long?];
                let turns = mixed(burst.frames).into_iter();
                let turns = turns.map(|(which, frames)| (&templates[which], frames));
                let turns: Vec<_> = turns.collect();
                self.sender.send_in_turns(&orders, &turns)?
            }
        };
        Ok((self.run, sent))
    }
}

/// A frame of so many bytes.
fn template(size: u32) -> io::Result<Template> {
    let addresses = Addresses {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };
    Template::new(&LAYOUT, addresses, size).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(turns: &[(usize, u64)], which: usize) -> u64 {
        let same = turns.iter().filter(|(it, _)| *it == which);
        same.map(|(_, frames)| frames).sum()
    }

    #[test]
    fn a_mix_has_its_shares_and_every_frame() {
        let whole = 5 * 12 * MIXED;
        let turns = mixed(whole);
        for (which, (_, weight)) in IMIX.into_iter().enumerate() {
            assert_eq!(of(&turns, which), whole / 12 * weight);
        }
        assert_eq!(turns[..3], [(0, 1_792), (1, 1_024), (2, 256)]);
        assert_eq!(turns[..3], turns[12..]);
        for frames in [0, 1, 11, 12, 13, 128 * 1_000, whole - 1, whole + 1] {
            let turns = mixed(frames);
            let all: u64 = turns.iter().map(|(_, frames)| frames).sum();
            assert_eq!(all, frames);
            assert!(turns.iter().all(|(_, frames)| *frames > 0), "{frames}");
            let short = of(&turns, 0);
            let share = frames / 12 * 7;
            assert!((share..share + 12).contains(&short), "{frames}: {short}");
        }
    }
}
