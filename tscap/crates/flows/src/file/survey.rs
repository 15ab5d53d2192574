//! What a file has, before flows are gathered.

use pcap_file::DataLink;

use crate::flows::PlaceClock;
use crate::schema::{Account, IntervalBasis, Place};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::counted;
use tscap_clock::{CounterReport, FileNs, StampSource};
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{Interface, InterfaceOption, Origin, Record, StatisticsOption};
use tscap_streams::{DelayBasis, End, HIDDEN_STEPS, ReceiveClock, namesakes};

/// An interface of the file.
#[derive(Clone, Debug)]
struct Described {
    interface: Interface,
    clock: ReceiveClock,
    statistics: Option<Box<StatisticsOption>>,
    /// The clock was set meanwhile.
    was_set: bool,
    /// That it was may stand in what can't be read.
    may_be_set: bool,
    frames: u64,
    /// Of them, with raw stamps.
    raw: u64,
    untimed: u64,
    times: Option<[FileNs; 2]>,
}

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

/// The file on its first way through.
#[derive(Clone, Debug, Default)]
pub(super) struct Survey {
    pub records: usize,
    /// Where it was captured, each answer once.
    pub captured: Vec<Origin>,
    interfaces: Vec<Described>,
}

impl Survey {
    pub fn take(&mut self, record: Record) {
        self.records += 1;
        match record {
            Record::Section(origin) => {
                if !self.captured.contains(&origin) {
                    self.captured.push(origin);
                }
            }
            Record::Damaged(_) => {}
            Record::Interface(interface) => {
                let number = self.interfaces.len();
                self.interfaces.push(Described {
                    clock: ReceiveClock::of(number, interface.tscap.as_ref()),
                    interface,
                    statistics: None,
                    was_set: false,
                    may_be_set: false,
                    frames: 0,
                    raw: 0,
                    untimed: 0,
                    times: None,
                });
            }
            Record::Statistics(index, statistics) => {
                if let Some(described) = self.interfaces.get_mut(index as usize) {
                    let segments = &statistics.clock.segments;
                    described.was_set |= segments.iter().any(|segment| segment.step_ns != 0);
                    described.clock.take(&statistics);
                    described.statistics = Some(statistics);
                }
            }
            Record::Untimed { interface, .. } => {
                if let Some(described) = self.interfaces.get_mut(interface as usize) {
                    described.untimed += 1;
                }
            }
            Record::Packet(packet) => {
                if let Some(described) = self.interfaces.get_mut(packet.interface as usize) {
                    described.frames += 1;
                    described.raw += u64::from(packet.raw.is_some());
                    let [first, last] = described.times.unwrap_or([packet.time; 2]);
                    described.times = Some([first.min(packet.time), last.max(packet.time)]);
                }
            }
        }
    }

    /// Takes in how far the file could be read.
    pub fn end(&mut self, end: &End) {
        for described in &mut self.interfaces {
            described.may_be_set = end.may_hide_steps();
        }
    }

    /// The earliest and the latest time.
    pub fn times(&self) -> Option<[FileNs; 2]> {
        let times = self.interfaces.iter().filter_map(|it| it.times);
        times.reduce(|[first, last], [other, latest]| [first.min(other), last.max(latest)])
    }

    /// By the index of the interface in the file, and the clocks of their places.
    pub fn sources(&self) -> (Vec<Source>, Vec<PlaceClock>) {
        let described = self.interfaces.iter();
        let described = described.map(|it| (&it.interface, it.clock.times()));
        let names = namesakes::names(&described.collect::<Vec<_>>());
        let mut clocks = Vec::with_capacity(2 * names.len());
        let all = self.interfaces.iter().zip(names).enumerate();
        let sources = all.map(|(index, (described, name))| {
            let (source, of_places) = described.source(index, name);
            clocks.extend(of_places);
            source
        });
        (sources.collect(), clocks)
    }

    /// What a reader must know; with `is_gen` also of delays.
    pub fn warnings(&self, end: &End, is_gen: bool, account: &Account) -> Vec<String> {
        let all = self.interfaces.iter();
        let mut warnings: Vec<_> = all.clone().flat_map(Described::warnings).collect();
        // Intervals by times have no bound then; delays have one.
        let is_tscaps = all.clone().any(|it| it.interface.tscap.is_some());
        warnings.extend(end.warnings(is_gen && is_tscaps));
        if is_gen {
            warnings.extend(all.filter_map(Described::changed_offset));
            warnings.extend(no_stream(account));
        }
        warnings
    }
}

impl Described {
    fn name(&self) -> String {
        let name = self.interface.name.as_deref();
        name.map_or("an interface".into(), escaped).into_owned()
    }

    fn source(&self, index: usize, name: Option<String>) -> (Source, [PlaceClock; 2]) {
        let why_not_raw = self.why_not_raw();
        let intervals = match &why_not_raw {
            None => self.by_raw_stamps(),
            Some(_) => self.by_times(),
        };
        let delays = self.clock.delay_basis(self.interface.tscap.is_some());
        let counter = self.counter().filter(|_| why_not_raw.is_none());
        let clock = |direction: Direction| PlaceClock {
            place: Place {
                interface: name.clone(),
                sent: direction == Direction::Out,
                intervals: intervals.clone(),
                delays: delays.clone(),
                streams: None,
            },
            counter,
        };
        let source = Source {
            is_ethernet: self.interface.linktype == DataLink::ETHERNET,
            is_raw: why_not_raw.is_none(),
            clock: self.clock.clone(),
            // A file has no more than 65,536 interfaces: those behind share the last places.
            first_place: u16::try_from(2 * index).unwrap_or(u16::MAX - 1),
        };
        (source, [Direction::In, Direction::Out].map(clock))
    }

    fn counter(&self) -> Option<CounterReport> {
        self.statistics.as_ref()?.clock.counter
    }

    fn by_raw_stamps(&self) -> IntervalBasis {
        let option = self.interface.tscap.as_ref();
        let error_ns = self.statistics.as_ref().map(|it| it.clock.stamp_error_ns);
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
        let step_ns = self.interface.resolution_ns;
        let clock = self.statistics.as_ref().map(|it| &it.clock);
        let unbounded = match (&self.interface.tscap, clock) {
            (None, _) => Some(format!(
                "not captured by tscap: nothing in the file says how far its times are off, which \
                 have steps of {step_ns} ns"
            )),
            (Some(_), None) => Some(
                "the file has no statistics block with the clock (the capture was killed in its \
                 first 10 s)"
                    .into(),
            ),
            (Some(_), Some(_)) if self.was_set => Some(
                "the clock was set during the capture: intervals over that moment are wrong by as \
                 much (raw stamps are not: tscap capture --keep-raw)"
                    .into(),
            ),
            (Some(_), Some(_)) if self.may_be_set => Some(HIDDEN_STEPS.into()),
            (Some(_), Some(_)) => None,
        };
        // Two stamps of this interface.
        let times = self.clock.times();
        let apart_ns = times.apart_ns(times).filter(|_| unbounded.is_none());
        let unbounded = unbounded.or_else(|| {
            apart_ns.is_none().then(|| {
                "its times are of several clocks, and nothing in the file bounds how far these are \
                 off each other"
                    .into()
            })
        });
        // `tscap convert` may have moved a time that kept its raw stamp by as much as its bound.
        let moved_ns = times.bound_ns().filter(|_| self.raw > 0).unwrap_or(0);
        IntervalBasis {
            clock: "the file's times".into(),
            step_ns,
            ends_ns: apart_ns.map(|it| it.saturating_add(2 * moved_ns).saturating_add(step_ns)),
            rate_ppb: 0,
            unbounded,
        }
    }

    fn changed_offset(&self) -> Option<String> {
        let offsets_s = match self.clock.delay_basis(true) {
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
        let Some(InterfaceOption { stamp, .. }) = &self.interface.tscap else {
            return Some("another program wrote it");
        };
        let is_tsc = stamp.source == StampSource::Tsc;
        let times = self.clock.times();
        if !times.has_raw_stamps_of(times) {
            return Some("the file is of several captures");
        }
        if stamp.source == StampSource::Tai && self.was_set {
            return Some("CLOCK_TAI, which stamped, was set during the capture");
        }
        if self.raw < self.frames || self.frames == 0 {
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
        if self.interface.linktype != DataLink::ETHERNET && self.frames > 0 {
            warnings.push(format!(
                "{name} is not Ethernet: its frames were counted and not looked into"
            ));
        }
        if self.untimed > 0 {
            warnings.push(format!(
                "{name}: not looked into: {} in simple packet blocks, which hold no times",
                counted(self.untimed, "frame")
            ));
        }
        if self.frames > 0
            && let Some(why) = self.why_not_raw()
        {
            warnings.push(format!(
                "{name}: intervals are differences of the file's times: {why}"
            ));
        }
        let lost = self.statistics.as_ref().map(|it| it.outcomes.lost());
        if let Some(lost) = lost.filter(|lost| *lost > 0) {
            warnings.push(format!(
                "{name}: the capture itself lost {}: packets that flows have lost may be among them",
                counted(lost, "frame")
            ));
        }
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
