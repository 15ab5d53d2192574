//! What of `tscap loss` can't be asked for.

use std::time::Duration;

use tscap_base::text::numbers::{counted, grouped, ring, size};
use tscap_lab::loss::{Grid, LONGEST_FRAME, Pace, SLOW_RING};
use tscap_traffic::generator::{DISCARD, Layout, Network};

/// Most points of a sweep.
const MOST_POINTS: usize = 100_000;
/// Shortest time for which frames are sent: a hundred turns of the converter.
const SHORTEST: Duration = Duration::from_millis(20);
/// Longest: a capture must be over before it ends by itself.
const LONGEST: Duration = Duration::from_secs(60);
/// Longest that a slow file may take to empty a ring once nothing comes any more: a
/// capture that takes much longer to end counts as failed.
const LONGEST_DRAIN_S: u64 = 10;

/// Refuses frames that the veth pair can't carry, or that have no room for stamps.
pub(super) fn check_sizes(sizes: &[u32]) -> Result<(), String> {
    let layout = Layout {
        vlan: None,
        network: Network::BENCHMARK_V4,
        port: DISCARD,
    };
    let can = layout.least_size()..=LONGEST_FRAME;
    match sizes.iter().find(|size| !can.contains(size)) {
        None => Ok(()),
        Some(size) => Err(format!(
            "frames of {size} bytes can't be sent: they have {} to {}, the MTU of a veth and the \
             Ethernet header",
            can.start(),
            can.end()
        )),
    }
}

/// Refuses a pace that frames of this size can't have.
pub(super) fn check_pace(pace: Pace, size: u32) -> Result<(), String> {
    match pace.pacing(size) {
        Some(_) => Ok(()),
        None => Err(format!(
            "no pace for frames of {size} bytes: more than one a nanosecond, or one in centuries"
        )),
    }
}

/// Refuses files that take too long to empty these rings, or that of the calibration.
pub(super) fn check_drain(file_rate: u64, rings: &[usize]) -> Result<(), String> {
    let largest = rings.iter().copied().fold(SLOW_RING, usize::max) as u64;
    if file_rate.saturating_mul(LONGEST_DRAIN_S) >= largest {
        Ok(())
    } else {
        Err(format!(
            "a file that takes {}/s empties a ring of {} in more than {LONGEST_DRAIN_S} s: give a \
         higher --file-rate, or a smaller --ring-size (at least {} are used)",
            size(file_rate),
            ring(largest),
            ring(SLOW_RING as u64)
        ))
    }
}

/// Refuses a sweep that can't be measured.
pub(super) fn check(grid: &Grid) -> Result<(), String> {
    for &size in &grid.sizes {
        for pace in &grid.paces {
            check_pace(*pace, size)?;
        }
    }
    let points = grid.len();
    if points > MOST_POINTS {
        return Err(format!(
            "{} are more than {}: shorten a list",
            counted(points as u64, "point"),
            grouped(MOST_POINTS as u64)
        ));
    }
    if !(SHORTEST..=LONGEST).contains(&grid.duration) {
        return Err(format!(
            "--duration is {SHORTEST:?} to {LONGEST:?}: in less no buffer tells anything"
        ));
    }
    let twice = [
        has_twice(&grid.sizes).then_some("--size"),
        has_twice(&grid.snaplens).then_some("--snaplen"),
        has_twice(&grid.rings).then_some("--ring-size"),
        has_twice(&grid.clocks).then_some("--clock"),
        has_twice(&grid.peers).then_some("--peer"),
        has_twice(&grid.paces).then_some("--gap or --rate"),
    ];
    match twice.into_iter().flatten().next() {
        None => Ok(()),
        Some(option) => Err(format!("{option} has a value twice")),
    }
}

fn has_twice<T: PartialEq>(values: &[T]) -> bool {
    let mut rest = values.iter();
    while let Some(value) = rest.next() {
        if rest.as_slice().contains(value) {
            return true;
        }
    }
    false
}
