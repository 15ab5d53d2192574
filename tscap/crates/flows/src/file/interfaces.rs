//! What the interfaces of a file are good for, before flows are gathered.

use pcap_file::DataLink;

use crate::flows::PlaceClock;
use crate::schema::{Account, IntervalBasis, Place};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::counted;
use tscap_clock::{CounterReport, FileNs, StampSource};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::InterfaceOption;
use tscap_streams::{DelayBasis, Described, HIDDEN_STEPS, ReceiveClock, Survey, namesakes};

/// How packets of an interface are taken in.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub is_ethernet: bool,
    /// Intervals are those of raw stamps.
    pub is_raw: bool,
    pub clock: ReceiveClock,
    /// Number of the place where received packets were stamped; that of sent ones follows.
    first_place: u16,
}

impl Source {
    /// Number of the place where packets of a direction were stamped.
    pub fn place(&self, direction: Direction) -> u16 {
        self.first_place + u16::from(direction == Direction::Out)
    }
}

/// The earliest and the latest time.
pub(super) fn times(survey: &Survey) -> Option<[FileNs; 2]> {
    let times = survey.interfaces.iter().filter_map(|it| it.times);
    times.reduce(|[first, last], [other, latest]| [first.min(other), last.max(latest)])
}

/// By the index of the interface in the file, and the clocks of their places.
pub(super) fn sources(survey: &Survey) -> (Vec<Source>, Vec<PlaceClock>) {
    let described = survey.interfaces.iter();
    let described = described.map(|it| (&it.interface, it.clock.times()));
    let names = namesakes::names(&described.collect::<Vec<_>>());
    let mut clocks = Vec::with_capacity(2 * names.len());
    let all = interfaces(survey).zip(names).enumerate();
    let sources = all.map(|(index, (described, name))| {
        let (source, of_places) = described.source(index, name);
        clocks.extend(of_places);
        source
    });
    (sources.collect(), clocks)
}

/// What a reader must know; with `is_gen` also of delays.
pub(super) fn warnings(survey: &Survey, is_gen: bool, account: &Account) -> Vec<String> {
    let all = interfaces(survey);
    let mut warnings: Vec<_> = all.clone().flat_map(|it| it.warnings()).collect();
    // Intervals by times have no bound then; delays have one.
    warnings.extend(survey.end.warnings(is_gen && survey.is_tscaps()));
    if is_gen {
        warnings.extend(all.filter_map(|it| it.changed_offset()));
        warnings.extend(no_stream(account));
    }
    warnings
}

/// An interface of the file, as flows look at it.
struct InFile<'a> {
    of: &'a Described,
    /// That its clock was set may stand in what can't be read.
    may_be_set: bool,
}

fn interfaces(survey: &Survey) -> impl Iterator<Item = InFile<'_>> + Clone {
    let may_be_set = survey.end.may_hide_steps();
    let all = survey.interfaces.iter();
    all.map(move |of| InFile { of, may_be_set })
}

impl InFile<'_> {
    fn name(&self) -> String {
        let name = self.of.interface.name.as_deref();
        name.map_or("an interface".into(), escaped).into_owned()
    }

    fn source(&self, index: usize, name: Option<String>) -> (Source, [PlaceClock; 2]) {
        let why_not_raw = self.why_not_raw();
        let intervals = match &why_not_raw {
            None => self.by_raw_stamps(),
            Some(_) => self.by_times(),
        };
        let delays = self.of.clock.delay_basis(self.of.interface.tscap.is_some());
        let counter = self.counter().filter(|_| why_not_raw.is_none());
        // A file has no more than 65,536 interfaces: those behind share the last places.
        let first_place = u16::try_from(2 * index).unwrap_or(u16::MAX - 1);
        let clock = |direction: Direction| PlaceClock {
            place: Place {
                interface: name.clone(),
                sent: direction == Direction::Out,
                intervals: intervals.clone(),
                delays: delays.clone(),
                streams: None,
            },
            counter,
            opposite: Some(first_place + u16::from(direction == Direction::In)),
        };
        let source = Source {
            is_ethernet: self.of.interface.linktype == DataLink::ETHERNET,
            is_raw: why_not_raw.is_none(),
            clock: self.of.clock.clone(),
            first_place,
        };
        (source, [Direction::In, Direction::Out].map(clock))
    }

    fn counter(&self) -> Option<CounterReport> {
        self.of.statistics.as_ref()?.clock.counter
    }

    fn by_raw_stamps(&self) -> IntervalBasis {
        let option = self.of.interface.tscap.as_ref();
        let error_ns = self
            .of
            .statistics
            .as_ref()
            .map(|it| it.clock.stamp_error_ns);
        IntervalBasis {
            clock: option.map_or(String::new(), |it| it.stamp.path.clone()),
            step_ns: 1,
            // An interval is rounded down.
            ends_ns: Some(2 * error_ns.unwrap_or(0) + 1),
            rate_ppb: self.counter().map_or(0, |it| it.interval_bound_ppb()),
            unbounded: None,
        }
    }

    fn by_times(&self) -> IntervalBasis {
        let step_ns = self.of.interface.resolution_ns;
        let clock = self.of.statistics.as_ref().map(|it| &it.clock);
        let unbounded = match (&self.of.interface.tscap, clock) {
            (None, _) => Some(format!(
                "not captured by tscap: nothing in the file says how far its times are off, which \
                 have steps of {step_ns} ns"
            )),
            (Some(_), None) => Some(
                "the file has no statistics block with the clock (the capture was killed in its \
                 first 10 s)"
                    .into(),
            ),
            (Some(_), Some(_)) if self.of.was_set => Some(
                "the clock was set during the capture: intervals over that moment are wrong by as \
                 much (raw stamps are not: tscap capture --keep-raw)"
                    .into(),
            ),
            (Some(_), Some(_)) if self.may_be_set => Some(HIDDEN_STEPS.into()),
            (Some(_), Some(_)) => None,
        };
        // Two stamps of this interface.
        let times = self.of.clock.times();
        let apart_ns = times.apart_ns(times).filter(|_| unbounded.is_none());
        let unbounded = unbounded.or_else(|| {
            apart_ns.is_none().then(|| {
                "its times are of several clocks, and nothing in the file bounds how far these are \
                 off each other"
                    .into()
            })
        });
        // `tscap convert` may have moved a time that kept its raw stamp by as much as its bound.
        let moved_ns = times.bound_ns().filter(|_| self.of.raw > 0).unwrap_or(0);
        IntervalBasis {
            clock: "the file's times".into(),
            step_ns,
            ends_ns: apart_ns.map(|it| it.saturating_add(2 * moved_ns).saturating_add(step_ns)),
            rate_ppb: 0,
            unbounded,
        }
    }

    fn changed_offset(&self) -> Option<String> {
        let offsets_s = match self.of.clock.delay_basis(true) {
            DelayBasis::Clocks { tai_offsets_s, .. } if tai_offsets_s.len() > 1 => tai_offsets_s,
            _ => return None,
        };
        let offsets_s: Vec<_> = offsets_s.iter().map(i64::to_string).collect();
        Some(format!(
            "{}: the offset of CLOCK_TAI was changed during the capture ({} s): delays of packets \
             near a change may be wrong by as much",
            self.name(),
            offsets_s.join(", ")
        ))
    }

    /// Why raw stamps can't be used.
    fn why_not_raw(&self) -> Option<&'static str> {
        let Some(InterfaceOption { stamp, .. }) = &self.of.interface.tscap else {
            return Some("another program wrote it");
        };
        let is_tsc = stamp.source == StampSource::Tsc;
        let times = self.of.clock.times();
        if !times.has_raw_stamps_of(times) {
            return Some("the file is of several captures");
        }
        if stamp.source == StampSource::Tai && self.of.was_set {
            return Some("CLOCK_TAI, which stamped, was set during the capture");
        }
        if self.of.raw < self.of.frames || self.of.frames == 0 {
            return Some("not all packets have raw stamps (tscap capture --keep-raw)");
        }
        (is_tsc && self.counter().is_none()).then_some(
            "the file does not say how fast the counter of its raw stamps runs (the capture was \
             killed in its first 10 s, or another program has written the file anew)",
        )
    }

    fn warnings(&self) -> Vec<String> {
        let name = self.name();
        let mut warnings = Vec::new();
        if self.of.interface.linktype != DataLink::ETHERNET && self.of.frames > 0 {
            warnings.push(format!(
                "{name} is not Ethernet: its frames were counted and not looked into"
            ));
        }
        warnings.extend(self.of.without_times(&name));
        if self.of.frames > 0
            && let Some(why) = self.why_not_raw()
        {
            warnings.push(format!(
                "{name}: intervals are differences of the file's times: {why}"
            ));
        }
        warnings.extend(self.of.lost(&name, "packets that flows have lost"));
        warnings
    }
}

/// Why there is no stream of `tscap gen`, if there is none.
fn no_stream(account: &Account) -> Option<String> {
    let what = match account.cut {
        _ if account.in_flows > 0 => return None,
        0 => "capture on the interface that the frames come to while `tscap gen` runs".into(),
        cut => format!(
            "cut before a stream header could be seen: {}; capture with a snaplen of 96 or more",
            counted(cut, "frame")
        ),
    };
    Some(format!("no stream of `tscap gen`: {what}"))
}
