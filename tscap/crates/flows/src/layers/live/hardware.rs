//! The layer before all programs: the interface's own stamp of each packet, which the program
//! at XDP records beside its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::layers::schema::LayerAccount;
use tscap_base::text::causes::chain;
use tscap_capture::PtpClocks;
use tscap_clock::{MonoNs, PhcNs};
use tscap_engine::{PtpClock, StampClock};
use tscap_network::ethtool::{self, ReceiveFilter};
use tscap_network::netdev::Link;

/// The clock of an interface's hardware stamps.
#[derive(Debug)]
pub(super) struct Hardware {
    /// What stamps which packets, for people.
    pub hook: String,
    /// What a reader must know of it.
    pub warning: Option<String>,
    pub clock: Arc<PtpClock>,
}

impl Hardware {
    /// That of `link`, which is read from here on. To be used in its network namespace.
    ///
    /// # Errors
    /// Says why there is none.
    pub fn find(link: &Link, clocks: &mut PtpClocks) -> Result<Self, String> {
        let found = clocks.of(link).map_err(|error| error.to_string())?;
        let (path, clock) = found.ok_or("the interface has no clock of its own (ethtool -T)")?;
        let filter = ethtool::receive_filter(&link.name).map_err(|error| chain(&error))?;
        let name = filter.map(ReceiveFilter::name);
        let warning = match filter {
            Some(ReceiveFilter::ALL) | None => None,
            Some(other) => Some(format!(
                "{} does not stamp every packet: its receive filter of hardware stamps is {} \
                 (hwstamp_ctl -i {} -r 1 sets it to all)",
                link.name,
                other.name(),
                link.name
            )),
        };
        Ok(Self {
            hook: format!(
                "stamps by {}, receive filter {}, read at XDP",
                path.display(),
                name.as_deref().unwrap_or("unknown")
            ),
            warning,
            clock,
        })
    }
}

/// Gives hardware stamps their time.
#[derive(Debug)]
pub(super) struct HardwareTimes {
    clock: StampClock,
    without_stamp: u64,
    unconverted: u64,
    since_reading: u64,
    /// Stamps that were converted before the clock was seen to be set.
    ambiguous: u64,
}

impl HardwareTimes {
    pub fn by(clock: &Arc<PtpClock>) -> Self {
        Self {
            clock: StampClock::of(clock),
            without_stamp: 0,
            unconverted: 0,
            since_reading: 0,
            ambiguous: 0,
        }
    }

    /// Takes in what was read of the clock meanwhile.
    pub fn update(&mut self) {
        if let Some(is_unknown) = self.clock.update() {
            let since = std::mem::take(&mut self.since_reading);
            self.ambiguous += if is_unknown { since } else { 0 };
        }
    }

    /// When a packet that was `received` at XDP then was stamped; counts those of which nobody
    /// knows.
    pub fn of(&mut self, stamp: Option<PhcNs>, received: MonoNs) -> Option<MonoNs> {
        let Some(stamp) = stamp else {
            self.without_stamp += 1;
            return None;
        };
        let stamped = self.clock.to_mono(stamp, received);
        match stamped {
            Some(_) => self.since_reading += 1,
            None => self.unconverted += 1,
        }
        stamped
    }

    /// Greatest error of its times, ns.
    pub fn bound_ns(&self) -> u64 {
        self.clock.bound_ns().unwrap_or_default()
    }

    /// Completes the account of the layer: all packets that were recorded at XDP with a key.
    pub fn account(&self, account: &mut LayerAccount) {
        let reasons = [
            ("without_stamp", self.without_stamp),
            ("unconverted", self.unconverted),
        ];
        let reasons = reasons.into_iter().filter(|(_, count)| *count > 0);
        let reasons = reasons.map(|(name, count)| (name.to_owned(), count));
        account.unrecorded = reasons.collect::<BTreeMap<_, _>>();
        account.seen = account.keyed + self.without_stamp + self.unconverted;
    }

    /// Times that have no bound.
    pub fn ambiguous(&self) -> u64 {
        self.ambiguous
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_references::NicReading;

    const MS: u64 = 1_000_000;

    /// The clock is ahead by 37 s.
    fn read(clock: &PtpClock, mono: u64, more: u64) {
        clock.add(NicReading {
            mono: [MonoNs(mono), MonoNs(mono + 1_000)],
            phc: PhcNs(mono + 500 + 37_000 * MS + more),
        });
    }

    #[test]
    fn each_packet_has_a_time_or_a_reason() {
        let clock = Arc::<PtpClock>::default();
        let mut times = HardwareTimes::by(&clock);
        let stamp = |mono: u64| Some(PhcNs(mono + 37_000 * MS));
        // The rate is not known yet.
        assert_eq!(times.of(stamp(5), MonoNs(9)), None);
        for turn in 1..20 {
            read(&clock, turn * 20 * MS, 0);
        }
        times.update();
        let at = 385 * MS;
        assert_eq!(times.of(None, MonoNs(at)), None);
        let bound = times.bound_ns();
        assert!((500..2_000).contains(&bound), "{bound}");
        for n in 0..3 {
            let found = times.of(stamp(at + n), MonoNs(at + n + 700)).unwrap();
            assert!(found.0.abs_diff(at + n) <= bound, "{found:?}");
        }
        let mut account = LayerAccount {
            keyed: 3,
            ..LayerAccount::default()
        };
        times.account(&mut account);
        assert_eq!(account.seen, 5);
        let reasons = [
            ("unconverted".to_owned(), 1),
            ("without_stamp".to_owned(), 1),
        ];
        assert_eq!(account.unrecorded, BTreeMap::from(reasons));
        // It was set: three had their times before that was seen.
        read(&clock, 400 * MS, 5_000 * MS);
        times.update();
        assert_eq!(times.ambiguous(), 3);
        assert_eq!(times.of(stamp(395 * MS), MonoNs(396 * MS)), None);
    }
}
