//! A capture as an object: [`Capture`] is what is asked for, [`Running`] is a capture with
//! its programs attached, [`Ended`] is what is left of it. Nothing here prints: who calls
//! hears each [`Event`].
//!
//! [`Capture::start`] is read from top to bottom in `start.rs`, [`Running::finish`] in
//! `finish.rs`; what happens in between is in `running.rs`.

mod attach;
mod attach_all;
mod beginning;
pub mod check;
mod clocks;
mod commands;
mod counter;
mod counter_kind;
mod event;
mod expected_disturbance;
mod files;
mod finish;
mod first_brackets;
mod gathered;
pub mod going_on;
mod hardware;
mod header;
pub mod interface;
mod joining;
mod left_out;
mod link_up;
mod listening;
mod live_link;
mod live_links;
mod load;
mod metrics;
mod offloading;
mod opened;
mod own_counts;
mod own_counts_text;
mod parts;
mod pinning;
mod plan;
mod privileges;
mod probe;
mod pulse;
mod receiving;
mod running;
mod selection;
mod stale_journals;
mod start;
mod state;
mod summarise;
mod summary;
mod writers;
mod writing;

pub use check::FILE_CAPABILITIES;
pub use clocks::Clocks;
pub use counter::Counter;
pub use event::Reporter;
pub use event::{Event, Severity};
pub use finish::Ended;
pub use first_brackets::first_brackets;
pub use hardware::PtpClocks;
pub use load::{Refused, Stamping, first_by, first_of, kfunc_of, load_failure, paths};
pub use metrics::Metrics;
pub use plan::{
    BY_TSC, Capture, ClockChoice, DirectionChoice, HardwareStamps, MAX_WRITERS, Offloads,
    Privileges, Programs, Tap, Target, netmask_for,
};
pub use probe::probe;
pub use pulse::Pulse;
pub use running::Running;
pub use state::{Account, Progress, Ready, ReadyInterface, ReadyWriter};
pub use summary::{
    ClockSummary, CommandsSummary, DirectionSummary, DiskSummary, FilesSummary, FilterSummary,
    HardwareSummary, InterfaceSummary, PrioritySummary, Stop, Summary, WriterSummary,
};

/// The examples of README.md are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
