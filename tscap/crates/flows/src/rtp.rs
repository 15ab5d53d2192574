//! RTP (RFC 3550): the header, clock rates of payload types, and what a receiver reports.

use super::schema::{Figures, Jitter, RtpFigures};
use super::sequence::Sequence;
use super::transit::{self, Transit};
use tscap_clock::{CounterReport, RawStamp};
use tscap_statistics::{Codec, Distribution};

/// Length of the fixed header, bytes.
pub(super) const HEADER: usize = 12;
/// Greatest step of sequence numbers that is a loss; what is beyond is a jump (RFC 3550,
/// A.1: MAX_DROPOUT).
const MOST_LOST: u16 = 3_000;
/// Greatest step back that is a late packet (MAX_MISORDER).
const MOST_LATE: u16 = 100;

/// What of a header is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// Payload type, 0 to 127 (RFC 3551).
    pub payload_type: u8,
    /// Sequence number, modulo 2^16.
    pub seq: u16,
    /// Time of sampling, in units of the media's clock.
    pub timestamp: u32,
    /// Synchronisation source (SSRC), which tells streams of one session apart.
    pub ssrc: u32,
}

impl RtpHeader {
    /// The header of a UDP payload that has the shape of RTP: version 2, room for the
    /// contributing sources, and no payload type of RTCP beside it on the same port (64 to 95,
    /// RFC 5761, section 4).
    pub fn of(payload: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = payload.first_chunk()?;
        let payload_type = header[1] & 0x7f;
        let is_rtp = header[0] >> 6 == 2 && !(64..=95).contains(&payload_type);
        is_rtp.then(|| Self {
            payload_type,
            seq: u16::from_be_bytes([header[2], header[3]]),
            timestamp: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            ssrc: u32::from_be_bytes([header[8], header[9], header[10], header[11]]),
        })
    }
}

/// Clock rates of payload types, Hz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockRates([Option<u32>; 128]);

impl Default for ClockRates {
    /// Those of RFC 3551, tables 4 and 5. Dynamic types have none.
    fn default() -> Self {
        let mut rates = [None; 128];
        for (payload_type, rate) in [
            (0, 8_000),
            (3, 8_000),
            (4, 8_000),
            (5, 8_000),
            (6, 16_000),
            (7, 8_000),
            (8, 8_000),
            (9, 8_000),
            (10, 44_100),
            (11, 44_100),
            (12, 8_000),
            (13, 8_000),
            (14, 90_000),
            (15, 8_000),
            (16, 11_025),
            (17, 22_050),
            (18, 8_000),
            (25, 90_000),
            (26, 90_000),
            (28, 90_000),
            (31, 90_000),
            (32, 90_000),
            (33, 90_000),
            (34, 90_000),
        ] {
            rates[payload_type] = Some(rate);
        }
        Self(rates)
    }
}

impl ClockRates {
    /// With this rate for one payload type, or for all that have none yet.
    pub fn set(&mut self, payload_type: Option<u8>, rate: u32) {
        match payload_type {
            Some(payload_type) => self.0[usize::from(payload_type & 0x7f)] = Some(rate),
            None => {
                let unknown = self.0.iter_mut().filter(|rate| rate.is_none());
                unknown.for_each(|it| *it = Some(rate));
            }
        }
    }

    fn of(&self, payload_type: u8) -> Option<u32> {
        self.0[usize::from(payload_type & 0x7f)]
    }
}

/// A source so far.
#[derive(Clone, Debug)]
pub(super) struct Rtp {
    pub sequence: Sequence,
    payload_type: u8,
    rate: Option<u32>,
    /// The number that would make a jump believed: the one behind it.
    jumped_to: Option<u16>,
    jumped: u64,
    restarts: u64,
    transit: Option<u32>,
    /// Of the latest packet, times 16, in units of the media's clock.
    jitter_16: u64,
    n: u64,
    greatest_16: u64,
    sum_16: u128,
    /// Delays of the packets in sequence, where the media's clock is known.
    delays: Option<Transit>,
    variation: Distribution,
    /// Of the latest packet in sequence.
    latest: Option<RtpHeader>,
    /// Least time of sampling from one number to the next, in units of the media's clock.
    step: Option<u32>,
    /// That of the latest packet of voice.
    codec: Option<Codec>,
}

/// What is reported of a source.
pub(super) struct RtpFound {
    pub figures: RtpFigures,
    pub jitter: Option<Jitter>,
    pub variation: Option<Figures>,
}

/// The codec of a payload type whose meaning is fixed (RFC 3551, table 4) and that the E-model
/// has values of.
fn codec_of(payload_type: u8) -> Option<Codec> {
    match payload_type {
        0 | 8 => Some(Codec::G711Plc),
        4 => Some(Codec::G7231),
        18 => Some(Codec::G729a),
        _ => None,
    }
}

impl Rtp {
    pub fn new(header: &RtpHeader, rates: &ClockRates) -> Self {
        Self {
            sequence: Sequence::new(),
            payload_type: header.payload_type,
            rate: rates.of(header.payload_type),
            jumped_to: None,
            jumped: 0,
            restarts: 0,
            transit: None,
            jitter_16: 0,
            n: 0,
            greatest_16: 0,
            sum_16: 0,
            delays: None,
            variation: Distribution::fixed(),
            latest: None,
            step: None,
            codec: None,
        }
    }

    /// Takes in a packet that came so long after the first one of the flow, ns, with its stamp.
    #[inline]
    pub fn add(
        &mut self,
        header: &RtpHeader,
        (since_first_ns, stamp): (i64, RawStamp),
        counter: Option<&CounterReport>,
        rates: &ClockRates,
    ) {
        if header.payload_type != self.payload_type {
            self.payload_type = header.payload_type;
            let rate = rates.of(header.payload_type);
            if rate != self.rate {
                self.rate = rate;
                self.transit = None;
                self.delays = None;
                self.latest = None;
            }
        }
        let is_in_sequence = self.count(header.seq);
        if let Some(rate) = self.rate {
            self.note_transit(header.timestamp, since_first_ns, rate);
            if is_in_sequence {
                self.note_delay(header, stamp, counter, rate);
            }
        }
    }

    fn note_delay(
        &mut self,
        header: &RtpHeader,
        stamp: RawStamp,
        counter: Option<&CounterReport>,
        rate: u32,
    ) {
        self.codec = codec_of(header.payload_type).or(self.codec);
        if let Some(before) = self.latest.replace(*header)
            && before.seq.wrapping_add(1) == header.seq
        {
            let step = header.timestamp.wrapping_sub(before.timestamp);
            if step.cast_signed() > 0 {
                self.step = Some(self.step.map_or(step, |it| it.min(step)));
            }
        }
        let first = || Transit::new(header.timestamp, stamp, rate);
        let delays = self.delays.get_or_insert_with(first);
        if let Some(variation) = delays.variation(header.timestamp, stamp, counter) {
            self.variation.add(variation);
        }
    }

    /// Speech or pictures of one packet, ns, where two packets in sequence tell it.
    pub fn packet_ns(&self) -> Option<u64> {
        let step = u64::from(self.step?);
        Some(step * 1_000_000_000 / u64::from(self.rate?))
    }

    /// The codec, where payload types tell it.
    pub fn codec(&self) -> Option<Codec> {
        self.codec
    }

    /// RFC 3550, A.1: a packet that jumps is not counted in the sequence; where the next one
    /// follows it the sender has begun anew. Says whether it is a packet of the sequence, and no
    /// copy.
    fn count(&mut self, seq: u16) -> bool {
        let Some(greatest) = self.sequence.greatest_short() else {
            return self.sequence.add_short(seq).is_some();
        };
        let ahead = seq.wrapping_sub(greatest);
        if (MOST_LOST..=0_u16.wrapping_sub(MOST_LATE)).contains(&ahead) {
            if self.jumped_to != Some(seq) {
                self.jumped += 1;
                self.jumped_to = Some(seq.wrapping_add(1));
                return false;
            }
            self.restarts += 1;
            self.sequence.restart();
            self.delays = None;
            self.latest = None;
        }
        self.jumped_to = None;
        self.sequence.add_short(seq).is_some()
    }

    /// RFC 3550, A.8, in integers as there: J += |D| − (J + 8)/16 with J times 16.
    fn note_transit(&mut self, timestamp: u32, since_first_ns: i64, rate: u32) {
        let arrival = i128::from(since_first_ns) * i128::from(rate) / 1_000_000_000;
        let transit = (arrival as u32).wrapping_sub(timestamp);
        if let Some(before) = self.transit.replace(transit) {
            let difference = transit.wrapping_sub(before).cast_signed().unsigned_abs();
            self.jitter_16 = self.jitter_16 + u64::from(difference) - ((self.jitter_16 + 8) >> 4);
            self.n += 1;
            self.greatest_16 = self.greatest_16.max(self.jitter_16);
            self.sum_16 += u128::from(self.jitter_16);
        }
    }

    /// Jitter of the latest packet, ns.
    pub fn jitter_ns(&self) -> Option<f64> {
        let rate = self.rate.filter(|_| self.n > 0)?;
        Some(ns(self.jitter_16 as f64, rate))
    }

    /// What is reported of it, where a time between neighbours may be off by `bound_ns`, and any
    /// other by what `interval_bound` says of it.
    pub fn report(
        &self,
        bound_ns: Option<u64>,
        interval_bound: impl Fn(u64) -> Option<u64>,
    ) -> RtpFound {
        let figures = RtpFigures {
            payload_type: self.payload_type,
            clock_hz: self.rate,
            jumped: self.jumped,
            restarts: self.restarts,
        };
        let jitter = self.rate.filter(|_| self.n > 0).map(|rate| Jitter {
            n: self.n,
            last_ns: ns(self.jitter_16 as f64, rate),
            mean_ns: ns(self.sum_16 as f64 / self.n as f64, rate),
            max_ns: ns(self.greatest_16 as f64, rate),
            // Both transits are rounded to units of the media's clock.
            bound_ns: bound_ns.map(|bound| bound + 1_000_000_000_u64.div_ceil(u64::from(rate))),
        });
        let variation = self
            .rate
            .and_then(|rate| transit::figures(&self.variation, rate, interval_bound));
        RtpFound {
            figures,
            jitter,
            variation,
        }
    }
}

fn ns(jitter_16: f64, rate: u32) -> f64 {
    jitter_16 / 16.0 / f64::from(rate) * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(seq: u16, timestamp: u32) -> RtpHeader {
        RtpHeader {
            payload_type: 18,
            seq,
            timestamp,
            ssrc: 7,
        }
    }

    fn rtp(packets: &[(u16, u32, i64)]) -> Rtp {
        let rates = ClockRates::default();
        let mut rtp = Rtp::new(&header(0, 0), &rates);
        for (seq, timestamp, at_ns) in packets {
            let stamp = RawStamp(at_ns.unsigned_abs());
            rtp.add(&header(*seq, *timestamp), (*at_ns, stamp), None, &rates);
        }
        rtp
    }

    #[test]
    fn a_header_is_told_from_what_is_not_rtp() {
        let mut payload = [0; HEADER];
        payload[..8].copy_from_slice(&[0x80, 0x80 | 18, 0x12, 0x34, 0, 0, 0, 160]);
        payload[11] = 9;
        let found = RtpHeader::of(&payload).unwrap();
        assert_eq!((found.payload_type, found.seq), (18, 0x1234));
        assert_eq!((found.timestamp, found.ssrc), (160, 9));
        assert_eq!(RtpHeader::of(&payload[..HEADER - 1]), None);
        // RTCP sender report; STUN.
        payload[1] = 200;
        assert_eq!(RtpHeader::of(&payload), None);
        payload[..2].copy_from_slice(&[0, 1]);
        assert_eq!(RtpHeader::of(&payload), None);
    }

    /// By the formula of A.8, by hand: |D| of 80 units, then 0.
    #[test]
    fn jitter_is_that_of_the_rfc() {
        let ms = 1_000_000;
        let found = rtp(&[(0, 0, 0), (1, 160, 30 * ms), (2, 320, 50 * ms)]);
        assert_eq!(found.jitter_16, 80 - ((80 + 8) >> 4));
        let reported = found.report(Some(100), Some);
        let jitter = reported.jitter.unwrap();
        assert_eq!((reported.figures.clock_hz, jitter.n), (Some(8_000), 2));
        assert_eq!(jitter.max_ns, 80.0 / 16.0 * 125_000.0);
        assert_eq!(jitter.bound_ns, Some(125_100));
    }

    /// The second packet is 10 ms late, the third is not in sequence, the fourth comes twice.
    #[test]
    fn a_packet_of_voice_has_a_length_and_a_variation() {
        let ms = 1_000_000;
        let packets = [
            (0, 0, 0),
            (1, 160, 30 * ms),
            (20_000, 99, 31 * ms),
            (2, 320, 40 * ms),
            (2, 320, 90 * ms),
            (3, 800, 100 * ms),
        ];
        let found = rtp(&packets);
        assert_eq!(found.packet_ns(), Some(20_000_000));
        assert_eq!(found.codec(), Some(Codec::G729a));
        let variation = found.report(None, Some).variation.unwrap();
        assert_eq!(
            (variation.n, variation.min_ns, variation.max_ns),
            (4, 0, 10_000_000)
        );
        // That of 30 s, three roundings and one unit of the media's clock.
        assert_eq!(variation.bound_ns, Some(30_000_000_000 + 3 + 125_000));
        // After a restart the delays begin anew.
        let again = [
            (0, 0, 0),
            (1, 160, 20 * ms),
            (9_000, 7, 90 * ms),
            (9_001, 167, 110 * ms),
        ];
        let variation = rtp(&again).report(None, Some).variation.unwrap();
        assert_eq!((variation.n, variation.max_ns), (3, 0));
    }

    #[test]
    fn timestamps_wrap() {
        let ms = 1_000_000;
        let found = rtp(&[(0, u32::MAX - 79, 0), (1, 80, 20 * ms), (2, 240, 40 * ms)]);
        assert_eq!((found.jitter_16, found.n), (0, 2));
    }

    #[test]
    fn a_jump_is_believed_when_the_next_one_follows() {
        let steps = [0, 1, 20_000, 2, 3, 40_000, 40_001, 40_002];
        let packets: Vec<_> = steps.iter().map(|seq| (*seq, 0, 0)).collect();
        let (loss, _) = rtp(&packets).sequence.report();
        let figures = rtp(&packets).report(None, |_| None).figures;
        assert_eq!((figures.jumped, figures.restarts), (2, 1));
        assert_eq!((loss.received, loss.lost), (6, 0));
    }

    #[test]
    fn dynamic_types_have_the_rate_that_is_given() {
        let mut rates = ClockRates::default();
        assert_eq!((rates.of(96), rates.of(9)), (None, Some(8_000)));
        rates.set(Some(96), 48_000);
        rates.set(None, 90_000);
        assert_eq!((rates.of(96), rates.of(97)), (Some(48_000), Some(90_000)));
        assert_eq!(rates.of(0), Some(8_000));
    }
}
