//! What a server on this host stamps, beside what its interface sees.

use std::net::SocketAddr;

use serde::Serialize;
use tscap_common::hook::Direction;

use super::hooks::{Hooks, Lost, SharedWith};
use tscap_base::failure::Failure;
use tscap_capture::Event;
use tscap_clock::Tracker;
use tscap_references::ntp::{self, PacketStamp, Served, Service};

/// A request that was served: the server's stamps against those of the interface, by the host's
/// clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stamped {
    /// The client.
    pub client: SocketAddr,
    /// Tb − t_in, ns: from the interface to the server's stamp of the request.
    pub receive_ns: i64,
    /// t_out − Te, ns: from the server's stamp of its reply to the interface.
    pub transmit_ns: i64,
    /// t_out − t_in, ns.
    pub turnaround_ns: u64,
    /// (t_out − Te) − (Tb − t_in), ns: what the host adds to the asymmetry that clients see, so
    /// that half of it is in their clocks.
    pub asymmetry_ns: i64,
    /// Greatest error of `receive_ns` and `transmit_ns`, ns; of the asymmetry it is twice as
    /// much.
    pub bound_ns: u64,
}

/// What there is to tell.
#[derive(Debug)]
pub enum AuditEvent {
    /// A text for people.
    Notice(Event),
    /// A request was served.
    Served(Stamped),
    /// No more will be seen.
    Lost(Lost),
}

/// The requests to servers on this host, at an interface.
#[derive(Debug)]
pub struct Audit {
    hooks: Hooks,
    served: Served,
    is_lost: bool,
}

impl Audit {
    /// Attaches programs. The host's clock must have settled.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub fn start(
        interface: &str,
        host: &Tracker,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        let expression = format!("udp port {}", ntp::PORT);
        Ok(Self {
            hooks: Hooks::attach(
                interface,
                (&expression, Direction::In),
                SharedWith::Nothing,
                host,
                on_event,
            )?,
            served: Served::new(ntp::PORT),
            is_lost: false,
        })
    }

    /// Gives up, for good and for the whole process, what is not needed any more; root stays
    /// root if the caller `makes_files` later. Threads that run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.hooks.give_up_privileges(makes_files, on_event)
    }

    /// Where packets are stamped, for people.
    pub fn ready(&self) -> String {
        self.hooks.ready()
    }

    /// Takes in what has passed; to be called some ten times a second at least.
    pub fn turn(&mut self, host: &Tracker, on_event: &mut dyn FnMut(AuditEvent)) {
        if self.is_lost {
            return;
        }
        let Self { hooks, served, .. } = self;
        let mut found = Vec::new();
        let mut see = |direction, datagram: &ntp::Datagram<'_>, at: PacketStamp| {
            if direction == Direction::In {
                served.received(datagram, at);
                return;
            }
            let near = host.counter().map(|it| it.model().estimate(at.tsc).real);
            let service = near.and_then(|near| served.sent(datagram, at, near));
            found.extend(service.and_then(|it| stamped(&it, host)));
        };
        let turned = hooks.turn(&mut |event| on_event(AuditEvent::Notice(event)), &mut see);
        found
            .into_iter()
            .map(AuditEvent::Served)
            .for_each(&mut *on_event);
        if let Err(lost) = turned {
            self.is_lost = true;
            on_event(AuditEvent::Lost(lost));
        }
    }

    /// The account of the requests.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Packets that the programs could not record.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn lost(&self) -> Result<u64, Failure> {
        self.hooks.lost()
    }
}

/// By the host's clock; `None` before that has settled.
fn stamped(service: &Service, host: &Tracker) -> Option<Stamped> {
    let counter = host.counter()?;
    let seen = service.tsc.map(|at| counter.model().estimate(at));
    let ahead = |index: usize| {
        let stamp = service.real[index].0;
        stamp.wrapping_sub(seen[index].real.0).cast_signed()
    };
    let (receive_ns, transmit_ns) = (ahead(0), ahead(1).saturating_neg());
    let bounds = seen.map(|it| it.bound_ns.max(counter.bound_ns()));
    let [came, left] = service.tsc;
    Some(Stamped {
        client: service.client,
        receive_ns,
        transmit_ns,
        turnaround_ns: counter.rate().duration_ns(left.0.saturating_sub(came.0)),
        asymmetry_ns: transmit_ns.saturating_sub(receive_ns),
        // The server's stamps are of 2^-32 s, rounded down.
        bound_ns: bounds[0].max(bounds[1]) + service.stamp_error_ns + 1,
    })
}
