//! What happens in one run: all of it follows from its class and its seed.

use fastrand::Rng;
use tscap_clock::StampSource;

use super::events::Class;
use super::host::{Event, Machine};
use super::noise::{KINDS, Kind, log_uniform};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000 * US;
pub const S: u64 = 1_000 * MS;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub class: Class,
    pub seed: u64,
    pub source: StampSource,
    pub machine: Machine,
    pub noise: Kind,
    /// When what happens to the host, ns since the start, in order.
    pub events: Vec<(u64, Event)>,
    /// Between two drains, ns.
    pub drain_ns: u64,
    /// Drains that are late: from when, and for how long, ns.
    pub stalls: Vec<(u64, u64)>,
    /// From when until when nearly every reading is interrupted.
    pub storms: Vec<(u64, u64)>,
    /// Whether the coarse clocks give REALTIME − MONOTONIC exactly, as they nearly always do.
    pub reads_offset: bool,
    /// Youngest stamps that a drain leaves to the next one, ns.
    pub held_back_ns: u64,
    /// Whether it leaves all of those since the reading before: as long as stamps ever wait.
    pub holds_a_drain: bool,
    /// Whether there is a PTP hardware clock.
    pub has_device: bool,
    /// For more random numbers.
    pub random: Rng,
}

/// Before this the clock settles, and nothing happens.
pub const SETTLED: u64 = 400 * MS;

impl Scenario {
    pub fn new(class: Class, seed: u64) -> Self {
        // Seeds that follow on one another give classes that have nothing in common.
        let mut random = Rng::with_seed(seed ^ ((class as u64) << 32));
        let length_ns = random.u64(12 * S..25 * S);
        let ticks_per_s = [100, 250, 300, 1_000][random.usize(0..4)];
        let mut scenario = Self {
            class,
            seed,
            source: StampSource::Tsc,
            machine: Machine {
                cycles_per_s: random.u64(1_200_000_000..4_800_000_000),
                cycles_per_count: 1,
                ticks_per_s,
                most_idle: [0, 0, ticks_per_s / 100][random.usize(0..3)],
                length_ns,
            },
            noise: KINDS[usize::try_from(seed % 3).expect("it is small")],
            events: Vec::new(),
            drain_ns: [10 * MS, 10 * MS, 10 * MS, 4 * MS][random.usize(0..4)],
            stalls: Vec::new(),
            storms: Vec::new(),
            reads_offset: seed % 4 != 3,
            held_back_ns: [0, 0, 50 * US][random.usize(0..3)],
            holds_a_drain: false,
            has_device: false,
            random,
        };
        let base = scenario.random.i64(-80_000..80_000);
        scenario.events.push((0, Event::Frequency(base)));
        class.happens(&mut scenario, base);
        scenario.events.sort_by_key(|(at, _)| *at);
        scenario.stalls.sort_unstable();
        scenario.part_jumps();
        scenario
    }

    /// Where the stamps' clock jumps twice between two readings nobody knows the values in between:
    /// the second jump does not happen.
    fn part_jumps(&mut self) {
        let (source, drain_ns, stalls) = (self.source, self.drain_ns, &self.stalls);
        let is_read_between = |before: u64, at: u64| {
            let is_over = |(from, length): &(u64, u64)| {
                let stall = from.saturating_sub(drain_ns)..from + length + drain_ns;
                stall.contains(&before) && stall.contains(&at)
            };
            at > before + 2 * drain_ns && !stalls.iter().any(is_over)
        };
        let mut jumps: Vec<(u64, Event)> = Vec::new();
        self.events.retain(|(at, event)| {
            let hides = |(before, earlier): &(u64, Event)| {
                earlier.hides(*event, source) && !is_read_between(*before, *at)
            };
            let happens = !jumps.iter().any(hides);
            if happens && event.moves_a_clock() {
                jumps.push((*at, *event));
            }
            happens
        });
    }

    /// Until when things happen, ns.
    pub fn end(&self) -> u64 {
        self.machine.length_ns - 200 * MS
    }

    /// Some moment at which something may happen.
    pub fn moment(&mut self) -> u64 {
        let at = self.random.u64(SETTLED + 100 * MS..self.end() - 500 * MS);
        match self.random.u8(0..5) {
            // Amid a reading of the clocks, or close to it.
            0 => {
                let drain = at / self.drain_ns * self.drain_ns;
                drain + self.random.u64(0..500)
            }
            1 => {
                let drain = at / self.drain_ns * self.drain_ns;
                drain.saturating_add_signed(self.random.i64(-50_000..50_000))
            }
            _ => at,
        }
    }

    pub fn happens(&mut self, at: u64, event: Event) {
        self.events.push((at, event));
    }

    /// Every so many ns, more or less, from the settled clock to the end.
    pub fn each(&mut self, every_ns: u64, mut what: impl FnMut(&mut Self, u64) -> Event) {
        let mut at = SETTLED + self.random.u64(0..every_ns);
        while at < self.end() {
            let jitter = self.random.u64(0..every_ns / 50 + 1);
            let event = what(self, at);
            self.happens(at + jitter, event);
            at += every_ns;
        }
    }

    /// A stall that begins at most so long before a moment, and ends after it.
    pub fn stalls_over(&mut self, at: u64, most_ns: u64) {
        let length = log_uniform(&mut self.random, 20 * MS, most_ns);
        let before = self.random.u64(0..length);
        self.stalls
            .push((at.saturating_sub(before).max(SETTLED), length));
    }

    /// Readings around a moment are interrupted.
    pub fn is_stormy(&mut self, at: u64) {
        let before = log_uniform(&mut self.random, MS, 30 * MS);
        let after = log_uniform(&mut self.random, MS, 80 * MS);
        self.storms.push((at.saturating_sub(before), at + after));
    }
}
