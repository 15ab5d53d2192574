//! A process that reads a host's clocks, as [`tscap_clock::HostClocks`] does.

use tscap_clock::{
    BootNs, Bracket, CrossTimestamp, MonoNs, OffsetNs, RealNs, Reference, StampSource, TaiNs,
    TscCycles,
};

use super::host::{Host, Now};
use super::noise::{Kind, Noise};

#[derive(Debug)]
pub struct Reader<'a> {
    host: &'a Host,
    noise: Noise,
    storms: &'a [(u64, u64)],
    reads_tsc: bool,
    /// Now, ns since the start.
    pub now_ns: u64,
    /// Whether the coarse clocks give REALTIME − MONOTONIC exactly. They do not where a
    /// tick comes between their readings each time.
    reads_offset: bool,
    /// REALTIME − MONOTONIC when it was read exactly last.
    offset: Option<OffsetNs>,
    /// REALTIME − MONOTONIC in the latest reading, ns.
    to_real: Option<i64>,
    /// When it was asked last whether the clock was set, ns.
    asked_ns: u64,
}

/// From here on CLOCK_BOOTTIME is read too, ns.
const MOVED_NS: u64 = 1_000_000;

impl<'a> Reader<'a> {
    pub fn new(
        host: &'a Host,
        source: StampSource,
        noise: Kind,
        seed: u64,
        storms: &'a [(u64, u64)],
        reads_offset: bool,
    ) -> Self {
        Self {
            host,
            noise: Noise::new(noise, seed),
            storms,
            reads_tsc: source == StampSource::Tsc,
            now_ns: 0,
            reads_offset,
            offset: None,
            to_real: None,
            asked_ns: 0,
        }
    }

    /// The clocks at the next reading of a bracket.
    pub fn next(&mut self, reading: usize) -> Now<'a> {
        let now = self.now_ns;
        let is_storm = |(from, until): &(u64, u64)| (*from..*until).contains(&now);
        let is_storm = self.storms.iter().any(is_storm);
        self.now_ns += self.noise.gap(reading, is_storm);
        self.host.at(self.host.cycles(self.now_ns))
    }

    /// The process sleeps until then, if that is later.
    pub fn sleep_until(&mut self, ns: u64) {
        self.now_ns = self.now_ns.max(ns);
    }

    fn tsc(&mut self, reading: usize) -> Option<TscCycles> {
        self.reads_tsc.then(|| TscCycles(self.next(reading).tsc()))
    }

    fn read_once(&mut self) -> CrossTimestamp {
        let mono_before = self.next(0).mono();
        let tsc_before = self.tsc(1);
        let real = self.next(2).real();
        let tsc_after = self.tsc(3);
        let tai = self.next(4).tai();
        let mono_after = self.next(5).mono();
        let to_real = real.wrapping_sub(mono_before).cast_signed();
        let before = self.to_real.replace(to_real);
        let is_due = before.is_none_or(|before| before.abs_diff(to_real) > MOVED_NS);
        let coarse = self.reads_offset.then(|| self.next(5));
        CrossTimestamp {
            mono: [MonoNs(mono_before), MonoNs(mono_after)],
            tsc: tsc_before.zip(tsc_after).map(<[_; 2]>::from),
            real: [RealNs(real); 2],
            tai: TaiNs(tai),
            offset: coarse.map(|now| OffsetNs(now.real().wrapping_sub(now.mono()).cast_signed())),
            boot: is_due.then(|| BootNs(self.next(0).boot())),
        }
    }
}

impl Reference for Reader<'_> {
    fn read(&mut self) -> CrossTimestamp {
        let mut cross = self.read_once();
        if cross.offset != self.offset {
            cross = self.read_once();
        }
        self.offset = cross.offset;
        cross
    }

    fn raw(&mut self) -> Option<Bracket> {
        let before = self.tsc(1)?;
        let raw = RealNs(self.next(2).raw());
        Some(Bracket {
            tsc: [before, self.tsc(3)?],
            real: [raw; 2],
        })
    }

    fn was_set(&mut self) -> bool {
        let before = std::mem::replace(&mut self.asked_ns, self.now_ns);
        let [before, now] = [before, self.now_ns].map(|ns| self.host.cycles(ns));
        self.host.was_set(before, now)
    }
}

impl Reference<MonoNs> for Reader<'_> {
    fn read(&mut self) -> MonoNs {
        MonoNs(self.next(0).mono())
    }
}
