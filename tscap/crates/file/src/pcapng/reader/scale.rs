//! How an interface tells times: by ticks of what length, and from when on.

use super::BlockFault;
use tscap_clock::FileNs;

/// How an interface tells times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Ticks are 10^−n s, or 2^−n s if the highest bit is set (`if_tsresol`).
    pub tsresol: u8,
    /// From 1970 to tick 0, s (`if_tsoffset`).
    pub offset_s: i64,
}

impl Scale {
    pub const DEFAULT: Self = Self {
        tsresol: 6,
        offset_s: 0,
    };
    pub const NANO: Self = Self {
        tsresol: 9,
        offset_s: 0,
    };

    /// It, if 64 bits can count the ticks of a second.
    pub fn possible(self) -> Result<Self, BlockFault> {
        let most = if self.tsresol & 0x80 == 0 { 19 } else { 63 };
        if self.tsresol & 0x7f <= most {
            Ok(self)
        } else {
            Err(BlockFault::Resolution(self.tsresol))
        }
    }

    /// The time of a tick, rounded down; the nearest that there is before 1970 and after
    /// 2554.
    pub fn time(self, tick: u64) -> FileNs {
        let ns = i128::try_from(self.ns(tick)).unwrap_or(i128::MAX);
        let time = ns.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        FileNs(u64::try_from(time.max(0)).unwrap_or(u64::MAX))
    }

    fn ns(self, ticks: u64) -> u128 {
        let (ticks, exponent) = (u128::from(ticks), u32::from(self.tsresol & 0x7f));
        match (self.tsresol & 0x80 == 0, exponent.checked_sub(9)) {
            (false, _) => (ticks * 1_000_000_000) >> exponent,
            (true, None) => ticks * 10u128.pow(9 - exponent),
            (true, Some(finer)) => ticks / 10u128.pow(finer),
        }
    }

    /// A tick, ns; 1 if it is shorter.
    pub fn resolution_ns(self) -> u64 {
        u64::try_from(self.ns(1)).map_or(u64::MAX, |ns| ns.max(1))
    }
}
