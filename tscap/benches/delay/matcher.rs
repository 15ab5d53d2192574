//! The matcher, with sightings from memory.

use anyhow::{Result, ensure};
use nix::time::ClockId;
use serde::Serialize;
use tscap_clock::{RawStamp, RealNs};
use tscap_delay::{DelayRecorder, Matched, Matcher, MatcherOptions, Passed, SeenAt, Sighting};
use tscap_document::Table;
use tscap_statistics::Spread;

use crate::common::report::Section;
use crate::common::rounds::{Subject, run};
use crate::common::table::{row, show};
use crate::common::target::Target;
use crate::map;

/// Between two packets, ns: a million a second.
const GAP_NS: u64 = 1_000;
/// How long a packet is remembered, ns.
pub const WINDOW_NS: u64 = 1_000_000_000;
/// Between two drains of the rings, ns.
const DRAIN_NS: u64 = 10_000_000;
/// Packets that come within a window.
pub const PACKETS: u64 = WINDOW_NS / GAP_NS;
/// Packets in one drain.
const A_DRAIN: u64 = DRAIN_NS / GAP_NS;
/// Most that the matcher may take, ns a packet.
const TARGET_NS: f64 = 200.0;
/// What it should be.
const AIM_NS: f64 = 80.0;

/// What was found.
#[derive(Debug, Serialize)]
pub struct Matching {
    /// Rounds measured.
    rounds: u32,
    /// Packets that are remembered.
    remembered: u64,
    /// Memory of the matcher, bytes for each that it can remember.
    memory_bytes_a_packet: f64,
    /// CPU time, ns a packet.
    subjects: Vec<Cost>,
}

/// What a packet costs.
#[derive(Debug, Serialize)]
struct Cost {
    name: &'static str,
    ns: Spread,
}

impl Section for Matching {
    fn targets(&self) -> Vec<Target> {
        let ns = |index: usize| &self.subjects[index].ns;
        vec![
            Target::at_most("matcher: ns a packet, best round", ns(0).min, TARGET_NS),
            Target::at_most("matcher: ns a packet, aim", ns(0).median, AIM_NS).asserted_if(false),
            Target::at_most(
                "matcher and figures: ns a packet, best round",
                ns(2).min,
                TARGET_NS,
            )
            .asserted_if(false),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.subjects.iter();
        let rows = rows.map(|cost| row(cost.name, [show(&cost.ns, 1)]));
        let title = format!(
            "a packet in and out, CPU ns; remembered: {}, {:.0} bytes each; rounds: {}",
            self.remembered, self.memory_bytes_a_packet, self.rounds
        );
        vec![Table::figures(title, &["", "ns"], rows.collect())]
    }
}

/// Measures on the CPU to which the caller is pinned.
pub fn all(rounds: u32) -> Result<Matching> {
    let plain = Load {
        delay_ns: 20_000,
        has_figures: false,
    };
    let long = Load {
        delay_ns: WINDOW_NS / 2,
        ..plain
    };
    let figures = Load {
        has_figures: true,
        ..plain
    };
    let (_, memory_bytes_a_packet) = matched(plain)?;
    let mut subjects = [
        Subject::new("matcher", || Ok(matched(plain)?.0)),
        Subject::new("matcher, delays of half a second", || Ok(matched(long)?.0)),
        Subject::new("matcher, with all figures", || Ok(matched(figures)?.0)),
        Subject::new("only a HashMap of the keys", || {
            map::matched(plain.delay_ns)
        }),
    ];
    run("matcher", rounds, &mut subjects)?;
    let subjects = subjects.into_iter().map(|subject| Cost {
        name: subject.name,
        ns: Spread::of(subject.results),
    });
    Ok(Matching {
        rounds,
        remembered: PACKETS,
        memory_bytes_a_packet,
        subjects: subjects.collect(),
    })
}

/// What comes.
#[derive(Clone, Copy)]
struct Load {
    delay_ns: u64,
    /// Delays are gathered too.
    has_figures: bool,
}

/// CPU time, ns a packet once the window is full; and the memory for each that it can
/// remember.
fn matched(load: Load) -> Result<(f64, f64)> {
    let capacity = PACKETS as usize + 4 * A_DRAIN as usize;
    let mut matcher = Matcher::new(MatcherOptions {
        window: WINDOW_NS,
        capacity,
        exits: 1,
        is_mirrored: false,
        kept_bytes: 0,
        keeps_exits: false,
        start: RawStamp(0),
    });
    let memory = matcher.memory_bytes() as f64 / capacity as f64;
    let mut recorder = DelayRecorder::new();
    let mut count = 0u64;
    let mut passed = |packet: &Passed<'_>| {
        count += 1;
        let Some(left) = packet.left[0] else { return };
        if load.has_figures {
            recorder.add(&Matched {
                at_ns: packet.entered.0,
                delay_ns: (left.0 - packet.entered.0).cast_signed(),
                entered: RealNs(packet.entered.0),
                cpu_in: Some(packet.cpu_in),
                cpu_out: Some(packet.cpu_out[0]),
                length: packet.length,
                key: packet.key,
                bytes: packet.bytes_in,
            });
        }
    };
    let mut sightings = Vec::new();
    let mut taken_ns = 0;
    let drains = WINDOW_NS / DRAIN_NS;
    // The first window fills it; there are two more.
    for drain in 0..3 * drains {
        fill(&mut sightings, drain, load.delay_ns);
        let before = cpu_ns()?;
        for sighting in &sightings {
            matcher.see(sighting, &[], &mut passed);
        }
        matcher.close_until(RawStamp((drain + 1) * DRAIN_NS), &mut passed);
        if drain >= drains {
            taken_ns += cpu_ns()? - before;
        }
    }
    let account = matcher.finish(RawStamp(3 * WINDOW_NS), &mut passed)[0];
    let late = load.delay_ns / GAP_NS;
    ensure!(
        account.entered == 3 * PACKETS
            && account.matched + account.pending == account.entered
            && account.pending.abs_diff(late) <= 2
            && count == account.matched,
        "packets are missing: {account:?}"
    );
    Ok((taken_ns as f64 / (2 * PACKETS) as f64, memory))
}

/// What two rings have after a drain's time: that of the entry, then that of the exit.
fn fill(sightings: &mut Vec<Sighting>, drain: u64, delay_ns: u64) {
    sightings.clear();
    let sighting = |at, number: u64, stamp: u64| Sighting {
        at,
        key: key(number),
        stamp: RawStamp(stamp),
        cpu: 0,
        length: 64,
    };
    let numbers = drain * A_DRAIN..(drain + 1) * A_DRAIN;
    let entries = numbers.clone();
    sightings.extend(entries.map(|number| sighting(SeenAt::Entry, number, number * GAP_NS)));
    let late = delay_ns / GAP_NS;
    let left = numbers.filter_map(|number| number.checked_sub(late));
    sightings
        .extend(left.map(|number| sighting(SeenAt::Exit(0), number, number * GAP_NS + delay_ns)));
}

/// The key of a packet: SplitMix64's finaliser, as mixed as those of frames.
pub fn key(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// CPU time of this thread, ns.
pub fn cpu_ns() -> Result<u64> {
    let time = ClockId::CLOCK_THREAD_CPUTIME_ID.now()?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}
