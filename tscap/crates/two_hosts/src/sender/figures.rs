//! What is made of the exchanges of a session.

use tscap_clock::RawStamp;
use tscap_delay::schema::{AlignmentReport, PeerClock, PeerSession, SessionAccount};
use tscap_delay::{DelayRecorder, Latest, Matched};
use tscap_protocol::{ErrorEstimate, TimeFormat, Timestamp};
use tscap_session::Times;
use tscap_statistics::{
    Codec, DelayVariation, Distribution, Summary, Voice, VoicePath, burst_ratio,
};

use super::exchanges::{Answered, Exchanges};
use super::plan::{FREE_PPB, STEERED_PPB, SenderPlan};
use crate::variation::VariationRecorder;
use crate::{AlignBy, Aligned, Alignment, Exchange};

/// Stamps of a peer are good to this against its own clock, at worst, ns: its Error Estimate has
/// both that and how far the clock is off UTC.
const PEER_STAMPS_NS: u64 = 1_000;

/// This host's clock, as it is known at a drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnClock {
    /// Greatest error of a stamp, ns.
    pub stamp_error_ns: u64,
    /// Greatest error of a stamp's time against UTC, ns.
    pub utc_bound_ns: Option<u64>,
    /// TAI − UTC, s.
    pub tai_offset_s: i64,
}

/// A session, as the thread that takes records out of the rings has it.
#[derive(Debug)]
pub(super) struct Figures {
    pub exchanges: Exchanges,
    alignment: Alignment<Mark>,
    delays: Delays,
    max_drift_ppb: u64,
    is_drift_given: bool,
    max_asymmetry_ns: Option<u64>,
    by: AlignBy,
    start: RawStamp,
    peer_clock: Option<PeerClock>,
    variations: [VariationRecorder; 2],
    size: u32,
}

/// What a delay is told of with its exchange.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at_ns: u64,
    sequence: u64,
    peer_error_ns: u64,
}

/// Delays so far.
#[derive(Debug)]
struct Delays {
    round_trip: DelayRecorder,
    forward: DelayRecorder,
    back: DelayRecorder,
    alignment_ns: Distribution,
    /// Greatest errors of one, ns.
    stamps_ns: u64,
    bound_ns: u64,
    unaligned: u64,
    contradictions: u64,
    peer_ahead_ns: Option<i64>,
    utc_bound_ns: Option<u64>,
    size: u32,
}

/// The latest second of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionSecond {
    /// Round trips.
    pub round_trip: Option<Latest>,
    /// There, with what was known a second before.
    pub forward: Option<Latest>,
    /// Back.
    pub back: Option<Latest>,
    /// Not answered so far.
    pub missing: u64,
    /// Greatest error of the latest delays each way by the alignment, ns; null of none.
    pub bound_ns: Option<u64>,
}

impl Figures {
    pub fn new(plan: &SenderPlan, exchanges: Exchanges, start: RawStamp) -> Self {
        let max_drift_ppb = plan.max_drift_ppb.unwrap_or(FREE_PPB);
        Self {
            exchanges,
            alignment: Alignment::new(plan.align, max_drift_ppb, plan.max_asymmetry_ns),
            delays: Delays {
                round_trip: DelayRecorder::new(),
                forward: DelayRecorder::new(),
                back: DelayRecorder::new(),
                alignment_ns: Distribution::new(),
                stamps_ns: 0,
                bound_ns: 0,
                unaligned: 0,
                contradictions: 0,
                peer_ahead_ns: None,
                utc_bound_ns: None,
                size: plan.size,
            },
            max_drift_ppb,
            is_drift_given: plan.max_drift_ppb.is_some(),
            max_asymmetry_ns: plan.max_asymmetry_ns,
            by: plan.align,
            start,
            peer_clock: None,
            variations: [VariationRecorder::new(), VariationRecorder::new()],
            size: plan.size,
        }
    }

    /// Takes in an exchange.
    pub fn take(&mut self, answered: &Answered, own: &OwnClock, times: &Times) {
        let reply = &answered.reply;
        let error = reply.error;
        let own_real = answered.own.map(|stamp| times.real(stamp));
        let read = |time: Timestamp| time.to_real(error.format, own_real[0], own.tai_offset_s);
        let peer = [read(reply.received), read(reply.timestamp)];
        self.peer_clock = Some(told_by(error));
        let is_steered = error.synchronised || own.utc_bound_ns.is_some();
        if is_steered && !self.is_drift_given {
            self.max_drift_ppb = self.max_drift_ppb.max(STEERED_PPB);
            self.alignment.raise_max_drift(self.max_drift_ppb);
        }
        let said_ns = error.bound_ns();
        let peer_utc_ns = error.synchronised.then_some(said_ns);
        let exchange = Exchange {
            own: answered.own,
            own_real,
            peer,
            own_error_ns: own.stamp_error_ns + 1,
            // Its last digit too.
            peer_error_ns: said_ns.min(PEER_STAMPS_NS) + 1,
            utc_bound_ns: peer_utc_ns
                .zip(own.utc_bound_ns)
                .map(|(peer, own)| peer.saturating_add(own)),
        };
        let rate = times.rate();
        let mark = Mark {
            at_ns: times
                .between(self.start, answered.own[0])
                .max(0)
                .unsigned_abs(),
            sequence: answered.sequence,
            peer_error_ns: exchange.peer_error_ns,
        };
        let delays = &mut self.delays;
        delays.utc_bound_ns = exchange.utc_bound_ns;
        let round_trip_ns = exchange.round_trip_ns(rate);
        let errors_ns = 2 * (exchange.own_error_ns + exchange.peer_error_ns);
        delays.stamps_ns = delays.stamps_ns.max(errors_ns);
        delays
            .round_trip
            .add(&delays.matched(&mark, &exchange, round_trip_ns));
        let changes = self.alignment.changes();
        self.alignment
            .take(exchange, rate, mark, &mut |mark, exchange, aligned| {
                delays.take(&mark, exchange, aligned);
            });
        if self.alignment.changes() != changes {
            self.variations
                .iter_mut()
                .for_each(VariationRecorder::break_off);
        }
        let [sent, received] = answered
            .own
            .map(|stamp| i128::from(times.between(self.start, stamp)));
        let [arrived, left] = peer.map(|it| i128::from(it.0));
        let error_ns = exchange.own_error_ns + exchange.peer_error_ns;
        let [forward, back] = &mut self.variations;
        let drift = self.max_drift_ppb;
        forward.add(answered.sequence, sent, arrived, error_ns, drift);
        back.add(answered.sequence, left, received, error_ns, drift);
    }

    /// This host's counter jumped.
    pub fn begin_anew(&mut self) {
        let delays = &mut self.delays;
        self.alignment.begin_anew(&mut |mark, exchange, aligned| {
            delays.take(&mark, exchange, aligned);
        });
        self.variations
            .iter_mut()
            .for_each(VariationRecorder::break_off);
    }

    pub fn latest(&mut self) -> SessionSecond {
        let delays = &mut self.delays;
        SessionSecond {
            round_trip: delays.round_trip.take_latest(),
            forward: delays.forward.take_latest(),
            back: delays.back.take_latest(),
            missing: self.exchanges.missing(),
            bound_ns: (delays.bound_ns > 0).then_some(delays.bound_ns),
        }
    }

    /// The result of `sent` packets; `begun` has what is known of the session from its start.
    pub fn finish(mut self, sent: u64, times: &Times, begun: PeerSession) -> PeerSession {
        let delays = &mut self.delays;
        self.alignment.finish(&mut |mark, exchange, aligned| {
            delays.take(&mark, exchange, aligned);
        });
        let skew = self.alignment.skew_ppb(times.rate());
        let delays = self.delays;
        let bounds = delays.alignment_ns.summary();
        let [forward_variation, back_variation] = self.variations.map(VariationRecorder::finish);
        let account = self.exchanges.finish(sent);
        let forward = delays.forward.finish(Some(delays.bound_ns));
        PeerSession {
            size: self.size,
            voice: forward.as_ref().map(|it| voice(&it.summary, &account)),
            account,
            peer_clock: self.peer_clock,
            alignment: AlignmentReport {
                by: self.by.name().to_owned(),
                max_drift_ppb: self.max_drift_ppb,
                max_asymmetry_ns: self.max_asymmetry_ns,
                bound_ns: bounds.as_ref().map(|it| it.max.unsigned_abs()),
                median_bound_ns: bounds.and_then(|it| it.p50).map(i64::unsigned_abs),
                peer_ahead_ns: delays.peer_ahead_ns,
                skew_ppb: skew.map(|it| it.0),
                skew_bound_ppb: skew.map(|it| it.1),
                utc_bound_ns: delays.utc_bound_ns,
                changes: self.alignment.changes(),
                contradictions: delays.contradictions,
                unaligned: delays.unaligned,
                packets: None,
            },
            round_trip: delays.round_trip.finish(Some(delays.stamps_ns)),
            forward,
            back: delays.back.finish(Some(delays.bound_ns)),
            forward_variation,
            back_variation,
            ..begun
        }
    }
}

impl Delays {
    fn matched(&self, mark: &Mark, exchange: &Exchange, delay_ns: i64) -> Matched<'static> {
        Matched {
            at_ns: mark.at_ns,
            delay_ns,
            entered: exchange.own_real[0],
            cpu_in: None,
            cpu_out: None,
            length: self.size,
            key: mark.sequence,
            bytes: &[],
        }
    }

    fn take(&mut self, mark: &Mark, exchange: &Exchange, aligned: Aligned) {
        let way = match aligned {
            Aligned::Known(way) => way,
            Aligned::Unknown => {
                self.unaligned += 1;
                return;
            }
            Aligned::Contradiction => {
                self.unaligned += 1;
                self.contradictions += 1;
                return;
            }
        };
        let forward = self.matched(mark, exchange, way.forward_ns);
        let back = self.matched(mark, exchange, way.back_ns);
        self.forward.add(&forward);
        self.back.add(&back);
        let alignment_ns = i64::try_from(way.alignment_ns).unwrap_or(i64::MAX);
        self.alignment_ns.add(alignment_ns);
        let stamps_ns = exchange.own_error_ns + mark.peer_error_ns;
        self.bound_ns = self
            .bound_ns
            .max(way.alignment_ns.saturating_add(stamps_ns));
        self.peer_ahead_ns = Some(way.peer_ahead_ns);
    }
}

/// Speech of a packet of voice, ns: what most senders of G.711 put into one.
const VOICE_PACKET_NS: u64 = 20_000_000;

/// The quality of a call by G.711 with concealment, whose packets take as long and are lost as those
/// that were sent. Packets that may have been lost there count as lost.
fn voice(forward: &Summary, account: &SessionAccount) -> Voice {
    let over = |ns: i64| ns.saturating_sub(forward.min).unsigned_abs();
    let lost = account.lost_forward + account.undecided;
    let path = VoicePath {
        delay_ns: forward.min.max(0).unsigned_abs(),
        variation: DelayVariation {
            p99_ns: forward.p99.map(over),
            p99_9_ns: forward.p99_9.map(over),
            max_ns: over(forward.max),
        },
        loss_ratio: lost as f64 / account.sent.max(1) as f64,
        burst_ratio: burst_ratio(lost, account.loss_periods, account.sent),
    };
    Voice::of(Codec::G711Plc, VOICE_PACKET_NS, &path)
}

fn told_by(error: ErrorEstimate) -> PeerClock {
    PeerClock {
        error_estimate_ns: error.bound_ns(),
        synchronised: error.synchronised,
        is_ptp: error.format == TimeFormat::Ptp,
    }
}
