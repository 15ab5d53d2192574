//! What the capture says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::time::Duration;

use serde::Serialize;

use super::lines::Lines;
use super::summary::{Stop, Summary, VERSION};
use crate::cli::{CapturePlan, Target, Verbosity};
use crate::clock::StampSource;
use crate::xdp::XdpMode;

/// How long a reader may take at the end to read what is left.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Where it goes and in which form. Nothing here waits for a reader but the end,
/// and that not for long.
#[derive(Debug)]
pub(super) struct Console {
    json: bool,
    stderr: Lines,
    /// For JSON lines, unless the capture itself goes there.
    stdout: Option<Lines>,
    /// Progress that found too much waiting before it.
    progress_left_out: u64,
    verbosity: Verbosity,
    live: bool,
    /// A live line stands on the terminal.
    has_line: bool,
}

/// One interface as the capture begins.
#[derive(Debug, Serialize)]
pub(super) struct ReadyInterface {
    pub name: String,
    pub ifindex: u32,
    pub xdp_mode: XdpMode,
}

/// The capture as it begins.
#[derive(Debug, Serialize)]
pub(super) struct Ready {
    pub interfaces: Vec<ReadyInterface>,
    pub clock: StampSource,
    pub host_bound_ns: u64,
    pub rings: usize,
    pub ring_bytes: usize,
    pub converter_cpu: u32,
    /// With `--rx-cpu`: where frames are meant to come in.
    pub rx_cpus: Option<Vec<u32>>,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interface = |it: &ReadyInterface| format!("{} ({})", it.name, it.xdp_mode.name());
        let interfaces: Vec<_> = self.interfaces.iter().map(interface).collect();
        let (ring, unit) = match self.ring_bytes {
            bytes if bytes < 1 << 20 => (bytes >> 10, "KiB"),
            bytes => (bytes >> 20, "MiB"),
        };
        write!(
            f,
            "capturing on {}, clock {} ±{} ns, {} ring{} of {ring} {unit}",
            interfaces.join(", "),
            self.clock.name(),
            self.host_bound_ns,
            self.rings,
            if self.rings == 1 { "" } else { "s" },
        )
    }
}

/// The state once a second.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Progress {
    pub seconds: f64,
    pub seen: u64,
    pub written: u64,
    pub bytes: u64,
    pub drops: u64,
    /// Frames written per second, since the last progress.
    pub rate: f64,
    /// Fullest that a ring was found since the last progress, 0 to 1.
    pub ring_fill: f64,
    pub host_bound_ns: u64,
}

#[derive(Serialize)]
struct Event<'a, T> {
    event: &'a str,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct Versioned<T> {
    v: u32,
    #[serde(flatten)]
    body: T,
}

/// The summary as it is printed.
#[derive(Serialize)]
struct End<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// `progress` events that nobody read in time.
    progress_left_out: u64,
}

impl Console {
    pub fn new(plan: &CapturePlan) -> io::Result<Self> {
        let has_stdout = plan.json && plan.target != Target::Stdout;
        let stdout = has_stdout.then(|| Lines::to(io::stdout()));
        Ok(Self {
            json: plan.json,
            stderr: Lines::to(io::stderr())?,
            stdout: stdout.transpose()?,
            progress_left_out: 0,
            verbosity: plan.verbosity,
            live: !plan.json && plan.verbosity > Verbosity::Quiet && io::stderr().is_terminal(),
            has_line: false,
        })
    }

    /// Writes to standard error.
    fn say(&mut self, text: &str) {
        let clear = if self.has_line { "\r\x1b[K" } else { "" };
        self.has_line = false;
        self.stderr.put(format!("{clear}{text}\n"));
    }

    /// Where JSON lines go.
    fn machines(&self) -> &Lines {
        self.stdout.as_ref().unwrap_or(&self.stderr)
    }

    fn json(&self, event: &str, body: impl Serialize) {
        self.machines().put(json_line(event, body));
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
        self.say(&format!("warning: {text}"));
    }

    pub fn error(&mut self, text: &str) {
        self.say(&format!("tscap: {text}"));
    }

    pub fn ready(&mut self, ready: &Ready) {
        self.say(&format!("ready: {ready}"));
        if self.json {
            let v = VERSION;
            self.json("ready", Versioned { v, body: ready });
        }
    }

    pub fn stepped(&mut self, step_ns: i64) {
        self.warning(&format!(
            "the system clock was set by {} ns: a new clock segment begins",
            signed(step_ns)
        ));
        if self.json {
            self.json(
                "step",
                serde_json::json!({"v": VERSION, "step_ns": step_ns}),
            );
        }
    }

    pub fn progress(&mut self, progress: &Progress) {
        if self.json {
            let v = VERSION;
            let line = json_line("progress", Versioned { v, body: progress });
            let is_taken = self.machines().offer(line);
            self.progress_left_out += u64::from(!is_taken);
        }
        if self.live {
            let line = format!("\r{}\x1b[K", live_line(progress));
            self.has_line |= self.stderr.offer(line);
        }
    }

    pub fn summary(&mut self, summary: &Summary) {
        if self.json {
            let progress_left_out = self.progress_left_out;
            let end = End {
                summary,
                progress_left_out,
            };
            self.json("summary", end);
        } else if self.verbosity == Verbosity::Quiet {
            self.say(&one_line(summary));
        } else {
            self.say(whole(summary).trim_end());
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
        self.stderr.finish(END_WITHIN);
    }
}

fn json_line(event: &str, body: impl Serialize) -> String {
    let line = serde_json::to_string(&Event { event, body });
    line.expect("plain structs always serialise") + "\n"
}

fn live_line(progress: &Progress) -> String {
    let seconds = progress.seconds as u64;
    format!(
        "{:02}:{:02}:{:02}  {} packets  {}/s  {}  {} drops  ring {:.0} %  clock ±{} ns",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        grouped(progress.written),
        grouped(progress.rate as u64),
        size(progress.bytes),
        grouped(progress.drops),
        progress.ring_fill * 100.0,
        progress.host_bound_ns,
    )
}

fn one_line(summary: &Summary) -> String {
    let mut line = format!("{} seen = {} written", summary.seen, summary.written);
    for (name, count, _) in summary.outcomes.named() {
        if count > 0 {
            let _ = write!(line, " + {count} {name}");
        }
    }
    if !summary.adds_up {
        line += "  DOES NOT ADD UP";
    }
    line
}

fn whole(summary: &Summary) -> String {
    let mut text = format!(
        "{}: {} in {:.3} s, {}\n",
        summary.file,
        size(summary.bytes_written),
        summary.seconds,
        reason(summary.stopped_by),
    );
    let mut count = |number: u64, name: &str, note: &str| {
        let _ = writeln!(text, "{:>15} {name}{note}", grouped(number));
    };
    count(summary.seen, "seen", "");
    count(summary.written, "written", "");
    for (name, number, note) in summary.outcomes.named() {
        if number > 0 {
            count(number, name, &format!(" ({note})"));
        }
    }
    text += if summary.adds_up {
        "  seen = written + every named outcome, exactly\n"
    } else {
        "  DOES NOT ADD UP: frames are missing from this account; please report this\n"
    };
    match summary.off_cpu {
        None => {}
        Some(0) => text += "  all of them came in on the CPUs given by --rx-cpu\n",
        Some(off_cpu) => {
            let off_cpu = grouped(off_cpu);
            let _ = writeln!(
                text,
                "  {off_cpu} of them came in on other CPUs than --rx-cpu gives"
            );
        }
    }
    if summary.interfaces.len() > 1 {
        for interface in &summary.interfaces {
            let lost = interface.outcomes.total();
            let _ = writeln!(
                text,
                "  {} ({}): {} seen, {} written, {} not",
                interface.name,
                interface.xdp_mode,
                grouped(interface.seen),
                grouped(interface.written),
                grouped(lost)
            );
        }
    }
    for interface in &summary.interfaces {
        if let Some(missed) = interface.ifdrop.filter(|missed| *missed > 0) {
            let _ = writeln!(
                text,
                "  {} itself missed {} frames before XDP",
                interface.name,
                grouped(missed)
            );
        }
    }
    clock(&mut text, summary);
    text
}

fn clock(text: &mut String, summary: &Summary) {
    let clock = &summary.clock;
    let _ = writeln!(
        text,
        "clock {} by {}, {} read (in XDP, not on the wire):\n  \
         stamps within ±{} ns of this host's clock",
        clock.source,
        clock.path,
        if clock.ordered {
            "ordered"
        } else {
            "unordered"
        },
        clock.host_bound_ns
    );
    let _ = match clock.utc_bound_ns {
        Some(bound) => writeln!(
            text,
            "  this host's clock within ±{} of UTC, as the kernel says",
            span(bound)
        ),
        None => writeln!(
            text,
            "  this host's clock is unsynchronised: no bound to UTC"
        ),
    };
    if clock.steps > 0 {
        let _ = writeln!(
            text,
            "  the clock was set {} times: {} segments, {} stamps on either side of a step",
            clock.steps,
            clock.segments.len(),
            clock.ambiguous
        );
    }
    let order = &clock.order;
    if order.stamp_decreases > 0 {
        let _ = writeln!(
            text,
            "  {} stamps decreased, by {} ns at most",
            grouped(order.stamp_decreases),
            grouped(order.largest_decrease_ns)
        );
    }
    if order.late > 0 {
        let _ = writeln!(
            text,
            "  {} frames stand behind younger ones of another CPU, late by {} at most",
            grouped(order.late),
            span(order.largest_lateness_ns)
        );
    }
}

fn reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Signal => "stopped by a signal",
        Stop::Count => "as many frames as asked for",
        Stop::Duration => "the time asked for is over",
        Stop::ReaderGone => "the reader is gone",
        Stop::InterfaceGone => "the interface is gone",
        Stop::WriteError => "the output failed",
        Stop::InternalError => "stopped by an internal error",
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { '−' } else { '+' };
    format!("{sign}{}", grouped(number.unsigned_abs()))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

fn span(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::capture::lines::MOST_WAITING;
    use crate::command::capture::plan_of;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(signed(-1_000_000_000), "−1,000,000,000");
        assert_eq!(size(1_500), "1.5 kB");
        assert_eq!(span(16_000_000_000), "16.0 s");
        assert_eq!(span(512), "512 ns");
    }

    #[test]
    fn progress_that_nobody_reads_is_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let stdout = Lines::to(writer).unwrap();
        // More than a pipe holds.
        stdout.put(vec![b'\n'; 1 << 20]);
        let mut console = Console::new(&plan_of("--json")).unwrap();
        console.stdout = Some(stdout);
        let progress = Progress {
            seconds: 1.0,
            seen: 1,
            written: 1,
            bytes: 100,
            drops: 0,
            rate: 1.0,
            ring_fill: 0.0,
            host_bound_ns: 20,
        };
        for _ in 0..MOST_WAITING + 6 {
            console.progress(&progress);
        }
        assert_eq!(console.progress_left_out, 7);
        // As if it had ended: the end needs no second for this.
        drop(reader);
    }
}
