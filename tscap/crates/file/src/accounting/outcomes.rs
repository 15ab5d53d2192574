//! How many frames had each outcome.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Index, IndexMut, SubAssign};

use serde::de::Deserializer;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use tscap_common::outcome::{Entry, Outcome};
use tscap_common::state::Losses;

/// Frames not written, by [`Outcome`]. In JSON an object by their names; one that is
/// missing there is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; Outcome::ALL.len()]);

impl Outcomes {
    /// Every outcome with its count, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = (Entry, u64)> {
        Outcome::ALL.map(|it| (it.entry(), self[it])).into_iter()
    }

    /// Frames of all outcomes: those that are in no file.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that are losses.
    pub fn lost(&self) -> u64 {
        self.sum(|entry| entry.is_loss)
    }

    /// Lost by the operating system, as pcapng's `isb_osdrop` means it: before
    /// the frame reached user space.
    pub(crate) fn lost_in_kernel(&self) -> u64 {
        self.sum(|entry| entry.is_loss && entry.is_in_kernel())
    }

    fn sum(&self, is_meant: impl Fn(&Entry) -> bool) -> u64 {
        let meant = self.entries().filter(|(entry, _)| is_meant(entry));
        meant.map(|(_, count)| count).sum()
    }
}

impl<const N: usize> From<[(Outcome, u64); N]> for Outcomes {
    fn from(counts: [(Outcome, u64); N]) -> Self {
        let mut outcomes = Self::default();
        for (outcome, count) in counts {
            outcomes[outcome] += count;
        }
        outcomes
    }
}

impl From<Losses> for Outcomes {
    fn from(losses: Losses) -> Self {
        let mut outcomes = Self::default();
        outcomes.0[..Outcome::IN_KERNEL].copy_from_slice(&losses.counts);
        outcomes
    }
}

impl Index<Outcome> for Outcomes {
    type Output = u64;

    fn index(&self, outcome: Outcome) -> &u64 {
        &self.0[outcome as usize]
    }
}

impl IndexMut<Outcome> for Outcomes {
    fn index_mut(&mut self, outcome: Outcome) -> &mut u64 {
        &mut self.0[outcome as usize]
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        for (count, other) in self.0.iter_mut().zip(other.0) {
            *count += other;
        }
    }
}

impl SubAssign for Outcomes {
    fn sub_assign(&mut self, other: Self) {
        for (count, other) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_sub(other);
        }
    }
}

impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (entry, count) in self.entries() {
            map.serialize_entry(entry.name, &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counts = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let count = |it: Outcome| counts.get(it.entry().name).copied().unwrap_or(0);
        Ok(Self(Outcome::ALL.map(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One more of each than of the one before.
    fn all() -> Outcomes {
        let mut number = 0;
        Outcomes(Outcome::ALL.map(|_| {
            number += 1;
            number
        }))
    }

    #[test]
    fn counts_are_kept_apart_and_summed() {
        let all = all();
        let (last, kinds) = (Outcome::ALL.len() - 1, Outcome::ALL.len() as u64);
        assert_eq!(all[Outcome::ALL[last]], kinds);
        assert_eq!(all.total(), kinds * (kinds + 1) / 2);
        let mut twice = all;
        twice += all;
        assert_eq!(twice.total(), 2 * all.total());
        twice -= all;
        assert_eq!(twice, all);
        twice -= twice;
        twice -= all;
        assert_eq!(twice, Outcomes::default(), "never below zero");
    }

    #[test]
    fn losses_are_told_from_the_rest() {
        let outcomes = Outcomes::from([
            (Outcome::RingFull, 1),
            (Outcome::NoStamp, 2),
            (Outcome::AfterStop, 4),
            (Outcome::WriteFailed, 8),
        ]);
        assert_eq!((outcomes.total(), outcomes.lost()), (15, 11));
        assert_eq!(outcomes.lost_in_kernel(), 3);
    }

    #[test]
    fn json_has_every_name_and_takes_files_without_the_newer_ones() {
        let json = serde_json::to_string(&all()).unwrap();
        assert!(
            json.starts_with(r#"{"ring_full":1,"copy_failed":2,"#),
            "{json}"
        );
        assert_eq!(json.matches(':').count(), Outcome::ALL.len());
        assert_eq!(serde_json::from_str::<Outcomes>(&json).unwrap(), all());
        let older: Outcomes = serde_json::from_str(r#"{"too_long":3}"#).unwrap();
        assert_eq!(older, [(Outcome::TooLong, 3)].into());
    }

    #[test]
    fn the_programs_counts_are_the_first() {
        let mut losses = Losses {
            pending: 99,
            ..Losses::default()
        };
        losses.counts[Outcome::NoRing as usize] = 7;
        assert_eq!(Outcomes::from(losses), [(Outcome::NoRing, 7)].into());
        let names: Vec<_> = Outcome::ALL.map(|it| it.entry().name).into();
        let in_kernel = &names[..Outcome::IN_KERNEL];
        assert_eq!(in_kernel.first(), Some(&"ring_full"));
        assert_eq!(in_kernel.last(), Some(&"filtered"));
    }
}
