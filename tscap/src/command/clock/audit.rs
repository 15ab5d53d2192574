//! `tscap clock --audit-server`: the stamps of an NTP server on this host.

use std::time::Instant;

use serde::Serialize;

use super::ntp::print_event;
use super::references::warn;
use super::{READ_EVERY, VERSION};
use crate::command::measuring::layout;
use crate::command::print::{json_line, print_if_read, say};
use crate::command::signals::Signals;
use crate::command::{Exit, Failure};
use tscap_base::text::numbers::{grouped, signed, span};
use tscap_base::text::table::{Table, columns};
use tscap_capture::first_brackets;
use tscap_cli::ClockPlan;
use tscap_clock::{HostClocks, StampSource, Tracker};
use tscap_sources::ntp::{Audit, AuditEvent, Stamped};
use tscap_statistics::{Distribution, Summary};

/// A line of the table while it runs, by JSON a request has one of its own.
const HEADING: &str = "      s   requests     served   Tb−t_in, ns   t_out−Te, ns  asymmetry, ns\n";
/// Lines under one heading.
const PAGE: u64 = 20;

#[derive(Serialize)]
struct ServedLine<'a> {
    event: &'static str,
    v: u32,
    #[serde(flatten)]
    stamped: &'a Stamped,
}

#[derive(Serialize)]
struct Audited {
    event: &'static str,
    v: u32,
    /// How long requests were looked at, s.
    seconds: f64,
    /// Requests that came in.
    requests: u64,
    /// Of these, requests with a reply.
    served: u64,
    /// Requests without a reply.
    unanswered: u64,
    /// Replies to no request that was seen.
    unmatched: u64,
    /// Packets that the programs could not record.
    lost: u64,
    /// Tb − t_in, ns.
    receive_ns: Option<Summary>,
    /// t_out − Te, ns.
    transmit_ns: Option<Summary>,
    /// t_out − t_in, ns.
    turnaround_ns: Option<Summary>,
    /// (t_out − Te) − (Tb − t_in), ns.
    asymmetry_ns: Option<Summary>,
    /// Greatest error of the first two, ns.
    bound_ns: u64,
    /// The programs have been on the interface until the end.
    is_whole: bool,
}

/// What the requests of some time were like.
struct Figures {
    receive: Distribution,
    transmit: Distribution,
    turnaround: Distribution,
    asymmetry: Distribution,
    bound_ns: u64,
}

impl Figures {
    fn new() -> Self {
        Self {
            receive: Distribution::new(),
            transmit: Distribution::new(),
            turnaround: Distribution::new(),
            asymmetry: Distribution::new(),
            bound_ns: 0,
        }
    }

    fn take(&mut self, stamped: &Stamped) {
        self.receive.add(stamped.receive_ns);
        self.transmit.add(stamped.transmit_ns);
        let turnaround = i64::try_from(stamped.turnaround_ns);
        self.turnaround.add(turnaround.unwrap_or(i64::MAX));
        self.asymmetry.add(stamped.asymmetry_ns);
        self.bound_ns = self.bound_ns.max(stamped.bound_ns);
    }
}

/// Looks until it is told to stop, the time is over, or nobody reads any more.
pub(super) async fn session(plan: &ClockPlan, interface: &str) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let mut tracker = tokio::select! {
        tracker = first_brackets(StampSource::Tsc, &mut clocks) => tracker?,
        () = signals.next() => return Ok(Exit::Success),
    };
    let mut audit = Audit::start(interface, &tracker, &mut |event| {
        print_event(plan.json, event)
    })?;
    say(&format!("ready: {}", audit.ready()));
    signals.give_up_capabilities();
    audit.give_up_privileges(false, &mut |event| print_event(plan.json, event))?;
    let started = Instant::now();
    let end = plan.duration.map(|time| started + time);
    let mut all = Figures::new();
    let mut is_whole = true;
    let mut next = started;
    'lines: for line in 0.. {
        next = (next + plan.interval).max(Instant::now());
        let due = end.map_or(next, |end| next.min(end));
        let mut recent = Figures::new();
        while Instant::now() < due {
            tokio::select! {
                () = tokio::time::sleep(READ_EVERY) => {}
                () = signals.next() => break 'lines,
            }
            tracker.look(&mut clocks);
            tracker.take_samples();
            turn(
                &mut audit,
                &tracker,
                plan.json,
                &mut is_whole,
                &mut |stamped| {
                    all.take(stamped);
                    recent.take(stamped);
                },
            );
        }
        let is_read = plan.json || print_if_read(&text(line, started, &audit, recent))?;
        if !is_read || !is_whole || end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    // What passed before the signal.
    turn(&mut audit, &tracker, plan.json, &mut is_whole, &mut |it| {
        all.take(it)
    });
    let audited = audited(&audit, all, started, is_whole)?;
    let result = if plan.json {
        json_line(&audited)
    } else {
        audited.table(layout(true).columns)
    };
    print_if_read(&result)?;
    Ok(if is_whole { Exit::Success } else { Exit::Fault })
}

fn turn(
    audit: &mut Audit,
    tracker: &Tracker,
    json: bool,
    is_whole: &mut bool,
    take: &mut dyn FnMut(&Stamped),
) {
    audit.turn(tracker, &mut |event| match event {
        AuditEvent::Notice(event) => print_event(json, event),
        AuditEvent::Served(stamped) => {
            take(&stamped);
            if json {
                let line = ServedLine {
                    event: "served",
                    v: VERSION,
                    stamped: &stamped,
                };
                // Whether somebody reads is seen at the end.
                let _ = print_if_read(&json_line(&line));
            }
        }
        AuditEvent::Lost(lost) => {
            *is_whole = false;
            warn(json, &format!("no more NTP packets are seen: {lost}"));
        }
    });
}

/// Medians of the latest requests, under the heading where it is due.
fn text(line: u64, started: Instant, audit: &Audit, recent: Figures) -> String {
    let median = |of: Distribution| {
        let summary = of.summary();
        let median = summary.and_then(|it| it.p50.or((it.n > 0).then_some(it.min)));
        median.map_or_else(|| "–".to_owned(), signed)
    };
    let heading = if line.is_multiple_of(PAGE) {
        HEADING
    } else {
        ""
    };
    let served = audit.served();
    format!(
        "{heading}{:>7.1} {:>10} {:>10} {:>13} {:>14} {:>14}\n",
        started.elapsed().as_secs_f64(),
        grouped(served.requests),
        grouped(served.served),
        median(recent.receive),
        median(recent.transmit),
        median(recent.asymmetry),
    )
}

fn audited(
    audit: &Audit,
    all: Figures,
    started: Instant,
    is_whole: bool,
) -> Result<Audited, Failure> {
    let served = audit.served();
    Ok(Audited {
        event: "audit",
        v: VERSION,
        seconds: started.elapsed().as_secs_f64(),
        requests: served.requests,
        served: served.served,
        unanswered: served.forgotten + served.open(),
        unmatched: served.unmatched,
        lost: audit.lost()?,
        receive_ns: all.receive.summary(),
        transmit_ns: all.transmit.summary(),
        turnaround_ns: all.turnaround.summary(),
        asymmetry_ns: all.asymmetry.summary(),
        bound_ns: all.bound_ns,
        is_whole,
    })
}

impl Audited {
    fn table(&self, columns_there: usize) -> String {
        let cell = |value: Option<i64>| value.map_or_else(|| "–".to_owned(), signed);
        let row = |(name, of): (&str, &Option<Summary>)| {
            let of = of.as_ref();
            vec![
                name.to_owned(),
                cell(of.map(|it| it.min)),
                cell(of.and_then(|it| it.p50)),
                cell(of.and_then(|it| it.p90)),
                cell(of.and_then(|it| it.p99)),
                cell(of.map(|it| it.max)),
            ]
        };
        let rows = [
            ("Tb − t_in", &self.receive_ns),
            ("t_out − Te", &self.transmit_ns),
            ("turnaround", &self.turnaround_ns),
            ("asymmetry", &self.asymmetry_ns),
        ];
        let title = format!(
            "{} requests, {} served, {} without a reply, {} replies unmatched, {} packets lost",
            grouped(self.requests),
            grouped(self.served),
            grouped(self.unanswered),
            grouped(self.unmatched),
            grouped(self.lost)
        );
        let head = columns("ns | min | median | p90 | p99 | max");
        let table = Table::figures(title, &head, rows.into_iter().map(row).collect())
            .note(format!(
                "± {} each, ± {} of the asymmetry, against this host's clock; t_in and t_out: at \
                 the interface; Tb and Te: in the reply",
                span(self.bound_ns),
                span(2 * self.bound_ns)
            ))
            .note(
                "asymmetry: (t_out − Te) − (Tb − t_in); half of it is in the clock of each client, \
                 beside that of the network",
            );
        table.lines_within(columns_there).join("\n") + "\n"
    }
}
