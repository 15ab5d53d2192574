//! The kernel's NTP discipline (kernel/time/ntp.c): how long the next tick is to be.

/// Fraction bits of a tick's length (NTP_SCALE_SHIFT).
pub const SCALE: u32 = 32;
/// Ticks a second that `tick` of adjtimex counts by (USER_HZ).
const USER_HZ: i64 = 100;
/// Most that adjtime slews in a second, µs (MAX_TICKADJ).
const MOST_SLEW_US: i64 = 500;
/// SHIFT_PLL and the least time constant of ADJ_OFFSET with STA_NANO.
const SHIFT_PLL: u32 = 2;

/// What user space has asked for, and what is left of it.
#[derive(Clone, Debug)]
pub struct Ntp {
    /// Ticks a second (NTP_INTERVAL_FREQ).
    hertz: i64,
    /// `tick` of adjtimex, µs.
    tick_us: i64,
    /// `freq` of adjtimex, ns a second in units of 2^-32.
    frequency: i64,
    base: i64,
    /// Of the next tick, ns in units of 2^-32.
    pub tick_length: i64,
    /// What is left of ADJ_OFFSET, a tick's share, in units of 2^-32 ns.
    offset: i64,
    /// What is left of adjtime, µs.
    adjust_us: i64,
    /// A leap second at the end of this second: +1 inserts one.
    leap: i64,
}

impl Ntp {
    pub fn new(hertz: u64) -> Self {
        let mut ntp = Self {
            hertz: hertz.cast_signed(),
            tick_us: 10_000,
            frequency: 0,
            base: 0,
            tick_length: 0,
            offset: 0,
            adjust_us: 0,
            leap: 0,
        };
        ntp.update_frequency();
        ntp
    }

    pub fn set_frequency(&mut self, ppb: i64) {
        self.frequency = ppb << SCALE;
        self.update_frequency();
    }

    /// ADJ_TICK: 9,000 to 11,000.
    pub fn set_tick(&mut self, us: i64) {
        self.tick_us = us.clamp(9_000, 11_000);
        self.update_frequency();
    }

    /// ADJ_OFFSET: the phase-locked loop works it off from the next second on.
    pub fn set_offset(&mut self, ns: i64) {
        self.offset = (ns << SCALE) / self.hertz;
    }

    /// ADJ_OFFSET_SINGLESHOT, adjtime(3).
    pub fn adjust(&mut self, us: i64) {
        self.adjust_us = us;
    }

    /// STA_INS (+1) or STA_DEL (−1): at the end of the second under way.
    pub fn set_leap(&mut self, seconds: i64) {
        self.leap = seconds;
    }

    /// `ntp_update_frequency`.
    fn update_frequency(&mut self) {
        let second = ((self.tick_us * 1_000 * USER_HZ) << SCALE) + self.frequency;
        let base = second / self.hertz;
        self.tick_length += base - self.base;
        self.base = base;
    }

    /// `second_overflow`: gives by how many seconds CLOCK_REALTIME is set.
    pub fn second_overflow(&mut self) -> i64 {
        self.tick_length = self.base;
        let chunk = self.offset >> SHIFT_PLL;
        self.offset -= chunk;
        self.tick_length += chunk;
        let now_us = self.adjust_us.clamp(-MOST_SLEW_US, MOST_SLEW_US);
        self.adjust_us -= now_us;
        self.tick_length += ((now_us * 1_000) << SCALE) / self.hertz;
        -std::mem::take(&mut self.leap)
    }
}
