//! What is wanted of tscap at a port that only listens, and with disks.

use tscap_statistics::Spread;
use tscap_traffic::load::Tool;

use super::amount::{LONG, SHORT};
use super::cells::{Cell, KindReport};
use super::common::target::Target;
use super::report::DiskAlone;
use super::targets::{best_other, failed, finite, over_best, whole};

/// At a port that only listens, lossless rate of short frames over the best other program's,
/// and what is aimed at.
const TAP_OVER_BEST: f64 = 3.3;
const TAP_AIM: f64 = 4.0;
/// The same over the rate at which a program takes frames that only drops them.
const OVER_DROPPING: f64 = 0.7;
/// Lossless rate of whole long frames to a disk: at least the less of this many times the best
/// other program's…
const DISK_OVER_BEST: f64 = 2.0;
/// …and this part of what the disk takes alone.
const OF_DISK: f64 = 0.85;
/// CPU time for a GB of file over that of others.
const CPU_OVER: [(Tool, f64); 2] = [(Tool::Tcpdump, 0.3), (Tool::NetsniffNg, 0.5)];
/// Of tscap's file in the page cache, MiB.
const CACHED_MIB: f64 = 64.0;

/// Of a port that only listens.
pub fn of_tap(kinds: &[KindReport]) -> Vec<Target> {
    let short = kinds.iter().find(|report| report.kind == SHORT);
    let short = short.into_iter().flat_map(|kind| {
        let aim = over_best(kind, TAP_AIM).map(|aim| Target {
            name: format!("{}, the aim", aim.name),
            ..aim
        });
        [over_best(kind, TAP_OVER_BEST), aim, over_dropping(kind)]
    });
    [failed(kinds)].into_iter().chain(short.flatten()).collect()
}

/// tscap's lossless rate over that of a program that only drops, by round.
fn over_dropping(kind: &KindReport) -> Option<Target> {
    let ours = &whole(kind, Tool::Tscap)?.lossless_mpps;
    let dropped = kind.dropped_mpps.as_ref()?;
    let ratio = finite(ours.with(dropped, |ours, dropped| ours / dropped))?;
    let name = format!("{}: lossless / only dropping", kind.name());
    Some(Target::at_least(name, ratio, OVER_DROPPING).asserted_if(false))
}

/// With a disk that takes so much alone.
pub fn of_disk(kinds: &[KindReport], disk: Option<&DiskAlone>) -> Vec<Target> {
    let long = kinds.iter().find(|report| report.kind == LONG);
    let long = long.into_iter().flat_map(|kind| {
        let cpu = CPU_OVER.map(|(tool, most)| cpu_over(kind, tool, most));
        let lossless = disk.and_then(|disk| lossless(kind, &disk.gb_s));
        cpu.into_iter().chain([lossless, cached(kind)])
    });
    [failed(kinds)].into_iter().chain(long.flatten()).collect()
}

/// With a disk that pauses: the page cache takes what comes meanwhile, so nothing need be lost.
pub fn of_pauses(kinds: &[KindReport]) -> Vec<Target> {
    let ours = kinds
        .iter()
        .filter_map(|kind| Some((kind, whole(kind, Tool::Tscap)?)));
    let lost = ours.flat_map(|(kind, cells)| {
        let measured = cells.paced.iter().filter(|cell| !cell.points.is_empty());
        measured.map(|cell| {
            let name = format!("{} at a set rate: % lost, worst", kind.name());
            Target::at_most(name, cell.loss_percent.max, 0.0).asserted_if(false)
        })
    });
    [failed(kinds)].into_iter().chain(lost).collect()
}

/// tscap's lossless rate over the less of what is wanted of it by the best other program and by
/// the disk, by round.
fn lossless(kind: &KindReport, disk_gb_s: &Spread) -> Option<Target> {
    let cells = whole(kind, Tool::Tscap)?;
    let written: u64 = cells.flat_out.points.iter().map(|it| it.written).sum();
    let bytes: u64 = cells.flat_out.points.iter().map(|it| it.file_bytes).sum();
    let bytes_a_frame = bytes as f64 / written as f64;
    let of_disk = disk_gb_s.map(|gb_s| OF_DISK * gb_s * 1e3 / bytes_a_frame);
    let best = best_other(kind, |cells| &cells.lossless_mpps, f64::max);
    let (wanted, without) = match best {
        Some(best) => {
            let over_best = best.figure.map(|mpps| DISK_OVER_BEST * mpps);
            (of_disk.with(&over_best, f64::min), best.without)
        }
        None => (of_disk, String::new()),
    };
    let ratio = finite(
        cells
            .lossless_mpps
            .with(&wanted, |ours, wanted| ours / wanted),
    )?;
    let name = format!(
        "{}: lossless / less of {DISK_OVER_BEST} x best other{without} and {OF_DISK} x disk alone",
        kind.name()
    );
    Some(Target::at_least(name, ratio, 1.0).asserted_if(false))
}

/// tscap's CPU time for a GB over another program's, flat out.
fn cpu_over(kind: &KindReport, other: Tool, most: f64) -> Option<Target> {
    let of = |tool| Some(&whole(kind, tool)?.flat_out.cpu_s_a_gb);
    let ratio = finite(of(Tool::Tscap)?.with(of(other)?, |ours, theirs| ours / theirs))?;
    let name = format!("{}: CPU a GB / {}'s", kind.name(), other.name());
    Some(Target::at_most(name, ratio, most).asserted_if(false))
}

/// What the page cache holds of tscap's file, at the highest rate without loss or, without one,
/// flat out.
fn cached(kind: &KindReport) -> Option<Target> {
    let cells = whole(kind, Tool::Tscap)?;
    let is_measured = |cell: &&Cell| !cell.cached_mib.rounds.is_empty();
    let cell = [&cells.lossless, &cells.flat_out]
        .into_iter()
        .find(is_measured)?;
    let name = format!("{}: MiB of the file in the page cache, worst", kind.name());
    Some(Target::at_most(name, cell.cached_mib.max, CACHED_MIB).asserted_if(false))
}
