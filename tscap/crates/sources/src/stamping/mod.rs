//! Receive times for programs that know nothing of tscap: a socket that asks for them by
//! SO_TIMESTAMPNS gets tscap's stamp in the place of the kernel's own.
//!
//! A program at native XDP stamps each frame, as one of a capture does, and puts the stamp in
//! front of it. A program at tcx ingress, where packets come next, turns it into CLOCK_REALTIME
//! by a straight line, which [`Running`] keeps up to date, and writes it to the packet. It
//! replaces a stamp of the kernel only, and leaves that where it has nothing better.
//!
//! If asked to, a third program at tcx egress writes the time at which it sees them into the test
//! packets of STAMP and TWAMP Light that programs of this host send, with an Error Estimate that
//! [`Running`] keeps up to date together with the line.

mod account;
mod running;
mod send_times;
mod start;

pub use account::{Account, SendAccount};
pub use running::{Progress, Running, SendSummary, Summary};
pub use send_times::{End, SendTimes, TooManyPorts};

use tscap_capture::ClockChoice;
use tscap_clock::TscPath;
use tscap_network::namespaces::Target;
use tscap_references::Followed;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// The interface.
    pub interface: String,
    /// The network namespace that it is in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// Clock to stamp frames with.
    pub clock: ClockChoice,
    /// By this path to the TSC only.
    pub tsc_path: Option<TscPath>,
    /// The reference whose time the times are, which takes stamps of the TSC; `None` for the
    /// host's clock.
    pub reference: Option<Followed>,
    /// Test packets that get send times.
    pub send_times: SendTimes,
}
