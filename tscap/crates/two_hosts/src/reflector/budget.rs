//! How many replies each source, and all of them, may have: token buckets in bounded memory.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::Rate;

/// Sources that have a bucket of their own; all others share one.
const MOST_SOURCES: usize = 4_096;
/// Buckets that are full again are looked for no more often.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Tokens are counted in parts of this.
const PARTS: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: Rate,
    /// In parts of a token.
    tokens: u128,
    at: Instant,
}

impl Bucket {
    fn full(rate: Rate, at: Instant) -> Self {
        Self {
            rate,
            tokens: u128::from(rate.burst) * PARTS,
            at,
        }
    }

    /// What has flowed in since the last look.
    fn fill(&mut self, now: Instant) {
        let ns = now.saturating_duration_since(self.at).as_nanos();
        self.at = now;
        let most = u128::from(self.rate.burst) * PARTS;
        self.tokens = (self.tokens + ns * u128::from(self.rate.per_second)).min(most);
    }

    fn has_one(&self) -> bool {
        self.tokens >= PARTS
    }

    fn is_full(&self) -> bool {
        self.tokens == u128::from(self.rate.burst) * PARTS
    }
}

/// The buckets.
#[derive(Debug)]
pub(super) struct Budget {
    per_source: Rate,
    whole: Bucket,
    others: Bucket,
    sources: HashMap<IpAddr, Bucket>,
    swept: Instant,
}

impl Budget {
    pub fn new(per_source: Rate, whole: Rate) -> Self {
        let now = Instant::now();
        Self {
            per_source,
            whole: Bucket::full(whole, now),
            others: Bucket::full(per_source, now),
            sources: HashMap::new(),
            swept: now,
        }
    }

    /// Whether a request of that source may be answered now.
    pub fn takes(&mut self, source: IpAddr, now: Instant) -> bool {
        self.whole.fill(now);
        if !self.whole.has_one() {
            return false;
        }
        let bucket = self.bucket(source_of(source), now);
        bucket.fill(now);
        let has_one = bucket.has_one();
        if has_one {
            bucket.tokens -= PARTS;
            self.whole.tokens -= PARTS;
        }
        has_one
    }

    fn bucket(&mut self, source: IpAddr, now: Instant) -> &mut Bucket {
        if self.sources.len() >= MOST_SOURCES && now - self.swept >= SWEEP_EVERY {
            self.swept = now;
            self.sources.retain(|_, bucket| {
                bucket.fill(now);
                !bucket.is_full()
            });
        }
        if self.sources.len() >= MOST_SOURCES && !self.sources.contains_key(&source) {
            return &mut self.others;
        }
        let full = Bucket::full(self.per_source, now);
        self.sources.entry(source).or_insert(full)
    }
}

/// Whoever has one address of IPv6 has 2^64 of them.
fn source_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_second: 10,
        burst: 5,
    };
    const MORE: Rate = Rate {
        per_second: 1_000_000,
        burst: 1_000_000,
    };

    fn source(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    #[test]
    fn a_source_has_a_burst_and_then_its_rate() {
        let mut budget = Budget::new(RATE, MORE);
        let start = Instant::now();
        let mut taken = |after_ms: u64, requests: u32| {
            let at = start + Duration::from_millis(after_ms);
            (0..requests)
                .filter(|_| budget.takes(source(1), at))
                .count()
        };
        assert_eq!(taken(0, 100), 5);
        assert_eq!(taken(99, 100), 0);
        assert_eq!(taken(100, 100), 1);
        assert_eq!(taken(10_000, 100), 5);
        assert!(budget.takes(source(2), start), "another one has its own");
    }

    #[test]
    fn all_together_have_a_budget() {
        let mut budget = Budget::new(MORE, RATE);
        let start = Instant::now();
        let taken = (0..100).filter(|it| budget.takes(source(*it), start));
        assert_eq!(taken.count(), 5);
    }

    #[test]
    fn memory_is_bounded_and_what_is_full_is_forgotten() {
        let mut budget = Budget::new(RATE, MORE);
        let start = Instant::now();
        let taken = (0..10_000).filter(|it| budget.takes(source(*it), start));
        assert_eq!(taken.count(), MOST_SOURCES + 5, "the rest shares a bucket");
        assert_eq!(budget.sources.len(), MOST_SOURCES);
        let later = start + Duration::from_secs(2);
        assert!(budget.takes(source(20_000), later));
        assert_eq!(budget.sources.len(), 1);
    }

    #[test]
    fn neighbours_of_ipv6_are_one_source() {
        let mut budget = Budget::new(RATE, MORE);
        let start = Instant::now();
        let address = |host: u128| Ipv6Addr::from_bits(0xfd00 << 112 | host).into();
        let taken = (0..100).filter(|it| budget.takes(address(*it), start));
        assert_eq!(taken.count(), 5);
    }
}
