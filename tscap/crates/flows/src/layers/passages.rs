//! Sightings of packets at layers, put together by their keys. They may come in any order. Those
//! with the same key within the window after the first one are of one packet; two of them at
//! one layer are of different packets with equal keys, which are never guessed.

use std::collections::{HashMap, VecDeque};

use super::schema::LayerAccount;
use tscap_clock::MonoNs;
use tscap_programs::hook::Layer;

/// Most layers of a measurement.
pub const MOST_LAYERS: usize = Layer::ALL.len();
/// Packets that are remembered at a time.
const MOST_OPEN: usize = 1 << 20;

/// A packet at a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Index of the layer among those that are measured.
    pub layer: usize,
    /// What tells it from others.
    pub key: u64,
    /// When it was seen there, by CLOCK_MONOTONIC.
    pub stamp: MonoNs,
    /// tscap's own time there.
    pub own: OwnTime,
    /// Packets that it was made of.
    pub segments: u32,
}

/// How long programs of tscap have run, of the same ring as a record: one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// Number of the ring that the record was in.
    pub ring: u16,
    /// Until the record's program began, ns; it begins anew at 2^32.
    pub before_ns: u32,
    /// The record's program, ns.
    pub run_ns: u32,
}

/// A packet's way through the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Number of the flow that the packet is of, as the caller gave it.
    pub flow: u32,
    /// A bit for each layer where it was seen.
    seen: u8,
    stamps: [u64; MOST_LAYERS],
    own: [OwnTime; MOST_LAYERS],
}

impl Passage {
    /// Of a packet of this flow that was seen nowhere yet.
    pub const fn of(flow: u32) -> Self {
        Self {
            flow,
            seen: 0,
            stamps: [0; MOST_LAYERS],
            own: [OwnTime {
                ring: 0,
                before_ns: 0,
                run_ns: 0,
            }; MOST_LAYERS],
        }
    }

    /// It is seen at a layer. Whether it was not before.
    pub fn see(&mut self, layer: usize, stamp: MonoNs, own: OwnTime) -> bool {
        let is_new = self.seen & 1 << layer == 0;
        self.seen |= 1 << layer;
        if is_new {
            self.stamps[layer] = stamp.0;
            self.own[layer] = own;
        }
        is_new
    }

    /// When it was at a layer.
    pub fn at(&self, layer: usize) -> Option<MonoNs> {
        (self.seen & 1 << layer != 0).then(|| MonoNs(self.stamps[layer]))
    }

    /// What tscap's own programs took of the time between two layers where it was, ns: all that
    /// ran on its CPU, those for other packets too; where it went on to another ring, its own.
    pub fn own_ns(&self, from: usize, to: usize) -> u64 {
        let mut own_ns = 0;
        let mut last = self.own[from];
        for layer in (from + 1..=to).filter(|layer| self.at(*layer).is_some()) {
            let here = self.own[layer];
            own_ns += u64::from(if here.ring == last.ring {
                here.before_ns.wrapping_sub(last.before_ns)
            } else {
                last.run_ns
            });
            last = here;
        }
        own_ns
    }

    /// The first and the last layer where it was.
    fn ends(&self) -> (usize, usize) {
        let last = u8::BITS - 1 - (self.seen | 1).leading_zeros();
        (self.seen.trailing_zeros() as usize, last as usize)
    }

    /// The least and the greatest of its stamps; `None` of a packet that was seen nowhere.
    pub fn span(&self) -> Option<(MonoNs, MonoNs)> {
        let stamps = || (0..MOST_LAYERS).filter_map(|layer| self.at(layer));
        Some((stamps().min()?, stamps().max()?))
    }
}

const _: () = assert!(MOST_LAYERS <= u8::BITS as usize);

#[derive(Clone, Copy, Debug)]
struct Open {
    passage: Passage,
    segments: u32,
    is_ambiguous: bool,
}

/// The packets of the latest window, and the account of each layer.
#[derive(Debug)]
pub struct Passages {
    window_ns: u64,
    open: HashMap<u64, Open>,
    /// When the window of each is over, in the order in which they were opened.
    ends: VecDeque<(MonoNs, u64)>,
    accounts: Vec<LayerAccount>,
}

impl Passages {
    /// Of so many layers.
    pub fn new(layers: usize, window_ns: u64) -> Self {
        Self {
            window_ns,
            open: HashMap::new(),
            ends: VecDeque::new(),
            accounts: vec![LayerAccount::default(); layers],
        }
    }

    /// Memory that packets take at most, bytes.
    pub const fn most_bytes() -> usize {
        // The table is at most 7/8 full, and has twice as many places when it grows.
        MOST_OPEN * (2 * (size_of::<(u64, Open)>() + 1) + size_of::<(MonoNs, u64)>())
    }

    /// Takes in a sighting. The flow of a packet is asked for at its first one.
    #[inline]
    pub fn see(&mut self, sighting: &Sighting, flow: impl FnOnce() -> u32) {
        let account = &mut self.accounts[sighting.layer];
        account.keyed += 1;
        if let Some(open) = self.open.get_mut(&sighting.key) {
            if open.is_ambiguous {
                account.ambiguous += 1;
            } else if open
                .passage
                .see(sighting.layer, sighting.stamp, sighting.own)
            {
                open.segments = open.segments.max(sighting.segments);
            } else {
                account.ambiguous += 1;
                open.is_ambiguous = true;
                for (layer, account) in self.accounts.iter_mut().enumerate() {
                    account.ambiguous += u64::from(open.passage.at(layer).is_some());
                }
            }
            return;
        }
        if self.open.len() == MOST_OPEN {
            account.untracked += 1;
            return;
        }
        let mut passage = Passage::of(flow());
        passage.see(sighting.layer, sighting.stamp, sighting.own);
        let open = Open {
            passage,
            segments: sighting.segments,
            is_ambiguous: false,
        };
        self.open.insert(sighting.key, open);
        let end = MonoNs(sighting.stamp.0 + self.window_ns);
        self.ends.push_back((end, sighting.key));
    }

    /// Counts a frame without a key.
    pub fn see_unkeyed(&mut self, layer: usize) {
        self.accounts[layer].unkeyed += 1;
    }

    /// Gives the packets whose window was over at `settled`, of which no sighting is to come.
    pub fn close_until(&mut self, settled: MonoNs, take: &mut dyn FnMut(&Passage)) {
        while let Some((end, key)) = self.ends.front().copied()
            && end <= settled
        {
            self.ends.pop_front();
            self.close(key, false, take);
        }
    }

    /// Gives all that are left at `end`: what was seen less than a window before may have been
    /// on its way to the next layer.
    pub fn finish(mut self, end: MonoNs, take: &mut dyn FnMut(&Passage)) -> Vec<LayerAccount> {
        self.close_until(end, take);
        while let Some((_, key)) = self.ends.pop_front() {
            self.close(key, true, take);
        }
        self.accounts
    }

    /// So far; packets whose window is not over are in no sum but those of what was seen.
    pub fn accounts(&self) -> &[LayerAccount] {
        &self.accounts
    }

    fn close(&mut self, key: u64, is_early: bool, take: &mut dyn FnMut(&Passage)) {
        let Some(open) = self.open.remove(&key) else {
            return;
        };
        if open.is_ambiguous {
            return;
        }
        let last_layer = self.accounts.len() - 1;
        let (first, last) = open.passage.ends();
        let within = self.accounts[first..=last].iter_mut();
        for (layer, account) in (first..).zip(within) {
            if open.passage.at(layer).is_none() {
                account.passed_by += 1;
                continue;
            }
            if layer > first {
                account.came += 1;
            } else {
                account.first += 1;
                if open.segments > 1 {
                    account.aggregates += 1;
                    account.segments += u64::from(open.segments);
                }
            }
            match layer {
                _ if layer < last => account.went_on += 1,
                _ if is_early && layer < last_layer => account.pending += 1,
                _ => account.ended += 1,
            }
        }
        take(&open.passage);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = 1_000;

    fn at(layer: usize, key: u64, stamp: u64) -> Sighting {
        Sighting {
            layer,
            key,
            stamp: MonoNs(stamp),
            own: OwnTime::default(),
            segments: 1,
        }
    }

    /// Two packets are at XDP one after the other before the first one goes on; then it goes to
    /// another CPU.
    #[test]
    fn the_time_of_own_programs_is_that_on_the_packets_cpu() {
        let own = |ring, before_ns, run_ns| OwnTime {
            ring,
            before_ns,
            run_ns,
        };
        let mut first = Passage::of(0);
        first.see(0, MonoNs(10), own(1, u32::MAX - 99, 300));
        let mut second = Passage::of(0);
        second.see(0, MonoNs(400), own(1, 200, 250));
        first.see(1, MonoNs(900), own(1, 450, 100));
        first.see(3, MonoNs(1_500), own(2, 7_000, 80));
        second.see(1, MonoNs(1_100), own(1, 550, 110));
        assert_eq!(first.own_ns(0, 1), 550, "both programs at XDP");
        assert_eq!(second.own_ns(0, 1), 350, "and that of the other at tcx");
        assert_eq!(first.own_ns(1, 3), 100);
        assert_eq!(first.own_ns(0, 3), 650);
    }

    /// What becomes of these at three layers, when all is over.
    fn of(sightings: &[Sighting]) -> (Vec<Passage>, Vec<LayerAccount>) {
        let mut passages = Passages::new(3, WINDOW);
        let mut found = Vec::new();
        for sighting in sightings {
            passages.see(sighting, || sighting.key as u32);
        }
        let accounts = passages.finish(MonoNs(u64::MAX), &mut |it| found.push(*it));
        assert!(accounts.iter().all(LayerAccount::adds_up), "{accounts:?}");
        (found, accounts)
    }

    #[test]
    fn sightings_in_any_order_are_of_one_packet() {
        let forth = [at(0, 7, 10), at(1, 7, 20), at(2, 7, 50)];
        let back = [forth[2], forth[0], forth[1]];
        for sightings in [forth, back] {
            let (found, accounts) = of(&sightings);
            let stamps = [0, 1, 2].map(|layer| found[0].at(layer));
            assert_eq!(stamps, [10, 20, 50].map(|ns| Some(MonoNs(ns))));
            assert_eq!(found[0].span(), Some((MonoNs(10), MonoNs(50))));
            assert_eq!((found.len(), found[0].flow), (1, 7));
            let ways: Vec<_> = accounts
                .iter()
                .map(|it| [it.first, it.came, it.went_on])
                .collect();
            assert_eq!(ways, [[1, 0, 1], [0, 1, 1], [0, 1, 0]]);
            assert_eq!(accounts[2].ended, 1);
        }
    }

    #[test]
    fn what_is_lost_between_layers_ends_at_the_one_before() {
        let (found, accounts) = of(&[at(0, 1, 10), at(1, 1, 20), at(0, 2, 11), at(0, 3, 12)]);
        assert_eq!(found.len(), 3);
        let ended: Vec<_> = accounts.iter().map(|it| it.ended).collect();
        assert_eq!(ended, [2, 1, 0]);
        // Seen before and after, but not there.
        let (_, accounts) = of(&[at(0, 1, 10), at(2, 1, 30)]);
        assert_eq!((accounts[1].passed_by, accounts[2].came), (1, 1));
    }

    #[test]
    fn equal_keys_are_ambiguous_wherever_they_were_seen() {
        let sightings = [
            at(0, 1, 10),
            at(1, 1, 20),
            at(0, 1, 30),
            at(1, 1, 40),
            at(2, 1, 50),
        ];
        let (found, accounts) = of(&sightings);
        assert!(found.is_empty());
        let ambiguous: Vec<_> = accounts.iter().map(|it| it.ambiguous).collect();
        assert_eq!(ambiguous, [2, 2, 1]);
    }

    #[test]
    fn a_merged_packet_is_named_and_never_matched() {
        let whole = Sighting {
            segments: 3,
            ..at(1, 9, 20)
        };
        let parts = [at(0, 1, 10), at(0, 2, 11), at(0, 3, 12)];
        let (_, accounts) = of(&[parts[0], parts[1], parts[2], whole, at(2, 9, 30)]);
        assert_eq!((accounts[0].ended, accounts[1].first), (3, 1));
        assert_eq!((accounts[1].aggregates, accounts[1].segments), (1, 3));
        // At the next layer the aggregate is one packet that came.
        assert_eq!((accounts[2].came, accounts[2].aggregates), (1, 0));
    }

    #[test]
    fn a_window_ends_a_packet_and_what_is_later_begins_one() {
        let mut passages = Passages::new(2, WINDOW);
        let mut found = Vec::new();
        passages.see(&at(0, 1, 10), || 0);
        passages.close_until(MonoNs(1_009), &mut |it| found.push(*it));
        assert!(found.is_empty());
        passages.close_until(MonoNs(1_010), &mut |it| found.push(*it));
        passages.see(&at(1, 1, 1_011), || 0);
        // Less than a window before the end nobody knows; at the last layer it is over.
        passages.see(&at(0, 2, 1_500), || 0);
        let accounts = passages.finish(MonoNs(1_600), &mut |it| found.push(*it));
        assert_eq!(found.len(), 3);
        assert_eq!((accounts[0].ended, accounts[0].pending), (1, 1));
        assert_eq!((accounts[1].first, accounts[1].ended), (1, 1));
    }

    proptest! {
        /// Each sighting has one outcome, whatever comes in which order.
        #[test]
        fn accounts_add_up(
            sightings in proptest::collection::vec((0..3_usize, 0..40_u64, 0..5_000_u64), 0..300),
            closes in 1..20_usize,
        ) {
            let mut passages = Passages::new(3, WINDOW);
            let (mut found, mut seen) = (0_u64, [0_u64; 3]);
            for (number, (layer, key, stamp)) in sightings.iter().enumerate() {
                passages.see(&at(*layer, *key, *stamp), || 0);
                seen[*layer] += 1;
                if number % closes == 0 {
                    passages.close_until(MonoNs(*stamp), &mut |_| found += 1);
                }
            }
            let accounts = passages.finish(MonoNs(6_000), &mut |_| found += 1);
            for (account, seen) in accounts.iter().zip(seen) {
                prop_assert!(account.adds_up());
                prop_assert_eq!(account.keyed, seen);
            }
            prop_assert_eq!(accounts.iter().map(|it| it.first).sum::<u64>(), found);
        }
    }
}
