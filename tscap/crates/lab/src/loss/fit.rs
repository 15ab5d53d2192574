//! What the stages cost, from a few runs of their own.

use serde::{Deserialize, Serialize};

use super::model::{Cost, Costs, Load, Receiving, Writer, predict, record_bytes};
use tscap_traffic::load::Point;

const NS_PER_S: f64 = 1e9;
/// No stage is free.
const LEAST_NS: f64 = 1.0;
/// From one drain to the next when a ring loses nothing: the converter's sleep and the
/// time that it takes to wake up.
const USUAL_TURN_NS: f64 = 260_000.0;
/// Turns looked among, ns.
const TURNS: [f64; 2] = [50_000.0, 50_000_000.0];
/// Halvings, of the logarithm of these.
const HALVINGS: u32 = 30;

/// A run by which costs are found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Frame size, bytes: all of each is captured.
    pub size: u32,
    /// Length of the ring, bytes.
    pub ring_bytes: u64,
    /// What it gave.
    #[serde(flatten)]
    pub run: Point,
}

/// The runs for one stamp. Flat out, if nothing else is said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Where frames are received.
    pub receiving: Receiving,
    /// The converter is on the sender's CPU.
    pub converter_shares: bool,
    /// A capture of hardly anything: what its beginning and its end cost.
    pub idle: Probe,
    /// Short frames.
    pub short: Probe,
    /// Long ones.
    pub long: Probe,
    /// Short ones, into a capture that takes none out of its ring.
    pub held: Probe,
    /// Short ones, into the smallest ring.
    pub small: Probe,
    /// Long ones, into a file that takes so many bytes a second, if the sweep has one.
    pub slow: Option<Probe>,
    /// What the file's buffer holds, bytes.
    pub slow_buffer_bytes: f64,
    /// Sending a frame that is received elsewhere and not captured, ns; `None` where
    /// nothing is received elsewhere.
    pub send_ns: Option<f64>,
}

impl Probe {
    /// From one frame sent to the next, ns.
    fn ns_sent(&self) -> f64 {
        self.run.seconds * NS_PER_S / self.run.sent as f64
    }

    /// From one frame seen to the next, ns.
    fn ns_seen(&self) -> f64 {
        self.run.seconds * NS_PER_S / self.run.seen as f64
    }

    /// Share of the frames seen that the ring had room for.
    fn recorded(&self) -> f64 {
        1.0 - self.run.lost.ring as f64 / self.run.seen as f64
    }
}

impl Probes {
    /// The costs that explain the runs; `None` if a run had too few frames to tell.
    pub fn costs(&self) -> Option<Costs> {
        let all = [&self.short, &self.long, &self.held, &self.small];
        let is_good = |probe: &&Probe| probe.run.seen > 0 && probe.run.seconds > 0.0;
        if !all.iter().all(is_good) {
            return None;
        }
        let convert = Cost::through(self.convert(&self.short)?, self.convert(&self.long)?);
        // What the converter took from the sender for a frame sent.
        let shared = |probe: &Probe| {
            if self.converter_shares {
                convert.of(probe.size) * probe.run.written as f64 / probe.run.sent as f64
            } else {
                0.0
            }
        };
        let apart = self.receiving == Receiving::Apart;
        let send_ns = match (apart, self.send_ns) {
            (true, _) => self.short.ns_sent() - shared(&self.short),
            // Without a figure sending counts as receiving.
            (false, send_ns) => send_ns.unwrap_or(LEAST_NS),
        };
        let send_ns = send_ns.max(LEAST_NS);
        // What receiving a frame took, of any kind.
        let each = |probe: &Probe| {
            if apart {
                probe.ns_seen()
            } else {
                probe.ns_seen() - shared(probe) - send_ns
            }
        };
        let turned_away_ns = {
            let (held, short) = (&self.held, each(&self.short));
            let recorded = held.recorded();
            if recorded >= 1.0 {
                return None;
            }
            ((each(held) - recorded * short) / (1.0 - recorded)).max(LEAST_NS)
        };
        let receive = |probe: &Probe| {
            let (all, recorded) = (each(probe), probe.recorded());
            let of_recorded = (all - (1.0 - recorded) * turned_away_ns) / recorded;
            (probe.size, of_recorded.max(LEAST_NS))
        };
        let costs = Costs {
            receiving: self.receiving,
            converter_shares: self.converter_shares,
            send_ns,
            receive: Cost::through(receive(&self.short), receive(&self.long)),
            turned_away_ns,
            convert,
            turn_ns: USUAL_TURN_NS,
            writer: self.writer(),
        };
        Some(Costs {
            turn_ns: turn_ns(&costs, &self.small),
            ..costs
        })
    }

    /// The converter's CPU time for a frame, with the bytes captured of it.
    fn convert(&self, probe: &Probe) -> Option<(u32, f64)> {
        let cpu_s = (probe.run.cpu_s - self.idle.run.cpu_s).max(0.0);
        let ns = cpu_s * NS_PER_S / probe.run.written as f64;
        (probe.run.written > 0).then_some((probe.size, ns))
    }

    fn writer(&self) -> Option<Writer> {
        let slow = self.slow.as_ref()?;
        let record = record_bytes(slow.size);
        let buffers = slow.ring_bytes as f64 + self.slow_buffer_bytes;
        let drained = slow.run.written as f64 * record - buffers;
        Some(Writer {
            bytes_per_s: (drained / slow.run.seconds).max(record),
            buffer_bytes: self.slow_buffer_bytes,
        })
    }
}

/// The turn with which the smallest ring loses what it lost.
fn turn_ns(costs: &Costs, small: &Probe) -> f64 {
    let lost = small.run.lost.ring as f64 / small.run.sent as f64;
    if lost == 0.0 {
        return costs.turn_ns;
    }
    let load = Load {
        frames: small.run.sent as f64,
        caplen: small.size,
        rate: f64::INFINITY,
        ring_bytes: small.ring_bytes as f64,
    };
    // The file was not slow in that run.
    let with = |turn_ns| Costs {
        turn_ns,
        writer: None,
        ..*costs
    };
    let [mut short, mut long] = TURNS.map(f64::ln);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(short, long);
        if predict(&with(middle.exp()), &load).ring < lost {
            short = middle
        } else {
            long = middle
        }
    }
    short.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::fixtures::probes;
    use crate::loss::model::fixtures;

    #[track_caller]
    fn near(found: f64, expected: f64, within: f64) {
        let off = (found / expected - 1.0).abs();
        assert!(off < within, "{found}, not {expected}");
    }

    /// What is found out about a machine is what it is made of.
    #[test]
    fn costs_are_found_again() {
        for receiving in [Receiving::OnSender, Receiving::Apart] {
            for turn_ns in [1e6, 2e7] {
                let writer = Some(Writer {
                    bytes_per_s: 40e6,
                    buffer_bytes: 65_536.0,
                });
                let made = Costs {
                    turn_ns,
                    writer,
                    ..fixtures::costs(receiving)
                };
                let found = probes(&made).costs().unwrap();
                assert_eq!(found.receiving, receiving);
                near(found.send_ns, made.send_ns, 0.02);
                near(found.receive.of(64), made.receive.of(64), 0.01);
                near(found.receive.of(1500), made.receive.of(1500), 0.01);
                near(found.turned_away_ns, made.turned_away_ns, 0.01);
                near(found.convert.of(64), made.convert.of(64), 0.01);
                near(found.convert.of(1500), made.convert.of(1500), 0.01);
                near(found.turn_ns, turn_ns, 0.02);
                near(found.writer.unwrap().bytes_per_s, 40e6, 0.02);
            }
        }
    }

    #[test]
    fn a_ring_that_loses_nothing_tells_of_no_turn() {
        let made = Costs {
            turn_ns: 60_000.0,
            ..fixtures::costs(Receiving::OnSender)
        };
        let probes = probes(&made);
        assert_eq!(probes.small.run.lost.ring, 0);
        assert_eq!(probes.costs().unwrap().turn_ns, USUAL_TURN_NS);
    }

    #[test]
    fn where_nothing_came_nothing_is_found() {
        let mut probes = probes(&fixtures::costs(Receiving::Apart));
        probes.held.run.seen = 0;
        assert_eq!(probes.costs(), None);
        let mut probes = self::probes(&fixtures::costs(Receiving::Apart));
        probes.long.run.written = 0;
        assert_eq!(probes.costs(), None);
        // A ring that was never full tells nothing of frames turned away.
        let mut probes = self::probes(&fixtures::costs(Receiving::Apart));
        probes.held.run.lost.ring = 0;
        assert_eq!(probes.costs(), None);
    }

    #[test]
    fn without_a_cpu_to_receive_elsewhere_sending_counts_as_receiving() {
        let made = fixtures::costs(Receiving::OnSender);
        let mut probes = probes(&made);
        probes.send_ns = None;
        let found = probes.costs().unwrap();
        assert_eq!(found.send_ns, LEAST_NS);
        let together = made.send_ns + made.receive.of(64);
        near(found.send_ns + found.receive.of(64), together, 0.01);
    }
}
