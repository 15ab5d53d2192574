//! A matcher that has all sightings before it.

use std::collections::BTreeMap;

use super::*;

/// A packet that was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub key: u64,
    pub entered: RawStamp,
    pub left: [Option<RawStamp>; MOST_EXITS],
}

impl From<&Passed<'_>> for Match {
    fn from(packet: &Passed<'_>) -> Self {
        Self {
            key: packet.key,
            entered: packet.entered,
            left: packet.left,
        }
    }
}

/// What is found of sightings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub accounts: Vec<Account>,
    pub passed: Vec<Match>,
}

impl Known {
    /// Together with what is found of other sightings.
    pub fn add(&mut self, other: &Self) {
        self.passed.extend(&other.passed);
        for (account, other) in self.accounts.iter_mut().zip(&other.accounts) {
            account.entered += other.entered;
            account.left += other.left;
            account.matched += other.matched;
            account.lost_inside += other.lost_inside;
            account.pending += other.pending;
            account.ambiguous_in += other.ambiguous_in;
            account.untracked_in += other.untracked_in;
            account.originated += other.originated;
            account.early += other.early;
            account.ambiguous_out += other.ambiguous_out;
            account.untracked_out += other.untracked_out;
        }
    }

    /// Without the order of those that came at the same time.
    pub fn sorted(mut self) -> Self {
        self.passed.sort_unstable();
        self
    }
}

/// What is known of the time of the sightings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Groups that open before it are early.
    pub early_before: u64,
    /// Groups that open until then may have entered before the clock was set.
    pub doubt_through: Option<u64>,
    pub end: u64,
    /// The clock was set then.
    pub is_distrusted: bool,
}

impl Span {
    /// From the start until so long after it.
    pub fn whole(options: &MatcherOptions, end: u64) -> Self {
        Self {
            early_before: options.start.0 + options.window,
            doubt_through: None,
            end: options.start.0 + end,
            is_distrusted: false,
        }
    }
}

/// The same for sightings in any order.
pub(super) fn reference(options: &MatcherOptions, sightings: &[Sighting], span: Span) -> Known {
    let mut by_key: BTreeMap<u64, Vec<Sighting>> = BTreeMap::new();
    for sighting in sightings {
        by_key.entry(sighting.key).or_default().push(*sighting);
    }
    let mut known = Known {
        accounts: vec![Account::default(); options.exits],
        ..Known::default()
    };
    for (key, mut of_key) in by_key {
        of_key.sort_by_key(|sighting| sighting.stamp);
        while let Some(first) = of_key.first().copied() {
            let last = first.stamp.0 + options.window;
            let count = of_key.partition_point(|sighting| sighting.stamp.0 <= last);
            let mut group: Vec<_> = of_key.drain(..count).collect();
            if options.is_mirrored {
                for (index, sighting) in group.iter_mut().enumerate() {
                    sighting.at = if index == 0 {
                        SeenAt::Entry
                    } else {
                        SeenAt::Exit(0)
                    };
                }
            }
            let is_early = first.stamp.0 < span.early_before;
            let is_open = last >= span.end;
            let in_doubt = span
                .doubt_through
                .is_some_and(|until| first.stamp.0 <= until);
            let stamps = |at| -> Vec<RawStamp> {
                let of_place = group.iter().filter(|sighting| sighting.at == at);
                of_place.map(|sighting| sighting.stamp).collect()
            };
            let ins = stamps(SeenAt::Entry);
            let mut left = [None; MOST_EXITS];
            for (exit, account) in known.accounts.iter_mut().enumerate() {
                let outs = stamps(SeenAt::Exit(exit));
                account.entered += ins.len() as u64;
                account.left += outs.len() as u64;
                match (&ins[..], &outs[..]) {
                    ([entered], [out]) if entered <= out => {
                        account.matched += 1;
                        left[exit] = Some(*out);
                    }
                    ([_], [_]) | ([], _) | (_, []) => {
                        let (ins, outs) = (ins.len() as u64, outs.len() as u64);
                        match (is_open, span.is_distrusted) {
                            (true, true) => account.ambiguous_in += ins,
                            (true, false) => account.pending += ins,
                            (false, _) => account.lost_inside += ins,
                        }
                        match () {
                            () if is_open && span.is_distrusted => account.ambiguous_out += outs,
                            () if in_doubt => account.ambiguous_out += outs,
                            () if is_early => account.early += outs,
                            () => account.originated += outs,
                        }
                    }
                    _ => {
                        account.ambiguous_in += ins.len() as u64;
                        account.ambiguous_out += outs.len() as u64;
                    }
                }
            }
            if left != [None; MOST_EXITS] {
                let entered = ins[0];
                known.passed.push(Match { key, entered, left });
            }
        }
    }
    known
}
