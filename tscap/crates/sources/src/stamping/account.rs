//! What the programs have counted.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use tscap_common::send_times::{SendCount, SendCounts};
use tscap_common::stamping::{Count, Counts};

/// The counters of the programs for received packets, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account(Counts);

impl Account {
    /// Of what each CPU has counted.
    pub fn of(cpus: &[Counts]) -> Self {
        let mut all = Self::default();
        for count in Count::ALL {
            let each = cpus.iter().map(|counts| counts[count as usize]);
            all.0[count as usize] = match count {
                Count::MostEarlierNs => each.max().unwrap_or(0),
                _ => each.sum(),
            };
        }
        all
    }

    /// One of them.
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// How much earlier the stamps are than the kernel's own that they have replaced, on
    /// average, ns.
    pub fn mean_earlier_ns(&self) -> Option<u64> {
        self.get(Count::EarlierNs)
            .checked_div(self.get(Count::Stamped))
    }

    /// Whether every frame and every packet has an outcome.
    pub fn adds_up(&self) -> bool {
        let sum = |counts: &[Count]| counts.iter().map(|it| self.get(*it)).sum::<u64>();
        self.get(Count::Received) == sum(&Count::AT_XDP)
            && self.get(Count::Seen) == sum(&Count::AT_TCX)
    }
}

impl Serialize for Account {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for count in Count::ALL {
            map.serialize_entry(count.name(), &self.get(count))?;
        }
        map.serialize_entry("mean_earlier_ns", &self.mean_earlier_ns())?;
        map.end()
    }
}

/// The counters of the program that writes send times, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendAccount(SendCounts);

impl SendAccount {
    /// Of what each CPU has counted.
    pub fn of(cpus: &[SendCounts]) -> Self {
        let mut all = SendCounts::default();
        for count in SendCount::ALL {
            all[count as usize] = cpus.iter().map(|counts| counts[count as usize]).sum();
        }
        Self(all)
    }

    /// One of them.
    pub fn get(&self, count: SendCount) -> u64 {
        self.0[count as usize]
    }

    /// Whether every packet has an outcome.
    pub fn adds_up(&self) -> bool {
        let outcomes = SendCount::OUTCOMES.iter().map(|it| self.get(*it));
        self.get(SendCount::Seen) == outcomes.sum::<u64>()
    }
}

impl Serialize for SendAccount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(SendCount::ALL.map(|count| (count.name(), self.get(count))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_summed_up_and_the_greatest_is_kept() {
        let cpu = |stamped, earlier, most| {
            let mut counts = Counts::default();
            counts[Count::Received as usize] = stamped + 2;
            counts[Count::Marked as usize] = stamped;
            counts[Count::Tcp as usize] = 2;
            counts[Count::Seen as usize] = stamped + 1;
            counts[Count::Stamped as usize] = stamped;
            counts[Count::Unmarked as usize] = 1;
            counts[Count::EarlierNs as usize] = earlier;
            counts[Count::MostEarlierNs as usize] = most;
            counts
        };
        let account = Account::of(&[cpu(10, 1_000, 400), cpu(30, 7_000, 300)]);
        assert!(account.adds_up());
        assert_eq!(account.mean_earlier_ns(), Some(200));
        assert_eq!(account.get(Count::MostEarlierNs), 400);
        let said = serde_json::to_value(account).unwrap();
        assert_eq!(
            (&said["stamped"], &said["mean_earlier_ns"]),
            (&40.into(), &200.into())
        );
        assert_eq!(Account::default().mean_earlier_ns(), None);
    }

    #[test]
    fn one_that_is_missing_shows_at_either_program() {
        for (all, one) in [
            (Count::Received, Count::AT_XDP.as_slice()),
            (Count::Seen, Count::AT_TCX.as_slice()),
        ] {
            for outcome in one {
                let mut counts = Counts::default();
                counts[all as usize] = 1;
                assert!(!Account::of(&[counts]).adds_up());
                counts[*outcome as usize] = 1;
                assert!(Account::of(&[counts]).adds_up());
            }
        }
    }

    #[test]
    fn a_sent_packet_that_is_missing_shows() {
        for outcome in SendCount::OUTCOMES {
            let mut counts = [SendCounts::default(); 2];
            counts[0][SendCount::Seen as usize] = 1;
            assert!(!SendAccount::of(&counts).adds_up());
            counts[1][outcome as usize] = 1;
            let account = SendAccount::of(&counts);
            assert!(account.adds_up(), "{outcome:?}");
            let said = serde_json::to_value(account).unwrap();
            assert_eq!(said[outcome.name()], 1);
            assert_eq!(said.as_object().unwrap().len(), SendCount::ALL.len());
        }
    }
}
