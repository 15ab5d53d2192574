//! TAI − UTC by the table of leap seconds that NTP uses (`leap-seconds.list`; IERS
//! publishes it twice a year, tzdata carries it).

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RealNs;
use tscap_time::NS_PER_S;

/// Where tzdata keeps the table.
pub const LEAP_SECONDS: &str = "/usr/share/zoneinfo/leap-seconds.list";
/// TAI − UTC when leap seconds began, in 1972, s.
pub const LEAST_TAI_OFFSET_S: i64 = 10;
/// From NTP's epoch, 1900, to that of Unix, s.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// TAI − UTC since 1972, up to the day when the table expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeapSeconds {
    /// From when on it is so many seconds, in order.
    changes: Vec<(RealNs, i64)>,
    expires: RealNs,
}

/// An offset that was taken from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableOffset {
    /// TAI − UTC, s.
    pub tai_offset_s: i64,
    /// When the table expires, ns since 1970.
    pub expires: RealNs,
}

/// Why a table does not give an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeapSecondsError {
    /// A line that can't be read.
    #[error("line {0} is not as in a leap-seconds.list")]
    Line(usize),
    /// No date of expiry, or no offset.
    #[error("not a whole leap-seconds.list")]
    Torn,
    /// Leap seconds after that are not in it.
    #[error("it expired on {}", day(*.0))]
    Expired(RealNs),
    /// There was no UTC with leap seconds yet.
    #[error("it begins on {}", day(*.0))]
    Before(RealNs),
    /// A leap second lies between the two times.
    #[error("a leap second before {} lies in between", day(*.0))]
    Leap(RealNs),
}

impl LeapSeconds {
    /// By the text of a `leap-seconds.list`.
    ///
    /// # Errors
    /// If it is not as it should be.
    pub fn parse(text: &str) -> Result<Self, LeapSecondsError> {
        let (mut changes, mut expires) = (Vec::new(), None);
        for (index, line) in text.lines().enumerate() {
            let wrong = LeapSecondsError::Line(index + 1);
            if let Some(time) = line.strip_prefix("#@") {
                expires = Some(ntp_time(time.trim()).ok_or(wrong)?);
            }
            let mut words = line.split('#').next().unwrap_or("").split_whitespace();
            let Some(time) = words.next() else { continue };
            let offset = words.next().and_then(|offset| offset.parse().ok());
            let (time, offset) = ntp_time(time).zip(offset).ok_or(wrong)?;
            changes.push((time, offset));
        }
        let is_sorted = changes.is_sorted_by(|(first, _), (second, _)| first < second);
        match expires {
            Some(expires) if is_sorted && !changes.is_empty() => Ok(Self { changes, expires }),
            _ => Err(LeapSecondsError::Torn),
        }
    }

    /// TAI − UTC from one time to another.
    ///
    /// # Errors
    /// If the table does not reach so far, or it changed meanwhile.
    pub fn offset(&self, [from, until]: [RealNs; 2]) -> Result<TableOffset, LeapSecondsError> {
        if until >= self.expires {
            return Err(LeapSecondsError::Expired(self.expires));
        }
        let after = |time| self.changes.partition_point(|(change, _)| *change <= time);
        let Some(index) = after(from).checked_sub(1) else {
            return Err(LeapSecondsError::Before(self.changes[0].0));
        };
        match self.changes.get(index + 1) {
            Some((change, _)) if *change <= until => Err(LeapSecondsError::Leap(*change)),
            _ => Ok(TableOffset {
                tai_offset_s: self.changes[index].1,
                expires: self.expires,
            }),
        }
    }
}

impl fmt::Display for TableOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UTC + {} s", self.tai_offset_s)?;
        write!(
            f,
            " by the leap-second table that is good to {}",
            day(self.expires)
        )
    }
}

/// A time that is told in seconds since 1900.
fn ntp_time(text: &str) -> Option<RealNs> {
    let seconds = text.parse::<u64>().ok()?.checked_sub(NTP_TO_UNIX_S)?;
    seconds.checked_mul(NS_PER_S.unsigned_abs()).map(RealNs)
}

fn day(time: RealNs) -> String {
    let time = Timestamp::from_nanosecond(time.0.into());
    time.map_or_else(|_| "?".into(), |time| time.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
#\tan excerpt
#$\t3960835200
#@\t3991593600
2272060800      10      # 1 Jan 1972
3644697600      36      # 1 Jul 2015
3692217600      37      # 1 Jan 2017
#h\t49db2447 571e5e1b 2f002a53 9c8da8e4 39b8e49e
";

    fn real(day: &str) -> RealNs {
        let time: Timestamp = format!("{day}T00:00:00Z").parse().unwrap();
        RealNs(u64::try_from(time.as_nanosecond()).unwrap())
    }

    #[test]
    fn the_offset_is_that_of_its_time() {
        let table = LeapSeconds::parse(TABLE).unwrap();
        let offset = |from, until| table.offset([real(from), real(until)]);
        let expires = real("2026-06-28");
        let is = |tai_offset_s| {
            Ok(TableOffset {
                tai_offset_s,
                expires,
            })
        };
        assert_eq!(offset("1972-01-01", "1972-01-01"), is(10));
        assert_eq!(offset("2016-12-31", "2016-12-31"), is(36));
        assert_eq!(offset("2017-01-01", "2026-06-27"), is(37));
        let text = is(37).unwrap().to_string();
        assert_eq!(
            text,
            "UTC + 37 s by the leap-second table that is good to 2026-06-28"
        );
        for (from, until, why) in [
            ("2026-06-01", "2026-06-28", "it expired on 2026-06-28"),
            ("1971-12-31", "1972-01-01", "it begins on 1972-01-01"),
            (
                "2016-12-31",
                "2017-01-01",
                "a leap second before 2017-01-01 lies in between",
            ),
        ] {
            assert_eq!(offset(from, until).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        let why = |text: &str| LeapSeconds::parse(text).unwrap_err();
        assert_eq!(why(""), LeapSecondsError::Torn);
        assert_eq!(why(&TABLE.replace("#@", "#")), LeapSecondsError::Torn);
        let unsorted = TABLE.replace("3692217600", "3600000000");
        assert_eq!(why(&unsorted), LeapSecondsError::Torn);
        for (good, bad, line) in [
            ("2272060800 ", "1 ", 4),
            (" 36 ", " x ", 5),
            (" 36 ", " ", 5),
        ] {
            assert_eq!(why(&TABLE.replace(good, bad)), LeapSecondsError::Line(line));
        }
    }
}
