//! Cross-timestamps: two clocks read so close together that the order of the
//! reads bounds their offset strictly.

use nix::time::ClockId;
use tscap_time::ptp::{PtpDevice, PtpError};
pub use tscap_time::{PhcReading, now};

use super::{
    BootNs, Bracket, FollowedBounds, MonoNs, OffsetNs, RealNs, StampSource, TaiNs, TscCycles,
};
use tscap_time::timex::ClockSetWatch;
use tscap_time::tsc;

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
    /// REALTIME − MONOTONIC exactly, if it was read: proof that nobody set the clock by
    /// less than the brackets show.
    pub offset: Option<OffsetNs>,
}

impl CrossTimestamp {
    /// Bounds of REALTIME − MONOTONIC in ns, both inclusive, or `None` if the
    /// clock was set in between.
    ///
    /// Within one segment the kernel keeps the offset a constant whole number of
    /// nanoseconds (`offs_real`, kernel/time/timekeeping.c) and both clocks
    /// truncate the same fraction, so that a reading of one *is* a reading of
    /// the other plus the offset. `real[0]` was read no earlier than `mono[0]`
    /// and `real[1]` no later than `mono[1]`. Where the offset was read exactly, both
    /// bounds are that.
    pub fn mono_to_real(&self) -> Option<(i64, i64)> {
        let low = difference(self.real[1].0, self.mono[1].0);
        let high = difference(self.real[0].0, self.mono[0].0);
        let (low, high) = match self.offset {
            Some(OffsetNs(exact)) => (low.max(exact), high.min(exact)),
            None => (low, high),
        };
        (low <= high).then_some((low, high))
    }

    /// BOOTTIME − MONOTONIC: for how long the machine has been suspended since it
    /// booted, ns, and no more than the two readings are apart; if that was read.
    pub(crate) fn suspended_ns(&self) -> Option<u64> {
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

    /// CLOCK_MONOTONIC_RAW between two readings of the TSC, where it can be had.
    fn raw(&mut self) -> Option<Bracket> {
        None
    }

    /// Whether the kernel says that somebody has set the clock since this was asked last.
    fn was_set(&mut self) -> bool {
        false
    }

    /// Where these are clocks that follow a reference: how far off it they were at most since
    /// this was asked last.
    fn followed(&mut self) -> Option<FollowedBounds> {
        None
    }
}

/// The host's clocks, read through the vDSO: about four times 20 ns, twice 20 ns for the
/// TSC, and three times 5 ns for the coarse clocks.
#[derive(Debug)]
pub struct HostClocks {
    reads_tsc: bool,
    /// REALTIME − MONOTONIC when it was read last.
    offset: Option<OffsetNs>,
    /// Knows of a clock that was set and set back, which no reading shows; none where there is no
    /// descriptor left for it.
    set: Option<ClockSetWatch>,
}

/// Hears of a set clock by itself.
impl Clone for HostClocks {
    fn clone(&self) -> Self {
        Self {
            set: ClockSetWatch::new().ok(),
            ..*self
        }
    }
}

impl HostClocks {
    /// The clocks that stamps of `source` are held against.
    pub fn new(source: StampSource) -> Self {
        Self {
            reads_tsc: source == StampSource::Tsc,
            offset: None,
            set: ClockSetWatch::new().ok(),
        }
    }

    fn tsc(&self) -> Option<TscCycles> {
        self.reads_tsc.then(tsc::read)
    }

    fn read_once(&self) -> CrossTimestamp {
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
            boot: None,
            offset: exact_offset(),
        }
    }
}

/// REALTIME − MONOTONIC, by the coarse clocks: both are the time of the latest tick, and
/// the kernel makes one of the other by adding that offset, whole nanoseconds
/// (`update_vdso_time_data`, kernel/time/vsyscall.c). `None` if ticks came between the
/// reads each time.
pub fn exact_offset() -> Option<OffsetNs> {
    (0..3).find_map(|_| {
        let before = now(ClockId::CLOCK_MONOTONIC_COARSE);
        let real = now(ClockId::CLOCK_REALTIME_COARSE);
        let after = now(ClockId::CLOCK_MONOTONIC_COARSE);
        (before == after).then(|| OffsetNs(difference(real, before)))
    })
}

impl Reference for HostClocks {
    /// Reads again if the clock was set since the reading before: it may have been in
    /// this one.
    fn read(&mut self) -> CrossTimestamp {
        let mut cross = self.read_once();
        if self.offset.is_none() || (cross.offset.is_some() && cross.offset != self.offset) {
            cross = self.read_once();
            cross.boot = Some(BootNs(now(ClockId::CLOCK_BOOTTIME)));
        }
        self.offset = cross.offset.or(self.offset);
        cross
    }

    fn raw(&mut self) -> Option<Bracket> {
        self.reads_tsc.then(Bracket::of_raw)
    }

    /// By a system call, which takes some hundred nanoseconds.
    fn was_set(&mut self) -> bool {
        let set = self.set.as_ref();
        set.is_some_and(|set| set.was_set().unwrap_or(false))
    }
}

impl Reference<MonoNs> for HostClocks {
    fn read(&mut self) -> MonoNs {
        MonoNs::now()
    }
}

impl Reference<Result<PhcReading, PtpError>> for PtpDevice {
    fn read(&mut self) -> Result<PhcReading, PtpError> {
        Self::read(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_raw_clock_is_read_where_the_counter_is() {
        let reads_raw = |source| Reference::<CrossTimestamp>::raw(&mut HostClocks::new(source));
        assert!(reads_raw(StampSource::Tsc).is_some());
        assert!(reads_raw(StampSource::Ktime).is_none());
    }

    #[test]
    fn the_time_of_a_look_is_the_present() {
        let before = MonoNs::now();
        let read: MonoNs = HostClocks::new(StampSource::Ktime).read();
        assert!((before..=MonoNs::now()).contains(&read));
    }

    #[test]
    fn clocks_are_read_in_nanoseconds() {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
        let now = now.expect("a clock after 1970").as_nanos() as u64;
        assert!(RealNs::now().0.abs_diff(now) < 60_000_000_000);
    }

    #[test]
    fn a_set_clock_between_the_reads_is_noticed() {
        let cross = CrossTimestamp {
            mono: [MonoNs(100), MonoNs(140)],
            tsc: None,
            real: [RealNs(1_110), RealNs(5_000)],
            tai: TaiNs(1_120),
            boot: None,
            offset: None,
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
            offset: None,
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
        assert!((0..100).all(|_| read().boot.is_none()));
        clocks.offset = clocks.offset.map(|OffsetNs(ns)| OffsetNs(ns - 1));
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
            assert!(cross.tsc.is_some_and(|[before, after]| before <= after));
            let (l, h) = cross.mono_to_real().expect("nobody sets the clock here");
            (low, high) = (low.max(l), high.min(h));
            let by_brackets = CrossTimestamp {
                offset: None,
                ..cross
            };
            let (l, h) = by_brackets
                .mono_to_real()
                .expect("nobody sets the clock here");
            let exact = cross.offset.expect("ticks are far apart").0;
            assert!((l..=h).contains(&exact), "{exact} {l}..{h}");
        }
        assert_eq!(low, high, "the coarse clocks give one offset");
        assert!(low <= high, "brackets must share an offset: {low}..{high}");
    }
}
