//! How a command ends.

use std::process::ExitCode;

/// A command that ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Success,
    /// It was done as far as possible; what went wrong has been said.
    Fault,
    /// The frames seen and their outcomes don't add up: a bug in tscap.
    DoesNotAddUp,
    /// A signal ended it before it was done.
    Aborted,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Fault => 1,
            Self::DoesNotAddUp => 3,
            // As shells report a process ended by SIGINT.
            Self::Aborted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
