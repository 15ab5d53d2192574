//! Durations as people write them.

use std::time::Duration;

/// Longest duration: adding it to the clock must not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

const TOO_LONG: &str = "it must be at most 100 years";
const NOT_POSITIVE: &str = "it must be greater than 0";

/// A duration: seconds (`10`, `0.5`), or with units (`1m30s`, `500ms`).
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<f64>() {
        // Negative, infinite, or no number after all.
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| {
            if seconds > 0.0 {
                TOO_LONG
            } else {
                NOT_POSITIVE
            }
        })?,
        Err(_) => humantime::parse_duration(text)
            .map_err(|_| "a time is seconds such as 10 or 0.5, or has units such as 1m30s")?,
    };
    if duration > LONGEST {
        return Err(TOO_LONG.into());
    }
    if duration.is_zero() {
        return Err(NOT_POSITIVE.into());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for bad in ["", "0", "-1", "soon", "nan", "inf", "1e19", "200years"] {
            let error = duration(bad).unwrap_err();
            assert!(
                error.contains("it must be") || error.contains("a time is"),
                "{error}"
            );
        }
    }
}
