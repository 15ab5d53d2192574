//! Why there is no sweep, or not all of it.

use std::io;

use crate::early_end::EarlyEnd;
use tscap_traffic::load::{LoadError, NotInstalled, Stopped, Tool};

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum LossError {
    /// It was told to end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// A program is not there.
    #[error(transparent)]
    NotInstalled(#[from] NotInstalled),
    /// A capture failed.
    #[error("a capture of {size} bytes a frame failed")]
    Capture {
        /// Frame size, bytes.
        size: u32,
        /// Whose.
        tool: Tool,
        /// Why.
        source: LoadError,
    },
    /// A capture that was to tell costs failed.
    #[error("cannot find out what a capture costs")]
    Calibration(#[from] LoadError),
    /// The runs for it tell nothing.
    #[error("no frame came through to find out the costs by")]
    NoCosts,
    /// Another step failed.
    #[error(transparent)]
    Step(#[from] io::Error),
}

impl EarlyEnd for LossError {
    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_))
    }
}
