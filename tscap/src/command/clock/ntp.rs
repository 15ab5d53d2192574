//! NTP servers beside the clock: what is told of them, and as columns of the table.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::references::{ReferenceOutcome, warn};
use super::table::Column;
use crate::command::Failure;
use crate::command::print::{json_line, print_if_read, say};
use tscap_base::text::numbers::{signed, span};
use tscap_capture::{Event, Severity};
use tscap_clock::{Status, Tracker};
use tscap_references::ntp::{NtpPoint, NtpStatus, Rejects};
use tscap_shared_clock::Utc;
use tscap_sources::ntp::{NtpEvent, NtpPlan, NtpReference, NtpReporter, SharedWith};
use tscap_time::tsc;

/// The longest time between two requests of the host's daemon: 2^10 s.
const LONGEST_POLL: Duration = Duration::from_secs(1024);
/// A server without an exchange for so many polls is lost.
const LOST_AFTER: u32 = 4;

/// The servers, and what has been told of them.
#[derive(Debug)]
pub(super) struct Ntp {
    /// Warnings are JSON objects.
    json: bool,
    reference: NtpReference,
    ntp_reporter: NtpReporter,
}

/// The servers at a moment.
#[derive(Debug, Serialize)]
pub(super) struct NtpServerStatus {
    /// The server whose clock is known best, once there is one.
    pub server: Option<SocketAddr>,
    /// Servers that are followed.
    servers: usize,
    requests: u64,
    replies: u64,
    /// Replies that were not used, by reason.
    rejected: Rejects,
    /// Between two requests, s; of tscap's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_s: Option<f64>,
    /// The kiss-o'-death after which nothing is sent any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    /// The server's clock.
    #[serde(flatten)]
    pub status: Option<NtpStatus>,
}

#[derive(Serialize)]
struct ExchangeLine<'a> {
    event: &'static str,
    v: u32,
    server: SocketAddr,
    #[serde(flatten)]
    point: &'a NtpPoint,
}

impl Ntp {
    pub fn start(plan: &NtpPlan, json: bool, tracker: &Tracker) -> Result<Self, Failure> {
        let mut on_event = |event| print_event(json, event);
        let reference = NtpReference::start(plan, SharedWith::Nothing, tracker, &mut on_event)?;
        say(&format!("ready: {}", reference.ready()));
        Ok(Self {
            json,
            ntp_reporter: NtpReporter::of(plan),
            reference,
        })
    }

    /// Gives up what is not needed any more.
    pub fn give_up_privileges(&mut self, makes_files: bool) -> Result<(), Failure> {
        let json = self.json;
        let mut on_event = |event| print_event(json, event);
        self.reference
            .give_up_privileges(makes_files, &mut on_event)
    }

    pub fn begin_anew(&mut self) {
        self.reference.begin_anew();
    }

    /// Sends what is due and takes in what passed; gives the exchanges.
    pub fn turn(&mut self, tracker: &Tracker) -> Vec<ReferenceOutcome> {
        let mut looked = Vec::new();
        let (ntp_reporter, json) = (&mut self.ntp_reporter, self.json);
        self.reference.turn(tracker, &mut |event| {
            if let NtpEvent::Exchange(server, point) = &event {
                looked.push(ReferenceOutcome::Exchange(*server, *point));
                say_exchange(json, *server, point);
            }
            ntp_reporter.report(event, &mut |event| print_event(json, event));
        });
        looked
    }

    /// How far the host's clock is from UTC now, by the server whose clock is known best.
    pub fn utc(&self, tracker: &Tracker) -> Utc {
        let Some((_, status)) = self.reference.best(tsc::read(), tracker) else {
            return Utc::default();
        };
        let poll = self
            .reference
            .polling()
            .map_or(LONGEST_POLL, |(poll, _)| poll);
        Utc {
            offset_ns: status.host_ahead_ns.saturating_neg(),
            bound_ns: Some(status.bound_ns.saturating_add(status.root_distance_ns)),
            is_holdover: Duration::from_nanos(status.age_ns) > LOST_AFTER * poll,
        }
    }

    /// What is known when the host's clock has this `status`.
    pub fn say(&mut self, status: &Status, tracker: &Tracker) -> NtpServerStatus {
        let best = self.reference.best(status.tsc, tracker);
        if let Some((server, found)) = &best {
            let mut on_event = |event| print_event(self.json, event);
            self.ntp_reporter
                .compare(*server, found, status.utc_bound_ns, &mut on_event);
        }
        let counts = self.reference.counts();
        let polling = self.reference.polling();
        NtpServerStatus {
            server: best.map(|(server, _)| server),
            servers: self.reference.servers(),
            requests: counts.requests,
            replies: counts.replies,
            rejected: counts.rejected,
            poll_s: polling.map(|(poll, _)| poll.as_secs_f64()),
            stopped: polling.and_then(|(_, kiss)| Some(kiss?.to_string())),
            status: best.map(|(_, status)| status),
        }
    }
}

fn say_exchange(json: bool, server: SocketAddr, point: &NtpPoint) {
    if json {
        let line = ExchangeLine {
            event: "exchange",
            v: super::VERSION,
            server,
            point,
        };
        // Whether somebody reads is seen at the next line of the clock.
        let _ = print_if_read(&json_line(&line));
    }
}

/// As columns of the table.
pub(super) fn columns(status: Option<&NtpStatus>) -> Vec<Column> {
    let of = |cell: fn(&NtpStatus) -> String| status.map_or_else(|| "unknown".to_owned(), cell);
    vec![
        Column::new(2, "ahead of NTP", 15, of(|it| signed(it.host_ahead_ns))),
        Column::new(2, "± NTP", 9, of(|it| span(it.bound_ns))),
        Column::new(5, "NTP ± UTC", 10, of(|it| span(it.utc_bound_ns))),
        Column::new(8, "RTT", 9, of(|it| span(it.rtt_ns))),
        Column::new(8, "age", 9, of(|it| span(it.age_ns))),
    ]
}

/// What the programs have to say.
pub(super) fn print_event(json: bool, event: Event) {
    match event {
        Event::Notice(Severity::Warning | Severity::Error, text) => warn(json, &text),
        Event::Notice(Severity::Note, text) => say(&format!("note: {text}")),
        _ => {}
    }
}
