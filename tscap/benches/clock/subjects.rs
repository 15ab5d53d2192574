//! The clocks that are compared, fed by the same exchanges.

use anyhow::{Context, Result};
use tscap_clock::scripted::{Oscillator, Random};
use tscap_clock::{FeedForward, RealNs, Scale};

use crate::pll::Pll;
use crate::script::Script;
use crate::servo::Servo;

/// Their names, in the order of [`Errors::of_each`].
pub const NAMES: [&str; 3] = ["feed-forward", "PI servo", "PLL/FLL"];

/// The clocks with their script.
pub struct Subjects<'a> {
    script: &'a Script,
    counter: Oscillator,
    random: Random,
    clock: FeedForward,
    servo: Servo,
    pll: Pll,
}

/// Their errors at one time, ns.
#[derive(Clone, Copy)]
pub struct Errors {
    /// Of the feed-forward clock, of the PI servo's and of ntpd's.
    pub of_each: [f64; 3],
    /// The bound that the feed-forward clock states.
    pub bound: f64,
}

impl<'a> Subjects<'a> {
    /// After two exchanges, `period_s` seconds apart: at 0 and at `period_s`.
    pub fn new(seed: u64, script: &'a Script, counter: Oscillator, period_s: u64) -> Result<Self> {
        let mut random = Random(seed);
        let [first, second] = script.start(period_s, &counter, &mut random)?;
        let clock = FeedForward::new(Scale::NETWORK, &first, &second);
        let mut servo = Servo::new(counter.hertz, period_s, &first);
        let mut pll = Pll::new((counter.hertz, counter.skew_ppb), period_s, &first);
        for exchange in [&first, &second] {
            servo.observe(exchange);
            pll.observe(exchange);
        }
        Ok(Self {
            clock: clock.context("two readings must be enough")?,
            servo,
            pll,
            script,
            counter,
            random,
        })
    }

    /// Takes the exchange of a second, if there is an answer.
    pub fn exchange(&mut self, second: u64) {
        let exchange = self.script.bracket(second, &self.counter, &mut self.random);
        if let Some(exchange) = exchange {
            self.clock.observe(&exchange);
            self.servo.observe(&exchange);
            self.pll.observe(&exchange);
        }
    }

    /// Errors at a true time, ns, after the latest exchange.
    pub fn errors(&self, t: u64) -> Errors {
        let at = self.counter.counter(t);
        let reference = self.script.reference(t);
        let off = |time: RealNs| time.0.wrapping_sub(reference).cast_signed() as f64;
        let estimate = self.clock.estimate(at);
        Errors {
            of_each: [
                off(estimate.real),
                off(self.servo.read(at)),
                off(self.pll.read(at)),
            ],
            bound: estimate.bound_ns as f64,
        }
    }
}
