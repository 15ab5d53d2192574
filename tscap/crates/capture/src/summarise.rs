//! The summary of a capture that has ended.

use std::time::Duration;

use super::parts::Parts;
use super::summary::{
    ClockSummary, DirectionSummary, DiskSummary, FilterSummary, InterfaceSummary, PrioritySummary,
    Stop, Summary, WriterSummary,
};
use super::writers::{self, Writers};
use tscap_clock::{ReferenceBounds, Tracker};
use tscap_engine::{Delays, Finished};
use tscap_file::accounting::{Directed, Direction, Observed, StampOrder, Totals};
use tscap_references::ReferenceSummary;

impl Parts {
    pub fn summarise(
        &self,
        finished: &[Finished],
        of_writers: &[Directed<Totals>],
        observed: &[Observed],
        (stop, seconds): (Stop, f64),
    ) -> Summary {
        let Parts { plan, links, .. } = self;
        let mut of_each = Directed::default();
        for totals in of_writers {
            of_each += *totals;
        }
        let totals = of_each.sum();
        let observed = Observed::of_all(observed);
        let counts = finished.iter().map(|it| it.finisher.counts.clone());
        Summary {
            file: plan.target.to_string(),
            writers: self.writers(finished, of_writers),
            priority: self.priority(finished),
            files: None,
            filter: plan.filter.as_ref().map(FilterSummary::of),
            tap: plan.tap.is_some(),
            seconds,
            seen: totals.seen,
            written: totals.written,
            bytes_written: finished.iter().map(Finished::bytes).sum(),
            bytes_direct: finished.iter().map(Finished::written_direct).sum(),
            disk: disk(finished),
            outcomes: totals.outcomes,
            off_cpu: observed.off_cpu,
            directions: self.directions(&of_each),
            adds_up: Direction::ALL.iter().all(|it| of_each[*it].add_up()),
            interfaces: with_delays(links.accounts(&observed, &writers::sum(counts)), finished),
            clock: self.clock(finished, &observed),
            stopped_by: stop,
        }
    }

    fn priority(&self, finished: &[Finished]) -> Option<PrioritySummary> {
        let priority = self.plan.priority?;
        let rests = || finished.iter().filter_map(|it| it.rests);
        let time: Duration = rests().map(|it| it.time).sum();
        Some(PrioritySummary {
            priority,
            rests: rests().map(|it| it.count).sum(),
            rested_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// Each of several writers.
    fn writers(
        &self,
        finished: &[Finished],
        of_writers: &[Directed<Totals>],
    ) -> Vec<WriterSummary> {
        let Writers { shares, each } = &self.writers;
        if each.len() == 1 {
            return Vec::new();
        }
        let all = each.iter().zip(finished).zip(of_writers).enumerate();
        all.map(|(index, ((writer, finished), totals))| WriterSummary {
            file: writer.target.to_string(),
            cpus: shares.cpus(index).to_vec(),
            totals: totals.sum(),
            bytes_written: finished.bytes(),
        })
        .collect()
    }

    /// The clock of all writers; its segments are the first one's.
    fn clock(&self, finished: &[Finished], observed: &Observed) -> ClockSummary {
        let utc_bound_ns = observed.utc_bound_ns;
        let path = self.path;
        let first = &finished[0].tracker;
        let trackers = || finished.iter().map(|it| &it.tracker);
        let mut order = StampOrder::default();
        for finished in finished {
            order.add(finished.order());
        }
        let followed = self.plan.reference.as_ref();
        let bounds = trackers().filter_map(Tracker::reference);
        let bounds = bounds.reduce(ReferenceBounds::or_greater);
        let host_bound_ns = trackers().map(Tracker::host_bound_ns).max().unwrap_or(0);
        let reference = followed.zip(bounds);
        let reference =
            reference.map(|(of, bounds)| ReferenceSummary::of(of, bounds, host_bound_ns));
        ClockSummary {
            source: path.source().name().into(),
            path: path.function().into(),
            ordered: path.is_ordered(),
            counter: first.counter_report(),
            host_bound_ns,
            synchronised: utc_bound_ns.is_some(),
            utc_bound_ns: match bounds {
                Some(bounds) => bounds.utc_ns(),
                None => utc_bound_ns,
            },
            utc: observed.utc.clone(),
            reference,
            segments: first.segments().to_vec(),
            segments_forgotten: first.segments_forgotten(),
            steps: trackers().map(Tracker::steps).max().unwrap_or(0),
            order,
            ambiguous: finished.iter().map(|it| it.finisher.ambiguous).sum(),
            bound_raised: trackers().map(Tracker::bound_raised).max().unwrap_or(0),
        }
    }

    /// The account of each direction that is captured.
    fn directions(&self, of_each: &Directed<Totals>) -> Vec<DirectionSummary> {
        let links = &self.links.0;
        let is_taken = |it: &Direction| links.iter().any(|live| live.at(*it).is_some());
        let taken = Direction::ALL.into_iter().filter(is_taken);
        taken
            .map(|it| DirectionSummary::of(it, None, of_each[it]))
            .collect()
    }
}

/// What is known of the disk before it is waited for.
fn disk(finished: &[Finished]) -> Option<DiskSummary> {
    let pauses = finished.iter().filter_map(Finished::pauses);
    let sum = pauses.reduce(|(a, of_a), (b, of_b)| (a.max(b), of_a + of_b));
    sum.map(|(longest, spilled_bytes)| DiskSummary {
        has_all: false,
        longest_pause_ns: u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX),
        spilled_bytes,
    })
}

/// The accounts of interfaces with what is known of their hardware stamps at the end.
fn with_delays(
    mut interfaces: Vec<InterfaceSummary>,
    finished: &[Finished],
) -> Vec<InterfaceSummary> {
    let bounds: Vec<_> = finished
        .iter()
        .map(|it| it.finisher.hardware_bounds_ns())
        .collect();
    for (index, interface) in interfaces.iter_mut().enumerate() {
        let Some(hardware) = &mut interface.hardware else {
            continue;
        };
        let of_writers = bounds
            .iter()
            .filter_map(|it| it.get(index).copied().flatten());
        hardware.frames.bound_ns = of_writers.max();
        let delays = finished.iter().filter_map(|it| it.finisher.delays(index));
        let delays = delays.cloned().reduce(|mut all, it| {
            all.add(&it);
            all
        });
        hardware.delay = delays.as_ref().and_then(Delays::summary);
    }
    interfaces
}
