//! What goes to standard output.

use std::io::{self, Write};

use super::{Exit, Failure, Hint};

/// Prints text, with its colours if it goes to a terminal that wants them
/// (NO_COLOR); nobody being left to read it is no failure.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).trying("cannot write to standard output")
        }
        _ => Ok(Exit::Success),
    }
}
