//! Which of two ways a file is written, when frames come faster than the disk takes them.

use std::time::Duration;

use tscap_host::direct_io::WriteMode;

/// How much the latest write counts, in parts of 1.
const LATEST_PART: u32 = 4;

/// What of a second may go into writing, ns: the rest is for draining.
const MOST_OF_A_SECOND: u128 = 500_000_000;

/// What writing has taken lately, ns for a MiB.
#[derive(Debug, Default)]
pub(super) struct Pace {
    direct: Option<u64>,
    appended: Option<u64>,
}

impl Pace {
    /// The way for the next write. Direct, unless frames pile up (`is_behind`) and the page
    /// cache takes them faster than the disk, or that is not known yet.
    pub fn way(&mut self, is_behind: bool) -> WriteMode {
        if !is_behind {
            // The cache may have been emptied by the next time.
            self.appended = None;
            return WriteMode::Direct;
        }
        let Some(direct) = self.direct else {
            return WriteMode::Direct;
        };
        if self.appended.is_none_or(|appended| appended < direct) {
            WriteMode::Appended
        } else {
            WriteMode::Direct
        }
    }

    /// Whether the page cache takes so many bytes/s, with something to spare, or that is not known.
    pub fn keeps_up(&self, rate: u64) -> bool {
        let Some(appended) = self.appended else {
            return true;
        };
        let a_second = u128::from(rate) * u128::from(appended) / (1 << 20);
        a_second <= MOST_OF_A_SECOND
    }

    /// So many bytes were written in this time.
    pub fn wrote(&mut self, way: WriteMode, bytes: usize, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let latest = time.saturating_mul(1 << 20) / (bytes as u64).max(1);
        let known = match way {
            WriteMode::Direct => &mut self.direct,
            WriteMode::Appended => &mut self.appended,
        };
        let parts = u64::from(LATEST_PART);
        *known = Some(known.map_or(latest, |before| (before * (parts - 1) + latest) / parts));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn took(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn frames_that_pile_up_go_where_they_are_taken_faster() {
        let mut pace = Pace::default();
        assert_eq!(pace.way(true), WriteMode::Direct, "nothing is known");
        pace.wrote(WriteMode::Direct, MIB, took(10));
        assert_eq!(pace.way(false), WriteMode::Direct);
        assert_eq!(pace.way(true), WriteMode::Appended, "it is tried");
        pace.wrote(WriteMode::Appended, 2 * MIB, took(2));
        assert_eq!(pace.way(true), WriteMode::Appended);
        // The cache is full: it takes no more than the disk does.
        for _ in 0..3 {
            pace.wrote(WriteMode::Appended, MIB, took(30));
        }
        assert_eq!(pace.way(true), WriteMode::Direct);
        pace.wrote(WriteMode::Direct, MIB, took(10));
        assert_eq!(pace.way(true), WriteMode::Direct);
        // After a pause it is tried again.
        assert_eq!(pace.way(false), WriteMode::Direct);
        assert_eq!(pace.way(true), WriteMode::Appended);
    }

    #[test]
    fn a_page_cache_keeps_up_with_a_rate_that_leaves_it_time() {
        let mut pace = Pace::default();
        assert!(pace.keeps_up(u64::MAX), "it is tried");
        pace.wrote(WriteMode::Appended, MIB, took(2));
        assert!(pace.keeps_up(250 << 20));
        assert!(!pace.keeps_up(251 << 20));
    }

    #[test]
    fn the_latest_write_counts_for_a_quarter() {
        // (3 · 10 + 2) / 4 = 8
        for (appended, way) in [
            (7, WriteMode::Appended),
            (8, WriteMode::Direct),
            (9, WriteMode::Direct),
        ] {
            let mut pace = Pace::default();
            pace.wrote(WriteMode::Direct, MIB, took(10));
            pace.wrote(WriteMode::Direct, MIB, took(2));
            pace.wrote(WriteMode::Appended, MIB, took(appended));
            assert_eq!(pace.way(true), way, "{appended}");
        }
    }

    #[test]
    fn a_fast_disk_is_written_direct_also_when_frames_pile_up() {
        let mut pace = Pace::default();
        pace.wrote(WriteMode::Direct, MIB, took(1));
        assert_eq!(pace.way(true), WriteMode::Appended);
        pace.wrote(WriteMode::Appended, MIB, took(2));
        assert_eq!(pace.way(true), WriteMode::Direct);
    }
}
