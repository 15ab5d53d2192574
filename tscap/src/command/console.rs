//! What a command says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::io;
use std::time::Duration;

use serde::Serialize;

use super::lines::Lines;
use super::print::json_line;
use super::terminal;
use tscap_base::text::escaped::{escaped, escaped_lines};
use tscap_cli::Verbosity;
use tscap_host::journald::{self, Field, Journald, Priority};

/// How long a reader may take at the end to read what is left.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Where it goes and in which form. Nothing here waits for a reader but the end,
/// and that not for long.
#[derive(Debug)]
pub(super) struct Console {
    json: bool,
    stderr: Lines,
    /// Standard error is systemd's journal, which takes entries for lines.
    is_journal: bool,
    /// For JSON lines, unless standard output is for something else.
    stdout: Option<Lines>,
    /// Progress that found too much waiting before it.
    progress_left_out: u64,
    verbosity: Verbosity,
    /// A live line is wanted.
    live: bool,
    /// Live lines that stand on the terminal.
    standing: usize,
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
        let is_journal = journald::is_stderr();
        let stderr = if is_journal {
            Lines::to(Journald::open()?)
        } else {
            Lines::to(io::stderr())
        };
        Ok(Self {
            json,
            stderr: stderr?,
            is_journal,
            stdout: stdout.transpose()?,
            progress_left_out: 0,
            verbosity,
            live: !json && verbosity > Verbosity::Quiet,
            standing: 0,
        })
    }

    /// The same without live lines: something else writes to the terminal.
    #[must_use]
    pub fn without_live_lines(mut self) -> Self {
        self.live = false;
        self
    }

    /// Goes on without capabilities, in the threads of the console.
    pub fn give_up_capabilities(&self) {
        let streams = [Some(&self.stderr), self.stdout.as_ref()];
        streams
            .into_iter()
            .flatten()
            .for_each(Lines::give_up_capabilities);
    }

    pub fn is_json(&self) -> bool {
        self.json
    }

    pub fn is_quiet(&self) -> bool {
        self.verbosity <= Verbosity::Quiet
    }

    pub fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Whether only what is wrong is to be said.
    pub fn is_for_errors(&self) -> bool {
        self.verbosity == Verbosity::Errors
    }

    /// Writes to standard error.
    pub fn say(&mut self, text: &str) {
        self.put(Priority::Info, text, &[]);
    }

    /// The same; systemd's journal gets `fields` beside it.
    pub fn say_with(&mut self, text: &str, fields: &[Field]) {
        self.put(Priority::Info, text, fields);
    }

    fn put(&mut self, priority: Priority, text: &str, fields: &[Field]) {
        let text = escaped_lines(text);
        if self.is_journal {
            self.stderr.put(journald::entry(priority, &text, fields));
            return;
        }
        let text = terminal::fitted(&text, io::stderr());
        let clear = clear(std::mem::take(&mut self.standing));
        self.stderr.put(format!("{clear}{text}\n"));
    }

    pub fn detail(&mut self, text: &str) {
        if self.is_verbose() {
            self.put(Priority::Debug, text, &[]);
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
        if !self.is_for_errors() {
            self.put(Priority::Warning, &format!("warning: {text}"), &[]);
        }
        self.event("warning", VERSION, serde_json::json!({ "text": text }));
    }

    pub fn error(&mut self, text: &str) {
        self.put(Priority::Error, &format!("tscap: {text}"), &[]);
    }

    /// Tells machines, if it is they who are told.
    pub fn event(&mut self, event: &str, v: u32, body: impl Serialize) {
        if self.json {
            let line = self.for_machines(&Event { event, v, body });
            self.machines().put(line);
        }
    }

    /// Tells how far it is, unless nobody has read the last times: people by the
    /// first of `parts` that fit on a line of a terminal.
    pub fn progress(&mut self, v: u32, body: impl Serialize, parts: impl FnOnce() -> Vec<String>) {
        if self.json {
            let event = "progress";
            let line = self.for_machines(&Event { event, v, body });
            let is_taken = self.machines().offer(line);
            self.progress_left_out += u64::from(!is_taken);
        }
        if let Some(width) = self.live.then(|| terminal::width(io::stderr())).flatten() {
            self.show(&[terminal::line(&parts(), width)]);
        }
    }

    /// Puts live lines in the place of those that stand on the terminal, unless nobody has
    /// read the last times.
    pub fn show(&mut self, lines: &[String]) {
        let text: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
        let text = format!("{}{}", clear(self.standing), text.join("\n"));
        if self.stderr.offer(text) {
            self.standing = lines.len();
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

    fn for_machines(&self, event: &impl Serialize) -> Vec<u8> {
        let line = json_line(event);
        if self.stdout.is_none() && self.is_journal {
            journald::entry(Priority::Info, line.trim_end(), &[])
        } else {
            line.into()
        }
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
        if self.standing > 0 {
            self.stderr.put("\n");
        }
        self.stderr.finish(END_WITHIN);
    }
}

/// What removes so many live lines, behind the last of which the cursor stands.
fn clear(standing: usize) -> String {
    match standing {
        0 => String::new(),
        lines => format!("\r\x1b[K{}", "\x1b[A\x1b[K".repeat(lines - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::lines::MOST_WAITING;

    #[test]
    fn live_lines_are_removed_from_the_last_to_the_first() {
        assert_eq!(clear(0), "");
        assert_eq!(clear(1), "\r\x1b[K");
        assert_eq!(clear(3), "\r\x1b[K\x1b[A\x1b[K\x1b[A\x1b[K");
    }

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
