//! Packets that both captures have, and the exchanges that they make.

use std::collections::HashMap;

use tscap_clock::{RawStamp, RealNs};
use tscap_common::key::{KeyOf, key};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::Packet;

use super::host::{Headings, Host, ends_of, hops_left};
use crate::Exchange;

/// Packets that are remembered, at most: of more a part is taken, by their keys, so that it is the
/// same packets at both hosts.
const MOST: usize = 1 << 19;
/// What hosts of one side of a test may differ by of those of the other, that nobody believes it.
const CLEAR: u64 = 20;

/// One sighting of a packet, and how many there were.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// By the host's line of time, ns.
    at: u64,
    /// Packets of the host before this one.
    order: u64,
    times: u8,
    hops: u8,
}

/// The sightings of a packet at each host: as it was sent, and as it was received.
type Sightings = [[Seen; 2]; 2];

/// Sightings by key.
#[derive(Debug)]
pub struct CommonPackets {
    of: KeyOf,
    has_directions: bool,
    by_key: HashMap<u64, (u32, Sightings)>,
    /// Bits that are 0 in the keys that are taken.
    left_out: u64,
}

/// A packet that went from one host to the other.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// By the first host's line of time, and by the second one's.
    at: [u64; 2],
    /// Its place in the order of each host's packets.
    order: [u64; 2],
}

/// A packet there, and one back that followed it.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub exchange: Exchange,
    /// The place of the packet there in the order of the second host's packets.
    pub order: u64,
    /// The place of the one back in the order of the first host's.
    arrival: u64,
}

/// What both captures have.
#[derive(Debug, Default)]
pub struct Common {
    /// Packets there and back.
    pub packets: [u64; 2],
    /// In the order in which they came back.
    pub pairs: Vec<Pair>,
    /// Which way packets go, where the frames do not say it.
    pub headings: Option<Headings>,
}

impl CommonPackets {
    /// Of frames with directions at both hosts, or else sorted by their addresses.
    pub fn new(of: KeyOf, has_directions: bool) -> Self {
        Self {
            of,
            has_directions,
            by_key: HashMap::new(),
            left_out: 0,
        }
    }

    /// Takes in a packet of a host, the first one or the second one.
    pub fn see(&mut self, host: usize, packet: &Packet, at: u64, order: u64) {
        let there = packet.data.len() as u32;
        let Some(key) = key(self.of, &packet.data[..], there, packet.origlen) else {
            return;
        };
        if key & self.left_out != 0 {
            return;
        }
        let (ends, slot) = if self.has_directions {
            (0, usize::from(packet.direction == Direction::In))
        } else {
            match ends_of(&packet.data) {
                Some((ends, is_by_first)) => (ends, usize::from(!is_by_first)),
                None => return,
            }
        };
        let (_, seen) = self
            .by_key
            .entry(key)
            .or_insert((ends, Sightings::default()));
        let seen = &mut seen[host][slot];
        *seen = Seen {
            at,
            order,
            times: seen.times.saturating_add(1),
            hops: hops_left(&packet.data),
        };
        while self.by_key.len() > MOST {
            self.left_out = self.left_out << 1 | 1;
            let left_out = self.left_out;
            self.by_key.retain(|key, _| key & left_out == 0);
        }
    }

    /// The packets that each host saw once, and the other one too. `errors_ns` are those of their
    /// stamps, and the clocks' rates differ by no more than `drift_ppb`.
    pub fn meet(self, hosts: &[Host; 2], drift_ppb: u64) -> Common {
        let errors_ns = hosts.each_ref().map(|it| it.timeline.error_ns);
        if !self.has_directions {
            return self.by_addresses(errors_ns, drift_ppb);
        }
        let mut ways: [Vec<Crossing>; 2] = Default::default();
        for (_, [first, second]) in self.by_key.values() {
            ways[0].extend(crossing(&first[0], &second[1], false));
            ways[1].extend(crossing(&second[0], &first[1], true));
        }
        Common {
            packets: ways.each_ref().map(|it| it.len() as u64),
            pairs: pairs(ways, errors_ns),
            headings: None,
        }
    }

    /// Of two addresses that talk to each other one belongs to each side. If the sides are taken
    /// wrongly, each packet arrives before it leaves, and round trips are less than nothing.
    fn by_addresses(self, errors_ns: [u64; 2], drift_ppb: u64) -> Common {
        let mut by_ends: HashMap<u32, [Vec<Crossing>; 2]> = HashMap::new();
        for (ends, [first, second]) in self.by_key.values() {
            for slot in 0..2 {
                let crossing = match (first[slot], second[slot]) {
                    (one, other) if one.times == 1 && other.times == 1 => Crossing {
                        at: [one.at, other.at],
                        order: [one.order, other.order],
                    },
                    _ => continue,
                };
                by_ends.entry(*ends).or_default()[slot].push(crossing);
            }
        }
        let mut headings = Headings::default();
        let mut common = Common::default();
        for (ends, ways) in by_ends {
            let reversed = [ways[1].clone(), ways[0].clone()];
            let [as_is, turned] = [ways, reversed].map(|ways| {
                let packets = ways.each_ref().map(|it| it.len() as u64);
                (packets, pairs(ways, errors_ns))
            });
            let is_first = match (clear(&as_is.1, drift_ppb), clear(&turned.1, drift_ppb)) {
                ([right, 0], [0, _]) if right > 0 => true,
                ([0, _], [right, 0]) if right > 0 => false,
                _ => continue,
            };
            headings.insert(ends, is_first);
            let (packets, pairs) = if is_first { as_is } else { turned };
            common.packets[0] += packets[0];
            common.packets[1] += packets[1];
            common.pairs.extend(pairs);
        }
        common.pairs.sort_by_key(|it| it.arrival);
        common.headings = Some(headings);
        common
    }
}

/// Exchanges whose round trip is clearly more than nothing, and such whose is clearly less.
fn clear(pairs: &[Pair], drift_ppb: u64) -> [u64; 2] {
    let mut counts = [0, 0];
    for pair in pairs {
        let Exchange {
            own,
            peer,
            own_error_ns,
            peer_error_ns,
            ..
        } = pair.exchange;
        let between = |from: u64, to: u64| i128::from(to) - i128::from(from);
        let away = between(own[0].0, own[1].0);
        let held = between(peer[0].0, peer[1].0);
        let errors = i128::from(2 * (own_error_ns + peer_error_ns));
        let longest = away.abs().max(held.abs());
        let drift = longest * i128::from(drift_ppb) / 1_000_000_000;
        if away - held > errors + drift {
            counts[0] += 1;
        } else if held - away > errors + drift {
            counts[1] += 1;
        }
    }
    // One that was sent again, or that the clock was set at, is no proof.
    counts.map(|count| {
        if count * CLEAR < counts[0] + counts[1] {
            0
        } else {
            count
        }
    })
}

/// That of a packet which one host sent once, and the other one received once. On its way it may
/// only lose hops.
fn crossing(sent: &Seen, received: &Seen, is_back: bool) -> Option<Crossing> {
    let is_one = sent.times == 1 && received.times == 1 && sent.hops >= received.hops;
    let [first, second] = if is_back {
        [received, sent]
    } else {
        [sent, received]
    };
    is_one.then_some(Crossing {
        at: [first.at, second.at],
        order: [first.order, second.order],
    })
}

/// Each packet there with the next one back, and each one back with the latest one there, in the
/// order of the second host: so each of them is in an exchange.
fn pairs([mut there, mut back]: [Vec<Crossing>; 2], errors_ns: [u64; 2]) -> Vec<Pair> {
    there.sort_unstable_by_key(|it| it.order[1]);
    back.sort_unstable_by_key(|it| it.order[1]);
    let mut pairs = Vec::with_capacity(there.len() + back.len());
    let mut next = 0;
    let mut latest = None;
    for one in &there {
        while let Some(reply) = back.get(next).filter(|it| it.order[1] <= one.order[1]) {
            if let Some(request) = latest {
                pairs.push(pair(request, reply, errors_ns));
            }
            next += 1;
        }
        if let Some(reply) = back.get(next) {
            pairs.push(pair(one, reply, errors_ns));
        }
        latest = Some(one);
    }
    let rest = back.get(next..).unwrap_or_default();
    pairs.extend(
        latest
            .iter()
            .flat_map(|request| rest.iter().map(|reply| pair(request, reply, errors_ns))),
    );
    pairs.sort_unstable_by_key(|it| (it.arrival, it.order));
    pairs.dedup_by_key(|it| (it.arrival, it.order));
    pairs
}

fn pair(there: &Crossing, back: &Crossing, [own_error_ns, peer_error_ns]: [u64; 2]) -> Pair {
    let own = [there.at[0], back.at[0]];
    Pair {
        exchange: Exchange {
            own: own.map(RawStamp),
            own_real: own.map(RealNs),
            peer: [there.at[1], back.at[1]].map(RealNs),
            own_error_ns,
            peer_error_ns,
            utc_bound_ns: None,
        },
        order: there.order[1],
        arrival: back.order[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::peer_time::ByExchanges;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    const S: u64 = 1_000_000_000;

    /// Each packet of each way, also those that are in no exchange of their own, is within its
    /// bound, whatever the offset, the drift, and the steps of the clocks.
    #[test]
    fn no_time_is_outside_of_its_bound() {
        let seeds = if cfg!(debug_assertions) { 60 } else { 600 };
        let mut reported = 0_u64;
        for seed in 0..seeds {
            let mut random = fastrand::Rng::with_seed(seed);
            let least = [random.u64(20 * US..MS), random.u64(20 * US..20 * MS)];
            let every = [random.u64(50 * US..5 * MS), random.u64(50 * US..50 * MS)];
            let ahead = random.i64(-5_000_000_000..5_000_000_000);
            let ppb = random.i64(-100_000..100_000);
            let steps = (0..random.u64(..3)).map(|_| {
                let by = random.i64(-2_000_000_000..2_000_000_000);
                (10 * S + random.u64(..2 * S), by)
            });
            let mut steps: Vec<_> = steps.collect();
            steps.sort_unstable();
            let peer = |at: u64| {
                let drifted = i128::from(at) * i128::from(ppb) / 1_000_000_000;
                let stepped = steps
                    .iter()
                    .filter(|it| it.0 <= at)
                    .map(|it| i128::from(it.1));
                (i128::from(1_000 * S + at) + i128::from(ahead) + drifted + stepped.sum::<i128>())
                    as u64
            };
            let mut ways: [Vec<Crossing>; 2] = Default::default();
            // True times at the second host and at the first one.
            let mut seen = [Vec::new(), Vec::new()];
            for (way, crossings) in ways.iter_mut().enumerate() {
                let mut at = 10 * S;
                while at < 12 * S {
                    let more = -(1.0 - random.f64()).ln() * least[way] as f64 * 0.5;
                    let arrives = at + least[way] + more as u64;
                    let at_hosts = if way == 0 {
                        [at, arrives]
                    } else {
                        [arrives, at]
                    };
                    (0..2).for_each(|host: usize| seen[host].push(at_hosts[host]));
                    crossings.push(Crossing {
                        at: at_hosts,
                        order: [0; 2],
                    });
                    at += every[way] / 2 + random.u64(..every[way]);
                }
            }
            seen.iter_mut().for_each(|it| it.sort_unstable());
            let mut sightings = Vec::new();
            for crossing in ways.iter_mut().flatten() {
                let truth = crossing.at;
                crossing.order =
                    [0, 1].map(|host| seen[host].partition_point(|it| *it < truth[host]) as u64);
                crossing.at = [1_000 * S + truth[0], peer(truth[1])];
                sightings.push((crossing.order[1], crossing.at[1], 1_000 * S + truth[1]));
            }
            let pairs = pairs(ways, [1, 1]);
            let Some(found) = ByExchanges::of(&pairs, 100_000, None, !steps.is_empty()) else {
                panic!("seed {seed}: no exchange");
            };
            for (order, at, truth) in sightings {
                let Some(it) = found.align(order, at) else {
                    continue;
                };
                reported += 1;
                let off = it.at.abs_diff(truth);
                assert!(
                    off <= it.bound_ns + 4,
                    "seed {seed}: {off} ns, {it:?}, {steps:?}"
                );
            }
        }
        assert!(reported > 1_000 * seeds, "{reported}");
    }
}
