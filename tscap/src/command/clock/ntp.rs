//! NTP servers beside the clock: what is told of them, and as columns of the table.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use serde::Serialize;

use super::references::{Looked, warn};
use super::table::Column;
use crate::capturing::capture::{Event, Severity};
use crate::capturing::clock::ntp::{
    KissCode, Kissed, NtpPoint, NtpStatus, NtpVerdict, Reject, Rejects,
};
use crate::capturing::clock::{Status, Tracker};
use crate::capturing::ntp::{NtpEvent, NtpPlan, NtpReference};
use crate::command::Failure;
use crate::command::print::{json_line, print_if_read, say};
use crate::text::numbers::{counted, signed, span};

/// Requests in a row without a reply after which that is told.
const TOLD_UNANSWERED: u32 = 3;

/// The servers, and what has been told of them.
#[derive(Debug)]
pub(super) struct Ntp {
    reference: NtpReference,
    teller: Teller,
}

/// Tells each trouble once.
#[derive(Debug, Default)]
struct Teller {
    json: bool,
    /// As it was asked for, of the server that is asked.
    name: Option<String>,
    /// Of each server, replies in a row that are not believed.
    doubted: BTreeMap<SocketAddr, u64>,
    rejected: Vec<(SocketAddr, Reject)>,
    is_away: bool,
    is_refused: bool,
    contradicts: bool,
}

/// The servers at a moment.
#[derive(Debug, Serialize)]
pub(super) struct NtpSaid {
    /// The server whose clock is known best, once there is one.
    server: Option<SocketAddr>,
    /// Servers that are followed.
    servers: usize,
    /// Requests that left.
    requests: u64,
    /// Replies of use.
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
    /// Attaches the programs.
    pub fn start(plan: &NtpPlan, json: bool, tracker: &Tracker) -> Result<Self, Failure> {
        let mut hear = |event| hear(json, event);
        let reference = NtpReference::start(plan, tracker, &mut hear)?;
        say(&format!("ready: {}", reference.ready()));
        Ok(Self {
            teller: Teller {
                json,
                name: match plan {
                    NtpPlan::Ask { server, .. } => Some(server.to_string()),
                    NtpPlan::Passive { .. } => None,
                },
                ..Teller::default()
            },
            reference,
        })
    }

    /// The counter jumped.
    pub fn begin_anew(&mut self) {
        self.reference.begin_anew();
    }

    /// Sends what is due and takes in what passed; gives the exchanges.
    pub fn turn(&mut self, tracker: &Tracker) -> Vec<Looked> {
        let mut looked = Vec::new();
        let teller = &mut self.teller;
        self.reference.turn(tracker, &mut |event| {
            if let NtpEvent::Exchange(server, point) = &event {
                looked.push(Looked::Exchange(*server, *point));
            }
            teller.hear(event);
        });
        looked
    }

    /// What is known when the host's clock has this `status`.
    pub fn say(&mut self, status: &Status, tracker: &Tracker) -> NtpSaid {
        let best = self.reference.best(status.tsc, tracker);
        if let Some((server, found)) = &best {
            self.teller.compare(*server, found, status.utc_bound_ns);
        }
        let (requests, replies, rejected) = self.reference.counts();
        let polling = self.reference.polling();
        NtpSaid {
            server: best.map(|(server, _)| server),
            servers: self.reference.servers(),
            requests,
            replies,
            rejected,
            poll_s: polling.map(|(poll, _)| poll.as_secs_f64()),
            stopped: polling.and_then(|(_, kiss)| Some(kiss?.to_string())),
            status: best.map(|(_, status)| status),
        }
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

impl Teller {
    fn warn(&self, text: &str) {
        warn(self.json, text);
    }

    fn name(&self, server: SocketAddr) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| server.ip().to_string())
    }

    fn hear(&mut self, event: NtpEvent) {
        match event {
            NtpEvent::Notice(event) => hear(self.json, event),
            NtpEvent::Exchange(server, point) => self.exchanged(server, &point),
            NtpEvent::Rejected(server, reject) => self.rejected(server, reject),
            NtpEvent::Kissed(server, code, kissed) => self.kissed(server, code, kissed),
            NtpEvent::Unanswered(server, count) => self.unanswered(server, count),
            NtpEvent::Refused(server, error) => self.refused(server, &error),
            NtpEvent::Lost(lost) => self.warn(&format!(
                "no more NTP packets are seen, and the clock is carried on with a growing bound: \
                 {lost}"
            )),
        }
    }

    fn exchanged(&mut self, server: SocketAddr, point: &NtpPoint) {
        if self.json {
            let line = ExchangeLine {
                event: "exchange",
                v: super::VERSION,
                server,
                point,
            };
            // Whether somebody reads is seen at the next line of the clock.
            let _ = print_if_read(&json_line(&line));
        }
        let name = self.name(server);
        if std::mem::take(&mut self.is_away) | std::mem::take(&mut self.is_refused) {
            say(&format!("{name} answers again"));
        }
        let off = signed(point.off_ns.unwrap_or(0));
        match point.verdict {
            NtpVerdict::Implausible => {
                let doubted = self.doubted.entry(server).or_default();
                *doubted += 1;
                if *doubted == 1 {
                    self.warn(&format!(
                        "{name}: a reply is {off} ns off its clock: it is not believed unless \
                         three more in a row say so"
                    ));
                }
            }
            NtpVerdict::Jumped => {
                self.doubted.remove(&server);
                self.warn(&format!(
                    "{name}: four replies in a row are {off} ns off its clock: it begins anew"
                ));
            }
            NtpVerdict::First | NtpVerdict::Used | NtpVerdict::Torn => {
                if let Some(doubted) = self.doubted.remove(&server) {
                    say(&format!(
                        "{name} agrees with its clock again: {} not believed",
                        counted(doubted, "reply")
                    ));
                }
            }
        }
    }

    fn rejected(&mut self, server: SocketAddr, reject: Reject) {
        if self.rejected.contains(&(server, reject)) {
            return;
        }
        // Whoever makes addresses up fills no memory.
        if self.rejected.len() < 100 {
            self.rejected.push((server, reject));
            let name = self.name(server);
            self.warn(&format!(
                "{name}: a reply is not used: {}; more of these are counted",
                reject.words()
            ));
        }
    }

    fn kissed(&mut self, server: SocketAddr, code: KissCode, kissed: Option<Kissed>) {
        let name = self.name(server);
        match kissed {
            Some(Kissed::Stopped) => self.warn(&format!(
                "{name} denies its service (kiss-o'-death {code}): nothing is sent any more, and \
                 its clock is carried on with a growing bound"
            )),
            Some(Kissed::Slower(poll)) => self.warn(&format!(
                "{name} wants to be asked less (kiss-o'-death {code}): every {} s from now on",
                poll.as_secs_f64()
            )),
            Some(Kissed::Ignored) | None => self.rejected(server, Reject::Kiss),
        }
    }

    fn unanswered(&mut self, server: SocketAddr, count: u32) {
        if count >= TOLD_UNANSWERED && !std::mem::replace(&mut self.is_away, true) {
            let name = self.name(server);
            self.warn(&format!(
                "{name} has not answered {}: its clock is carried on with a growing bound",
                counted(count.into(), "request")
            ));
        }
    }

    fn refused(&mut self, server: SocketAddr, error: &io::Error) {
        if !std::mem::replace(&mut self.is_refused, true) {
            let name = self.name(server);
            let why = match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    format!("no server listens at UDP port {}", server.port())
                }
                _ => error.to_string(),
            };
            self.warn(&format!("{name}: a request is not delivered: {why}"));
        }
    }

    /// Says when the host's clock and the server contradict each other: both can't be as near
    /// to UTC as they say.
    fn compare(&mut self, server: SocketAddr, found: &NtpStatus, host_utc_ns: Option<u64>) {
        let Some(host_utc_ns) = host_utc_ns else {
            return;
        };
        let allowed = found.bound_ns.saturating_add(found.root_distance_ns);
        let allowed = allowed.saturating_add(host_utc_ns);
        let contradicts = found.host_ahead_ns.unsigned_abs() > allowed;
        if contradicts && !self.contradicts {
            let name = self.name(server);
            self.warn(&format!(
                "the host's clock and {name} contradict each other: they are {} ns apart, and say \
                 that they are within {} and {} of UTC",
                signed(found.host_ahead_ns),
                span(host_utc_ns),
                span(found.utc_bound_ns)
            ));
        }
        self.contradicts = contradicts;
    }
}

/// What the programs have to say.
pub(super) fn hear(json: bool, event: Event) {
    match event {
        Event::Notice(Severity::Warning | Severity::Error, text) => warn(json, &text),
        Event::Notice(Severity::Note, text) => say(&format!("note: {text}")),
        _ => {}
    }
}
