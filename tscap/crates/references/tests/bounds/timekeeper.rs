//! The kernel's timekeeper (kernel/time/timekeeping.c), which counts nanoseconds by
//! cycles: a whole multiplier that changes by one from tick to tick.

use super::ntp::{Ntp, SCALE};

const SECOND: i128 = 1_000_000_000;

/// `struct timekeeper`, as far as its clocks show it.
#[derive(Clone, Debug)]
pub struct Timekeeper {
    pub ntp: Ntp,
    pub shift: u32,
    pub now: Clocks,
    cycle_interval: u64,
    /// What a tick adds, in units of 2^-shift ns.
    interval: i64,
    remainder: i64,
    ntp_tick: i64,
    ntp_error: i64,
    ntp_error_mult: i64,
    /// The second of CLOCK_REALTIME after the one under way.
    next_second: i128,
}

/// All clocks, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Cycles of the oscillator: never set.
    pub from: u64,
    pub cycle_last: u64,
    /// CLOCK_MONOTONIC at `cycle_last`, in units of 2^-shift ns.
    pub mono: i128,
    pub mult: i64,
    /// CLOCK_REALTIME and CLOCK_BOOTTIME less CLOCK_MONOTONIC, ns.
    pub to_real: i64,
    pub to_boot: i64,
    /// TAI − REALTIME, s.
    pub tai_s: i64,
    /// The TSC less the cycles, at `tsc_from`.
    pub to_tsc: i64,
    /// How much faster it runs since then, parts per billion.
    pub tsc_ppb: i64,
    pub tsc_from: u64,
}

impl Clocks {
    /// The TSC less the cycles.
    pub fn tsc_ahead(&self, cycles: u64) -> i64 {
        let since = i128::from(cycles) - i128::from(self.tsc_from);
        let faster = since * i128::from(self.tsc_ppb) / SECOND;
        self.to_tsc + i64::try_from(faster).expect("it is short")
    }
}

impl Timekeeper {
    /// Of a counter of so many cycles a second, with so many ticks a second
    /// (`tk_setup_internals`).
    pub fn new(cycles_per_s: u64, hertz: u64, now: Clocks) -> Self {
        let (mult, shift) = mult_shift(cycles_per_s);
        let ntp_interval = (1_000_000_000 / hertz) << shift;
        let cycle_interval = (ntp_interval + mult / 2) / mult;
        let interval = (cycle_interval * mult).cast_signed();
        let mut timekeeper = Self {
            ntp: Ntp::new(hertz),
            shift,
            now: Clocks {
                mult: mult.cast_signed(),
                mono: now.mono << shift,
                ..now
            },
            cycle_interval,
            interval,
            remainder: ntp_interval.cast_signed() - interval,
            ntp_tick: (ntp_interval << (SCALE - shift)).cast_signed(),
            ntp_error: 0,
            ntp_error_mult: 0,
            next_second: 0,
        };
        timekeeper.begin_second();
        timekeeper
    }

    /// `timekeeping_advance`, by a tick or because the frequency was changed.
    pub fn advance(&mut self, to: u64) {
        let mut offset = to - self.now.cycle_last;
        while offset >= self.cycle_interval {
            offset -= self.cycle_interval;
            self.accumulate();
        }
        self.adjust(offset.cast_signed());
        self.now.from = to;
    }

    /// `logarithmic_accumulation`, `accumulate_nsecs_to_secs`.
    fn accumulate(&mut self) {
        self.now.cycle_last += self.cycle_interval;
        self.now.mono += i128::from(self.interval);
        while self.real() >= self.next_second * SECOND {
            self.next_second += 1;
            let leap = self.ntp.second_overflow();
            if leap != 0 {
                self.now.to_real += leap * 1_000_000_000;
                self.now.tai_s -= leap;
                self.next_second += i128::from(leap);
            }
        }
        self.ntp_error += self.ntp_tick;
        self.ntp_error -= (self.interval + self.remainder) << (SCALE - self.shift);
    }

    /// `timekeeping_adjust`, `timekeeping_apply_adjustment`.
    fn adjust(&mut self, offset: i64) {
        let base = if self.ntp_tick == self.ntp.tick_length {
            self.now.mult - self.ntp_error_mult
        } else {
            self.ntp_tick = self.ntp.tick_length;
            let tick = self.ntp_tick >> (SCALE - self.shift);
            (tick - self.remainder) / self.cycle_interval.cast_signed()
        };
        self.ntp_error_mult = i64::from(self.ntp_error > 0);
        let by = base + self.ntp_error_mult - self.now.mult;
        self.now.mult += by;
        self.interval += by * self.cycle_interval.cast_signed();
        self.now.mono -= i128::from(by * offset);
    }

    /// `timekeeping_forward_now`.
    fn forward(&mut self, to: u64) {
        let cycles = (to - self.now.cycle_last).cast_signed();
        self.now.mono += i128::from(cycles * self.now.mult);
        self.now.cycle_last = to;
        self.now.from = to;
    }

    /// `do_settimeofday64`, `timekeeping_inject_offset`.
    pub fn set(&mut self, at: u64, by_ns: i64) {
        self.forward(at);
        self.now.to_real += by_ns;
        self.begin_second();
    }

    /// `timekeeping_suspend`, `timekeeping_resume`: CLOCK_MONOTONIC stands, the others
    /// do not.
    pub fn suspend(&mut self, at: u64, for_ns: i64) {
        self.forward(at);
        self.now.to_real += for_ns;
        self.now.to_boot += for_ns;
        self.ntp_error = 0;
        self.begin_second();
    }

    fn real(&self) -> i128 {
        (self.now.mono >> self.shift) + i128::from(self.now.to_real)
    }

    fn begin_second(&mut self) {
        self.next_second = self.real().div_euclid(SECOND) + 1;
    }
}

/// `clocks_calc_mult_shift`, so that 600 s of cycles fit (`__clocksource_update_freq_scale`,
/// kernel/time/clocksource.c).
fn mult_shift(cycles_per_s: u64) -> (u64, u32) {
    let mut bits = 32;
    let mut most = (600 * cycles_per_s) >> 32;
    while most > 0 {
        (most, bits) = (most >> 1, bits - 1);
    }
    let of = |shift: u32| ((1_000_000_000u64 << shift) + cycles_per_s / 2) / cycles_per_s;
    let fits = |shift: &u32| of(*shift) >> bits == 0;
    let shift = (1..=32).rev().find(fits).expect("any counter has one");
    (of(shift), shift)
}
