//! What a live measurement is asked to do.

use std::time::Duration;

use tscap_common::sighting::MOST_KEPT;

use crate::schema::{How, Match};
use tscap_capture::ClockChoice;
use tscap_clock::TscPath;
use tscap_filter::Filter;
use tscap_network::namespaces::Target;
use tscap_references::Followed;
use tscap_session::clock_at_tap;
use tscap_streams::ENDS_WITHIN;

/// Where packets are seen when they leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutPoint {
    /// Behind the queueing discipline, where tcpdump is, and before it: the difference is
    /// the queueing discipline's
    #[default]
    Tap,
    /// Before the queueing discipline only (tcx egress)
    Egress,
    /// At the other end of the veth pair, in XDP
    Peer,
}

/// The interfaces, and which way packets go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasuredPath {
    /// In at one, out at another.
    Through {
        /// Where packets enter.
        entry: String,
        /// Where they leave.
        exit: String,
        /// Also from `exit` to `entry`.
        is_both: bool,
    },
    /// A request that comes in at an interface, and its reply that goes out there.
    Reflected(String),
    /// A request that goes out at an interface, and its reply that comes in there.
    RoundTrip(String),
    /// In at one, out at another, both mirrored to a third.
    Mirrored {
        /// Where packets enter.
        entry: String,
        /// Where they leave.
        exit: String,
        /// The interface to which copies are sent.
        to: String,
        /// The interface that receives them: the other end of the cable.
        from: String,
    },
}

impl MeasuredPath {
    /// What it is called in the result.
    pub fn how(&self) -> How {
        match self {
            Self::Through { .. } => How::Hooks,
            Self::Reflected(_) => How::Reflect,
            Self::RoundTrip(_) => How::Rtt,
            Self::Mirrored { .. } => How::Mirror,
        }
    }
}

/// A live measurement, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePlan {
    /// The interfaces.
    pub course: MeasuredPath,
    /// The network namespace that they are in; `None` for this process's own.
    pub namespace: Option<Target>,
    /// That of the other ends, with [`OutPoint::Peer`]; `None` for the same one.
    pub peer_namespace: Option<Target>,
    /// Where packets are seen when they leave.
    pub out_point: OutPoint,
    /// What packets are matched by; `None` for what suits the course.
    pub matched_by: Option<Match>,
    /// Longest delay that is looked for.
    pub window: Duration,
    /// Most packets that are remembered at a time.
    pub capacity: usize,
    /// The clock of the stamps.
    pub clock: ClockChoice,
    /// The reference whose time the times are, which takes stamps of the TSC; `None` for the
    /// host's clock.
    pub reference: Option<Followed>,
    /// Measure only the packets that match.
    pub filter: Option<Filter>,
    /// Ring of each CPU, bytes; `None` for the default.
    pub ring_bytes: Option<usize>,
    /// Keep more of the beginnings of packets, at both ends, for a file of the slowest.
    pub keeps_packets: bool,
    /// Most packets to match.
    pub count: Option<u64>,
}

impl LivePlan {
    /// The clock that all points can read, and by which path: the module's function is not
    /// there for the tap, whose programs are filters of sockets.
    pub(super) fn clock_at_its_points(&self) -> (ClockChoice, Option<TscPath>) {
        let is_tapped = match &self.course {
            MeasuredPath::Through { .. } | MeasuredPath::Reflected(_) => {
                self.out_point == OutPoint::Tap
            }
            MeasuredPath::RoundTrip(_) => true,
            MeasuredPath::Mirrored { .. } => false,
        };
        if is_tapped {
            clock_at_tap(self.clock)
        } else {
            (self.clock, None)
        }
    }

    /// Bytes kept of each packet: its addresses at least.
    pub(super) fn kept_bytes(&self) -> usize {
        if self.keeps_packets {
            MOST_KEPT.min(128)
        } else {
            ENDS_WITHIN
        }
    }
}
