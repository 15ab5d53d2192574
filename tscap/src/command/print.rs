//! What goes to standard output.

use std::io::{self, Write};

use super::{Exit, Failure, Hint};

/// Prints text, with its colours if it goes to a terminal that wants them
/// (NO_COLOR); nobody being left to read it is no failure.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    print_if_read(text).map(|_| Exit::Success)
}

/// The same; says whether there may still be somebody to read it.
pub(super) fn print_if_read(text: &str) -> Result<bool, Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).trying("cannot write to standard output"),
    }
}
