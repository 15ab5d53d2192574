//! What N delays say of the greatest that there can be.
//!
//! # For delays that do not depend on each other
//!
//! Let a share p of all packets take longer than the greatest delay that was seen. Had p been
//! more than ln(100)/N, all N packets would have been no slower with a probability of (1 − p)^N
//! < exp(−N·p) < 1 %. So at 99 % confidence p is at most ln(100)/N, about 4.6/N. Delays may be
//! of any distribution, and it may be another one for each packet: p is then the mean share.
//!
//! # For delays that depend on their neighbours
//!
//! Queues, interrupts and caches make neighbours alike, and N packets say less then. They are
//! put into blocks of b packets. Every second block is left out, as a gap, so that N/2b blocks
//! remain. A block holds a packet slower than the maximum with a probability of at least p. If
//! blocks with a block between them don't depend on each other, all of them are no slower with
//! a probability of at most (1 − p)^(N/2b), and p is at most ln(100)/(N/2b).
//!
//! # How the length of a block is found
//!
//! Of blocks of 1, 2, 4, … packets, each with the mean of its logarithms of delays and with
//! the greatest of them, the correlation of one block with the next is estimated. Without
//! dependence it is normally distributed around 0, with the standard deviation 1/√n of n
//! blocks. It counts as significant when it is greater than [`SIGNIFICANT`] of these. b is the
//! least length from which on no length has a significant correlation, of those with
//! [`LEAST_BLOCKS`] blocks at least; b = 1 is independence, and needs no gaps. If the longest
//! of these blocks are still correlated, there is no certificate: the measurement was too short
//! for what changes in it.
//!
//! # What is assumed
//!
//! - Packets that come are like those that were measured: the same traffic, load and machine.
//!   What did not occur while it was measured is not in it.
//! - Where dependence is weaker than the test can tell, packets farther apart than two blocks
//!   don't depend on each other.
//! - Of the packets that were not matched nothing is known.
//!
//! # What simulation says
//!
//! `certificate/tests.rs` holds it to scripted series for which the share beyond any value is
//! known: independent ones, also without a mean, autoregressions of up to 0.999, bursts, moving
//! averages, and periodic loads, of 3,000 to 300,000 packets. Of 10,000 (`TSCAP_SERIES=10000`)
//! 46 exceeded what was said of them. 29 of these were among the 2,856 independent ones, for
//! which 1 % is exact; the others had rare bursts of a few packets, too weak for the test.

use super::schema;

/// A correlation is significant from so many standard deviations on. By chance one in 30,000
/// is; a measurement of a million packets has some thirty.
const SIGNIFICANT: f64 = 4.0;
/// Blocks of a length that are needed to tell whether they are correlated.
const LEAST_BLOCKS: u64 = 50;
/// Lengths of blocks: powers of two up to 2^63.
const LEVELS: usize = 64;
/// ln(100): one in a hundred.
const LN_100: f64 = 4.605_170_185_988_092;

/// Gathers delays, in order. Memory: 8 kB.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    n: u64,
    max_ns: i64,
    levels: Vec<Level>,
}

/// A block: the sum and the greatest of the logarithms.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    sum: f64,
    max: f64,
}

/// Blocks of a length.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// The first of two that make one of the next level.
    half: Option<Block>,
    means: Neighbours,
    maxima: Neighbours,
}

/// The correlation of values with the next ones.
#[derive(Clone, Copy, Debug, Default)]
struct Neighbours {
    n: u64,
    /// Values are taken as differences from the first one, so that nothing is lost where they
    /// hardly differ.
    first: f64,
    latest: f64,
    sum: f64,
    squares: f64,
    products: f64,
}

impl Neighbours {
    #[inline]
    fn add(&mut self, value: f64) {
        if self.n == 0 {
            self.first = value;
        }
        let value = value - self.first;
        self.products += self.latest * value;
        self.sum += value;
        self.squares += value * value;
        self.latest = value;
        self.n += 1;
    }

    /// 0 if all values are the same.
    fn correlation(&self) -> f64 {
        let n = self.n as f64;
        let mean = self.sum / n;
        let variance = self.squares / n - mean * mean;
        // Both ends lack a neighbour: what the first value, which is 0, and the last one are
        // away from the mean.
        let ends = 2.0 * self.sum - self.latest;
        let covariance = (self.products - mean * ends) / n + mean * mean * (n - 1.0) / n;
        let is_constant = variance <= f64::EPSILON * (1.0 + mean * mean);
        if is_constant {
            0.0
        } else {
            covariance / variance
        }
    }
}

impl Level {
    fn correlation(&self) -> f64 {
        self.means.correlation().max(self.maxima.correlation())
    }

    fn blocks(&self) -> u64 {
        self.means.n
    }

    fn is_correlated(&self) -> bool {
        self.correlation() * (self.blocks() as f64).sqrt() > SIGNIFICANT
    }
}

impl Certificate {
    pub fn new() -> Self {
        Self {
            n: 0,
            max_ns: i64::MIN,
            levels: vec![Level::default(); LEVELS],
        }
    }

    /// The delay of the packet that comes next in order of its entry, ns.
    #[inline]
    pub fn add(&mut self, delay_ns: i64) {
        self.n += 1;
        self.max_ns = self.max_ns.max(delay_ns);
        let logarithm = (delay_ns.max(1) as f64).ln();
        let mut block = Block {
            sum: logarithm,
            max: logarithm,
        };
        let mut share = 1.0;
        for level in &mut self.levels {
            level.means.add(block.sum * share);
            level.maxima.add(block.max);
            let Some(half) = level.half.take() else {
                level.half = Some(block);
                return;
            };
            block = Block {
                sum: half.sum + block.sum,
                max: half.max.max(block.max),
            };
            share *= 0.5;
        }
    }

    /// What they say. Each may be off by `bound_ns`, if there is a bound.
    pub fn finish(&self, bound_ns: Option<u64>) -> schema::Certificate {
        let none = |why: String| schema::Certificate::None { why };
        let Some(bound_ns) = bound_ns else {
            return none("nothing bounds how far the greatest delay is off".into());
        };
        let enough = |level: &&Level| level.blocks() >= LEAST_BLOCKS;
        let tested: Vec<_> = self.levels.iter().take_while(enough).collect();
        if tested.is_empty() {
            return none(format!(
                "whether delays depend on each other is not told by fewer than {LEAST_BLOCKS}"
            ));
        }
        let last = tested.iter().rposition(|level| level.is_correlated());
        let free = last.map_or(0, |last| last + 1);
        let block_packets = 1u64 << free;
        if free == tested.len() {
            return none(format!(
                "delays depend on each other over {} packets and more: a longer measurement \
                 is needed",
                block_packets / 2
            ));
        }
        let blocks = match free {
            0 => self.n,
            _ => self.n / (2 * block_packets),
        };
        let remained = tested[free..].iter().map(|level| level.correlation());
        schema::Certificate::Holds {
            n: self.n,
            max_ns: self.max_ns,
            bound_ns,
            exceeding: LN_100 / blocks as f64,
            blocks,
            block_packets,
            correlation: remained.fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests;
