//! How far another host's clock is from this one's, and what its times mean here.
//!
//! Of each exchange, T1 and T4 are stamps of this host, T2 and T3 are readings of the peer's
//! clock between them. Whatever the shares of the ways there and back, the peer's clock read no
//! more than T2 at T1, and no less than T3 at T4: [`Allowed`]. What one exchange allows is
//! carried to the others by the greatest drift of the clocks, from before and from behind. Where
//! both clocks tell how far they are from UTC, that bounds them too; the intersection holds.
//!
//! Within the bound the best guess is the feed-forward clock of all exchanges ([`PeerClock`]).

mod allowed;

use std::collections::VecDeque;

use allowed::{Allowed, Around, share_up};
use tscap_clock::{Bracket, NsPerCycle, RawStamp, RealNs, TscCycles};
use tscap_references::{PeerClock, PeerVerdict};

/// What exchanges allow is carried back to others for this time at least, ns.
const HELD_NS: u64 = 1_000_000_000;
/// Exchanges that are held, at most.
const MOST_HELD: usize = 1 << 17;

/// What aligns the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlignBy {
    /// What exchanges and UTC both allow.
    #[default]
    Both,
    /// Exchanges alone.
    Exchange,
    /// UTC alone: what both clocks say of themselves.
    Utc,
}

impl AlignBy {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Exchange => "exchange",
            Self::Utc => "utc",
        }
    }
}

/// Times of a packet and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// T1 and T4 by this host's stamps.
    pub own: [RawStamp; 2],
    /// The same by its wall clock.
    pub own_real: [RealNs; 2],
    /// T2 and T3, by the peer's clock.
    pub peer: [RealNs; 2],
    /// Greatest error of a stamp of this host, ns.
    pub own_error_ns: u64,
    /// Greatest error of a stamp of the peer against the peer's clock, ns.
    pub peer_error_ns: u64,
    /// Greatest error of both clocks against UTC, ns, where both know it.
    pub utc_bound_ns: Option<u64>,
}

impl Exchange {
    /// The round trip without the time at the peer, ns; negative if the peer held it for longer
    /// than it was away, by its own clock.
    pub fn round_trip_ns(&self, rate: NsPerCycle) -> i64 {
        let [sent, received] = self.own;
        let away = received.0.saturating_sub(sent.0);
        let held = i128::from(self.peer[1].0) - i128::from(self.peer[0].0);
        saturated(i128::from(rate.duration_ns(away)) - held)
    }
}

/// How long a packet was on its way, and what that is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// There, ns.
    pub forward_ns: i64,
    /// Back, ns.
    pub back_ns: i64,
    /// Greatest error of either by the alignment of the clocks, ns.
    pub alignment_ns: u64,
    /// How far the peer's clock was ahead of this host's at T1, ns.
    pub peer_ahead_ns: i64,
    /// A clock may have been set between this exchange and the one before it: neither tells
    /// anything of the other.
    pub is_apart: bool,
}

/// What became of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aligned {
    /// Its delays each way.
    Known(OneWay),
    /// Nothing aligns the clocks, or the peer held the packet for longer than it was away.
    Unknown,
    /// What exchanges allow and what both clocks say of UTC exclude each other: one of the clocks
    /// is not where it says.
    Contradiction,
}

/// Aligns the clocks of two hosts, and tells the delays each way. `T` goes with an exchange.
#[derive(Debug)]
pub struct Alignment<T> {
    by: AlignBy,
    max_drift_ppb: u64,
    max_asymmetry_ns: Option<u64>,
    clock: PeerClock,
    /// Middle of the latest exchange that the clock has taken in.
    latest: Option<TscCycles>,
    /// What exchanges so far allow at T1 of the latest one.
    before: Option<Allowed>,
    held: VecDeque<Held<T>>,
    changes: u64,
}

#[derive(Clone, Debug)]
struct Held<T> {
    exchange: Exchange,
    rate: NsPerCycle,
    /// What this exchange, and those before it, allow of the peer's clock at T1.
    allowed: Option<Allowed>,
    /// What the feed-forward clock said of T1.
    guess: Option<RealNs>,
    /// See [`OneWay::is_apart`].
    is_apart: bool,
    with: T,
}

impl<T> Alignment<T> {
    /// Of clocks of which nothing is known yet, but that their rates differ by no more than
    /// `max_drift_ppb`, parts per billion, and the least delays there and back by no more than
    /// `max_asymmetry_ns`, if somebody vouches for that.
    pub fn new(by: AlignBy, max_drift_ppb: u64, max_asymmetry_ns: Option<u64>) -> Self {
        Self {
            by,
            max_drift_ppb,
            max_asymmetry_ns,
            clock: PeerClock::default(),
            latest: None,
            before: None,
            held: VecDeque::new(),
            changes: 0,
        }
    }

    /// Takes in an exchange, of a counter with that `rate`, in the order of T4. Gives those to
    /// `tell` that no later one can tell more of.
    pub fn take(
        &mut self,
        exchange: Exchange,
        rate: NsPerCycle,
        with: T,
        tell: &mut impl FnMut(T, &Exchange, Aligned),
    ) {
        self.observe(&exchange, rate);
        let alone = Allowed::alone(&exchange, rate, self.max_drift_ppb);
        let carried = self.before.zip(alone);
        let carried = carried.map(|(before, alone)| {
            before
                .carried_to(alone.at, rate, self.max_drift_ppb)
                .meet(&alone)
        });
        let is_apart = carried == Some(None);
        let allowed = match carried {
            // The peer's clock was set, or slewed faster.
            Some(None) => {
                self.changes += 1;
                self.doubt(alone.as_ref());
                alone
            }
            Some(both) => both,
            None => alone,
        };
        // Those before may have arrived later.
        self.before = allowed.or(self.before);
        let guess = self.clock.estimate(TscCycles(exchange.own[0].0));
        self.held.push_back(Held {
            exchange,
            rate,
            allowed,
            guess: guess.map(|it| it.real),
            is_apart,
            with,
        });
        let oldest = self
            .held
            .front()
            .map_or(exchange.own[1], |it| it.exchange.own[1]);
        let held_ns = rate.duration_ns(exchange.own[1].0.saturating_sub(oldest.0));
        if held_ns >= 2 * HELD_NS || self.held.len() >= MOST_HELD {
            let until = RawStamp(oldest.0.midpoint(exchange.own[1].0));
            self.release(until, tell);
        }
    }

    /// Tells of all that are held.
    pub fn finish(&mut self, tell: &mut impl FnMut(T, &Exchange, Aligned)) {
        self.release(RawStamp(u64::MAX), tell);
    }

    /// This host's counter jumped: nothing of before tells of what comes.
    pub fn begin_anew(&mut self, tell: &mut impl FnMut(T, &Exchange, Aligned)) {
        self.finish(tell);
        self.clock = PeerClock::default();
        self.latest = None;
        self.before = None;
    }

    /// From now on the rates may differ by so much; it never becomes less.
    pub fn raise_max_drift(&mut self, max_drift_ppb: u64) {
        self.max_drift_ppb = self.max_drift_ppb.max(max_drift_ppb);
    }

    /// How often the peer's clock was seen to be set, or to be slewed faster than the drift
    /// that is allowed.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How much faster than this host's clock the peer's runs, parts per billion, and how far
    /// off that may be; `None` before it is known.
    pub fn skew_ppb(&self, rate: NsPerCycle) -> Option<(i64, u64)> {
        let model = self.clock.model()?;
        Some((model.rate().ppb_from(rate), model.rate_bound_ppb()))
    }

    /// Has the feed-forward clock take in an exchange, unless it overtook another one: readings
    /// come in the order of time.
    fn observe(&mut self, exchange: &Exchange, rate: NsPerCycle) {
        let [sent, received] = exchange.own;
        let Some(away) = received.0.checked_sub(sent.0) else {
            return;
        };
        let at = TscCycles(sent.0 + away / 2);
        if self.latest.is_some_and(|latest| at <= latest) {
            return;
        }
        let apart = self.clock.error_cycles(away, exchange.own_error_ns, rate);
        let [arrived, left] = exchange.peer;
        let bracket = Bracket {
            tsc: [
                TscCycles(sent.0.saturating_sub(apart)),
                TscCycles(received.0.saturating_add(apart)),
            ],
            real: [
                RealNs(arrived.0.saturating_add(exchange.peer_error_ns)),
                RealNs(left.0.saturating_sub(exchange.peer_error_ns)),
            ],
        };
        if self.clock.take(&bracket, rate) != PeerVerdict::Torn {
            self.latest = Some(at);
        }
    }

    /// The peer's clock was set before the exchange that allows `now`, and behind the last one
    /// that excludes it. Of those between, each of which may be of before or behind, no more is
    /// known than what each allows alone.
    fn doubt(&mut self, now: Option<&Allowed>) {
        for held in self.held.iter_mut().rev() {
            let alone = Allowed::alone(&held.exchange, held.rate, self.max_drift_ppb);
            let both = now.zip(alone).map(|(now, alone)| {
                let now = now.carried_to(alone.at, held.rate, self.max_drift_ppb);
                now.meet(&alone)
            });
            if both == Some(None) {
                break;
            }
            held.allowed = alone;
            held.is_apart = true;
        }
    }

    /// Tells of those that arrived until then, with what those behind them allow.
    fn release(&mut self, until: RawStamp, tell: &mut impl FnMut(T, &Exchange, Aligned)) {
        let mut behind: Option<Allowed> = None;
        for held in self.held.iter_mut().rev() {
            let carried = behind.zip(held.allowed).and_then(|(behind, allowed)| {
                let behind = behind.carried_to(allowed.at, held.rate, self.max_drift_ppb);
                behind.meet(&allowed)
            });
            held.allowed = carried.or(held.allowed);
            behind = held.allowed.or(behind).filter(|_| !held.is_apart);
        }
        while let Some(oldest) = self.held.pop_front_if(|it| it.exchange.own[1] <= until) {
            let aligned = self.align(&oldest);
            tell(oldest.with, &oldest.exchange, aligned);
        }
    }

    /// The delays each way of an exchange.
    fn align(&self, held: &Held<T>) -> Aligned {
        let exchange = &held.exchange;
        let sent = i128::from(exchange.own_real[0].0);
        let by_utc = exchange.utc_bound_ns.map(|ns| Around {
            low: sent - i128::from(ns),
            high: sent + i128::from(ns),
        });
        let by_exchange = held.allowed.map(|it| it.around);
        let Some(alone) = by_exchange else {
            return Aligned::Unknown;
        };
        let alone = match self.max_asymmetry_ns {
            // The middle is off by half of what the least ways differ.
            Some(ns) => alone.within(i128::from(ns.div_ceil(2)) + 1),
            None => alone,
        };
        let around = match (self.by, by_utc) {
            (AlignBy::Exchange, _) | (AlignBy::Both, None) => alone,
            (AlignBy::Utc, None) => return Aligned::Unknown,
            (AlignBy::Utc, Some(utc)) => utc,
            (AlignBy::Both, Some(utc)) => match alone.meet(utc) {
                Some(both) => both,
                None => return Aligned::Contradiction,
            },
        };
        let guess = match (self.by, held.guess) {
            (AlignBy::Utc, _) | (_, None) => around.middle(),
            (_, Some(guess)) => i128::from(guess.0).clamp(around.low, around.high),
        };
        let arrived = i128::from(exchange.peer[0].0);
        let forward_ns = arrived - guess;
        // By the stamps: the wall clock may be set meanwhile.
        let back_ns = i128::from(exchange.round_trip_ns(held.rate)) - forward_ns;
        // The peer's clock tells a part of either.
        let drift_ns = share_up(forward_ns.abs().max(back_ns.abs()), self.max_drift_ppb);
        Aligned::Known(OneWay {
            forward_ns: saturated(forward_ns),
            back_ns: saturated(back_ns),
            alignment_ns: around
                .farther_ns(guess - drift_ns)
                .max(around.farther_ns(guess + drift_ns)),
            peer_ahead_ns: saturated(guess - sent),
            is_apart: held.is_apart,
        })
    }
}

fn saturated(ns: i128) -> i64 {
    ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests;
