//! Which figures of a sweep are told in which table.

use tscap_base::text::numbers::{grouped, ring, size};
use tscap_document::words::{NOTHING, loss_percent, maybe, number};
use tscap_document::{Table, columns, facts};
use tscap_host::cpu_list;
use tscap_lab::loss::Arrival;
use tscap_lab::loss::model::Receiving;
use tscap_lab::loss::schema::{Calibration, Point, Sweep};
use tscap_traffic::load::Tool;

/// Where and how it was measured.
pub(crate) fn environment(sweep: &Sweep) -> Table {
    let method = &sweep.method;
    let slow = method
        .file_bytes_per_s
        .map(|rate| format!(", slowed down to {}/s", size(rate)));
    let peers: Vec<_> = method
        .peers
        .iter()
        .map(|peer| format!("; {peer}"))
        .collect();
    let reported = format!(
        "{} s a point; sent from CPU {}, received on CPU {}, captured on CPU {}; \
             files in {}{}{}",
        number(method.point_seconds),
        method.sender_cpu,
        method.receive_cpu,
        cpu_list::list(&method.capture_cpus),
        method.folder,
        slow.unwrap_or_default(),
        peers.concat(),
    );
    facts(&sweep.about, reported)
}

/// What the stages cost with each stamp.
pub(super) fn costs(sweep: &Sweep) -> Table {
    let row = |calibration: &Calibration| {
        let costs = &calibration.costs;
        vec![
            calibration.clock.name().to_owned(),
            match calibration.arrival {
                Arrival::InBursts => "in bursts".to_owned(),
                Arrival::Singly => "singly".to_owned(),
            },
            number(costs.send_ns),
            number(costs.receive.frame_ns),
            number(costs.receive.byte_ns),
            number(costs.turned_away_ns),
            number(costs.convert.frame_ns),
            number(costs.convert.byte_ns),
            number(costs.turn_ns / 1000.0),
            maybe(costs.writer, |it| number(it.bytes_per_s / 1e6)),
        ]
    };
    let head = columns(
        "stamp | frames come | send | receive | receive/B | turned away | convert | convert/B | \
         turn, µs | file, MB/s",
    );
    let rows = sweep.calibrations.iter().map(row).collect();
    Table::figures(
        "What the stages cost, ns a frame and a byte captured",
        &head,
        rows,
    )
    .words(&[0, 1])
    .note(
        "receive: with the capture's program, up the stack; receive/B, convert/B: the same for \
         each byte kept, besides; turned away: received without room in the ring; convert: and \
         write; turn: from one drain of the ring to the next",
    )
}

pub(super) fn points(sweep: &Sweep) -> Table {
    let row = |point: &Point| {
        let run = &point.run;
        let percent = |frames| {
            maybe(loss_percent(frames, run.sent), |share| {
                format!("{share:.2}")
            })
        };
        let lost = 100.0 * run.loss();
        let predicted = point.predicted.map(|it| 100.0 * it.lost());
        let busy = |cpu: u32| {
            let busy = run.busy.get(cpu as usize);
            maybe(busy, |share| format!("{:.0}", 100.0 * share))
        };
        let other = sweep.method.capture_cpus.first().copied();
        let other = if receives_apart(sweep) {
            Some(sweep.method.receive_cpu)
        } else {
            other
        };
        vec![
            name(point),
            grouped(point.size.into()),
            pace(point) + if point.is_reached() { "" } else { "*" },
            snaplen(point.snaplen),
            match point.tool {
                Tool::Tscap => ring(point.ring_bytes),
                _ => NOTHING.to_owned(),
            },
            grouped(run.sent),
            format!("{:.3}", run.sent as f64 / run.seconds / 1e6),
            percent(run.lost.before),
            percent(run.lost.ring),
            percent(run.lost.writer),
            format!("{lost:.2}"),
            maybe(predicted, |share| format!("{share:.2}")),
            busy(sweep.method.sender_cpu),
            other.map_or(NOTHING.to_owned(), busy),
            number(run.cpu_s_per_million()),
        ]
    };
    let head = columns(
        "program | size | pace | snaplen | ring | sent | Mpps | before | in ring | writer | lost | \
         predicted | CPU a | CPU b | CPU s/M",
    );
    let (also, other) = if receives_apart(sweep) {
        ("", "that which receives")
    } else {
        (" and receives", "that of the capture")
    };
    Table::figures(
        "Every point: shares of the frames sent that were lost, %",
        &head,
        sweep.points.iter().map(row).collect(),
    )
    .words(&[0, 2])
    .named_by(5)
    .note(
        "ring: of each CPU, which only tscap has: tcpdump and dumpcap have a buffer as long as all \
         of tscap's rings together; before: before the program saw them; in ring: no room in the \
         ring or buffer; writer: on the way to the file",
    )
    .note(
        "*: the sender did not reach 99 % of this rate (Mpps says what it sent): the point is in no \
         curve",
    )
    .note(format!(
        "CPU a: CPU {}, which sends{also}; CPU b: {other}; % busy while sending, also when waiting \
         for a frame to be due; CPU s/M: CPU time of the program, s for a million frames",
        sweep.method.sender_cpu
    ))
}

fn receives_apart(sweep: &Sweep) -> bool {
    let costs = sweep.calibrations.first().map(|it| it.costs.receiving);
    costs == Some(Receiving::Apart)
}

/// Who captured, and with which stamp.
pub(super) fn name(point: &Point) -> String {
    let clock = point.clock.map(|clock| format!(" {}", clock.name()));
    format!("{}{}", point.tool.name(), clock.unwrap_or_default())
}

/// How frames followed each other.
pub(super) fn pace(point: &Point) -> String {
    match (point.gap, point.rate_asked) {
        (Some(gap), _) => format!("gap {}", grouped(gap)),
        (None, Some(rate)) => format!("{}/s", grouped(rate.round() as u64)),
        (None, None) => "flat out".to_owned(),
    }
}

/// What is kept of a frame.
pub(super) fn snaplen(snaplen: u32) -> String {
    match snaplen {
        0 => "whole".to_owned(),
        snaplen => grouped(snaplen.into()),
    }
}
