//! What there is to tell people of NTP servers: each trouble once.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::{NtpEvent, NtpPlan};
use tscap_base::text::numbers::{counted, signed, span};
use tscap_capture::{Event, Severity};
use tscap_references::PeerVerdict;
use tscap_references::ntp::{KissCode, Kissed, NtpPoint, NtpStatus, Reject};

/// Requests in a row without a reply after which that is told.
const TOLD_UNANSWERED: u32 = 3;

/// Remembers what has been told.
#[derive(Debug, Default)]
pub struct NtpReporter {
    /// As it was asked for, of the server that is asked.
    name: Option<String>,
    /// Of each server, replies in a row that are not believed.
    doubted: BTreeMap<SocketAddr, u64>,
    rejected: Vec<(SocketAddr, Reject)>,
    is_away: bool,
    is_refused: bool,
    contradicts: bool,
}

impl NtpReporter {
    /// Of the servers of a plan.
    pub fn of(plan: &NtpPlan) -> Self {
        Self {
            name: match plan {
                NtpPlan::Ask { server, .. } => Some(server.to_string()),
                NtpPlan::Passive { .. } => None,
            },
            ..Self::default()
        }
    }

    fn name(&self, server: SocketAddr) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| server.ip().to_string())
    }

    /// Tells of what happened.
    pub fn report(&mut self, event: NtpEvent, on_event: &mut dyn FnMut(Event)) {
        match event {
            NtpEvent::Notice(event) => on_event(event),
            NtpEvent::Exchange(server, point) => self.exchanged(server, &point, on_event),
            NtpEvent::Rejected(server, reject) => self.rejected(server, reject, on_event),
            NtpEvent::Kissed(server, code, kissed) => self.kissed(server, code, kissed, on_event),
            NtpEvent::Unanswered(server, count) => self.unanswered(server, count, on_event),
            NtpEvent::Refused(server, error) => self.refused(server, &error, on_event),
            NtpEvent::Moved(server) => {
                let name = self.name(server);
                note(
                    on_event,
                    format!("{name} is asked at {} from now on", server.ip()),
                );
            }
            NtpEvent::Unmoved(failure) => warn(on_event, failure.chain()),
            NtpEvent::Lost(lost) => warn(
                on_event,
                format!(
                    "no more NTP packets are seen, and the clock is carried on with a growing bound: \
                 {lost}"
                ),
            ),
        }
    }

    fn exchanged(&mut self, server: SocketAddr, point: &NtpPoint, on_event: &mut dyn FnMut(Event)) {
        let name = self.name(server);
        if std::mem::take(&mut self.is_away) | std::mem::take(&mut self.is_refused) {
            note(on_event, format!("{name} answers again"));
        }
        let off = signed(point.off_ns.unwrap_or(0));
        match point.verdict {
            PeerVerdict::Implausible => {
                let doubted = self.doubted.entry(server).or_default();
                *doubted += 1;
                if *doubted == 1 {
                    warn(
                        on_event,
                        format!(
                            "{name}: a reply is {off} ns off its clock: it is not believed unless \
                         three more in a row say so"
                        ),
                    );
                }
            }
            PeerVerdict::Jumped => {
                self.doubted.remove(&server);
                warn(
                    on_event,
                    format!(
                        "{name}: four replies in a row are {off} ns off its clock: it begins anew"
                    ),
                );
            }
            PeerVerdict::First | PeerVerdict::Used | PeerVerdict::Torn => {
                if let Some(doubted) = self.doubted.remove(&server) {
                    note(
                        on_event,
                        format!(
                            "{name} agrees with its clock again: {} not believed",
                            counted(doubted, "reply")
                        ),
                    );
                }
            }
        }
    }

    fn rejected(&mut self, server: SocketAddr, reject: Reject, on_event: &mut dyn FnMut(Event)) {
        if self.rejected.contains(&(server, reject)) {
            return;
        }
        // Whoever makes addresses up fills no memory.
        if self.rejected.len() < 100 {
            self.rejected.push((server, reject));
            let name = self.name(server);
            warn(
                on_event,
                format!(
                    "{name}: a reply is not used: {}; more of these are counted",
                    reject.words()
                ),
            );
        }
    }

    fn kissed(
        &mut self,
        server: SocketAddr,
        code: KissCode,
        kissed: Option<Kissed>,
        on_event: &mut dyn FnMut(Event),
    ) {
        let name = self.name(server);
        match kissed {
            Some(Kissed::Stopped) => warn(
                on_event,
                format!(
                    "{name} denies its service (kiss-o'-death {code}): nothing is sent any more, and \
                 its clock is carried on with a growing bound"
                ),
            ),
            Some(Kissed::Slower(poll)) => warn(
                on_event,
                format!(
                    "{name} wants to be asked less (kiss-o'-death {code}): every {} s from now on",
                    poll.as_secs_f64()
                ),
            ),
            Some(Kissed::Ignored) | None => self.rejected(server, Reject::Kiss, on_event),
        }
    }

    fn unanswered(&mut self, server: SocketAddr, count: u32, on_event: &mut dyn FnMut(Event)) {
        if count >= TOLD_UNANSWERED && !std::mem::replace(&mut self.is_away, true) {
            let name = self.name(server);
            warn(
                on_event,
                format!(
                    "{name} has not answered {}: its clock is carried on with a growing bound",
                    counted(count.into(), "request")
                ),
            );
        }
    }

    fn refused(&mut self, server: SocketAddr, error: &io::Error, on_event: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.is_refused, true) {
            let name = self.name(server);
            let why = match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    format!("no server listens at UDP port {}", server.port())
                }
                _ => error.to_string(),
            };
            warn(
                on_event,
                format!("{name}: a request is not delivered: {why}"),
            );
        }
    }

    /// Says when the host's clock and the server contradict each other: both can't be as near
    /// to UTC as they say.
    pub fn compare(
        &mut self,
        server: SocketAddr,
        found: &NtpStatus,
        host_utc_ns: Option<u64>,
        on_event: &mut dyn FnMut(Event),
    ) {
        let Some(host_utc_ns) = host_utc_ns else {
            return;
        };
        let allowed = found.bound_ns.saturating_add(found.root_distance_ns);
        let allowed = allowed.saturating_add(host_utc_ns);
        let contradicts = found.host_ahead_ns.unsigned_abs() > allowed;
        if contradicts && !self.contradicts {
            let name = self.name(server);
            warn(
                on_event,
                format!(
                    "the host's clock and {name} contradict each other: they are {} ns apart, and say \
                 that they are within {} and {} of UTC",
                    signed(found.host_ahead_ns),
                    span(host_utc_ns),
                    span(found.utc_bound_ns)
                ),
            );
        }
        self.contradicts = contradicts;
    }
}

fn warn(on_event: &mut dyn FnMut(Event), text: String) {
    on_event(Event::Notice(Severity::Warning, text));
}

fn note(on_event: &mut dyn FnMut(Event), text: String) {
    on_event(Event::Notice(Severity::Note, text));
}
