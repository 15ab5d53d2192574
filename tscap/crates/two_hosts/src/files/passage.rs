//! Packets of one way, from a place at one host to a place at the other.

use std::io::{Read, Seek};

use tscap_clock::{RawStamp, RealNs};
use tscap_common::key::key;
use tscap_delay::schema::{Account, Exit, MeasuringPoint, Passage};
use tscap_delay::{DelayRecorder, Matched, Matcher, MatcherOptions, Passed, SeenAt, Sighting};
use tscap_file::pcapng::{Packet, Record};
use tscap_statistics::Distribution;
use tscap_streams::{CaptureError, ENDS_WITHIN};

use super::common::Common;
use super::host::Host;
use super::peer_time::{AlignedTime, PeerTime, share_up};
use super::timeline::Line;
use super::{Clocks, FilesPlan};
use crate::variation::VariationRecorder;

/// What is kept of a packet until it is judged: numbers, and the first bytes.
const KEPT: usize = NUMBERS + ENDS_WITHIN;
/// Bytes of the numbers of [`Kept`].
const NUMBERS: usize = 4 * size_of::<u64>();

/// What was seen of one way.
#[derive(Debug)]
pub struct Measured {
    pub passage: Passage,
    /// Greatest error of each delay by the alignment, ns.
    pub alignment_ns: Distribution,
    pub unaligned: u64,
    pub contradictions: u64,
    pub backwards: u64,
    pub memory_bytes: u64,
}

/// A sighting with its host's times.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// In the file.
    time: u64,
    /// By the host's line of time.
    stamp: u64,
    /// Packets of the host before it.
    order: u64,
    /// Frames at the place before it.
    number: u64,
}

impl Kept {
    fn bytes(&self, frame: &[u8]) -> ([u8; KEPT], usize) {
        let mut bytes = [0; KEPT];
        let numbers = [self.time, self.stamp, self.order, self.number];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        let length = frame.len().min(ENDS_WITHIN);
        bytes[NUMBERS..NUMBERS + length].copy_from_slice(&frame[..length]);
        (bytes, NUMBERS + length)
    }

    fn of(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (numbers, frame) = bytes.split_at_checked(NUMBERS)?;
        let mut numbers = numbers.chunks_exact(8);
        let mut next = || Some(u64::from_ne_bytes(numbers.next()?.try_into().ok()?));
        let kept = Self {
            time: next()?,
            stamp: next()?,
            order: next()?,
            number: next()?,
        };
        Some((kept, frame))
    }
}

/// The next packets of a host, with their times by the first host's clock.
struct Packets<'a, I> {
    records: I,
    line: Line<'a>,
    host: usize,
    order: u64,
}

/// A packet of a host.
struct SeenPacket {
    packet: Packet,
    kept: Kept,
    aligned: Option<AlignedTime>,
}

impl<I: Iterator<Item = Record>> Packets<'_, I> {
    fn next(&mut self, host: &Host, peer_time: &PeerTime) -> Option<SeenPacket> {
        for record in self.records.by_ref() {
            let Record::Packet(packet) = record else {
                continue;
            };
            if !host.has(&packet) {
                continue;
            }
            let stamp = self.line.at(&packet);
            let kept = Kept {
                time: packet.time.0,
                stamp,
                order: self.order,
                number: 0,
            };
            self.order += 1;
            let aligned = aligned(peer_time, self.host, &kept);
            return Some(SeenPacket {
                packet,
                kept,
                aligned,
            });
        }
        None
    }
}

/// A time of a host by the first host's clock.
fn aligned(peer_time: &PeerTime, host: usize, kept: &Kept) -> Option<AlignedTime> {
    match host {
        0 => Some(AlignedTime {
            at: kept.stamp,
            bound_ns: 0,
            epoch: 0,
        }),
        _ => peer_time.align(kept.order, kept.stamp),
    }
}

/// What the delays are made of.
struct Delays<'a> {
    clocks: &'a Clocks,
    /// The host where packets enter.
    entry: usize,
    stamps_ns: u64,
    start: u64,
    recorder: DelayRecorder,
    variation: VariationRecorder,
    epoch: u64,
    alignment_ns: Distribution,
    bound_ns: u64,
    unaligned: u64,
    contradictions: u64,
    /// Left before it entered, whatever the clocks are.
    backwards: u64,
    cover: Cover,
    /// Packets that were matched though they entered, or left, where the other capture may not
    /// have them.
    beyond: [u64; 2],
}

/// From when until when each capture goes, by the first host's clock.
#[derive(Clone, Copy, Debug)]
struct Cover {
    entry: [u64; 2],
    exit: [u64; 2],
    window: u64,
}

impl Cover {
    /// Whether the exit of what enters then may be outside of its capture.
    fn may_leave_beyond(&self, at: u64) -> bool {
        at < self.exit[0] || at.saturating_add(self.window) > self.exit[1]
    }

    /// Whether what leaves then may have entered outside of its capture.
    fn may_enter_beyond(&self, at: u64) -> bool {
        at > self.entry[1] || at < self.entry[0].saturating_add(self.window)
    }

    /// Whether what is seen then at one place is nothing that the other capture can have.
    fn is_beyond([first, last]: [u64; 2], at: u64, margin: u64) -> bool {
        at.saturating_add(margin) < first || at > last.saturating_add(margin)
    }
}

impl Delays<'_> {
    fn take(&mut self, passed: &Passed<'_>) {
        let exit = Kept::of(passed.bytes_out[0]);
        let (Some((entry, frame)), Some((exit, _))) = (Kept::of(passed.bytes_in), exit) else {
            self.unaligned += 1;
            return;
        };
        let leaves = 1 - self.entry;
        let peer_time = &self.clocks.peer_time;
        let times = aligned(peer_time, self.entry, &entry).zip(aligned(peer_time, leaves, &exit));
        let Some((enters, left)) = times else {
            self.unaligned += 1;
            return;
        };
        self.beyond[0] += u64::from(self.cover.may_leave_beyond(enters.at));
        self.beyond[1] += u64::from(self.cover.may_enter_beyond(left.at));
        let mut delay_ns = left.at.wrapping_sub(enters.at).cast_signed();
        let mut alignment_ns = enters.bound_ns.max(left.bound_ns);
        alignment_ns =
            alignment_ns.saturating_add(share_up(delay_ns.unsigned_abs(), peer_time.drift_ppb()));
        let bound_ns = alignment_ns.saturating_add(self.stamps_ns);
        if delay_ns.saturating_add_unsigned(bound_ns) < 0 {
            self.unaligned += 1;
            self.backwards += 1;
            return;
        }
        if let Some(utc_ns) = self.clocks.utc_bound_ns {
            // By the times of both files, whatever the stamps are.
            let by_utc = exit.time.wrapping_sub(entry.time).cast_signed();
            match met([delay_ns, by_utc], [alignment_ns, utc_ns]) {
                Some((delay, bound_ns)) => (delay_ns, alignment_ns) = (delay, bound_ns),
                None => {
                    self.unaligned += 1;
                    self.contradictions += 1;
                    return;
                }
            }
        }
        self.alignment_ns
            .add(i64::try_from(alignment_ns).unwrap_or(i64::MAX));
        self.bound_ns = self
            .bound_ns
            .max(alignment_ns.saturating_add(self.stamps_ns));
        let epoch = enters.epoch.max(left.epoch);
        if std::mem::replace(&mut self.epoch, epoch) != epoch {
            self.variation.break_off();
        }
        self.variation.add(
            entry.number,
            entry.stamp.into(),
            exit.stamp.into(),
            self.stamps_ns,
            peer_time.drift_ppb(),
        );
        self.recorder.add(&Matched {
            at_ns: enters.at.saturating_sub(self.start),
            delay_ns,
            entered: RealNs(entry.time),
            cpu_in: None,
            cpu_out: None,
            length: passed.length,
            key: passed.key,
            bytes: frame,
        });
    }
}

/// Where two intervals meet: the middle of the first one as far as the second one allows it, and how
/// far the truth may be from there. `None` if they exclude each other.
fn met([one, other]: [i64; 2], [bound, of_other]: [u64; 2]) -> Option<(i64, u64)> {
    let around = |middle: i64, bound: u64| {
        let (middle, bound) = (i128::from(middle), i128::from(bound));
        [middle - bound, middle + bound]
    };
    let (a, b) = (around(one, bound), around(other, of_other));
    let (low, high) = (a[0].max(b[0]), a[1].min(b[1]));
    if low > high {
        return None;
    }
    let best = i128::from(one).clamp(low, high);
    let farther = u64::try_from((high - best).max(best - low)).ok()?;
    Some((i64::try_from(best).ok()?, farther))
}

/// Frames seen at a place, and why some are not given to the matcher.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    seen: u64,
    unkeyed: u64,
    /// Near to where a clock was set.
    unaligned: u64,
    /// Of those given to the matcher: the other capture may not have them.
    beyond: u64,
    /// Not given to the matcher: the other capture can't have them.
    outside: u64,
}

/// Measures what enters at the place of `entry`, one of both hosts, and leaves at the other one's.
///
/// # Errors
/// If a file can't be read once more.
pub fn measure<R: Read + Seek>(
    files: [&mut R; 2],
    hosts: &[Host; 2],
    clocks: &Clocks,
    common: &Common,
    plan: &FilesPlan,
    entry: usize,
) -> Result<Measured, CaptureError> {
    let exit = 1 - entry;
    let peer_time = &clocks.peer_time;
    let window = u64::try_from(plan.window.as_nanos()).unwrap_or(u64::MAX);
    let slack = clocks.slack_ns;
    let cover = Cover {
        entry: clocks.ends[entry],
        exit: clocks.ends[exit],
        window,
    };
    let margin = window.saturating_add(2 * slack);
    let options = MatcherOptions {
        window: margin,
        capacity: plan.capacity,
        exits: 1,
        is_mirrored: false,
        kept_bytes: KEPT,
        keeps_exits: true,
        start: RawStamp(cover.entry[0]),
    };
    let mut matcher = Matcher::new(options);
    let mut delays = Delays {
        clocks,
        entry,
        stamps_ns: hosts.iter().map(|it| it.timeline.error_ns).sum(),
        start: cover.entry[0],
        recorder: DelayRecorder::new(),
        variation: VariationRecorder::new(),
        epoch: 0,
        alignment_ns: Distribution::new(),
        bound_ns: 0,
        unaligned: 0,
        contradictions: 0,
        backwards: 0,
        cover,
        beyond: [0; 2],
    };
    let [first, second] = files;
    let records = hosts[0].survey.one_by_one(first)?;
    let mut one = Packets {
        records,
        line: Line::new(&hosts[0].timeline),
        host: 0,
        order: 0,
    };
    let records = hosts[1].survey.one_by_one(second)?;
    let mut other = Packets {
        records,
        line: Line::new(&hosts[1].timeline),
        host: 1,
        order: 0,
    };
    let mut next = [
        one.next(&hosts[0], peer_time),
        other.next(&hosts[1], peer_time),
    ];
    let mut counts = [Counts::default(); 2];
    let (mut latest, mut epoch) = (0_u64, None);
    loop {
        let time = |seen: &Option<SeenPacket>| {
            let seen = seen.as_ref()?;
            Some(seen.aligned.map_or(0, |it| it.at))
        };
        let host = match [time(&next[0]), time(&next[1])] {
            [None, None] => break,
            [Some(_), None] => 0,
            [None, Some(_)] => 1,
            [Some(one), Some(other)] => usize::from(other < one),
        };
        let following = match host {
            0 => one.next(&hosts[0], peer_time),
            _ => other.next(&hosts[1], peer_time),
        };
        let Some(seen) = std::mem::replace(&mut next[host], following) else {
            continue;
        };
        let SeenPacket {
            packet,
            mut kept,
            aligned,
        } = seen;
        if !hosts[host].place.has(&packet) {
            continue;
        }
        if let Some(headings) = &common.headings
            && headings.is_forward(&packet.data) != Some(entry == 0)
        {
            continue;
        }
        let count = &mut counts[usize::from(host == exit)];
        count.seen += 1;
        kept.number = count.seen;
        let of = plan.matched_by.key_of();
        let there = packet.data.len() as u32;
        let Some(key) = key(of, &packet.data[..], there, packet.origlen) else {
            count.unkeyed += 1;
            continue;
        };
        let Some(aligned) = aligned else {
            count.unaligned += 1;
            continue;
        };
        let other = if host == entry {
            cover.exit
        } else {
            cover.entry
        };
        if Cover::is_beyond(other, aligned.at, margin) {
            count.outside += 1;
            continue;
        }
        if host == 1
            && epoch
                .replace(aligned.epoch)
                .is_some_and(|it| it != aligned.epoch)
        {
            matcher.distrust();
            latest = aligned.at;
        }
        if aligned.at.saturating_add(window.saturating_add(slack)) < latest {
            matcher.distrust();
            latest = aligned.at;
        }
        latest = latest.max(aligned.at);
        let (at, stamp) = if host == entry {
            count.beyond += u64::from(cover.may_leave_beyond(aligned.at));
            (SeenAt::Entry, aligned.at)
        } else {
            count.beyond += u64::from(cover.may_enter_beyond(aligned.at));
            (SeenAt::Exit(0), aligned.at.saturating_add(slack))
        };
        let sighting = Sighting {
            at,
            key,
            stamp: RawStamp(stamp),
            cpu: 0,
            length: packet.origlen,
        };
        let (bytes, length) = kept.bytes(&packet.data);
        matcher.see(&sighting, &bytes[..length], &mut |passed| {
            delays.take(passed)
        });
    }
    let memory_bytes = matcher.memory_bytes();
    let end = RawStamp(cover.exit[1].saturating_add(slack));
    let accounts = matcher.finish(end, &mut |passed| delays.take(passed));
    let mut account = accounts.into_iter().next().unwrap_or_default();
    let [entries, exits] = counts;
    not_covered(&mut account, [entries, exits], delays.beyond);
    Ok(delays.finish(hosts, account, [entries, exits], memory_bytes))
}

/// What the other capture may not have is neither lost nor did it originate inside.
fn not_covered(account: &mut Account, [entries, exits]: [Counts; 2], matched: [u64; 2]) {
    let entered = entries.beyond.saturating_sub(matched[0] + account.pending);
    let entered = entered.min(account.lost_inside);
    account.lost_inside -= entered;
    account.pending += entered + entries.outside;
    account.entered += entries.outside;
    let left = exits.beyond.saturating_sub(matched[1] + account.early);
    let left = left.min(account.originated);
    account.originated -= left;
    account.early += left + exits.outside;
    account.left += exits.outside;
}

impl Delays<'_> {
    fn finish(
        self,
        hosts: &[Host; 2],
        account: Account,
        [entries, exits]: [Counts; 2],
        memory_bytes: u64,
    ) -> Measured {
        let [enters, leaves] = [&hosts[self.entry], &hosts[1 - self.entry]];
        let exit = Exit {
            point: leaves.place.point().to_owned(),
            spot: point(leaves, exits),
            account,
            delays: self.recorder.finish(Some(self.bound_ns)),
            variation: self.variation.finish(),
        };
        Measured {
            passage: Passage {
                name: format!("{} → {}", named(enters), named(leaves)),
                entry: point(enters, entries),
                exits: vec![exit],
                queueing: None,
            },
            alignment_ns: self.alignment_ns,
            unaligned: self.unaligned,
            contradictions: self.contradictions,
            backwards: self.backwards,
            memory_bytes,
        }
    }
}

/// A place with its file.
fn named(host: &Host) -> String {
    format!("{} of {}", host.place.name, host.file)
}

fn point(host: &Host, counts: Counts) -> MeasuringPoint {
    let Counts {
        seen,
        unkeyed,
        unaligned,
        ..
    } = counts;
    let unaligned = (unaligned > 0).then(|| ("unaligned".to_owned(), unaligned));
    MeasuringPoint {
        interface: host.place.name.clone(),
        hook: host.place.hook.clone(),
        seen,
        unkeyed,
        keyed: seen - unkeyed - unaligned.as_ref().map_or(0, |it| it.1),
        unrecorded: unaligned.into_iter().collect(),
    }
}
