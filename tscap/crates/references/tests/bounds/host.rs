//! A host of which every clock is known at every moment.

use std::cell::Cell;

use tscap_clock::StampSource;

use super::timekeeper::{Clocks, Timekeeper};

/// What happens to a host's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// adjtimex ADJ_FREQUENCY, parts per billion: at once (TK_ADV_FREQ).
    Frequency(i64),
    /// adjtimex ADJ_TICK, µs.
    Tick(i64),
    /// adjtimex ADJ_OFFSET, ns: by the kernel's phase-locked loop, from second to second.
    Offset(i64),
    /// adjtime, µs: 500 in each second.
    Slew(i64),
    /// clock_settime or ADJ_SETOFFSET, ns.
    Step(i64),
    /// A leap second at the end of the second under way: +1 inserts one.
    Leap(i64),
    /// ADJ_TAI: TAI − REALTIME becomes this, s.
    Tai(i64),
    /// For so long, ns; the TSC goes on by so many cycles meanwhile.
    Suspend { ns: i64, cycles: i64 },
    /// The TSC jumps, as when a virtual machine moves: the kernel counts by another
    /// clock (kvm-clock), which does not.
    Jump(i64),
    /// The same to a host whose TSC runs so much faster, parts per billion.
    Migration { cycles: i64, ppb: i64 },
}

impl Event {
    /// Whether the TSC does not go on with what the kernel counts by.
    pub fn moves_counter(self) -> bool {
        matches!(
            self,
            Self::Jump(_) | Self::Migration { .. } | Self::Suspend { .. }
        )
    }

    /// Whether a clock of stamps does not go on as before.
    pub fn moves_a_clock(self) -> bool {
        self.moves_counter() || matches!(self, Self::Step(_) | Self::Tai(_))
    }

    /// Whether of this and a later one between the same two readings stamps have values that
    /// follow on neither reading. CLOCK_TAI keeps its offset while the clock is set, however often.
    pub fn hides(self, later: Self, source: StampSource) -> bool {
        match source {
            StampSource::Tsc => self.moves_counter() && later.moves_counter(),
            StampSource::Ktime => false,
            StampSource::Tai => {
                let sets_tai = |event| matches!(event, Self::Tai(_));
                let moves = |event: Self| event.moves_a_clock() && event.is_of_the_kernel();
                (sets_tai(self) || sets_tai(later)) && moves(self) && moves(later)
            }
        }
    }

    /// Whether the kernel's clocks feel it.
    fn is_of_the_kernel(self) -> bool {
        !matches!(self, Self::Jump(_) | Self::Migration { .. })
    }

    /// Whether the kernel cancels timers by it (`clock_was_set`, kernel/time/hrtimer.c).
    fn sets_the_clock(self) -> bool {
        matches!(
            self,
            Self::Step(_) | Self::Tai(_) | Self::Suspend { .. } | Self::Leap(_)
        )
    }
}

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Of the oscillator that the kernel counts by, Hz.
    pub cycles_per_s: u64,
    /// Cycles of that in one of the TSC: where it is coarser than what the kernel counts by.
    pub cycles_per_count: u64,
    /// The kernel's CONFIG_HZ.
    pub ticks_per_s: u64,
    /// Most ticks that are left out in a row, the CPUs being idle.
    pub most_idle: u64,
    /// For so long it is to be known, ns.
    pub length_ns: u64,
}

impl Machine {
    /// Of one value of a TSC that is coarser than what the kernel counts by, whole ns.
    pub fn count_ns(&self) -> u64 {
        match self.cycles_per_count {
            1 => 0,
            _ => self.value_ns(),
        }
    }

    /// Of one value of the TSC, whole ns.
    pub fn value_ns(&self) -> u64 {
        (self.cycles_per_count * 1_000_000_000).div_ceil(self.cycles_per_s)
    }
}

#[derive(Debug)]
pub struct Host {
    cycles_per_s: u64,
    cycles_per_count: u64,
    shift: u32,
    /// Of CLOCK_MONOTONIC_RAW: never adjusted.
    raw_mult: i64,
    timeline: Vec<Clocks>,
    /// When the kernel tells timers that the clock was set, in cycles, in order.
    sets: Vec<u64>,
    cursor: Cell<usize>,
}

/// CLOCK_REALTIME at first, ns.
const EPOCH: i64 = 1_790_000_000_123_456_789;
/// CLOCK_MONOTONIC at first, ns; 54 s less than CLOCK_BOOTTIME.
const UPTIME: i64 = 86_000_000_000_000;
/// The TSC at first.
const TSC: i64 = 300_000_000_000_000;

impl Host {
    /// Lets everything happen, in order of time: ns since the start.
    pub fn new(machine: &Machine, events: &[(u64, Event)], random: &mut fastrand::Rng) -> Self {
        let now = Clocks {
            from: 0,
            cycle_last: 0,
            mono: UPTIME.into(),
            mult: 0,
            to_real: EPOCH - UPTIME,
            to_boot: 54_000_000_000,
            tai_s: 37,
            to_tsc: TSC,
            tsc_ppb: 0,
            tsc_from: 0,
        };
        let mut timekeeper = Timekeeper::new(machine.cycles_per_s, machine.ticks_per_s, now);
        let mut host = Self {
            cycles_per_s: machine.cycles_per_s,
            cycles_per_count: machine.cycles_per_count,
            shift: timekeeper.shift,
            raw_mult: timekeeper.now.mult,
            timeline: vec![timekeeper.now],
            sets: Vec::new(),
            cursor: Cell::new(0),
        };
        let mut events = events.iter().peekable();
        let end = host.cycles(machine.length_ns);
        let tick_ns = 1_000_000_000 / machine.ticks_per_s;
        let mut tick = 0;
        loop {
            tick += 1 + random.u64(0..=machine.most_idle);
            // The interrupt is late by some microseconds.
            let tick_at = host.cycles(tick * tick_ns + random.u64(500..20_000));
            while let Some((at, event)) = events.next_if(|(at, _)| host.cycles(*at) < tick_at) {
                let at = host.cycles(*at).max(timekeeper.now.from);
                apply(&mut timekeeper, at, *event);
                if event.sets_the_clock() {
                    host.sets.push(at);
                }
                host.timeline.push(timekeeper.now);
            }
            if tick_at > end {
                return host;
            }
            timekeeper.advance(tick_at.max(timekeeper.now.from));
            host.timeline.push(timekeeper.now);
        }
    }

    /// Cycles of the oscillator in so many ns.
    pub fn cycles(&self, ns: u64) -> u64 {
        let cycles = u128::from(ns) * u128::from(self.cycles_per_s) / 1_000_000_000;
        u64::try_from(cycles).expect("a simulation is short")
    }

    /// Whether somebody set the clock between two moments, in cycles of the oscillator: a timer
    /// with TFD_TIMER_CANCEL_ON_SET tells.
    pub fn was_set(&self, from: u64, until: u64) -> bool {
        let before = |moment| self.sets.partition_point(|at| *at <= moment);
        before(from) < before(until)
    }

    /// All clocks at a moment, in cycles of the oscillator.
    pub fn at(&self, cycles: u64) -> Now<'_> {
        let timeline = &self.timeline;
        let near = self.cursor.get();
        let is_at = |index: usize| {
            timeline[index].from <= cycles
                && timeline
                    .get(index + 1)
                    .is_none_or(|next| next.from > cycles)
        };
        let index = match [near, (near + 1).min(timeline.len() - 1)]
            .into_iter()
            .find(|index| is_at(*index))
        {
            Some(index) => index,
            None => timeline.partition_point(|clocks| clocks.from <= cycles) - 1,
        };
        self.cursor.set(index);
        Now {
            host: self,
            cycles,
            clocks: &timeline[index],
        }
    }
}

fn apply(timekeeper: &mut Timekeeper, at: u64, event: Event) {
    match event {
        Event::Frequency(ppb) => {
            timekeeper.ntp.set_frequency(ppb);
            timekeeper.advance(at);
        }
        Event::Tick(us) => {
            timekeeper.ntp.set_tick(us);
            timekeeper.advance(at);
        }
        Event::Offset(ns) => timekeeper.ntp.set_offset(ns),
        Event::Slew(us) => timekeeper.ntp.adjust(us),
        Event::Leap(seconds) => timekeeper.ntp.set_leap(seconds),
        Event::Step(ns) => timekeeper.set(at, ns),
        Event::Tai(seconds) => timekeeper.now.tai_s = seconds,
        Event::Suspend { ns, cycles } => {
            timekeeper.suspend(at, ns);
            timekeeper.now.to_tsc += cycles;
        }
        Event::Jump(cycles) => timekeeper.now.to_tsc += cycles,
        Event::Migration { cycles, ppb } => {
            let now = &mut timekeeper.now;
            now.to_tsc = now.tsc_ahead(at) + cycles;
            (now.tsc_from, now.tsc_ppb) = (at, ppb);
        }
    }
    timekeeper.now.from = at;
}

/// The clocks of a host at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    host: &'a Host,
    cycles: u64,
    clocks: &'a Clocks,
}

/// Readings as the vDSO gives them: cut to whole nanoseconds
/// (`do_hres`, lib/vdso/gettimeofday.c).
impl Now<'_> {
    pub fn tsc(self) -> u64 {
        let cycles = self
            .cycles
            .wrapping_add_signed(self.clocks.tsc_ahead(self.cycles));
        cycles / self.host.cycles_per_count
    }

    pub fn mono(self) -> u64 {
        let cycles = (self.cycles - self.clocks.cycle_last).cast_signed();
        let ns = (self.clocks.mono + i128::from(cycles * self.clocks.mult)) >> self.host.shift;
        u64::try_from(ns).expect("it is later than boot")
    }

    pub fn raw(self) -> u64 {
        let ns = (i128::from(self.cycles) * i128::from(self.host.raw_mult)) >> self.host.shift;
        u64::try_from(ns).expect("it begins with 0")
    }

    pub fn real(self) -> u64 {
        self.mono().wrapping_add_signed(self.clocks.to_real)
    }

    pub fn tai(self) -> u64 {
        self.real()
            .wrapping_add_signed(self.clocks.tai_s * 1_000_000_000)
    }

    pub fn boot(self) -> u64 {
        self.mono().wrapping_add_signed(self.clocks.to_boot)
    }
}
