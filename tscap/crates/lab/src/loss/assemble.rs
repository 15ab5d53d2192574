//! From what was measured to what is said.

use super::accuracy::accuracy;
use super::bed::Placement;
use super::error::LossError;
use super::experiment::Results;
use super::grid::Grid;
use super::model::record_bytes;
use super::schema::{Method, Point, Sweep, VERSION};
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::{counted, grouped};
use tscap_results::envelope::{Circumstances, Kind};
use tscap_results::machine::Machine;
use tscap_traffic::load::Tool;

/// Puts it together.
pub fn assemble(
    results: Results,
    about: Circumstances,
    placement: &Placement,
    grid: &Grid,
) -> Sweep {
    let mut warnings: Vec<_> = results.ended_by.iter().map(early_end).collect();
    warnings.extend(noise(&about.machine));
    warnings.extend(results.warnings);
    warnings.extend(one_cpu(placement, &results.setting.capture_cpus));
    warnings.extend(unfilled(&results.points));
    warnings.extend(unreached(&results.points));
    Sweep {
        about: about.envelope(Kind::Loss, VERSION, results.ended_by.is_some()),
        method: Method {
            sender_cpu: placement.sender_cpu,
            receive_cpu: placement.receive_cpu.unwrap_or(placement.sender_cpu),
            capture_cpus: results.setting.capture_cpus,
            rings: results.setting.rings as u32,
            point_seconds: grid.duration.as_secs_f64(),
            folder: placement.folder.display().to_string(),
            file_bytes_per_s: placement.file_bytes_per_s,
            peers: results.setting.peers,
        },
        calibrations: results.calibrations,
        accuracy: accuracy(&results.points),
        points: results.points,
        warnings,
    }
}

fn early_end(error: &LossError) -> String {
    format!("ended early: {}", chain(error))
}

fn noise(machine: &Machine) -> Option<String> {
    let cpus = f64::from(machine.cpus);
    if let Some(steal) = machine.noisy_steal() {
        return Some(format!(
            "noisy machine: the hypervisor took {steal:.1} % of the CPUs' time, which loses frames \
             that the machine itself would not"
        ));
    }
    // What runs already will take a CPU from it now and then.
    (machine.load[0] > cpus / 2.0).then(|| {
        format!(
            "busy machine: load {:.1} on {} at the start; others lose frames here too",
            machine.load[0],
            counted(machine.cpus.into(), "CPU")
        )
    })
}

fn one_cpu(placement: &Placement, capture_cpus: &[u32]) -> Option<String> {
    (capture_cpus == [placement.sender_cpu]).then(|| {
        "the captures have no CPU of their own, but share the sender's: they take turns, and lose \
         what a ring can't hold from one turn to the next"
            .to_owned()
    })
}

/// Where the sender was too slow: the point tells nothing of the rate asked for.
fn unreached(points: &[Point]) -> Option<String> {
    let unreached: Vec<_> = points.iter().filter(|it| !it.is_reached()).collect();
    let share = |point: &&Point| point.rate_sent() / point.rate_asked.unwrap_or(f64::INFINITY);
    let worst = unreached
        .iter()
        .min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let rate = |rate: f64| grouped(rate.round() as u64);
    Some(format!(
        "at {} the sender did not reach 99 % of the rate asked for (at {} B {} of {} frames/s): \
         marked with *, and left out of the curves",
        counted(unreached.len() as u64, "point"),
        worst.size,
        rate(worst.rate_sent()),
        rate(worst.rate_asked.unwrap_or_default()),
    ))
}

/// Where the ring holds all that was sent, nothing can be lost in it.
fn unfilled(points: &[Point]) -> Option<String> {
    let ours = points.iter().filter(|point| point.tool == Tool::Tscap);
    let unfilled = ours.filter(|it| {
        let sent_bytes = it.run.sent as f64 * record_bytes(it.caplen());
        sent_bytes < it.ring_bytes as f64
    });
    let count = unfilled.count();
    (count > 0).then(|| {
        format!(
            "at {} the ring holds all frames that were sent, and could lose none: send \
             longer by --duration",
            counted(count as u64, "point")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::fixtures::sweep;

    #[test]
    fn a_point_below_the_rate_asked_for_is_warned_of() {
        let mut points = sweep().points;
        assert_eq!(unreached(&points), None, "flat out no rate is asked for");
        for point in &mut points {
            point.rate_asked = Some(point.rate_sent() / 0.995);
        }
        assert_eq!(unreached(&points), None, "99.5 % is enough");
        points[1].rate_asked = Some(4.0 * points[1].rate_sent());
        points[2].rate_asked = Some(2.0 * points[2].rate_sent());
        let warning = unreached(&points).unwrap();
        assert!(warning.starts_with("at 2 points "), "{warning}");
        assert!(
            warning.contains(&format!("at {} B", points[1].size)),
            "{warning}"
        );
    }
}
