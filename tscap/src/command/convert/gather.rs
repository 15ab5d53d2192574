//! A first look at all of a capture: its clock, and whether raw stamps were kept.

use std::fs::File;
use std::path::Path;

use crate::command::{Context, Failure, Hint as _};
use tscap_clock::{FileClock, History, RawStamp, StampSource};
use tscap_file::pcapng::{Damaged, Gatherer, InterfaceOption, ReadError, Record, records};

/// What a capture says of itself.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Of its first interface that tscap described.
    pub source: StampSource,
    /// Of the machine that captured, if it says so.
    pub boot_id: Option<String>,
    /// Which clock its times are of.
    pub clock: FileClock,
    /// The reference whose time takes the place of CLOCK_REALTIME, if there is one.
    pub reference: Option<String>,
    /// Whether every packet of these interfaces has a raw stamp.
    pub all_have_stamps: bool,
    /// The clock by its statistics, if it has any.
    pub history: Option<History>,
    /// Packets of any interface.
    pub packets: u64,
    /// First and last raw stamp.
    pub stamps: Option<[RawStamp; 2]>,
    /// Greatest error of a raw stamp as such, ns.
    pub stamp_error_ns: u64,
    /// Greatest error that the statistics state for its times, ns, if it has any.
    pub live_bound_ns: Option<u64>,
}

impl Gathered {
    /// Fails where its times are of an NTP server's clock, or of another host's.
    pub fn is_of_this_machine(&self, path: &Path) -> Result<(), Failure> {
        let of = match (self.clock.ntp, self.clock.peer) {
            (Some(of), _) => format!("NTP server {}", of.server),
            (_, Some(of)) => format!("the host of boot {}", of.boot),
            (None, None) => return Ok(()),
        };
        let what = format!(
            "cannot convert {}: its times are of {of} already",
            path.display()
        );
        Err(Failure::new(what).hint("convert the capture that it was made of"))
    }
}

pub(super) fn gather(file: &File, path: &Path) -> Result<Gathered, Failure> {
    let input = path.display();
    let records = records(file).context(format!("cannot read {input}"));
    let records = records.hint("tscap converts its own captures")?;
    let mut gatherer = Gatherer::default();
    let (mut packets, mut stamps) = (0u64, None);
    let (mut from_ours, mut raw) = (0u64, 0u64);
    let mut is_ours = Vec::new();
    let (mut stamp_error_ns, mut live_bound_ns) = (0, None);
    let mut ours: Option<(u32, InterfaceOption)> = None;
    let mut hole: Option<Damaged> = None;
    for record in records {
        let record = record.context(format!("cannot read {input}"))?;
        if let Some(hole) = hole.filter(|_| !matches!(record, Record::Damaged(_))) {
            return Err(has_hole(&hole, path));
        }
        match record {
            Record::Packet(packet) => {
                packets += 1;
                if is_ours.get(packet.interface as usize) != Some(&true) {
                    continue;
                }
                from_ours += 1;
                if let Some(stamp) = packet.raw {
                    raw += 1;
                    let [first, last] = stamps.get_or_insert([stamp; 2]);
                    (*first, *last) = (stamp.min(*first), stamp.max(*last));
                }
            }
            Record::Untimed { .. } => packets += 1,
            Record::Section(_) => {}
            Record::Interface(interface) => {
                is_ours.push(interface.tscap.is_some());
                let Some(described) = interface.tscap else {
                    continue;
                };
                // Sections are those of files that were put one behind the other.
                let is_other = |(section, known): &(u32, InterfaceOption)| {
                    *section != interface.section || !is_of_same_clock(known, &described)
                };
                if ours.as_ref().is_some_and(is_other) {
                    return Err(several(ReadError::OtherClock, path));
                }
                if let Some(bracket) = described.stamp.bracket {
                    stamp_error_ns = stamp_error_ns.max(bracket.whole_ns.div_ceil(2));
                }
                ours.get_or_insert((interface.section, described));
            }
            Record::Statistics(interface, statistics) => {
                stamp_error_ns = stamp_error_ns.max(statistics.clock.stamp_error_ns);
                live_bound_ns = live_bound_ns.max(Some(statistics.clock.host_bound_ns));
                let taken = gatherer.take(interface, &statistics.clock);
                taken.map_err(|error| match error {
                    ReadError::OtherClock | ReadError::NoHistory => several(error, path),
                    error => Failure::from_error(error, format!("cannot read {input}")),
                })?;
            }
            // A packet says nothing of the clock.
            Record::Damaged(damaged) if damaged.is_packet() => {}
            Record::Damaged(damaged) => hole = hole.or(Some(damaged)),
        }
    }
    let (_, ours) = ours.ok_or_else(|| {
        Failure::new(format!("cannot convert {input}: not a file of tscap"))
            .hint("only tscap's captures carry raw stamps and the history of their clock")
    })?;
    Ok(Gathered {
        source: ours.stamp.source,
        clock: ours.clock(),
        reference: ours.reference,
        boot_id: ours.boot_id,
        all_have_stamps: raw == from_ours,
        history: gatherer.history().context(format!("cannot read {input}"))?,
        packets,
        stamps,
        stamp_error_ns,
        live_bound_ns,
    })
}

fn is_of_same_clock(one: &InterfaceOption, other: &InterfaceOption) -> bool {
    one.boot_id == other.boot_id && one.clock() == other.clock() && one.reference == other.reference
}

/// The clock may have been set in what can't be read, unless the file ends there.
fn has_hole(hole: &Damaged, path: &Path) -> Failure {
    Failure::new(format!(
        "cannot convert {}: the history of its clock has a hole, at byte {}: {}",
        path.display(),
        hole.at,
        hole.fault
    ))
    .hint("a filter copies what is whole, with the times that it has: tscap convert IN -w OUT ''")
}

fn several(error: ReadError, path: &Path) -> Failure {
    Failure::from_error(error, format!("cannot convert {}", path.display()))
        .hint("convert each capture on its own, before they are joined")
}
