//! What is asked of a clock that another process shares.

use std::path::PathBuf;
use std::time::Duration;

/// A stamp from the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// A value of the counter.
    Raw(u64),
    /// A time of CLOCK_REALTIME, ns since 1970.
    Real(u64),
}

/// What to read of the clock, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadClockPlan {
    /// Where its page is.
    pub path: PathBuf,
    /// The stamp whose times are wanted, in the place of the present.
    pub at: Option<Stamp>,
    /// Between two lines.
    pub interval: Duration,
    /// For how long it is read again; once without that.
    pub duration: Option<Duration>,
    /// Whether to say it in JSON.
    pub json: bool,
}

/// `123`: a counter value; `1795564800.5` or `2026-11-25T00:00:00.5Z`: a time.
pub(super) fn stamp(text: &str) -> Result<Stamp, String> {
    if let Ok(raw) = text.parse() {
        return Ok(Stamp::Raw(raw));
    }
    let real = seconds(text).or_else(|| {
        let time: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(time.as_nanosecond()).ok()
    });
    real.map(Stamp::Real).ok_or_else(|| {
        "give a whole number for a value of the counter, or a time of CLOCK_REALTIME such as \
         1795564800.123456789 or 2026-11-25T00:00:00.123456789Z"
            .into()
    })
}

/// Seconds since 1970 with a decimal point and up to nine digits behind it, as ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 9 {
        return None;
    }
    let ns: u64 = format!("{part:0<9}").parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_a_counter_value_or_a_time() {
        let half = 1_795_564_800_500_000_000;
        for (text, found) in [
            ("123", Some(Stamp::Raw(123))),
            ("1795564800.5", Some(Stamp::Real(half))),
            ("1795564800.500000000", Some(Stamp::Real(half))),
            ("2026-11-25T00:00:00.5Z", Some(Stamp::Real(half))),
            ("2026-11-25T01:00:00.5+01:00", Some(Stamp::Real(half))),
            ("1795564800.5000000001", None),
            ("1795564800.", None),
            (".5", None),
            ("-1", None),
            ("99999999999.0", None),
            ("1960-01-01T00:00:00Z", None),
            ("now", None),
        ] {
            assert_eq!(stamp(text).ok(), found, "{text}");
        }
    }
}
