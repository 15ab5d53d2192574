//! What a comparison is to measure, and why it may not.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::plan::Amount;
use super::programs::ProgramsError;
use crate::early_end::EarlyEnd;
use tscap_network::netdev::Link;
use tscap_programs::hook::{InterruptKfuncs, KernelCounters};
use tscap_traffic::load::{Pair, Stopped};

/// Where frames come from.
pub enum FrameSource {
    /// The generator, through a veth pair of our own; loss is measured by captures
    /// of this executable.
    Own {
        /// The pair.
        pair: Box<Pair>,
        /// `tscap`.
        executable: PathBuf,
    },
    /// Whatever an interface receives.
    Live {
        /// The interface.
        link: Box<Link>,
        /// Longest wait for the frames of a turn.
        timeout: Duration,
    },
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// How much.
    pub amount: Amount,
    /// The CPU to measure on.
    pub cpu: u32,
    /// Take the TSC as it is.
    pub force: bool,
    /// Measure with interrupts off too, by these.
    pub interrupts: Option<InterruptKfuncs>,
    /// Tell causes of outliers by these.
    pub counters: Option<KernelCounters>,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The program could not be attached natively.
    #[error("cannot attach to {interface} in native mode")]
    Native {
        /// The interface.
        interface: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing came in on an interface.
    #[error("no frame came in on CPU {cpu} of {interface} within {timeout:?}")]
    NoTraffic {
        /// The CPU.
        cpu: u32,
        /// The interface.
        interface: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// It was told to end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// None of the frames sent was measured.
    #[error("none of the frames sent came in on the CPU that they were sent from")]
    AllLost,
    /// The measuring programs failed.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Another step of it failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

impl EarlyEnd for ExperimentError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}
