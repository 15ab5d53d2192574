//! Cross-timestamps: two clocks read so close together that the order of the
//! reads bounds their offset strictly.

use nix::time::{ClockId, clock_gettime};

use super::{BootNs, Bracket, MonoNs, RealNs, StampSource, TaiNs, TscCycles};
use crate::sys::tsc;

/// Readings of several clocks, taken in the order mono, TSC, real, TSC, tai, mono; the
/// TSC only where it stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossTimestamp {
    /// CLOCK_MONOTONIC before and after.
    pub mono: [MonoNs; 2],
    /// The TSC inside of that, if it was read.
    pub tsc: Option<[TscCycles; 2]>,
    /// CLOCK_REALTIME inside of that: its first and last reading, mostly the same.
    pub real: [RealNs; 2],
    /// CLOCK_TAI, after the first of these: whole seconds are all that it is for, and
    /// inside it would make the bracket of the TSC half as wide again.
    pub tai: TaiNs,
    /// CLOCK_BOOTTIME after all others, where REALTIME − MONOTONIC is another than in
    /// the reading before: it tells whether the machine was suspended.
    pub boot: Option<BootNs>,
}

impl CrossTimestamp {
    /// Bounds of REALTIME − MONOTONIC in ns, both inclusive, or `None` if the
    /// clock was set in between.
    ///
    /// Within one segment the kernel keeps the offset a constant whole number of
    /// nanoseconds (`offs_real`, kernel/time/timekeeping.c) and both clocks
    /// truncate the same fraction, so that a reading of one *is* a reading of
    /// the other plus the offset. `real[0]` was read no earlier than `mono[0]`
    /// and `real[1]` no later than `mono[1]`.
    pub fn mono_to_real(&self) -> Option<(i64, i64)> {
        let low = difference(self.real[1].0, self.mono[1].0);
        let high = difference(self.real[0].0, self.mono[0].0);
        (low <= high).then_some((low, high))
    }

    /// BOOTTIME − MONOTONIC: for how long the machine has been suspended since it
    /// booted, ns, and no more than the two readings are apart; if that was read.
    pub fn suspended_ns(&self) -> Option<u64> {
        let boot = self.boot?;
        Some(boot.0.saturating_sub(self.mono[1].0))
    }

    /// From the first reading of CLOCK_MONOTONIC to the last, ns.
    pub fn width_ns(&self) -> u64 {
        self.mono[1].0.saturating_sub(self.mono[0].0)
    }

    /// TAI − REALTIME: the one whole number of seconds that the readings allow,
    /// or `None` if the clock was set in between.
    pub fn tai_offset_s(&self) -> Option<i64> {
        const SECOND: i64 = 1_000_000_000;
        let low = difference(self.tai.0, self.real[1].0.saturating_add(self.width_ns()));
        let high = difference(self.tai.0, self.real[0].0);
        let seconds = high.div_euclid(SECOND);
        (low <= high && seconds * SECOND >= low).then_some(seconds)
    }
}

impl CrossTimestamp {
    /// CLOCK_REALTIME between two readings of the TSC, if that was read.
    pub fn bracket(&self) -> Option<Bracket> {
        self.tsc.map(|tsc| Bracket {
            tsc,
            real: self.real,
        })
    }
}

fn difference(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}

/// Where readings come from: the host, a device, or a script in a test.
pub trait Reference<T = CrossTimestamp> {
    /// Takes one.
    fn read(&mut self) -> T;
}

/// The host's clocks, read through the vDSO: about four times 20 ns, and twice 20 ns
/// for the TSC.
#[derive(Clone, Copy, Debug)]
pub struct HostClocks {
    reads_tsc: bool,
    /// REALTIME − MONOTONIC in the latest reading, ns.
    offset: Option<i64>,
}

/// REALTIME − MONOTONIC is another one if it has moved by so much, ns: readings that
/// are interrupted seem to move it, but no suspend is shorter.
const MOVED_NS: u64 = 1_000_000;

impl HostClocks {
    /// The clocks that stamps of `source` are held against.
    pub fn new(source: StampSource) -> Self {
        Self {
            reads_tsc: source == StampSource::Tsc,
            offset: None,
        }
    }

    /// Reads CLOCK_BOOTTIME if the other two have moved.
    fn boot(&mut self, real: u64, mono: MonoNs) -> Option<BootNs> {
        let offset = difference(real, mono.0);
        let has_moved = |before: i64| before.abs_diff(offset) > MOVED_NS;
        let is_due = self.offset.is_none_or(has_moved);
        self.offset = Some(offset);
        is_due.then(|| BootNs(now(ClockId::CLOCK_BOOTTIME)))
    }

    fn tsc(self) -> Option<TscCycles> {
        self.reads_tsc.then(tsc::read)
    }
}

impl Reference for HostClocks {
    fn read(&mut self) -> CrossTimestamp {
        let mono_before = MonoNs::now();
        let tsc_before = self.tsc();
        let real = now(ClockId::CLOCK_REALTIME);
        let tsc_after = self.tsc();
        let tai = now(ClockId::CLOCK_TAI);
        let mono_after = MonoNs::now();
        CrossTimestamp {
            mono: [mono_before, mono_after],
            tsc: tsc_before.zip(tsc_after).map(<[_; 2]>::from),
            real: [RealNs(real); 2],
            tai: TaiNs(tai),
            boot: self.boot(real, mono_before),
        }
    }
}

impl Reference<MonoNs> for HostClocks {
    fn read(&mut self) -> MonoNs {
        MonoNs::now()
    }
}

impl MonoNs {
    /// Reads CLOCK_MONOTONIC through the vDSO.
    #[inline]
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_MONOTONIC))
    }
}

impl RealNs {
    /// Reads CLOCK_REALTIME through the vDSO.
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_REALTIME))
    }
}

impl TaiNs {
    /// Reads CLOCK_TAI through the vDSO.
    #[inline]
    pub fn now() -> Self {
        Self(now(ClockId::CLOCK_TAI))
    }
}

#[inline]
pub(super) fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every Linux has these clocks");
    u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_clock_between_the_reads_is_noticed() {
        let cross = CrossTimestamp {
            mono: [MonoNs(100), MonoNs(140)],
            tsc: None,
            real: [RealNs(1_110), RealNs(5_000)],
            tai: TaiNs(1_120),
            boot: None,
        };
        assert_eq!(cross.mono_to_real(), None);
        assert_eq!(cross.tai_offset_s(), Some(0));
    }

    #[test]
    fn tai_offset_is_a_whole_number_of_seconds() {
        let real = [RealNs(5_000_000_000), RealNs(5_000_000_050)];
        let cross = |tai| CrossTimestamp {
            mono: [MonoNs(0), MonoNs(100)],
            tsc: None,
            real,
            tai: TaiNs(tai),
            boot: None,
        };
        assert_eq!(cross(42_000_000_020).tai_offset_s(), Some(37));
        assert_eq!(cross(5_000_000_020).tai_offset_s(), Some(0));
        assert_eq!(cross(4_000_000_020).tai_offset_s(), Some(-1));
        assert_eq!(cross(42_000_000_999).tai_offset_s(), None);
    }

    /// It costs a reading, so it is read where the others have moved.
    #[test]
    fn suspend_is_looked_for_when_the_clocks_part() {
        let mut clocks = HostClocks::new(StampSource::Ktime);
        let mut read = || -> CrossTimestamp { clocks.read() };
        let first = read().suspended_ns();
        assert!(first.is_some());
        let later = (0..100).filter(|_| read().boot.is_some()).count();
        // Readings that are interrupted seem to move.
        assert!(later < 50, "{later}");
        clocks.offset = clocks.offset.map(|offset| offset - 3_600_000_000_000);
        let cross: CrossTimestamp = clocks.read();
        let now = cross.suspended_ns().expect("they have moved");
        assert!(first.is_some_and(|first| now.abs_diff(first) < 1_000_000_000));
    }

    #[test]
    fn the_host_agrees_with_itself() {
        let mut clocks = HostClocks::new(StampSource::Tsc);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        for _ in 0..1000 {
            let cross: CrossTimestamp = clocks.read();
            assert!(cross.tai_offset_s().is_some());
            assert!(cross.tsc.is_some_and(|[before, after]| before < after));
            let (l, h) = cross.mono_to_real().expect("nobody sets the clock here");
            (low, high) = (low.max(l), high.min(h));
        }
        assert!(low <= high, "brackets must share an offset: {low}..{high}");
    }
}
