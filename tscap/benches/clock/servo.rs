//! A feedback clock to compare with: what `ptp4l` does with software time stamps and
//! its published defaults.
//!
//! The PI servo after pi.c of linuxptp 4; constants after ptp4l(8): with
//! `pi_proportional_const` and `pi_integral_const` 0, the scales 0 and software time
//! stamping, kp = 0.1·T^-0.3 and ki = 0.001·T^0.4 at a sync interval of T seconds,
//! here 1; `first_step_threshold` 20 µs, no `step_threshold`; `tsproc_mode` filter
//! with a moving median of 10 path delays.

use std::collections::VecDeque;

use tscap_clock::{Bracket, NsPerCycle, RealNs, TscCycles};

/// The shortest estimate of the frequency is 0.016 / ki, with `FREQ_EST_MARGIN` of pi.c, and
/// 1000 s at most.
const FIRST_SPAN: f64 = 0.016e9 * 0.999;
const MOST_FIRST_SPAN_NS: f64 = 1e12 * 0.999;
const FIRST_STEP_NS: f64 = 20_000.0;
/// What the kernel takes: `MAXFREQ`, include/linux/timex.h.
const MAX_PPB: f64 = 500_000.0;
const DELAYS: usize = 10;

/// The clock that the servo disciplines.
pub struct Servo {
    nominal: NsPerCycle,
    kp: f64,
    ki: f64,
    at: TscCycles,
    time: u64,
    ppb: f64,
    drift: f64,
    state: State,
    delays: VecDeque<u64>,
}

enum State {
    Empty,
    First { offset: f64, local: u64 },
    Locked,
}

impl Servo {
    /// Its time is as wrong as can be: that of the first reply. An exchange comes every
    /// `period_s` seconds.
    pub fn new(hertz: u64, period_s: u64, first: &Bracket) -> Self {
        let period = period_s as f64;
        Self {
            nominal: NsPerCycle::of(1_000_000_000, hertz).expect("a counter's rate"),
            kp: (0.1 * period.powf(-0.3)).min(0.7 / period),
            ki: (0.001 * period.powf(0.4)).min(0.3 / period),
            at: first.tsc[0],
            time: first.real[0].0,
            ppb: 0.0,
            drift: 0.0,
            state: State::Empty,
            delays: VecDeque::new(),
        }
    }

    /// The clock at a counter value.
    pub fn read(&self, at: TscCycles) -> RealNs {
        let span = self.nominal.duration_ns(at.0 - self.at.0);
        let more = (span as f64 * self.ppb / 1e9).round() as i64;
        RealNs((self.time + span).wrapping_add_signed(more))
    }

    /// Takes in one exchange.
    pub fn observe(&mut self, exchange: &Bracket) {
        let [sent, received] = exchange.tsc.map(|tsc| self.read(tsc).0);
        if self.delays.len() == DELAYS {
            self.delays.pop_front();
        }
        let [first, last] = exchange.real.map(|real| real.0);
        // Its clock may run faster than the server's: then the way takes nothing.
        let way = (received - sent).saturating_sub(last - first) / 2;
        self.delays.push_back(way);
        let mut sorted: Vec<_> = self.delays.iter().copied().collect();
        sorted.sort_unstable();
        let delay = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2;
        let ahead = received.wrapping_sub(last + delay);
        let offset = ahead.cast_signed() as f64;
        (self.time, self.at) = (received, exchange.tsc[1]);
        match self.state {
            State::Empty => {
                self.state = State::First {
                    offset,
                    local: received,
                };
            }
            State::First {
                offset: first,
                local,
            } => {
                let span = (received - local) as f64;
                if span < (FIRST_SPAN / self.ki).min(MOST_FIRST_SPAN_NS) {
                    return;
                }
                self.drift += (1e9 - self.drift) * (offset - first) / span;
                self.drift = self.drift.clamp(-MAX_PPB, MAX_PPB);
                if offset.abs() > FIRST_STEP_NS {
                    self.time = self.time.wrapping_add_signed(-(offset as i64));
                }
                self.ppb = -self.drift;
                self.state = State::Locked;
            }
            State::Locked => {
                let integral = self.ki * offset;
                let ppb = self.kp * offset + self.drift + integral;
                if ppb.abs() <= MAX_PPB {
                    self.drift += integral;
                }
                self.ppb = -ppb.clamp(-MAX_PPB, MAX_PPB);
            }
        }
    }
}
