//! Another feedback clock to compare with: what ntpd does with one server and a constant
//! polling period.
//!
//! After RFC 5905: the clock filter of A.5.2 (of eight samples the one with the least delay,
//! unless that has been used), and the phase-locked loop of A.5.5.6 and A.5.5.7 with its
//! constants. It begins with the counter's exact frequency, which a drift file could only tell
//! it roughly. Left out: what takes offsets over 128 ms, several servers, and the popcorn spike
//! suppressor.

use std::collections::VecDeque;

use tscap::capturing::clock::{Bracket, NsPerCycle, RealNs, TscCycles};

/// `PLL` of RFC 5905, A.1.2.
const LOOP_GAIN: f64 = 16.0;
/// Samples of the filter.
const STAGES: usize = 8;
/// What the kernel takes: `MAXFREQ`, include/linux/timex.h.
const MAX_PPB: f64 = 500_000.0;

/// The clock that the loop disciplines.
pub struct Pll {
    nominal: NsPerCycle,
    poll_s: f64,
    at: TscCycles,
    time: u64,
    ppb: f64,
    /// Offset that is still to be slewed out, ns.
    residual_ns: f64,
    filter: VecDeque<Sample>,
    /// The clock at the sample used last.
    used: u64,
}

/// One exchange: the server less the clock, and half of the way there and back, ns.
#[derive(Clone, Copy)]
struct Sample {
    local: u64,
    offset: f64,
    delay: f64,
}

impl Pll {
    /// Its time is that of the first reply, its frequency that of a counter which is faster
    /// than its nominal one by so many parts per billion.
    pub fn new((hertz, skew_ppb): (u64, f64), poll_s: u64, first: &Bracket) -> Self {
        let nominal = (1_000_000_000u128 << 58) / u128::from(hertz);
        Self {
            nominal: NsPerCycle(u64::try_from(nominal).expect("a counter's rate")),
            poll_s: poll_s as f64,
            at: first.tsc[0],
            time: first.real[0].0,
            ppb: -skew_ppb,
            residual_ns: 0.0,
            filter: VecDeque::new(),
            used: 0,
        }
    }

    /// What of the offset has been slewed out after a time, ns: each second the same part.
    fn slewed(&self, span_ns: u64) -> f64 {
        let seconds = span_ns as f64 / 1e9;
        self.residual_ns * (1.0 - (-seconds / (LOOP_GAIN * self.poll_s)).exp())
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
            local: received,
            offset: (ahead(first, sent) + ahead(last, received)) / 2.0,
            delay: ahead(received, sent) - ahead(last, first),
        });
        let best = self
            .filter
            .iter()
            .min_by(|a, b| a.delay.total_cmp(&b.delay));
        let Some(best) = best.copied().filter(|best| best.local > self.used) else {
            return;
        };
        let since = (best.local - self.used) as f64 / 1e9;
        self.used = best.local;
        let gain = 4.0 * LOOP_GAIN * self.poll_s;
        let more_ppb = best.offset * since.min(self.poll_s) / (gain * gain);
        self.ppb = (self.ppb + more_ppb).clamp(-MAX_PPB, MAX_PPB);
        self.residual_ns = best.offset;
    }
}
