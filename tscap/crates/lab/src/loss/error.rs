//! Why there is no sweep, or not all of it.

use std::io;

use tscap_traffic::load::{LoadError, NotInstalled, Tool};

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum LossError {
    /// It was told to end.
    #[error("told to end")]
    Stopped,
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
