//! Round trips of QUIC by its spin bit (RFC 9000, section 17.4; RFC 9312, section 4.2).
//!
//! The client sends the opposite of the last value that it received, the server the same: each
//! direction changes its value once in a round trip of the whole path. An endpoint that does not
//! take part sends one value, or random ones by packet: nothing is told then.

use super::schema::{Figures, QuicFigures, QuicSign, RoundTrip, RoundTripBy, SpinBit};
use tscap_clock::{CounterReport, RawStamp, interval_ns};
use tscap_statistics::Distribution;

/// QUIC's port where no long header was seen.
pub(super) const PORT: u16 = 443;
/// QUIC version 1 (RFC 9000) and 2 (RFC 9369).
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
/// The longest connection ID.
const MOST_ID: u8 = 20;
/// The shortest packet of 1-RTT (RFC 9000, section 10.3).
const SHORTEST: usize = 21;
const IS_LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
const SPIN: u8 = 0x20;

/// What the first packet of a datagram says, if the datagram is one of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicHeader {
    /// It has the long header of a version that is known.
    Long,
    /// It may have the short header of 1-RTT.
    Short {
        /// The spin bit.
        spin: bool,
    },
    /// It can't be QUIC of a known version.
    Other,
}

impl QuicHeader {
    /// Of a UDP payload.
    #[inline]
    pub fn of(payload: &[u8]) -> Self {
        let first = payload.first().copied().unwrap_or(0);
        match (first & FIXED != 0, first & IS_LONG != 0) {
            (true, false) if payload.len() >= SHORTEST => Self::Short {
                spin: first & SPIN != 0,
            },
            (true, true) if is_long(payload) => Self::Long,
            _ => Self::Other,
        }
    }
}

fn is_long(payload: &[u8]) -> bool {
    let Some([_, version @ .., id_length]) = payload.first_chunk::<6>() else {
        return false;
    };
    let second = payload.get(6 + usize::from(*id_length));
    VERSIONS.contains(&u32::from_be_bytes(*version))
        && *id_length <= MOST_ID
        && second.is_some_and(|length| *length <= MOST_ID)
}

/// Pairs of neighbours that are judged together.
const JUDGED: u32 = 64;
/// A change that comes sooner after the one before than this part of a usual time is of packets
/// that have changed places (RFC 9312, section 4.2.2)…
const SOON: i64 = 8;
/// … and sooner than this, ns.
const SOONEST_NS: i64 = 2_000_000;
/// Times of which the median is a usual one.
const RECENT: usize = 5;
/// One datagram of so many may be none of QUIC.
const MOST_OTHERS: u64 = 16;

/// One direction of a connection. Memory: some 700 bytes, and those of the values once there is
/// one.
#[derive(Clone, Debug)]
pub(super) struct Quic {
    sign: QuicSign,
    short: u64,
    others: u64,
    /// Of the latest packet.
    value: Option<bool>,
    /// Pairs of neighbours since the last judgement, and those whose values differ.
    pairs: u32,
    changes: u32,
    /// Changes in all.
    all_changes: u64,
    /// The value of packets in order, and when it began.
    in_order: bool,
    began: Option<RawStamp>,
    recent: [i64; RECENT],
    recent_count: usize,
    reordered: u64,
    /// Times since the last judgement.
    pending: [i64; JUDGED as usize],
    pending_count: usize,
    /// Judgements: it spins, or its values may be random.
    regular: u64,
    random: u64,
    values: Option<Distribution>,
}

impl Quic {
    /// Bytes that it takes beside itself.
    pub const HEAP_BYTES: usize = Distribution::fixed_bytes(false);

    /// None of its packets yet.
    pub fn new(sign: QuicSign) -> Self {
        Self {
            sign,
            short: 0,
            others: 0,
            value: None,
            pairs: 0,
            changes: 0,
            all_changes: 0,
            in_order: false,
            began: None,
            recent: [0; RECENT],
            recent_count: 0,
            reordered: 0,
            pending: [0; JUDGED as usize],
            pending_count: 0,
            regular: 0,
            random: 0,
            values: None,
        }
    }

    /// Takes in a datagram.
    #[inline]
    pub fn add(&mut self, header: QuicHeader, stamp: RawStamp, counter: Option<&CounterReport>) {
        match header {
            QuicHeader::Long => self.sign = QuicSign::LongHeader,
            QuicHeader::Other => self.others += 1,
            QuicHeader::Short { spin } => {
                self.short += 1;
                self.note_value(spin);
                self.note_change(spin, stamp, counter);
                if self.pairs == JUDGED {
                    self.judge();
                }
            }
        }
    }

    fn note_value(&mut self, spin: bool) {
        match self.value.replace(spin) {
            None => self.in_order = spin,
            Some(before) => {
                let has_changed = before != spin;
                self.pairs += 1;
                self.changes += u32::from(has_changed);
                self.all_changes += u64::from(has_changed);
            }
        }
    }

    fn note_change(&mut self, spin: bool, stamp: RawStamp, counter: Option<&CounterReport>) {
        if spin == self.in_order {
            return;
        }
        if let Some(began) = self.began {
            let since = interval_ns(began, stamp, counter);
            if since >= 0 && since < self.soon_ns() {
                self.reordered += 1;
                return;
            }
            // A clock that went back gives no time.
            if since >= 0 {
                self.recent.rotate_right(1);
                self.recent[0] = since;
                self.recent_count = (self.recent_count + 1).min(RECENT);
                self.pending[self.pending_count] = since;
                self.pending_count += 1;
            }
        }
        self.in_order = spin;
        self.began = Some(stamp);
    }

    /// A change that comes sooner is not one.
    fn soon_ns(&self) -> i64 {
        let mut recent = self.recent;
        let recent = &mut recent[..self.recent_count];
        match recent.len() {
            // One may be of packets that have changed places, or of a pause.
            0..3 => 0,
            count => {
                let (_, median, _) = recent.select_nth_unstable(count / 2);
                (*median / SOON).min(SOONEST_NS)
            }
        }
    }

    /// Whether the values since the last judgement are not random: of random ones, half of the
    /// neighbours differ, give or take half of the root of their number. More than four times as
    /// far off is one in 15,000.
    fn is_regular(&self) -> bool {
        let (pairs, changes) = (i64::from(self.pairs), i64::from(self.changes));
        pairs > 0 && (2 * changes - pairs).pow(2) >= 16 * pairs
    }

    fn judge(&mut self) {
        if self.is_regular() {
            self.regular += 1;
            for time in &self.pending[..self.pending_count] {
                let values = self.values.get_or_insert_with(Distribution::fixed);
                values.add(*time);
            }
        } else {
            self.random += 1;
            self.began = None;
            self.recent_count = 0;
        }
        self.pairs = 0;
        self.changes = 0;
        self.pending_count = 0;
    }

    /// With the packets since the last judgement, if they can be judged.
    fn judged(&self) -> Self {
        let mut all = self.clone();
        if all.is_regular() {
            all.judge();
        }
        all
    }

    fn spin(&self) -> SpinBit {
        let has_times = self.values.is_some();
        match (self.all_changes, self.regular > self.random) {
            (0, _) if self.short == 0 => SpinBit::Unseen,
            (0, _) => SpinBit::Constant,
            (_, true) if has_times => SpinBit::Spins,
            _ if self.random > 0 && self.random >= self.regular => SpinBit::Random,
            _ => SpinBit::Undecided,
        }
    }

    /// What is reported of it, and its round trips, which may be off by what `bound_ns` says of
    /// the longest; `None` if it is not QUIC.
    pub fn report(
        &self,
        bound_ns: impl Fn(u64) -> Option<u64>,
    ) -> Option<(QuicFigures, Option<RoundTrip>)> {
        let datagrams = self.short + self.others;
        if self.others * MOST_OTHERS > datagrams {
            return None;
        }
        let judged = self.judged();
        let spin = judged.spin();
        let figures = QuicFigures {
            known_by: self.sign,
            short_packets: self.short,
            spin,
            reordered_edges: self.reordered,
        };
        let reported = judged.values.filter(|_| spin == SpinBit::Spins);
        let round_trip = reported.and_then(|values| {
            let summary = values.summary()?;
            Some(RoundTrip {
                by: RoundTripBy::SpinBit,
                figures: Figures::of(summary, bound_ns),
            })
        });
        Some((figures, round_trip))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn short(spin: bool) -> QuicHeader {
        QuicHeader::Short { spin }
    }

    fn reported(quic: &Quic) -> (SpinBit, Option<(u64, i64, i64)>) {
        let (figures, trip) = quic.report(|_| Some(1)).expect("QUIC");
        let trip = trip.map(|it| (it.figures.n, it.figures.min_ns, it.figures.max_ns));
        (figures.spin, trip)
    }

    /// Values of the client of a path: it sends every `gap`, and gets back what it sent after
    /// `trip`.
    fn client(packets: u64, gap: u64, trip: u64) -> Vec<(u64, bool)> {
        let mut sent: Vec<(u64, bool)> = Vec::new();
        for number in 0..packets {
            let at = number * gap;
            let echoed = sent.iter().rev().find(|(sent, _)| sent + trip <= at);
            let spin = echoed.is_some_and(|(_, spin)| !spin);
            sent.push((at, spin));
        }
        sent
    }

    fn of(packets: &[(u64, bool)]) -> Quic {
        let mut quic = Quic::new(QuicSign::LongHeader);
        for (at, spin) in packets {
            quic.add(short(*spin), RawStamp(*at), None);
        }
        quic
    }

    #[test]
    fn headers_are_told_from_other_datagrams() {
        let mut long = vec![0xc3, 0, 0, 0, 1, 8];
        long.resize(14, 7);
        long.extend([0; 30]);
        assert_eq!(QuicHeader::of(&long), QuicHeader::Long);
        long[1..5].copy_from_slice(&0x6b33_43cf_u32.to_be_bytes());
        assert_eq!(QuicHeader::of(&long), QuicHeader::Long);
        // A draft, an ID that is too long, one that is cut.
        for (at, byte) in [(4, 0x1d), (5, 21)] {
            let mut other = long.clone();
            other[at] = byte;
            assert_eq!(QuicHeader::of(&other), QuicHeader::Other);
        }
        assert_eq!(QuicHeader::of(&long[..13]), QuicHeader::Other);
        let mut packet = vec![0x40; SHORTEST];
        assert_eq!(QuicHeader::of(&packet), short(false));
        packet[0] = 0x7f;
        assert_eq!(QuicHeader::of(&packet), short(true));
        assert_eq!(QuicHeader::of(&packet[1..]), QuicHeader::Other);
        // DTLS, STUN, RTP, WireGuard, nothing.
        for first in [0x16, 0x01, 0x80, 0x04] {
            packet[0] = first;
            assert_eq!(QuicHeader::of(&packet), QuicHeader::Other);
        }
        assert_eq!(QuicHeader::of(&[]), QuicHeader::Other);
    }

    #[test]
    fn a_spinning_bit_tells_the_round_trip() {
        // 10 packets in a round trip; the last 15 are too few to be judged.
        let (spin, trip) = reported(&of(&client(400, MS, 10 * MS)));
        assert_eq!(spin, SpinBit::Spins);
        assert_eq!(trip, Some((37, 10_000_000, 10_000_000)));
        // One packet in a round trip: each changes.
        let (spin, trip) = reported(&of(&client(40, 10 * MS, 10 * MS)));
        assert_eq!(
            (spin, trip.map(|it| it.1)),
            (SpinBit::Spins, Some(10_000_000))
        );
    }

    #[test]
    fn a_bit_that_does_not_spin_tells_nothing() {
        let constant: Vec<_> = (0..300).map(|at| (at * MS, true)).collect();
        assert_eq!(reported(&of(&constant)), (SpinBit::Constant, None));
        assert_eq!(reported(&of(&[])), (SpinBit::Unseen, None));
        // Too few to tell them from random ones.
        let few = client(8, MS, 2 * MS);
        assert_eq!(reported(&of(&few)), (SpinBit::Undecided, None));
    }

    /// The first packets of a value come before the last ones of the value before.
    #[test]
    fn packets_that_have_changed_places_are_no_round_trip() {
        let mut packets = client(4_000, MS, 20 * MS);
        let at_edges: Vec<_> = (200..3_999)
            .filter(|at| packets[*at].1 != packets[at - 1].1)
            .collect();
        for at in &at_edges {
            let (one, other) = (packets[at - 1].1, packets[*at].1);
            (packets[at - 1].1, packets[*at].1) = (other, one);
        }
        let quic = of(&packets);
        let (figures, trip) = quic.report(|_| None).unwrap();
        assert_eq!(figures.spin, SpinBit::Spins);
        let figures = (trip.unwrap().figures, figures.reordered_edges);
        assert!(
            (19_000_000..=21_000_000).contains(&figures.0.min_ns),
            "{figures:?}"
        );
        assert!(
            (19_000_000..=21_000_000).contains(&figures.0.max_ns),
            "{figures:?}"
        );
        assert_eq!(figures.1, at_edges.len() as u64);
    }

    /// After a pause, times are as short as before.
    #[test]
    fn a_pause_hides_no_later_times() {
        let mut packets = client(400, MS, 10 * MS);
        packets[200..].iter_mut().for_each(|it| it.0 += 5_000 * MS);
        let (_, trip) = reported(&of(&packets));
        let (n, min, max) = trip.unwrap();
        assert_eq!((n, min, max), (37, 10_000_000, 5_010_000_000));
    }

    /// A port alone is no sign where other datagrams come too.
    #[test]
    fn other_datagrams_are_not_quic() {
        let mut quic = Quic::new(QuicSign::Port443);
        for at in 0..100 {
            let header = if at % 10 == 0 {
                QuicHeader::Other
            } else {
                short(at % 20 < 10)
            };
            quic.add(header, RawStamp(at * MS), None);
        }
        assert_eq!(quic.report(|_| None), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn random_bits_tell_nothing(values in proptest::collection::vec(any::<bool>(), 200..5_000)) {
            let packets: Vec<_> = (0..).zip(&values).map(|(at, it)| (at * MS, *it)).collect();
            let (spin, trip) = reported(&of(&packets));
            prop_assert_eq!((spin, trip), (SpinBit::Random, None));
        }

        /// Of any path that has four packets in a round trip or more: each time is the round
        /// trip, up to the gap to the next packet on both sides.
        #[test]
        fn times_are_those_of_the_path(
            gap in 1..10 * MS,
            packets_a_trip in 4..60_u64,
            part in 0..100_u64,
        ) {
            let trip = packets_a_trip * gap + gap * part / 100;
            let (spin, found) = reported(&of(&client(1_000, gap, trip)));
            prop_assert_eq!(spin, SpinBit::Spins);
            let (n, min, max) = found.unwrap();
            prop_assert!(n >= 1_000 / (packets_a_trip + 1) - 4, "{}", n);
            prop_assert!(min >= trip as i64 && max <= (trip + gap) as i64, "{min} {max} {trip}");
        }
    }
}
