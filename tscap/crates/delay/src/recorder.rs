//! Gathers delays while packets pass, in bounded memory.

use serde::Serialize;

use super::certificate::Certificate;
use super::schema::{Delays, Rfc8219, Slow};
use tscap_clock::RealNs;
use tscap_statistics::{Distribution, Summary};
use tscap_streams::Ends;

mod first;
mod intervals;

use first::FirstPackets;
use intervals::Intervals;

/// Slowest packets that are kept.
const SLOWEST: usize = 10;

/// A packet that was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matched<'a> {
    /// When it entered, since the start, ns.
    pub at_ns: u64,
    /// From the entry to the exit, ns; negative within the bound of the stamps.
    pub delay_ns: i64,
    /// When it entered, by the wall clock.
    pub entered: RealNs,
    /// CPU on which it was seen at the entry, if that is known.
    pub cpu_in: Option<u32>,
    /// CPU on which it was seen at the exit, if that is known.
    pub cpu_out: Option<u32>,
    /// Length at the entry, bytes.
    pub length: u32,
    /// The hash by which the packet was matched.
    pub key: u64,
    /// Its first bytes at the entry, as many as were kept.
    pub bytes: &'a [u8],
}

/// The packets since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latest {
    /// Packets that left since the last look and were matched.
    pub n: u64,
    /// Least delay of these packets, ns.
    pub min_ns: i64,
    /// Median, ns; with at least 20 packets.
    pub p50_ns: Option<i64>,
    /// 99 % are no slower, ns; with at least 1,000 packets.
    pub p99_ns: Option<i64>,
    /// Greatest delay of these packets, ns.
    pub max_ns: i64,
    /// Mean delay of these packets, ns.
    pub mean_ns: f64,
}

/// The delays of a passage so far. Memory: 0.1 MB, and as much as two
/// distributions may take, 0.8 MB each at most.
#[derive(Debug)]
pub struct DelayRecorder {
    /// Up to the last look.
    earlier: Distribution,
    latest: Distribution,
    certificate: Certificate,
    intervals: Intervals,
    first: FirstPackets,
    slowest: Vec<Slow>,
}

impl Default for DelayRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl DelayRecorder {
    /// Of no packets yet.
    pub fn new() -> Self {
        Self {
            earlier: Distribution::new(),
            latest: Distribution::new(),
            certificate: Certificate::new(),
            intervals: Intervals::new(),
            first: FirstPackets::new(),
            slowest: Vec::with_capacity(SLOWEST + 1),
        }
    }

    /// Takes in a packet; they come in order of their entries.
    pub fn add(&mut self, packet: &Matched<'_>) {
        let delay_ns = packet.delay_ns;
        self.latest.add(delay_ns);
        self.certificate.add(delay_ns);
        self.intervals.add(packet.at_ns, delay_ns);
        self.first.add(packet.at_ns, delay_ns);
        let is_slow = match self.slowest.get(SLOWEST - 1) {
            Some(fastest) => delay_ns > fastest.delay_ns,
            None => true,
        };
        if is_slow {
            self.keep(packet);
        }
    }

    #[cold]
    fn keep(&mut self, packet: &Matched<'_>) {
        let at = self
            .slowest
            .partition_point(|it| it.delay_ns >= packet.delay_ns);
        self.slowest.insert(at, slow(packet));
        self.slowest.truncate(SLOWEST);
    }

    /// Those since the last call; `None` if there are none.
    pub fn take_latest(&mut self) -> Option<Latest> {
        let latest = std::mem::replace(&mut self.latest, Distribution::new());
        self.earlier.merge(&latest);
        latest.summary().map(|summary| Latest {
            n: summary.n,
            min_ns: summary.min,
            p50_ns: summary.p50,
            p99_ns: summary.p99,
            max_ns: summary.max,
            mean_ns: summary.mean,
        })
    }

    /// The greatest so far, ns; 0 if there is none.
    pub fn longest_ns(&self) -> i64 {
        self.slowest.first().map_or(0, |slowest| slowest.delay_ns)
    }

    /// All of them, each of which may be off by `bound_ns`, if there is a bound; `None` if there
    /// are none.
    pub fn finish(self, bound_ns: Option<u64>) -> Option<Delays> {
        let mut all = self.earlier;
        all.merge(&self.latest);
        let summary = all.summary()?;
        Some(Delays {
            rfc8219: rfc8219(&summary),
            bound_ns,
            certificate: self.certificate.finish(bound_ns),
            slowest: self.slowest,
            histogram: all.bins(),
            series: self.intervals.finish(),
            first: self.first.finish(),
            summary,
        })
    }
}

fn rfc8219(summary: &Summary) -> Option<Rfc8219> {
    let worst_case_ns = summary.p99_9?;
    Some(Rfc8219 {
        typical_ns: summary.p50?,
        worst_case_ns,
        pdv_ns: worst_case_ns.saturating_sub(summary.min),
    })
}

fn slow(packet: &Matched<'_>) -> Slow {
    Slow {
        delay_ns: packet.delay_ns,
        entered_ns: packet.entered.0,
        cpu_in: packet.cpu_in,
        cpu_out: packet.cpu_out,
        length: packet.length,
        key: format!("{:016x}", packet.key),
        flow: Ends::of(packet.bytes).map(|ends| ends.to_string()),
    }
}

#[cfg(test)]
mod tests;
