//! Which stamps of a file delays are taken from, and how far they can be off.

use std::time::Duration;

use super::FileError;
use super::places::{Place, Places};
use crate::sighting::SeenAt;
use tscap_base::text::numbers::span;
use tscap_clock::interval_ns;
use tscap_clock::{CounterReport, FileNs, RawStamp, StampSource};
use tscap_file::pcapng::{ClockRelation, Packet};
use tscap_streams::{Described, Survey};

#[derive(Clone, Debug)]
pub(super) struct Stamps {
    /// What they are called in the result.
    pub clock: String,
    /// Raw stamps rather than the times of the file.
    is_raw: bool,
    /// Of raw stamps of a counter.
    counter: Option<CounterReport>,
    /// Greatest error of the difference of two, but for the rate of the counter, ns; `None` if
    /// nothing in the file bounds it.
    error_ns: Option<u64>,
    /// By so much a packet may seem to leave before it enters, in units of the stamps.
    slack: u64,
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
                let error_ns = error_of_times(survey, places, warnings)?;
                Self {
                    clock: "the file's times".into(),
                    is_raw: false,
                    counter: None,
                    error_ns,
                    slack: if places.are_one() {
                        0
                    } else {
                        error_ns.unwrap_or(0)
                    },
                    first: RawStamp(ends[0]),
                    last: RawStamp(ends[1]),
                    first_time: None,
                }
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
            error_ns: Some(2 * error_ns.unwrap_or(0) + 1),
            slack: 0,
            first: first.unwrap_or(RawStamp(0)),
            last: last.unwrap_or(RawStamp(0)),
            first_time: None,
        }
    }

    pub fn stamp(&self, packet: &Packet) -> RawStamp {
        let raw = packet.raw.filter(|_| self.is_raw);
        raw.unwrap_or(RawStamp(packet.time.0))
    }

    /// The stamp of a packet at a place, as the matcher gets it: at the exit no earlier than
    /// at the entry, however far both clocks are off each other.
    pub fn in_order(&self, stamp: RawStamp, at: SeenAt) -> RawStamp {
        match at {
            SeenAt::Entry => stamp,
            SeenAt::Exit(_) => RawStamp(stamp.0.saturating_add(self.slack)),
        }
    }

    /// From the entry to the exit, by stamps [in order](Self::in_order), ns.
    pub fn delay_ns(&self, entered: RawStamp, left: RawStamp) -> i64 {
        self.between(entered, RawStamp(left.0.saturating_sub(self.slack)))
    }

    /// For how long an exit is looked for, in units of the stamps.
    pub fn window(&self, window: Duration) -> u64 {
        let slack = self.slack.saturating_mul(2);
        self.span(window).saturating_add(slack)
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

    /// Greatest error of a delay up to `longest_ns`, if there is a bound.
    pub fn bound_ns(&self, longest_ns: i64) -> Option<u64> {
        let rate_ppb = self.counter.map_or(0, |it| it.interval_bound_ppb());
        let by_rate = u128::from(longest_ns.unsigned_abs()) * u128::from(rate_ppb);
        let by_rate = u64::try_from(by_rate.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
        Some(self.error_ns?.saturating_add(by_rate))
    }
}

/// What the file says last of the counter of these interfaces' raw stamps.
pub fn counter(all: &[&Described]) -> Option<CounterReport> {
    let clocks = all.iter().filter_map(|it| it.statistics.as_ref());
    let of_tsc = clocks.filter(|it| it.clock.stamp.source == StampSource::Tsc);
    of_tsc.filter_map(|it| it.clock.counter).next_back()
}

/// Why differences of the raw stamps of these interfaces can't be used; `None` if they can.
pub fn why_not_raw(all: &[&Described]) -> Option<String> {
    if all.iter().any(|it| it.interface.tscap.is_none()) {
        return Some("another program wrote them".into());
    }
    if all.iter().any(|it| it.raw < it.frames) {
        return Some("not all packets have raw stamps (`tscap capture --keep-raw`)".into());
    }
    let of_others = |one: &&Described| {
        all.iter()
            .any(|other| !one.clock.times().has_raw_stamps_of(other.clock.times()))
    };
    if all.iter().any(of_others) {
        return Some("the raw stamps of both places are of different clocks".into());
    }
    let sources = all.iter().filter_map(|it| it.interface.tscap.as_ref());
    let mut sources = sources.map(|it| it.stamp.source);
    if sources.clone().any(|it| it == StampSource::Tai) && all.iter().any(|it| it.was_set) {
        return Some("the clock of the raw stamps, CLOCK_TAI, was set during the capture".into());
    }
    let is_tsc = sources.any(|source| source == StampSource::Tsc);
    (is_tsc && counter(all).is_none()).then(|| {
        "the file does not say how fast the counter of the raw stamps runs (the capture was killed \
         in its first 10 s)"
            .into()
    })
}

/// Greatest error of the difference of a time at the entry and one at the exit, ns; `None` if
/// nothing in the file bounds it.
fn error_of_times(
    survey: &Survey,
    places: &Places,
    warnings: &mut Vec<String>,
) -> Result<Option<u64>, FileError> {
    let of = |place: &Place| {
        let indices = place.indices.iter();
        indices
            .map(|it| &survey.interfaces[*it])
            .collect::<Vec<_>>()
    };
    let (entries, exits) = (of(&places.entry), of(&places.exit));
    let both = || entries.iter().chain(&exits);
    let mut greatest_ns = Some(0);
    for entry in &entries {
        for exit in &exits {
            let apart_ns = entry.apart_ns(exit);
            greatest_ns = greatest_ns
                .zip(apart_ns)
                .map(|(one, other): (u64, u64)| one.max(other));
            let are_ours = entry.interface.tscap.is_some() && exit.interface.tscap.is_some();
            if !are_ours || entry.clock.times().kinship(exit.clock.times()) != ClockRelation::Utc {
                continue;
            }
            let [name_in, name_out] = [&places.entry.name, &places.exit.name];
            let Some(apart_ns) = apart_ns else {
                return Err(FileError::OfTwoClocks {
                    entry: name_in.clone(),
                    of_entry: entry.clock.times().whose(),
                    exit: name_out.clone(),
                    of_exit: exit.clock.times().whose(),
                });
            };
            let warning = format!(
                "times at {name_in} are of the clock of {}, those at {name_out} of that of {}: the \
                 bound has how far each may be off UTC, {} together",
                entry.clock.times().whose(),
                exit.clock.times().whose(),
                span(apart_ns)
            );
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    if greatest_ns.is_none() {
        let together = if places.are_one() {
            ""
        } else {
            ", nor whether those of both places are of one clock: packets that seem to leave \
             before they come in are not matched"
        };
        warnings.push(format!(
            "the file does not say how far its times are off{together}: delays have no bound"
        ));
    }
    if both().any(|it| it.was_set) {
        warnings.push(
            "the clock was set during the capture: delays of packets that were inside then \
             are wrong by as much, and have no bound"
                .into(),
        );
        return Ok(None);
    }
    let resolution_ns = both().map(|it| it.interface.resolution_ns).max();
    Ok(greatest_ns.map(|it| it.saturating_add(resolution_ns.unwrap_or(1))))
}
