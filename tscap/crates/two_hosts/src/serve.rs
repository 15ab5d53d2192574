//! A session-reflector at an interface: its programs, which stamp what arrives and what leaves,
//! and its socket.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_capture::{Event, check};
use tscap_live::Scope;
use tscap_protocol::SyncSource;
use tscap_sources::stamping::{self, End, SendTimes, Stamping};

use crate::reflector::{Clock, ClockState, Outcomes, Policy, Reflecting, Reflector, Socket, Watch};

/// A reflector, as asked for.
#[derive(Clone, Debug)]
pub struct ServePlan {
    /// Where, and by which clock; which packets get send times follows from the policy.
    pub stamping: Stamping,
    /// The address that it answers at; `None` for all of the interface.
    pub address: Option<IpAddr>,
    /// Whom it answers, and how.
    pub policy: Policy,
}

/// A reflector at work. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Serving {
    running: stamping::Running,
    reflecting: Reflecting,
    clock: Arc<Clock>,
}

/// What it has done.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Served {
    /// What became of the requests.
    pub requests: Outcomes,
    /// Requests that the sockets had no room for.
    pub overflowed: u64,
    /// Sessions that are remembered.
    pub sessions: u64,
    /// Error Estimate of its replies, ns.
    pub error_estimate_ns: u64,
    /// Whether that is against UTC, else against this host's clock.
    pub synchronised: bool,
}

impl Served {
    fn of(watch: &Watch, running: &stamping::Running) -> Self {
        let error = running.error_estimate();
        Self {
            requests: watch.outcomes(),
            overflowed: watch.overflowed(),
            sessions: watch.sessions(),
            error_estimate_ns: error.bound_ns(),
            synchronised: error.synchronised,
        }
    }
}

impl ServePlan {
    /// Binds the port, loads the programs, reads the clocks, attaches, and answers. `on_event` is
    /// told what a user should know.
    ///
    /// # Errors
    /// What was tried, why it failed and what to do next. Nothing stays attached.
    pub async fn start(&self, on_event: &mut dyn FnMut(Event)) -> Result<Serving, Failure> {
        check::check_privileges()?;
        let port = self.policy.port;
        let send_times = SendTimes::of([(port, End::Reflector)]).expect("one port");
        let stamping = Stamping {
            send_times,
            ..self.stamping.clone()
        };
        let interface = stamping.interface.as_str();
        // Before anything is attached: whoever has the port is told at once.
        let scope = Scope::open(stamping.namespace.as_ref(), "answer")?;
        let socket = scope.visit(|| {
            tscap_capture::interface::find(interface, "answer at")?;
            let bound = Socket::bind(interface, self.address, port);
            let what = format!("cannot answer at UDP port {port} of {interface}");
            bound.map_err(|error| refusal(error, &what, port))
        })??;
        let mut running = stamping.start(on_event).await?;
        running.look_at_clocks(on_event);
        let clock = Arc::new(Clock::default());
        clock.set(state_of(&running));
        let reflector = Reflector::new(self.policy.clone());
        let reflecting = socket.reflect(reflector, Arc::clone(&clock));
        let reflecting = reflecting.context("cannot start the thread of the reflector")?;
        Ok(Serving {
            running,
            reflecting,
            clock,
        })
    }
}

impl Serving {
    /// The programs.
    pub fn stamping(&self) -> &stamping::Running {
        &self.running
    }

    /// Gives up, for good and for the whole process, what is not needed any more.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(&self, on_event: &mut dyn FnMut(Event)) -> Result<(), Failure> {
        self.running.give_up_privileges(on_event)
    }

    /// Reads the clocks, and has programs and replies go by them: to be called each
    /// [`stamping::Running::LOOK_EVERY`].
    pub fn look_at_clocks(&mut self, on_event: &mut dyn FnMut(Event)) {
        self.running.look_at_clocks(on_event);
        self.clock.set(state_of(&self.running));
    }

    /// Looks at the counter of each CPU again: to be called each
    /// [`stamping::Running::RECHECK_EVERY`].
    pub fn recheck_counter(&mut self, on_event: &mut dyn FnMut(Event)) {
        self.running.recheck_counter(on_event);
    }

    /// Looks after programs and sockets, and says what was done; `None` if the programs are gone.
    ///
    /// # Errors
    /// If the counters can't be read, or the reflector has ended: [`Self::finish`] says why.
    pub fn supervise(
        &mut self,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Option<Served>, Failure> {
        let progress = self.running.supervise(on_event)?;
        let served = Served::of(self.reflecting.watch(), &self.running);
        let is_there = progress.are_there && !self.reflecting.is_over();
        Ok(is_there.then_some(served))
    }

    /// Ends, and counts up.
    ///
    /// # Errors
    /// What the sockets failed with, or if the counters can't be read.
    pub fn finish(self) -> Result<(Served, stamping::Summary), Failure> {
        let watch = self.reflecting.stop().context("the reflector has ended")?;
        let served = Served::of(&watch, &self.running);
        Ok((served, self.running.finish()?))
    }
}

fn state_of(running: &stamping::Running) -> ClockState {
    let error = running.error_estimate();
    ClockState {
        error,
        source: if error.synchronised {
            SyncSource::Ntp
        } else {
            SyncSource::Local
        },
    }
}

fn refusal(error: io::Error, what: &str, port: u16) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "another program has that port: --port takes another one",
        io::ErrorKind::PermissionDenied if port < 1_024 => {
            "ports below 1024 take CAP_NET_BIND_SERVICE: run as root, or --port 8620"
        }
        io::ErrorKind::AddrNotAvailable => "--address takes an address of this interface",
        _ => "run as root",
    };
    Err::<(), _>(error)
        .context(what.to_owned())
        .hint(hint)
        .expect_err("it is an error")
}
