//! Other clocks than CLOCK_REALTIME that the times of a file may be of.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::history::samples_of;
use super::{History, MonoNs, RawStamp, RealNs, Segment, StampSource, TableOffset, TscCycles};
use tscap_time::NS_PER_S;

/// Which clock the times of a file are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeBase {
    /// CLOCK_REALTIME, UTC since 1970: as captures have it.
    #[default]
    Realtime,
    /// CLOCK_TAI, since 1970: ahead of UTC by a whole number of seconds, as far as the
    /// kernel has been told which.
    Tai,
    /// CLOCK_MONOTONIC, since boot (suspend not counted).
    Monotonic,
    /// UTC by an NTP server, since 1970, see [`NtpBase`].
    Ntp,
    /// CLOCK_REALTIME of another host, since 1970, see [`PeerBase`].
    Peer,
}

/// Which clock the times of a file are of, and how it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileClock {
    /// Which one.
    pub base: TimeBase,
    /// For CLOCK_TAI: its offset where the kernel had not been given one.
    pub table: Option<TableOffset>,
    /// For an NTP server: which one.
    pub ntp: Option<NtpBase>,
    /// For another host: which one.
    pub peer: Option<PeerBase>,
}

/// The host whose clock the times of a file are of, where another one captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerBase {
    /// Its boot.
    pub boot: BootId,
    /// Greatest error of the times against its clock, ns.
    pub bound_ns: u64,
    /// The same against UTC, ns, if its capture says how far its clock is from that.
    pub utc_bound_ns: Option<u64>,
}

/// A boot of a machine, as in `/proc/sys/kernel/random/boot_id`: a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct BootId(u128);

impl BootId {
    /// By the text of it; `None` of others than UUIDs.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|it| *it != '-').collect();
        let is_uuid = digits.len() == 32 && text.len() == 36;
        let number = is_uuid.then(|| u128::from_str_radix(&digits, 16).ok())?;
        number.map(Self)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032x}", self.0);
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|it| &digits[it]);
        f.write_str(&parts.join("-"))
    }
}

impl From<BootId> for String {
    fn from(boot: BootId) -> Self {
        boot.to_string()
    }
}

impl TryFrom<String> for BootId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text} is no boot"))
    }
}

/// The server whose clock the times of a file are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NtpBase {
    /// The server.
    pub server: SocketAddr,
    /// Greatest error of the times against its clock, ns.
    pub bound_ns: u64,
    /// Greatest error of its clock against UTC meanwhile, by its own account, ns.
    pub root_distance_ns: u64,
}

/// A time as it stands in a file, ns of the clock that its [`TimeBase`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileNs(pub u64);

impl TimeBase {
    /// Name as on the command line and in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Realtime => "realtime",
            Self::Tai => "tai",
            Self::Monotonic => "monotonic",
            Self::Ntp => "ntp",
            Self::Peer => "peer",
        }
    }

    /// Whether it is that of captures.
    pub fn is_realtime(&self) -> bool {
        *self == Self::Realtime
    }

    /// A time of this base, if that is CLOCK_REALTIME.
    pub fn real(&self, time: FileNs) -> Option<RealNs> {
        self.is_realtime().then_some(RealNs(time.0))
    }
}

/// How far a clock is ahead of CLOCK_REALTIME in each segment, by one offset a segment:
/// so that what was converted to it can be converted back exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseClock {
    /// Offset, and from which reading on; only changes.
    changes: Vec<(Change, i64)>,
}

/// The first reading of a segment: where stamps are taken for later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    mono: MonoNs,
    /// In the stamps' clock; none if the history has left it out.
    stamp: Option<RawStamp>,
}

/// Why nobody can tell how far a clock was ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeBaseError {
    /// There is no segment.
    #[error("there is no word of its clock")]
    NoSegment,
    /// A packet could belong to either of two.
    #[error(
        "the clock was set meanwhile, and not all packets kept their raw stamps: nobody knows \
         which of them came before"
    )]
    NoStamp,
    /// The stamp at which a segment begins is not known.
    #[error("the clock was set meanwhile, and the history does not tell at which stamp")]
    NoStart,
    /// They are of another machine's clock.
    #[error("they are of another machine's clock, of which the history tells nothing")]
    OtherMachine,
    /// Segments are missing.
    #[error("the clock was set so often that {0} of its segments were left out")]
    LeftOut(u64),
}

impl BaseClock {
    /// By a [checked](History::checked) history; `all_have_stamps` if every packet of
    /// interest kept its raw stamp.
    ///
    /// # Errors
    /// [`TimeBaseError`]
    pub fn new(
        history: &History,
        clock: FileClock,
        all_have_stamps: bool,
    ) -> Result<Self, TimeBaseError> {
        let base = clock.base;
        if matches!(base, TimeBase::Ntp | TimeBase::Peer) {
            return Err(TimeBaseError::OtherMachine);
        }
        if history.left_out > 0 && base != TimeBase::Realtime {
            return Err(TimeBaseError::LeftOut(history.left_out));
        }
        let mut changes: Vec<(Change, i64)> = Vec::new();
        let mut latest = None;
        let mut goes_back = false;
        for segment in &history.segments {
            let mut ahead_ns = ahead_ns(segment, clock);
            // Begun by a jump of the counter or another offset of TAI: the two clocks went on
            // as before.
            let goes_on = segment.after.is_some() && segment.step_ns == 0;
            if let Some((_, before)) = changes.last()
                && goes_on
                && base == TimeBase::Monotonic
            {
                ahead_ns = *before;
            }
            let stamp = first_stamp(history, segment);
            // A counter that went back passes the same values twice.
            goes_back |= stamp.is_some() && stamp < latest;
            latest = stamp.or(latest);
            if changes.last().is_none_or(|(_, last)| *last != ahead_ns) {
                let mono = segment.from;
                changes.push((Change { mono, stamp }, ahead_ns));
            }
        }
        match base {
            TimeBase::Realtime => changes.truncate(1),
            _ if changes.is_empty() => return Err(TimeBaseError::NoSegment),
            _ => {}
        }
        if changes.len() > 1 {
            if !all_have_stamps {
                return Err(TimeBaseError::NoStamp);
            }
            // Whatever comes before the second is of the first.
            let is_untold = changes[1..]
                .iter()
                .any(|(change, _)| change.stamp.is_none());
            if goes_back || is_untold {
                return Err(TimeBaseError::NoStart);
            }
        }
        Ok(Self { changes })
    }

    /// The time of a stamp in this clock; exact. `None` if a file can't hold it.
    pub fn from_real(&self, real: RealNs, stamp: Option<RawStamp>) -> Option<FileNs> {
        real.0.checked_add_signed(self.ahead_ns(stamp)).map(FileNs)
    }

    /// And back.
    pub fn to_real(&self, time: FileNs, stamp: Option<RawStamp>) -> Option<RealNs> {
        time.0.checked_sub_signed(self.ahead_ns(stamp)).map(RealNs)
    }

    /// How far it was ahead of CLOCK_REALTIME at a stamp, ns. Between two segments, where
    /// the clock was being set, a stamp is of the earlier, as in a capture.
    fn ahead_ns(&self, stamp: Option<RawStamp>) -> i64 {
        self.in_force(|change| change.stamp <= stamp)
    }

    /// The same at a reading of CLOCK_MONOTONIC.
    pub fn ahead_ns_at(&self, mono: MonoNs) -> i64 {
        self.in_force(|change| change.mono <= mono)
    }

    fn in_force(&self, has_begun: impl Fn(&Change) -> bool) -> i64 {
        let after = self
            .changes
            .partition_point(|(change, _)| has_begun(change));
        let index = after.saturating_sub(1);
        self.changes.get(index).map_or(0, |(_, ahead_ns)| *ahead_ns)
    }
}

fn ahead_ns(segment: &Segment, clock: FileClock) -> i64 {
    match (clock.base, clock.table) {
        (TimeBase::Realtime | TimeBase::Ntp | TimeBase::Peer, _) => 0,
        (TimeBase::Tai, Some(table)) if !segment.has_tai_offset() => table.tai_offset_s * NS_PER_S,
        (TimeBase::Tai, _) => segment.tai_offset_s * NS_PER_S,
        (TimeBase::Monotonic, _) => -segment.mono_to_real.middle().0,
    }
}

/// What the first reading of a segment was in the stamps' clock.
fn first_stamp(history: &History, segment: &Segment) -> Option<RawStamp> {
    let mono = segment.from;
    match history.source {
        StampSource::Ktime => Some(RawStamp(mono.0)),
        StampSource::Tai => {
            // The kernel's own clock, whatever its offset.
            let ahead_ns = segment.tai_offset_s * NS_PER_S;
            let real = RawStamp(mono.0).to_real(segment.mono_to_real.middle());
            Some(RawStamp(real.0.wrapping_add_signed(ahead_ns)))
        }
        StampSource::Tsc => {
            let first = samples_of(segment, &history.samples).first()?;
            // Where it does not follow on another, its first sample will do.
            let is_first = segment.after.is_none() || first.mono <= mono;
            let tsc = first.tsc.filter(|_| is_first);
            tsc.map(|[TscCycles(before), _]| RawStamp(before))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bounds, Sample};

    fn of(base: TimeBase) -> FileClock {
        FileClock {
            base,
            ..FileClock::default()
        }
    }

    fn segment(from: u64, offset: i64, tai_offset_s: i64) -> Segment {
        Segment {
            after: None,
            from: MonoNs(from),
            until: MonoNs(from + 90),
            mono_to_real: Bounds {
                low: offset - 4,
                high: offset + 4,
            },
            tai_offset_s,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 1,
        }
    }

    fn history(source: StampSource, segments: &[Segment]) -> History {
        let mut history = History::new(source);
        history.take(None, segments, []).unwrap();
        history
    }

    /// A second was inserted: CLOCK_REALTIME went back, TAI did not.
    fn leap(source: StampSource) -> History {
        let offset = 5_000_000_000;
        let segments = [
            segment(100, offset, 37),
            segment(200, offset - NS_PER_S, 38),
        ];
        history(source, &segments)
    }

    #[test]
    fn each_segment_has_its_offset() {
        let leap = leap(StampSource::Ktime);
        let tai = BaseClock::new(&leap, of(TimeBase::Tai), true).unwrap();
        let mono = BaseClock::new(&leap, of(TimeBase::Monotonic), true).unwrap();
        for (stamp, tai_s, offset) in [
            (0, 37, 5_000_000_000),
            (199, 37, 5_000_000_000),
            (200, 38, 4_000_000_000),
            (900, 38, 4_000_000_000),
        ] {
            assert_eq!(tai.ahead_ns(Some(RawStamp(stamp))), tai_s * NS_PER_S);
            assert_eq!(mono.ahead_ns(Some(RawStamp(stamp))), -offset);
            assert_eq!(mono.ahead_ns_at(MonoNs(stamp)), -offset);
        }
        let real = BaseClock::new(&leap, of(TimeBase::Realtime), false).unwrap();
        assert_eq!(real.ahead_ns(None), 0);
        // It needs no history.
        let none = History::new(StampSource::Ktime);
        assert!(BaseClock::new(&none, of(TimeBase::Realtime), false).is_ok());
        let tai = BaseClock::new(&none, of(TimeBase::Tai), false);
        assert!(matches!(tai, Err(TimeBaseError::NoSegment)), "{tai:?}");
    }

    #[test]
    fn a_table_tells_of_segments_in_which_the_kernel_has_no_offset() {
        let segments = [
            segment(100, 50, 0),
            segment(200, 50, 1),
            segment(300, 50, 37),
        ];
        let known = history(StampSource::Ktime, &segments);
        let table = Some(TableOffset {
            tai_offset_s: 36,
            expires: RealNs(1),
        });
        let base = TimeBase::Tai;
        let tai = |table| {
            let clock = FileClock { table, ..of(base) };
            BaseClock::new(&known, clock, true).unwrap()
        };
        let ahead_s = |clock: &BaseClock| {
            let stamps = [150, 250, 350].map(|stamp| clock.ahead_ns(Some(RawStamp(stamp))));
            stamps.map(|ahead_ns| ahead_ns / NS_PER_S)
        };
        assert_eq!(ahead_s(&tai(table)), [36, 36, 37]);
        // As versions before the table converted.
        assert_eq!(ahead_s(&tai(None)), [0, 1, 37]);
    }

    #[test]
    fn a_time_that_no_file_holds_is_none() {
        let known = history(StampSource::Ktime, &[segment(100, 1_000, 37)]);
        let mono = BaseClock::new(&known, of(TimeBase::Monotonic), true).unwrap();
        assert_eq!(mono.from_real(RealNs(1_000), None), Some(FileNs(0)));
        assert_eq!(mono.from_real(RealNs(999), None), None);
        assert_eq!(mono.to_real(FileNs(u64::MAX), None), None);
        let tai = BaseClock::new(&known, of(TimeBase::Tai), true).unwrap();
        assert_eq!(tai.from_real(RealNs(u64::MAX), None), None);
    }

    #[test]
    fn segments_that_were_left_out_are_not_made_up() {
        let mut leap = leap(StampSource::Ktime);
        leap.left_out = 3;
        let refused = BaseClock::new(&leap, of(TimeBase::Monotonic), true);
        assert_eq!(refused, Err(TimeBaseError::LeftOut(3)));
        assert!(BaseClock::new(&leap, of(TimeBase::Realtime), true).is_ok());
    }

    #[test]
    fn a_tai_stamp_is_in_its_segment_too() {
        let leap = leap(StampSource::Tai);
        let tai = BaseClock::new(&leap, of(TimeBase::Tai), true).unwrap();
        let change = 200 + 4_000_000_000 + 38_000_000_000;
        assert_eq!(tai.ahead_ns(Some(RawStamp(change - 1))), 37 * NS_PER_S);
        assert_eq!(tai.ahead_ns(Some(RawStamp(change))), 38 * NS_PER_S);
    }

    #[test]
    fn a_counter_needs_the_reading_where_a_segment_begins() {
        let mut leap = leap(StampSource::Tsc);
        let new = |leap: &History| BaseClock::new(leap, of(TimeBase::Tai), true);
        assert_eq!(new(&leap), Err(TimeBaseError::NoStart));
        let mut sample = |mono, tsc| {
            leap.samples.push(Sample {
                tsc: Some([TscCycles(tsc), TscCycles(tsc + 9)]),
                ..Sample::at(mono, 0)
            });
        };
        sample(100, 3_000);
        sample(200, 6_000);
        let tai = new(&leap).unwrap();
        assert_eq!(tai.ahead_ns(Some(RawStamp(5_999))), 37 * NS_PER_S);
        assert_eq!(tai.ahead_ns(Some(RawStamp(6_000))), 38 * NS_PER_S);
        // It went back.
        leap.samples[1].tsc = Some([TscCycles(1_000), TscCycles(1_009)]);
        assert_eq!(new(&leap), Err(TimeBaseError::NoStart));
    }

    /// The offset of TAI became known, or the counter jumped: narrower bounds are no step.
    #[test]
    fn a_clock_that_was_not_set_has_one_offset() {
        let mut segments = [segment(100, 50, 0), segment(200, 53, 37)];
        segments[1].after = Some(segments[0].until);
        let known = history(StampSource::Tsc, &segments);
        let mono = BaseClock::new(&known, of(TimeBase::Monotonic), false).unwrap();
        assert_eq!(mono.ahead_ns_at(MonoNs(250)), -50);
        let tai = BaseClock::new(&known, of(TimeBase::Tai), false);
        assert_eq!(tai, Err(TimeBaseError::NoStamp));
        segments[1].step_ns = 3;
        let known = history(StampSource::Tsc, &segments);
        let mono = BaseClock::new(&known, of(TimeBase::Monotonic), false);
        assert_eq!(mono, Err(TimeBaseError::NoStamp));
    }

    #[test]
    fn one_offset_needs_no_stamps() {
        let new = |history, base| BaseClock::new(history, of(base), false);
        let whole = history(
            StampSource::Tsc,
            &[segment(100, 50, 37), segment(200, 90, 37)],
        );
        let tai = new(&whole, TimeBase::Tai).unwrap();
        assert_eq!(tai.ahead_ns(None), 37 * NS_PER_S);
        assert_eq!(
            new(&whole, TimeBase::Monotonic),
            Err(TimeBaseError::NoStamp)
        );
        let none = history(StampSource::Ktime, &[]);
        assert_eq!(new(&none, TimeBase::Tai), Err(TimeBaseError::NoSegment));
    }
}
