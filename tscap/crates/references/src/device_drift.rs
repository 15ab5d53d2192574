//! How a reference goes on, as what is known of it.

use tscap_clock::{Estimate, NsPerCycle, RealNs, Tracker, TscCycles};
use tscap_time::NS_PER_S;

use crate::ntp::PHI_PPB;
use crate::{Known, PhcBase, PhcClock, PhcStatus};

/// How a device goes on beside UTC.
#[derive(Debug, Default)]
pub struct DeviceDrift {
    /// How far it is ahead, ns; unknown at first.
    ahead_ns: Option<i64>,
    /// It was set, and what it counts since is not judged yet.
    was_set: bool,
}

impl DeviceDrift {
    /// The device was set.
    pub fn was_set(&mut self) {
        self.was_set = true;
    }

    /// What is known of the device at a counter value.
    pub fn known(
        &mut self,
        clock: &PhcClock,
        at: TscCycles,
        host: &Tracker,
        turn: (u64, Option<TscCycles>),
    ) -> Option<Known> {
        let later = stamp_one_second_later(at, host)?;
        let status = clock.status(at, host)?;
        let counter = host.counter()?;
        if self.ahead_ns.is_none() || self.was_set {
            // What is far from all that the host's clock tells counts what it did before.
            let here = counter.model().estimate(at).real;
            self.ahead_ns = ahead_of_utc(&status, here).or(self.ahead_ns);
            self.was_set = false;
        }
        let ahead_ns = self.ahead_ns?;
        let utc = |it: Estimate| Estimate {
            real: RealNs(it.real.0.wrapping_add_signed(-ahead_ns)),
            ..it
        };
        let both = [utc(clock.estimate(at)?), utc(clock.estimate(later)?)];
        let aged = counter.rate().cycles_in(status.age_ns.cast_signed());
        let used_at = TscCycles(at.0.saturating_sub(aged.unsigned_abs()));
        known_by([at, later], both, (None, used_at), host, turn)
    }
}

/// The counter a second later, by the host's clock.
pub fn stamp_one_second_later(at: TscCycles, host: &Tracker) -> Option<TscCycles> {
    let cycles = host.counter()?.rate().cycles_in(NS_PER_S).unsigned_abs();
    Some(TscCycles(at.0.saturating_add(cycles)))
}

/// What a reference shows at two counter values, as what is known of it. It says itself how far
/// it is off UTC, if it does, and it was read at a counter value last.
pub fn known_by(
    [at, later]: [TscCycles; 2],
    [now, then]: [Estimate; 2],
    (own_bound_ns, used_at): (Option<u64>, TscCycles),
    host: &Tracker,
    (turn, set_after): (u64, Option<TscCycles>),
) -> Option<Known> {
    let ns = then.real.0.checked_sub(now.real.0)?;
    let here = host.counter()?.model().estimate(at).real;
    Some(Known {
        at,
        real: now.real,
        rate: NsPerCycle::of(ns, later.0.checked_sub(at.0)?)?,
        bound_ns: now.bound_ns,
        growth_ppb: growth_ppb(now.bound_ns, then.bound_ns),
        own_bound_ns,
        own_growth_ppb: PHI_PPB,
        host_ahead_ns: here.0.wrapping_sub(now.real.0).cast_signed(),
        used_at,
        turn,
        set_after,
        doubt_ns: 0,
    })
}

/// How far a device is ahead of UTC by what it counts, ns: leap seconds, or nothing.
fn ahead_of_utc(status: &PhcStatus, host: RealNs) -> Option<i64> {
    let plain_ns = host.0.wrapping_sub(status.phc.0).cast_signed();
    (status.base != PhcBase::Unknown).then(|| status.host_ahead_ns.saturating_sub(plain_ns))
}

/// What a bound grows by, a second apart.
fn growth_ppb(now_ns: u64, then_ns: u64) -> u64 {
    then_ns.saturating_sub(now_ns).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_clock::{Counts, PhcNs};

    fn status(base: PhcBase, phc: u64, host_ahead_ns: i64) -> PhcStatus {
        PhcStatus {
            phc: PhcNs(phc),
            base,
            host_ahead_ns,
            bound_ns: 100,
            host_rate_ppb: 0,
            rate_bound_ppb: 1,
            least_width_ns: 80,
            age_ns: 0,
            readings: Counts::default(),
            stood: 0,
            torn: 0,
            failed: 0,
        }
    }

    /// The host's clock is 5 us ahead of it.
    #[test]
    fn a_device_is_ahead_of_utc_by_whole_leap_seconds() {
        let host = 1_795_564_800_000_005_000;
        let utc = host - 5_000;
        let tai = utc + 37_000_000_000;
        for (base, phc, ahead_ns) in [
            (PhcBase::Utc, utc, Some(0)),
            (PhcBase::Tai, tai, Some(37_000_000_000)),
            (PhcBase::Unknown, utc, None),
        ] {
            let found = ahead_of_utc(&status(base, phc, 5_000), RealNs(host));
            assert_eq!(found, ahead_ns, "{base:?}");
        }
    }

    #[test]
    fn what_a_bound_grows_by_is_never_too_little() {
        assert_eq!(growth_ppb(1_000, 1_100), 101);
        assert_eq!(growth_ppb(1_000, 900), 1);
    }
}
