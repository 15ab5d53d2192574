//! A flow so far.

use super::gen_stream::{Arrival, GenFigures, GenStream};
use super::key::FlowKey;
use super::look::Carries;
use super::rtp::{ClockRates, Rtp};
use super::schema::{Figures, FlowBy, FlowReport, Place, SortOrder};
use super::sequence::Sequence;
use super::series::Series;
use super::tcp::Bytes;
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
    Tcp(Bytes),
    Rtp(Box<Rtp>),
    Gen(Box<GenStream>),
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
                Carries::Tcp(_) => Carried::Tcp(Bytes::new()),
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
            FlowBy::FiveTuple => Bytes::HEAP_BYTES,
            FlowBy::Rtp => size_of::<Rtp>() + Sequence::HEAP_BYTES,
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
            (Carried::Tcp(bytes), Carries::Tcp(segment)) => bytes.add(segment),
            (Carried::Rtp(rtp), Carries::Rtp(header)) => {
                rtp.add(header, self.since_first_ns, rates);
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
            (SortOrder::Loss, Carried::Tcp(bytes)) => bytes.report().bytes as f64,
            (SortOrder::Loss, _) => self.lost() as f64,
        }
    }

    /// The figures; with `is_whole` also histogram and series.
    pub fn report(
        &self,
        place: &Place,
        counter: Option<&CounterReport>,
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
        let mut rtp_figures = None;
        let (mut delay, mut pdv, mut ipdv, mut jitter) = (None, None, None, None);
        let mut interval_error = None;
        match &self.carried {
            Carried::Rtp(rtp) => {
                let (figures, of_rtp) = rtp.report(bound(longest));
                rtp_figures = Some(figures);
                jitter = of_rtp;
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
            }
            Carried::Tcp(_) | Carried::Nothing => {}
        }
        let (loss, reordering) = self.sequence().map(Sequence::report).unzip();
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
            retransmissions: match &self.carried {
                Carried::Tcp(bytes) => Some(bytes.report()),
                _ => None,
            },
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
