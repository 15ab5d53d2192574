//! What turns the stamps of each clock into delays and intervals.

use tscap_common::compare::Sample;
use tscap_common::stream::STAMP_BITS;

use tscap_clock::{CrossTimestamp, HostClocks, NsPerCycle, Reference as _, StampSource};

/// Cross-timestamps that the offset of CLOCK_MONOTONIC is taken from.
const READINGS: usize = 200;

/// The clocks of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// CLOCK_TAI less CLOCK_MONOTONIC, ns.
    tai_less_mono: i64,
    /// The TSC's rate, where it stamps.
    rate: Option<NsPerCycle>,
    /// TSC less the stamp, cycles.
    tsc_offset: i64,
}

impl Clocks {
    /// Reads them; `None` if the clock was set meanwhile.
    pub fn read(rate: Option<NsPerCycle>, tsc_offset: i64) -> Option<Self> {
        let mut clocks = HostClocks::new(StampSource::Tai);
        let (mut low, mut high, mut tai_offset_s) = (i64::MIN, i64::MAX, None);
        for _ in 0..READINGS {
            let cross: CrossTimestamp = clocks.read();
            let seen = cross.mono_to_real()?;
            (low, high) = (low.max(seen.0), high.min(seen.1));
            tai_offset_s = cross.tai_offset_s();
        }
        let middle = low + high.checked_sub(low).filter(|width| *width >= 0)? / 2;
        Some(Self {
            tai_less_mono: middle + tai_offset_s? * 1_000_000_000,
            rate,
            tsc_offset,
        })
    }

    /// From the sending of a frame to its stamp, ns: on the TSC for a stamp of the
    /// TSC, else on CLOCK_TAI, which the sender reads after the TSC.
    pub fn delay_ns(&self, source: StampSource, sample: &Sample) -> i64 {
        match source {
            StampSource::Ktime => {
                let stamp = sample.stamp.wrapping_add_signed(self.tai_less_mono);
                difference(stamp, sample.sent_tai)
            }
            StampSource::Tai => difference(sample.stamp, sample.sent_tai),
            StampSource::Tsc => {
                let stamp = sample.stamp.wrapping_add_signed(self.tsc_offset);
                self.ns(difference(stamp, sample.sent_tsc))
            }
        }
    }

    /// Between the stamps of two frames, ns.
    pub(crate) fn inter_arrival_ns(&self, source: StampSource, from: &Sample, to: &Sample) -> i64 {
        let span = to.stamp.wrapping_sub(from.stamp).cast_signed();
        match source {
            StampSource::Ktime | StampSource::Tai => span,
            StampSource::Tsc => self.ns(span),
        }
    }

    /// Between the sendings of two frames, ns, by the clock of the stamp.
    pub(crate) fn inter_send_ns(&self, source: StampSource, from: &Sample, to: &Sample) -> i64 {
        match source {
            StampSource::Ktime | StampSource::Tai => difference(to.sent_tai, from.sent_tai),
            StampSource::Tsc => self.ns(difference(to.sent_tsc, from.sent_tsc)),
        }
    }

    /// The difference clock: p̂·ΔN.
    fn ns(&self, cycles: i64) -> i64 {
        let duration = |cycles| self.rate.map_or(0, |rate| rate.duration_ns(cycles));
        let ns = i64::try_from(duration(cycles.unsigned_abs())).unwrap_or(i64::MAX);
        if cycles < 0 { -ns } else { ns }
    }
}

/// Of two stamps of which at most the low 48 bits are known, less than 2^47 apart.
fn difference(a: u64, b: u64) -> i64 {
    const REST: u32 = u64::BITS - STAMP_BITS;
    (a.wrapping_sub(b) << REST).cast_signed() >> REST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_cut_stamps() {
        assert_eq!(difference(5, 3), 2);
        assert_eq!(difference(3, 5), -2);
        assert_eq!(difference(1 << 48, (1 << 48) - 1), 1);
        assert_eq!(difference(0x7777_0000_0000_0001, 0xffff_ffff_ffff), 2);
    }

    #[test]
    fn each_clock_has_its_own_way() {
        let clocks = Clocks {
            tai_less_mono: 1_000_000,
            rate: None,
            tsc_offset: 0,
        };
        let sample = Sample {
            stamp: 500,
            sent_tai: 1_000_100,
            ..Sample::default()
        };
        assert_eq!(clocks.delay_ns(StampSource::Ktime, &sample), 400);
        assert_eq!(clocks.delay_ns(StampSource::Tai, &sample), -999_600);
        let later = Sample {
            stamp: 900,
            sent_tai: 1_000_450,
            ..sample
        };
        assert_eq!(
            clocks.inter_arrival_ns(StampSource::Ktime, &sample, &later),
            400
        );
        assert_eq!(
            clocks.inter_send_ns(StampSource::Ktime, &sample, &later),
            350
        );
    }

    #[test]
    fn the_host_has_these_clocks() {
        let clocks = Clocks::read(None, 0).expect("nobody sets the clock here");
        let now = tscap_clock::MonoNs::now().0;
        let tai = tscap_clock::TaiNs::now().0;
        let off = tai.wrapping_sub(now.wrapping_add_signed(clocks.tai_less_mono));
        assert!(off < 1_000_000_000, "{off}");
    }
}
