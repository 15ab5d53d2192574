//! Frames a second through the stages, as long as no buffer fills up or empties.

use super::costs::{Costs, Receiving, record_bytes};
use super::drain::Drain;
use super::prediction::{FullBuffers, Load};

const NS_PER_S: f64 = 1e9;
/// Of a CPU that it shares with what always has work: the scheduler is fair.
const CONVERTER_SHARE: f64 = 0.5;
/// Halvings of the range in which the rate lies: to a billionth of it.
const HALVINGS: u32 = 30;

#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// That the sender sends.
    pub sent: f64,
    /// That reach the program.
    pub arriving: f64,
    /// Of these, what the converter takes in the long run.
    pub accepted: f64,
}

impl Flow {
    pub fn of(costs: &Costs, load: &Load, full: FullBuffers) -> Self {
        let stages = Stages::of(costs, load, full);
        let most = load.rate.min(NS_PER_S / costs.send_ns);
        let arriving = greatest(most, |rate| stages.can_take(rate));
        let accepted = stages.accepts(arriving);
        let sent = match costs.receiving {
            Receiving::OnSender => arriving,
            Receiving::Apart => {
                let left = 1.0 - accepted * stages.taken;
                load.rate.min(left / stages.send).max(arriving)
            }
        };
        Self {
            sent,
            arriving,
            accepted,
        }
    }
}

/// Costs of this load's frames, s.
struct Stages {
    receiving: Receiving,
    send: f64,
    receive: f64,
    turned_away: f64,
    /// By the converter, from the sender.
    taken: f64,
    /// Frames a second at most, where the converter has to share or to wait.
    most: f64,
    drain: Drain,
    ring_is_full: bool,
}

impl Stages {
    fn of(costs: &Costs, load: &Load, full: FullBuffers) -> Self {
        let record = record_bytes(load.caplen);
        let convert = costs.convert.of(load.caplen) / NS_PER_S;
        let turn = costs.turn_ns / NS_PER_S;
        let share = if costs.converter_shares && convert > 0.0 {
            CONVERTER_SHARE / convert
        } else {
            f64::INFINITY
        };
        let writer = match costs.writer {
            Some(writer) if full.file => writer.bytes_per_s / record,
            _ => f64::INFINITY,
        };
        Self {
            receiving: costs.receiving,
            send: costs.send_ns / NS_PER_S,
            receive: costs.receive.of(load.caplen) / NS_PER_S,
            turned_away: costs.turned_away_ns / NS_PER_S,
            taken: if costs.converter_shares { convert } else { 0.0 },
            most: share.min(writer),
            drain: Drain::new(load.ring_bytes, record, convert, turn),
            ring_is_full: full.ring,
        }
    }

    fn accepts(&self, arriving: f64) -> f64 {
        self.drain.accepts(arriving).min(self.most)
    }

    /// Whether so many frames a second leave no CPU with more than it can do.
    fn can_take(&self, arriving: f64) -> bool {
        let accepted = self.accepts(arriving);
        let recorded = if self.ring_is_full {
            accepted
        } else {
            arriving
        };
        let receiving = recorded * self.receive + (arriving - recorded) * self.turned_away;
        let sending = arriving * self.send + accepted * self.taken;
        match self.receiving {
            Receiving::OnSender => sending + receiving <= 1.0,
            Receiving::Apart => sending <= 1.0 && receiving <= 1.0,
        }
    }
}

/// The greatest number up to `most` that is good, if all below it are.
fn greatest(most: f64, is_good: impl Fn(f64) -> bool) -> f64 {
    if is_good(most) {
        return most;
    }
    let (mut good, mut bad) = (0.0, most);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(good, bad);
        if is_good(middle) {
            good = middle
        } else {
            bad = middle
        }
    }
    good
}
