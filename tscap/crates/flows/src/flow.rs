//! A flow so far.

use super::flows::FlowOptions;
use super::gen_stream::{Arrival, GenFigures, GenStream};
use super::key::{FlowId, FlowKey};
use super::look::Carries;
use super::quic::{self, Quic, QuicHeader};
use super::round_trip::RoundTrips;
use super::rtp::{ClockRates, Rtp, RtpFound};
use super::schema::{Figures, FlowBy, FlowReport, Place, QuicSign, RoundTrip, SortOrder};
use super::sequence::Sequence;
use super::series::Series;
use super::tcp::{Bytes, Segment};
use super::voice::{of_gen, of_rtp};
use tscap_clock::interval_ns;
use tscap_clock::{CounterReport, RawStamp, TaiNs};
use tscap_statistics::Distribution;
use tscap_streams::{DelayBasis, HostMoment};

/// A packet as the flows take it in.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Where it was stamped.
    pub place: u16,
    /// When, by the clock of intervals.
    pub stamp: RawStamp,
    /// Since the start of the measurement, ns.
    pub at_ns: u64,
    /// When, by CLOCK_TAI of the host, where that is known.
    pub tai: Option<TaiNs>,
    /// What the clocks of the host showed near its arrival, where that is known.
    pub host: Option<HostMoment>,
    /// What was captured of the frame.
    pub data: &'a [u8],
    /// Its length on the wire, bytes.
    pub origlen: u32,
}

/// A flow so far. Memory: [`Flow::most_bytes`].
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub key: FlowKey,
    first: RawStamp,
    first_at_ns: u64,
    last: RawStamp,
    /// Sum of the intervals: a rate that is known better later moves no interval before.
    since_first_ns: i64,
    pub packets: u64,
    pub bytes: u64,
    first_bytes: u64,
    /// The latest stamp, which is not that of the last packet where the clock went back.
    latest: RawStamp,
    inter_arrival: Distribution,
    went_back: u64,
    series: Series,
    carried: Carried,
}

#[derive(Clone, Debug)]
enum Carried {
    Nothing,
    Tcp(Box<Tcp>),
    Quic(Box<Quic>),
    Rtp(Box<Rtp>),
    Gen(Box<GenStream>),
}

/// One direction of a connection.
#[derive(Clone, Debug)]
struct Tcp {
    bytes: Bytes,
    trips: RoundTrips,
    other: OtherDirection,
}

/// The flow of the other direction, as far as it was looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherDirection {
    /// Its number in the table.
    pub number: Option<u32>,
    /// Flows that there had been when it was looked for.
    pub as_of: u64,
}

impl Flow {
    /// With its first packet.
    pub fn new(
        key: FlowKey,
        packet: &Packet<'_>,
        carries: &Carries,
        rates: &ClockRates,
        streams_grow: bool,
    ) -> Self {
        let mut series = Series::new();
        series.add(packet.at_ns, 0);
        let mut flow = Self {
            key,
            first: packet.stamp,
            first_at_ns: packet.at_ns,
            last: packet.stamp,
            since_first_ns: 0,
            packets: 1,
            bytes: packet.origlen.into(),
            first_bytes: packet.origlen.into(),
            latest: packet.stamp,
            inter_arrival: Distribution::fixed(),
            went_back: 0,
            series,
            carried: match carries {
                Carries::Nothing => Carried::Nothing,
                Carries::Tcp(_) => Carried::Tcp(Box::new(Tcp {
                    bytes: Bytes::new(),
                    trips: RoundTrips::new(),
                    other: OtherDirection::default(),
                })),
                Carries::Datagram(header) => match sign_of(&key, *header) {
                    None => Carried::Nothing,
                    Some(sign) => Carried::Quic(Box::new(Quic::new(sign))),
                },
                Carries::Rtp(header) => Carried::Rtp(Box::new(Rtp::new(header, rates))),
                Carries::Gen(..) => Carried::Gen(Box::new(GenStream::new(streams_grow))),
            },
        };
        flow.take(packet, carries, None, rates);
        flow
    }

    /// Greatest memory of a flow, bytes, unless that of streams may grow.
    pub fn most_bytes(by: FlowBy) -> usize {
        let carried = match by {
            FlowBy::FiveTuple => {
                let tcp = size_of::<Tcp>() + Bytes::HEAP_BYTES + RoundTrips::HEAP_BYTES;
                tcp.max(size_of::<Quic>() + Quic::HEAP_BYTES)
            }
            FlowBy::Rtp => {
                size_of::<Rtp>() + Sequence::HEAP_BYTES + Distribution::fixed_bytes(false)
            }
            FlowBy::Dscp => 0,
            FlowBy::Gen => {
                size_of::<GenStream>()
                    + Sequence::HEAP_BYTES
                    + 2 * Distribution::fixed_bytes(true)
                    + Distribution::fixed_bytes(false)
            }
        };
        size_of::<Self>() + Distribution::fixed_bytes(false) + carried
    }

    /// Takes in a packet that is not the first.
    #[inline]
    pub fn add(
        &mut self,
        packet: &Packet<'_>,
        carries: &Carries,
        counter: Option<&CounterReport>,
        rates: &ClockRates,
    ) {
        self.packets += 1;
        self.bytes += u64::from(packet.origlen);
        let interval = interval_ns(self.last, packet.stamp, counter);
        if interval < 0 {
            self.went_back += 1
        } else {
            self.inter_arrival.add(interval)
        }
        self.series.add(packet.at_ns, interval.max(0));
        self.since_first_ns = self.since_first_ns.saturating_add(interval);
        self.last = packet.stamp;
        self.latest = self.latest.max(packet.stamp);
        self.take(packet, carries, counter, rates);
    }

    fn take(
        &mut self,
        packet: &Packet<'_>,
        carries: &Carries,
        counter: Option<&CounterReport>,
        rates: &ClockRates,
    ) {
        match (&mut self.carried, carries) {
            (Carried::Tcp(tcp), Carries::Tcp(segment)) => {
                let order = tcp.bytes.add(segment);
                let end = tcp.bytes.end();
                tcp.trips.sent(segment, order, end, packet.stamp);
            }
            (Carried::Quic(quic), Carries::Datagram(header)) => {
                quic.add(*header, packet.stamp, counter);
            }
            // Its first packets had nothing of QUIC.
            (Carried::Nothing, Carries::Datagram(QuicHeader::Long)) => {
                self.carried = Carried::Quic(Box::new(Quic::new(QuicSign::LongHeader)));
            }
            (Carried::Rtp(rtp), Carries::Rtp(header)) => {
                rtp.add(header, (self.since_first_ns, packet.stamp), counter, rates);
            }
            (Carried::Gen(stream), Carries::Gen(header, _)) => {
                let arrival = Arrival {
                    stamp: packet.stamp,
                    tai: packet.tai,
                    host: packet.host,
                };
                stream.add(header, arrival, counter);
            }
            _ => {}
        }
    }

    /// The other direction of a connection, as far as it was looked for.
    pub fn other_direction(&mut self) -> Option<&mut OtherDirection> {
        match &mut self.carried {
            Carried::Tcp(tcp) => Some(&mut tcp.other),
            _ => None,
        }
    }

    /// Takes in what a segment of the other direction acknowledges.
    #[inline]
    pub fn answered(
        &mut self,
        segment: &Segment,
        stamp: RawStamp,
        counter: Option<&CounterReport>,
    ) {
        if let Carried::Tcp(tcp) = &mut self.carried {
            tcp.trips.answered(segment, stamp, counter);
        }
    }

    fn sequence(&self) -> Option<&Sequence> {
        match &self.carried {
            Carried::Rtp(rtp) => Some(&rtp.sequence),
            Carried::Gen(stream) => Some(&stream.sequence),
            _ => None,
        }
    }

    /// Packets that are missing by its sequence numbers.
    pub fn lost(&self) -> u64 {
        self.sequence().map_or(0, Sequence::lost)
    }

    /// What flows are sorted by, the greatest first.
    pub fn rank(&self, sort: SortOrder) -> f64 {
        match (sort, &self.carried) {
            (SortOrder::Packets, _) => self.packets as f64,
            (SortOrder::Jitter, Carried::Rtp(rtp)) => rtp.jitter_ns().unwrap_or(0.0),
            (SortOrder::Jitter, Carried::Gen(stream)) => stream.jitter_ns().unwrap_or(0.0),
            (SortOrder::Jitter, _) => self.inter_arrival.sd(),
            (SortOrder::Loss, Carried::Tcp(tcp)) => tcp.bytes.report().bytes as f64,
            (SortOrder::Loss, _) => self.lost() as f64,
        }
    }

    /// The figures; with `is_whole` also histogram and series.
    pub fn report(
        &self,
        place: &Place,
        counter: Option<&CounterReport>,
        options: &FlowOptions,
        is_whole: bool,
    ) -> FlowReport {
        let duration = interval_ns(self.first, self.latest, counter).max(0);
        let seconds = duration as f64 / 1e9;
        let per_s = |amount: u64| (duration > 0).then(|| amount as f64 / seconds);
        let bound = |longest: u64| place.intervals.bound_ns(longest);
        let inter_arrival = self
            .inter_arrival
            .summary()
            .map(|it| Figures::of(it, bound));
        let longest = inter_arrival.map_or(0, |it| it.max_ns.unsigned_abs());
        let delay_bound = match &place.delays {
            DelayBasis::Clocks {
                host_bound_ns,
                reference: None,
                ..
            } => Some(*host_bound_ns),
            DelayBasis::Clocks { .. } | DelayBasis::Unavailable { .. } => None,
        };
        let (loss, reordering) = self.sequence().map(Sequence::report).unzip();
        let (mut rtp_figures, mut variation, mut voice, mut quic) = (None, None, None, None);
        let (mut delay, mut pdv, mut ipdv, mut jitter) = (None, None, None, None);
        let mut interval_error = None;
        let mut round_trips: Vec<RoundTrip> = Vec::new();
        match &self.carried {
            Carried::Rtp(rtp) => {
                let found = rtp.report(bound(longest), bound);
                voice = of_rtp(rtp, loss, found.variation, &options.voice);
                RtpFound {
                    jitter,
                    variation,
                    ..
                } = found;
                rtp_figures = Some(found.figures);
            }
            Carried::Gen(stream) => {
                let figures = stream.report(longest, bound, delay_bound);
                GenFigures {
                    delay,
                    pdv,
                    ipdv,
                    interval_error,
                    jitter,
                } = figures;
                let gap = inter_arrival.map(|it| it.mean_ns);
                voice = of_gen(gap, loss, (delay, pdv), &options.voice);
            }
            Carried::Quic(it) => {
                let found = it.report(bound);
                quic = found.map(|(figures, _)| figures);
                round_trips.extend(found.and_then(|(_, trip)| trip));
            }
            Carried::Tcp(tcp) => round_trips = tcp.trips.report(bound),
            Carried::Nothing => {}
        }
        FlowReport {
            name: self.key.id.to_string(),
            place: self.key.place,
            vlans: self.key.vlans.iter().flatten().copied().collect(),
            inner: self.key.is_inner,
            evicted: false,
            first_s: self.first_at_ns as f64 / 1e9,
            seconds,
            packets: self.packets,
            bytes: self.bytes,
            packets_per_s: per_s(self.packets - 1),
            bits_per_s: per_s((self.bytes - self.first_bytes).saturating_mul(8)),
            inter_arrival,
            went_back: self.went_back,
            delay,
            ipdv,
            interval_error,
            pdv,
            jitter,
            loss,
            reordering,
            rtp: rtp_figures,
            variation,
            voice,
            retransmissions: match &self.carried {
                Carried::Tcp(tcp) => Some(tcp.bytes.report()),
                _ => None,
            },
            quic,
            round_trips,
            histogram: if is_whole {
                self.inter_arrival.bins()
            } else {
                Vec::new()
            },
            series: if is_whole {
                self.series.intervals()
            } else {
                Vec::new()
            },
        }
    }
}

/// Why a flow is taken for QUIC when its first packet has this header.
fn sign_of(key: &FlowKey, header: QuicHeader) -> Option<QuicSign> {
    let FlowId::FiveTuple(ends) = key.id else {
        return None;
    };
    let is_port = [ends.source_port, ends.destination_port].contains(&quic::PORT);
    match header {
        QuicHeader::Long => Some(QuicSign::LongHeader),
        _ => is_port.then_some(QuicSign::Port443),
    }
}
