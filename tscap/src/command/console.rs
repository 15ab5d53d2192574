//! What a command says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::io;
use std::time::Duration;

use serde::Serialize;

use super::lines::Lines;
use super::print::json_line;
use super::terminal;
use crate::cli::Verbosity;
use crate::text::escaped::{escaped, escaped_lines};

/// How long a reader may take at the end to read what is left.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Where it goes and in which form. Nothing here waits for a reader but the end,
/// and that not for long.
#[derive(Debug)]
pub(super) struct Console {
    json: bool,
    stderr: Lines,
    /// For JSON lines, unless standard output is for something else.
    stdout: Option<Lines>,
    /// Progress that found too much waiting before it.
    progress_left_out: u64,
    verbosity: Verbosity,
    /// A live line is wanted.
    live: bool,
    /// A live line stands on the terminal.
    has_line: bool,
}

#[derive(Serialize)]
struct Event<'a, T> {
    event: &'a str,
    v: u32,
    #[serde(flatten)]
    body: T,
}

impl Console {
    /// `stdout_is_free` is false if JSON lines must go to standard error.
    pub fn new(json: bool, stdout_is_free: bool, verbosity: Verbosity) -> io::Result<Self> {
        let stdout = (json && stdout_is_free).then(|| Lines::to(io::stdout()));
        Ok(Self {
            json,
            stderr: Lines::to(io::stderr())?,
            stdout: stdout.transpose()?,
            progress_left_out: 0,
            verbosity,
            live: !json && verbosity > Verbosity::Quiet,
            has_line: false,
        })
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    pub fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    /// Writes to standard error.
    pub fn say(&mut self, text: &str) {
        let clear = if self.has_line { "\r\x1b[K" } else { "" };
        self.has_line = false;
        self.stderr.put(format!("{clear}{}\n", escaped_lines(text)));
    }

    pub fn detail(&mut self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.say(text);
        }
    }

    /// Something worth knowing that is no reason to worry.
    pub fn note(&mut self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.say(&format!("note: {text}"));
        }
    }

    pub fn warning(&mut self, text: &str) {
        const VERSION: u32 = 1;
        self.say(&format!("warning: {text}"));
        self.event("warning", VERSION, serde_json::json!({ "text": text }));
    }

    pub fn error(&mut self, text: &str) {
        self.say(&format!("tscap: {text}"));
    }

    /// Tells machines, if it is they who are told.
    pub fn event(&mut self, event: &str, v: u32, body: impl Serialize) {
        if self.json {
            let line = json_line(&Event { event, v, body });
            self.machines().put(line);
        }
    }

    /// Tells how far it is, unless nobody has read the last times: people by the
    /// first of `parts` that fit on a line of a terminal.
    pub fn progress(&mut self, v: u32, body: impl Serialize, parts: impl FnOnce() -> Vec<String>) {
        if self.json {
            let event = "progress";
            let is_taken = self.machines().offer(json_line(&Event { event, v, body }));
            self.progress_left_out += u64::from(!is_taken);
        }
        if let Some(width) = self.live.then(|| terminal::width(io::stderr())).flatten() {
            let line = terminal::line(&parts(), width);
            self.has_line |= self.stderr.offer(format!("\r{}\x1b[K", escaped(&line)));
        }
    }

    /// Times that nobody was told how far it was.
    pub fn progress_left_out(&self) -> u64 {
        self.progress_left_out
    }

    /// Where JSON lines go.
    fn machines(&self) -> &Lines {
        self.stdout.as_ref().unwrap_or(&self.stderr)
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        if let Some(stdout) = &mut self.stdout {
            let lost = stdout.finish(END_WITHIN);
            if lost > 0 {
                self.warning(&format!(
                    "nobody reads standard output: the last {lost} JSON lines are lost"
                ));
            }
        }
        if self.has_line {
            self.stderr.put("\n");
        }
        self.stderr.finish(END_WITHIN);
    }
}

/// What a read of a clock is called.
pub(super) fn read_order(is_ordered: bool) -> &'static str {
    match is_ordered {
        true => "ordered",
        false => "unordered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::lines::MOST_WAITING;

    #[test]
    fn progress_that_nobody_reads_is_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let stdout = Lines::to(writer).unwrap();
        // More than a pipe holds.
        stdout.put(vec![b'\n'; 1 << 20]);
        let mut console = Console::new(true, true, Verbosity::Normal).unwrap();
        console.stdout = Some(stdout);
        for _ in 0..MOST_WAITING + 6 {
            console.progress(1, serde_json::json!({}), Vec::new);
        }
        assert_eq!(console.progress_left_out(), 7);
        // As if it had ended: the end needs no second for this.
        drop(reader);
    }
}
