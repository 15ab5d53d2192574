//! Which figures of an observation are told in which table.

use tscap_base::text::numbers::{counted, grouped};
use tscap_document::words::{maybe, number, rounds};
use tscap_document::{Table, columns, facts, head, row};
use tscap_host::cpu_list;
use tscap_lab::observer::Observation;
use tscap_lab::observer::schema::Subject;

/// KiB in a GB.
const KIB_PER_GB: f64 = 1e9 / 1024.0;

/// Where and how it was measured.
pub(super) fn environment(observation: &Observation) -> Table {
    let method = &observation.method;
    let programs = method.programs.iter().map(|program| format!("; {program}"));
    let reported = format!(
        "{}, each with {} round trips and {} s of a TCP stream, from CPU {} to CPU {}; \
         captures on CPU {}, {} B of each frame{}",
        counted(method.rounds.into(), "round"),
        grouped(method.exchanges.into()),
        number(method.stream_seconds),
        method.sender_cpu,
        method.receive_cpu,
        cpu_list::list(&method.capture_cpus),
        method.snaplen,
        programs.collect::<String>(),
    );
    facts(&observation.about, reported)
}

/// Round trips of all rounds.
pub(super) fn round_trips(observation: &Observation) -> Table {
    let rows = observation.subjects.iter().map(|subject| {
        let name = subject.watcher.name();
        row(
            name,
            subject.round_trip_ns.as_ref(),
            grouped(subject.unanswered),
        )
    });
    Table::figures(
        "Round trip of 64 bytes over UDP, ns",
        &head("capture", "lost"),
        rows.collect(),
    )
}

/// The stream by round.
pub(super) fn streams(observation: &Observation) -> Table {
    let rows = observation.subjects.iter().map(|subject: &Subject| {
        let rates: Vec<f64> = subject
            .stream_ns_per_kib
            .iter()
            // A KiB is 8192 bits.
            .map(|ns| 8192.0 / ns)
            .collect();
        let cpu = subject.cpu_ns_per_kib.iter();
        let cpu: Vec<f64> = cpu.map(|ns| ns * KIB_PER_GB / 1e9).collect();
        vec![subject.watcher.name(), rounds(&rates), rounds(&cpu)]
    });
    Table::figures(
        "A TCP stream, median and range of the rounds",
        &columns("capture | Gbit/s | CPU s/GB"),
        rows.collect(),
    )
    .note(
        "CPU s/GB: of both programs, with the softirqs in which frames are received, and of the \
         capture",
    )
    .note(
        "on a veth pair a native XDP program turns the segmentation offload of the other end off, \
         so that a stream comes in frames of 1514 bytes instead of 64 KiB: that is in the figures of \
         tscap at XDP, and not in those of tscap at tcx, where nothing is turned off",
    )
}

/// The figures of the verdicts.
pub(super) fn verdicts(observation: &Observation) -> Table {
    let rows = observation.verdicts.iter().map(|verdict| {
        let of = &verdict.over_nobody;
        vec![
            verdict.watcher.name(),
            verdict.metric.name().to_owned(),
            maybe(of.ratio, |ratio| format!("{ratio:.3}")),
            maybe(of.interval, |[low, high]| format!("{low:.3}–{high:.3}")),
            maybe(of.lag_1, |lag_1| format!("{lag_1:.2}")),
            maybe(of.detectable, |ratio| format!("{ratio:.3}")),
        ]
    });
    Table::figures(
        "Over that with no capture",
        &columns("capture | figure | ratio | interval | lag 1 | detectable"),
        rows.collect(),
    )
    .words(&[0, 1])
    .note(
        "interval: all of them hold together in 99 % of runs; lag 1: correlation of the ratio of a \
         round with that of the next; detectable: a true ratio of this, or one over it, is found to \
         be beyond the margin of 3 % in 80 of 100 runs like this",
    )
}
