//! What goes to standard output.

use std::io::{self, Write};

use serde::Serialize;

use super::{Context, Exit, Failure, terminal};
use tscap_base::text::escaped::escaped_lines;

/// Prints text without what would steer a terminal; nobody being left to read it is no
/// failure.
pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    print_if_read(text).map(|_| Exit::Success)
}

/// The same of text for people, in lines that fit a terminal.
pub(super) fn tell(text: &str) -> Result<Exit, Failure> {
    print(&terminal::fitted(text, io::stdout()))
}

/// A result as one line of JSON.
pub(super) fn json_line(result: &impl Serialize) -> String {
    serde_json::to_string(result).expect("plain structs always serialise") + "\n"
}

/// As [`print`]; says whether there may still be somebody to read it.
pub(super) fn print_if_read(text: &str) -> Result<bool, Failure> {
    print_coloured(&escaped_lines(text))
}

/// Prints text that tscap alone has made, with its colours if it goes to a terminal that
/// wants them (NO_COLOR); says whether there may still be somebody to read it.
pub(super) fn print_coloured(text: &str) -> Result<bool, Failure> {
    match anstream::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}

/// Says something on standard error, in lines that fit a terminal.
pub(super) fn say(text: &str) {
    // Nobody may be left to read it.
    let text = terminal::fitted(&escaped_lines(text.trim_end()), io::stderr());
    let _ = writeln!(io::stderr(), "{text}");
}
