//! A capture as that of one host.

use std::collections::HashMap;

use tscap_clock::{BootId, TimeBase};
use tscap_delay::file::{FileError, Place};
use tscap_delay::schema::How;
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{ClockRelation, Packet, TimesClock};
use tscap_streams::{Described, Ends, Survey};

use super::timeline::Timeline;
use super::{FilePlace, FilesError};

/// What one of both files has of its host.
#[derive(Debug)]
pub struct Host {
    /// How errors name the file.
    pub file: String,
    pub survey: Survey,
    pub place: Place,
    /// Which interfaces of the file are stamped by the clock of the place.
    pub is_by_its_clock: Vec<bool>,
    /// Whether frames say which way they went.
    pub has_directions: bool,
    pub timeline: Timeline,
    /// Why it is not that of raw stamps.
    pub why_not_raw: Option<String>,
    /// When its packets were seen.
    pub seen: Option<SeenTimes>,
    /// Its stamps went back: the clock was set.
    pub has_jumped: bool,
}

/// When the packets of a host were seen, by its line of time, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeenTimes {
    /// The first one in the file.
    pub first: u64,
    /// The last one in the file.
    pub last: u64,
    /// The earliest.
    pub least: u64,
    /// The latest.
    pub greatest: u64,
}

impl Host {
    /// The host of a place in a file.
    ///
    /// # Errors
    /// If the file does not have it, or its clock was set and its packets have no raw stamps.
    pub fn find(
        asked: &FilePlace,
        survey: Survey,
        warnings: &mut Vec<String>,
    ) -> Result<Self, FilesError> {
        let of = |error: FileError| FilesError::Of {
            file: asked.file.clone(),
            error,
        };
        let name = match &asked.interface {
            Some(name) => name.clone(),
            None => only_interface(&survey).ok_or_else(|| FilesError::WhichInterface {
                file: asked.file.clone(),
            })?,
        };
        let mut of_place = Vec::new();
        let direction = Some(asked.direction);
        let place = Place::find(How::Hooks, &name, direction, &survey, &mut of_place);
        let mut place = place.map_err(of)?;
        let first = place.indices.first().copied().unwrap_or(0);
        let clock = |index: usize| survey.interfaces[index].clock.times();
        let is_by_its_clock: Vec<_> = (0..survey.interfaces.len())
            .map(|index| place.indices.contains(&index) || is_one_clock(clock(index), clock(first)))
            .collect();
        // Another program's, and none of its frames was sent: it may not say which were.
        let of_it = || place.indices.iter().map(|index| &survey.interfaces[*index]);
        let has_directions = of_it().any(|it| it.interface.tscap.is_some() || it.sent > 0);
        if has_directions {
            warnings.append(&mut of_place);
        } else {
            place.direction = None;
        }
        let all: Vec<_> = described(&survey, &is_by_its_clock).collect();
        let (timeline, why_not_raw) = match Timeline::raw(&all) {
            Ok(timeline) => (timeline, None),
            Err(why) => (Timeline::times(&all), Some(why)),
        };
        let base = all.iter().filter_map(|it| it.interface.tscap.as_ref());
        let mut others = base
            .map(|it| it.time_base)
            .filter(|it| !matches!(it, TimeBase::Realtime | TimeBase::Peer));
        if let Some(base) = others.next().filter(|_| why_not_raw.is_some()) {
            return Err(of(FileError::TimeBase(base.name())));
        }
        if why_not_raw.is_some() && all.iter().any(|it| it.was_set) {
            return Err(FilesError::WasSet {
                file: asked.file.clone(),
            });
        }
        Ok(Self {
            file: asked.file.clone(),
            seen: None,
            has_jumped: false,
            place,
            is_by_its_clock,
            has_directions,
            timeline,
            why_not_raw,
            survey,
        })
    }

    /// The interfaces that are stamped by the clock of the place.
    pub fn interfaces(&self) -> impl Iterator<Item = &Described> {
        described(&self.survey, &self.is_by_its_clock)
    }

    /// Whether a packet was stamped by it.
    pub fn has(&self, packet: &Packet) -> bool {
        let of = self.is_by_its_clock.get(packet.interface as usize);
        of.copied().unwrap_or(false)
    }

    /// Looks at the frames of the other direction at the place.
    ///
    /// # Errors
    /// If they were not captured.
    pub fn turn(&mut self, direction: Direction) -> Result<(), FilesError> {
        let name = self
            .place
            .indices
            .first()
            .map_or(String::new(), usize::to_string);
        let (mut of_place, indices) = (Vec::new(), self.place.indices.clone());
        let found = Place::find(
            How::Hooks,
            &name,
            Some(direction),
            &self.survey,
            &mut of_place,
        );
        let found = found.map_err(|error| FilesError::Of {
            file: self.file.clone(),
            error,
        })?;
        self.place = Place {
            name: self.place.name.clone(),
            indices,
            direction: found.direction.filter(|_| self.has_directions),
            hook: found.hook,
        };
        Ok(())
    }

    /// The clock of the times at the place.
    pub fn clock(&self) -> &TimesClock {
        let first = self.place.indices.first().copied().unwrap_or(0);
        self.survey.interfaces[first].clock.times()
    }

    /// The boot that its clock is of, if the file names it.
    pub fn boot(&self) -> Option<BootId> {
        let mut options = self
            .interfaces()
            .filter_map(|it| it.interface.tscap.as_ref());
        BootId::parse(options.next()?.boot_id.as_ref()?)
    }

    /// Whose clock that is, for people.
    pub fn whose(&self) -> String {
        let is_ours = self.interfaces().any(|it| it.interface.tscap.is_some());
        if is_ours {
            self.clock().whose()
        } else {
            format!("the host of {}", self.file)
        }
    }

    /// Greatest error of a time against UTC, ns, if the file says it of all of them.
    pub fn utc_bound_ns(&self) -> Option<u64> {
        let mut greatest_ns = Some(0);
        for it in self.interfaces() {
            let is_utc = !it.was_set
                && it
                    .interface
                    .tscap
                    .as_ref()
                    .is_some_and(|it| it.time_base.is_realtime());
            let bound_ns = it.clock.times().utc_bound_ns().filter(|_| is_utc);
            let moved_ns = if it.raw > 0 {
                it.clock.times().bound_ns()
            } else {
                Some(0)
            };
            let bound_ns = bound_ns
                .zip(moved_ns)
                .map(|(one, other)| one.saturating_add(other));
            let both = greatest_ns.zip(bound_ns);
            greatest_ns = both.map(|(one, other): (u64, u64)| one.max(other));
        }
        greatest_ns
    }

    /// Measures by the times of the file, and not by raw stamps.
    pub fn use_times(&mut self) {
        let all: Vec<_> = described(&self.survey, &self.is_by_its_clock).collect();
        self.timeline = Timeline::times(&all);
    }

    /// Takes when packets were seen from the times of the file.
    pub fn see_times(&mut self) {
        let times = self.interfaces().filter_map(|it| it.times);
        let times = times.reduce(|[a, b], [c, d]| [a.min(c), b.max(d)]);
        self.seen = times.map(|[first, last]| SeenTimes {
            first: first.0,
            last: last.0,
            least: first.0,
            greatest: last.0,
        });
    }
}

/// Which way packets go whose frames do not say it, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Headings {
    /// Of both ends in order, whether what the first one sends goes to the second host.
    known: HashMap<u32, bool>,
}

impl Headings {
    /// Keeps it of two ends.
    pub fn insert(&mut self, ends: u32, is_first_to_second: bool) {
        self.known.insert(ends, is_first_to_second);
    }

    /// Whether a packet goes from the first host to the second one, if that is known.
    pub fn is_forward(&self, frame: &[u8]) -> Option<bool> {
        let (ends, is_by_first) = ends_of(frame)?;
        Some(*self.known.get(&ends)? == is_by_first)
    }
}

/// A number for both ends of a packet, whichever way it goes, and whether the lesser address sent
/// it. `None` unless it is IP, between two addresses.
pub fn ends_of(frame: &[u8]) -> Option<(u32, bool)> {
    let ends = Ends::of(frame)?;
    let (source, destination) = (ends.source, ends.destination);
    if source == destination {
        return None;
    }
    let text = format!("{}-{}", source.min(destination), source.max(destination));
    // FNV-1a, of 32 bits.
    let number = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    Some((number, source < destination))
}

/// How many hops a packet may still make; 255 of what is not IP.
pub fn hops_left(frame: &[u8]) -> u8 {
    let mut at = 12;
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    for _ in 0..2 {
        if matches!(half(at), Some(0x8100 | 0x88a8)) {
            at += 4;
        }
    }
    let hops = match half(at) {
        Some(0x0800) => frame.get(at + 2 + 8),
        Some(0x86dd) => frame.get(at + 2 + 7),
        _ => None,
    };
    hops.copied().unwrap_or(u8::MAX)
}

fn described<'a>(survey: &'a Survey, these: &'a [bool]) -> impl Iterator<Item = &'a Described> {
    let all = survey.interfaces.iter().zip(these);
    all.filter(|(_, is_it)| **is_it).map(|(it, _)| it)
}

fn is_one_clock(one: &TimesClock, other: &TimesClock) -> bool {
    one.kinship(other) == ClockRelation::Same
}

/// The number of the only Ethernet interface that has packets.
fn only_interface(survey: &Survey) -> Option<String> {
    let all = survey.interfaces.iter().enumerate();
    let mut all = all.filter(|(_, it)| it.frames > 0);
    let (first, described) = all.next()?;
    // Of a file of several sections it is described again.
    let is_only = all.all(|(_, it)| {
        it.interface.name.is_some()
            && it.interface.name == described.interface.name
            && it.is_interface_of(described)
    });
    let name = described.interface.name.clone();
    is_only.then(|| name.unwrap_or_else(|| first.to_string()))
}
