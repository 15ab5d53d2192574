//! Another feedback clock to compare with: what ntpd does with one server and a constant
//! polling period.
//!
//! After RFC 5905: the clock filter of A.5.2 with its suppressor of popcorn spikes, the
//! state machine with its phase- and frequency-locked loops of A.5.5.6, and the adjustment
//! of A.5.5.7, with their constants but for the loop gain. The appendix prints 65,536 for
//! that, with which an offset would last for weeks; it is ntpd's own here (`CLOCK_PLL`,
//! ntp_loopfilter.c). It begins with the counter's exact frequency, which
//! a drift file could only tell it roughly. Left out: several servers, and the panic at 1000 s.

use std::collections::VecDeque;

use tscap_clock::{Bracket, NsPerCycle, RealNs, TscCycles};

/// Gain of the phase-locked loop.
const PLL: f64 = 16.0;
/// Gain of the frequency-locked loop: `MAXPOLL` + 1.
const FLL: f64 = 18.0;
/// Least divisor of that.
const AVERAGE: f64 = 4.0;
/// Beyond this it makes no sense to average phases, s (`ALLAN`).
const ALLAN_S: f64 = 1_500.0;
/// What is off by more is stepped, ns, once it has been for the stepout threshold, s.
const STEP_NS: f64 = 128e6;
const WATCH_S: f64 = 900.0;
/// What a spike is, as a multiple of the jitter (`SGATE`).
const SPIKE: f64 = 3.0;
/// Samples of the filter.
const STAGES: usize = 8;
/// What the kernel takes: `MAXFREQ`, include/linux/timex.h.
const MAX_PPB: f64 = 500_000.0;
/// Least jitter: the system's precision, 2^-20 s at best.
const PRECISION_NS: f64 = 954.0;

/// The clock that the loops discipline.
pub struct Pll {
    nominal: NsPerCycle,
    period_s: f64,
    at: TscCycles,
    time: u64,
    ppb: f64,
    /// Offset that is still to be slewed out, ns.
    residual_ns: f64,
    state: State,
    /// The uncorrected clock at the latest update, ns.
    updated: u64,
    filter: VecDeque<Sample>,
    /// The filter's latest choice: its offset, and the uncorrected clock then.
    chosen_ns: f64,
    chosen_at: u64,
}

/// What the discipline waits for.
#[derive(Clone, Copy)]
enum State {
    /// The first update.
    Unset,
    /// Nothing.
    Synchronised,
    /// The stepout threshold, since the server is far off.
    Spike,
}

/// One exchange: the server less the clock, and the way there and back, ns.
#[derive(Clone, Copy)]
struct Sample {
    /// By the uncorrected clock.
    local: u64,
    offset: f64,
    delay: f64,
}

impl Pll {
    /// Its time is that of the first reply, its frequency that of a counter which is faster
    /// than its nominal one by so many parts per billion. An exchange comes every `period_s`
    /// seconds.
    pub fn new((hertz, skew_ppb): (u64, f64), period_s: u64, first: &Bracket) -> Self {
        Self {
            nominal: NsPerCycle::of(1_000_000_000, hertz).expect("a counter's rate"),
            period_s: period_s as f64,
            at: first.tsc[0],
            time: first.real[0].0,
            ppb: -skew_ppb,
            residual_ns: 0.0,
            state: State::Unset,
            updated: 0,
            filter: VecDeque::with_capacity(STAGES),
            chosen_ns: 0.0,
            chosen_at: 0,
        }
    }

    /// What of the offset has been slewed out after a time, ns: each second the same part.
    fn slewed(&self, span_ns: u64) -> f64 {
        let seconds = span_ns as f64 / 1e9;
        let constant = PLL * self.period_s.min(ALLAN_S);
        self.residual_ns * (1.0 - (-seconds / constant).exp())
    }

    /// The clock at a counter value.
    pub fn read(&self, at: TscCycles) -> RealNs {
        let span = self.nominal.duration_ns(at.0 - self.at.0);
        let more = span as f64 * self.ppb / 1e9 + self.slewed(span);
        RealNs((self.time + span).wrapping_add_signed(more.round() as i64))
    }

    /// Takes in one exchange.
    pub fn observe(&mut self, exchange: &Bracket) {
        let [sent, received] = exchange.tsc.map(|tsc| self.read(tsc).0);
        let span = self.nominal.duration_ns(exchange.tsc[1].0 - self.at.0);
        self.residual_ns -= self.slewed(span);
        (self.time, self.at) = (received, exchange.tsc[1]);
        let ahead = |server: u64, local: u64| server.wrapping_sub(local).cast_signed() as f64;
        let [first, last] = exchange.real.map(|real| real.0);
        if self.filter.len() == STAGES {
            self.filter.pop_front();
        }
        self.filter.push_back(Sample {
            local: self.nominal.duration_ns(exchange.tsc[1].0),
            offset: (ahead(first, sent) + ahead(last, received)) / 2.0,
            delay: ahead(received, sent) - ahead(last, first),
        });
        if let Some(best) = self.filtered() {
            self.discipline(best);
        }
    }

    /// The clock filter: of eight samples the one with the least delay, unless that has been
    /// used or is a spike.
    fn filtered(&mut self) -> Option<Sample> {
        let by_delay = |a: &&Sample, b: &&Sample| a.delay.total_cmp(&b.delay);
        let best = *self.filter.iter().min_by(by_delay)?;
        let squares = self
            .filter
            .iter()
            .map(|it| (it.offset - best.offset).powi(2));
        let jitter = squares.sum::<f64>().sqrt().max(PRECISION_NS);
        let off = (best.offset - self.chosen_ns).abs();
        self.chosen_ns = best.offset;
        if best.local <= self.chosen_at {
            return None;
        }
        let since_s = (best.local - self.chosen_at) as f64 / 1e9;
        if off > SPIKE * jitter && since_s < 2.0 * self.period_s {
            return None;
        }
        self.chosen_at = best.local;
        Some(best)
    }

    fn discipline(&mut self, best: Sample) {
        let offset = best.offset;
        let since_s = (best.local - self.updated) as f64 / 1e9;
        let is_far = offset.abs() > STEP_NS;
        match self.state {
            State::Synchronised if is_far => {
                self.state = State::Spike;
                return;
            }
            State::Spike if is_far && since_s < WATCH_S => return,
            State::Synchronised | State::Spike if !is_far => {
                let ppb = self.ppb + self.locked(offset, since_s);
                self.ppb = ppb.clamp(-MAX_PPB, MAX_PPB);
            }
            State::Unset | State::Synchronised | State::Spike => {}
        }
        self.state = State::Synchronised;
        self.residual_ns = if is_far { 0.0 } else { offset };
        if is_far {
            let offset = offset.round() as i64;
            self.time = self.time.wrapping_add_signed(offset);
            self.filter.clear();
            self.chosen_ns = 0.0;
        }
        self.updated = best.local;
    }

    /// What both loops add to the frequency, parts per billion.
    fn locked(&self, offset: f64, since_s: f64) -> f64 {
        let gain = 4.0 * PLL * self.period_s;
        let by_phase = offset * since_s.min(self.period_s) / (gain * gain);
        if self.period_s <= ALLAN_S / 2.0 {
            return by_phase;
        }
        let divisor = (FLL - self.period_s.log2()).max(AVERAGE);
        by_phase + (offset - self.residual_ns) / (since_s.max(ALLAN_S) * divisor)
    }
}
