//! Which stamps of a file delays are taken from, and how far they can be off.

use std::time::Duration;

use super::FileError;
use super::places::Places;
use super::survey::{Described, Survey};
use crate::capturing::clock::{CounterReport, FileNs, RawStamp, StampSource};
use crate::capturing::pcapng::{InterfaceOption, Packet, interval_ns};

/// The stamps.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    /// What they are called in the result.
    pub clock: String,
    /// Raw stamps rather than the times of the file.
    is_raw: bool,
    /// Of raw stamps of a counter.
    counter: Option<CounterReport>,
    /// Greatest error of the difference of two, but for the rate of the counter, ns.
    error_ns: u64,
    /// The first one at a place, and the last one.
    pub first: RawStamp,
    pub last: RawStamp,
    /// The first time at a place.
    pub first_time: Option<FileNs>,
}

impl Stamps {
    pub fn of(
        survey: &Survey,
        places: &Places,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FileError> {
        let indices = places.entry.indices.iter().chain(&places.exit.indices);
        let all: Vec<_> = indices.map(|index| &survey.interfaces[*index]).collect();
        let options = all.iter().filter_map(|it| it.interface.tscap.as_ref());
        let mut others = options
            .map(|it| it.time_base)
            .filter(|it| !it.is_realtime());
        if let Some(base) = others.next() {
            return Err(FileError::TimeBase(base.name()));
        }
        let times = all.iter().filter_map(|it| it.times);
        let first_time = times.clone().map(|[first, _]| first).min();
        let last_time = times.map(|[_, last]| last).max();
        let stamps = match why_not_raw(&all) {
            None => Self::raw(&all),
            Some(why) => {
                warnings.push(format!("delays are differences of the file's times: {why}"));
                let ends = [first_time, last_time].map(|it| it.unwrap_or(FileNs(0)).0);
                Self::times(&all, ends.map(RawStamp), warnings)
            }
        };
        Ok(Self {
            first_time,
            ..stamps
        })
    }

    /// By raw stamps, which all packets have.
    fn raw(all: &[&Described]) -> Self {
        let ends = all.iter().filter_map(|it| it.stamps);
        let first = ends.clone().map(|[first, _]| first).min();
        let last = ends.map(|[_, last]| last).max();
        let clocks = all.iter().filter_map(|it| it.statistics.as_ref());
        let error_ns = clocks.map(|it| it.clock.stamp_error_ns).max();
        let path = all.iter().find_map(|it| it.interface.tscap.as_ref());
        Self {
            clock: path.map_or(String::new(), |it| it.stamp.path.clone()),
            is_raw: true,
            counter: counter(all),
            // Each is rounded down.
            error_ns: 2 * error_ns.unwrap_or(0) + 1,
            first: first.unwrap_or(RawStamp(0)),
            last: last.unwrap_or(RawStamp(0)),
            first_time: None,
        }
    }

    /// By the times of the file.
    fn times(all: &[&Described], [first, last]: [RawStamp; 2], warnings: &mut Vec<String>) -> Self {
        let resolution_ns = all.iter().map(|it| it.interface.resolution_ns).max();
        let clocks = all.iter().map(|it| it.statistics.as_ref());
        let clocks: Option<Vec<_>> = clocks.collect();
        let bounds = clocks.iter().flatten().map(|it| it.clock.host_bound_ns);
        let bound_ns = bounds.max();
        if bound_ns.is_none() {
            warnings.push(
                "the file does not say how far its times are off: the bound is that of their \
                 resolution only"
                    .into(),
            );
        }
        if all.iter().any(|it| it.was_set) {
            warnings.push(
                "the clock was set during the capture: delays of packets that were inside then \
                 are wrong by as much"
                    .into(),
            );
        }
        Self {
            clock: "the file's times".into(),
            is_raw: false,
            counter: None,
            error_ns: 2 * bound_ns.unwrap_or(0) + resolution_ns.unwrap_or(1),
            first,
            last,
            first_time: None,
        }
    }

    pub fn stamp(&self, packet: &Packet) -> RawStamp {
        let raw = packet.raw.filter(|_| self.is_raw);
        raw.unwrap_or(RawStamp(packet.time.0))
    }

    /// From one stamp to another, ns.
    pub fn between(&self, from: RawStamp, to: RawStamp) -> i64 {
        interval_ns(from, to, self.counter.as_ref())
    }

    /// A duration in units of the stamps.
    pub fn span(&self, duration: Duration) -> u64 {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        let units = self
            .counter
            .map_or(ns, |it| it.interval_rate().cycles_in(ns));
        units.unsigned_abs()
    }

    /// From the first to the last, s.
    pub fn seconds(&self) -> f64 {
        self.between(self.first, self.last) as f64 / 1e9
    }

    /// Greatest error of a delay up to `longest_ns`.
    pub fn bound_ns(&self, longest_ns: i64) -> u64 {
        let rate_ppb = self.counter.map_or(0, |it| it.interval_bound_ppb());
        let by_rate = u128::from(longest_ns.unsigned_abs()) * u128::from(rate_ppb);
        let by_rate = u64::try_from(by_rate.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        self.error_ns.saturating_add(by_rate)
    }
}

/// What the file says last of the counter.
fn counter(all: &[&Described]) -> Option<CounterReport> {
    let clocks = all.iter().filter_map(|it| it.statistics.as_ref());
    let of_tsc = clocks.filter(|it| it.clock.stamp.source == StampSource::Tsc);
    of_tsc.filter_map(|it| it.clock.counter).next_back()
}

/// Why raw stamps can't be used.
fn why_not_raw(all: &[&Described]) -> Option<String> {
    let tscap: Option<Vec<&InterfaceOption>> =
        all.iter().map(|it| it.interface.tscap.as_ref()).collect();
    let Some(tscap) = tscap else {
        return Some("another program wrote them".into());
    };
    if all.iter().any(|it| it.raw < it.frames) {
        return Some("not all packets have raw stamps (`tscap capture --keep-raw`)".into());
    }
    let of = |it: &&InterfaceOption| (it.stamp.source, it.boot_id.clone());
    let clocks: Vec<_> = tscap.iter().map(of).collect();
    if clocks.iter().any(|it| *it != clocks[0]) {
        return Some("the raw stamps of both places are of different clocks".into());
    }
    let is_tsc = clocks.iter().any(|(source, _)| *source == StampSource::Tsc);
    (is_tsc && counter(all).is_none()).then(|| {
        "the file does not say how fast the counter of the raw stamps runs (the capture was killed \
         in its first 10 s)"
            .into()
    })
}
