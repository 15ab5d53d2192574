//! What the capture says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;

use serde::Serialize;

use super::commands::Ended;
use super::summary::{FilesSummary, Stop, Summary, VERSION};
use crate::capturing::clock::{StampSource, StepCause};
use crate::capturing::engine::ClosedFile;
use crate::capturing::hook::XdpMode;
use crate::cli::{CapturePlan, Target};
use crate::command::console::{Console, read_order};
use crate::text::numbers::{counted, grouped, ring, signed, size, span};

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
    /// The function that reads it.
    pub path: &'static str,
    /// Whether the read is ordered (fenced).
    pub ordered: bool,
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
        write!(
            f,
            "capturing on {}, clock {} by {}, {} read, ±{} ns, {} of {}",
            interfaces.join(", "),
            self.clock.name(),
            self.path,
            read_order(self.ordered),
            self.host_bound_ns,
            counted(self.rings as u64, "ring"),
            ring(self.ring_bytes as u64),
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

/// The summary as it is printed.
#[derive(Serialize)]
struct End<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// `progress` events that nobody read in time.
    progress_left_out: u64,
}

/// The console of a capture.
pub(super) fn of(plan: &CapturePlan) -> io::Result<Console> {
    Console::new(plan.json, plan.target != Target::Stdout, plan.verbosity)
}

pub(super) fn ready(console: &mut Console, ready: &Ready) {
    if !console.is_quiet() {
        console.say(&format!("ready: {ready}"));
    }
    console.event("ready", VERSION, ready);
}

pub(super) fn stepped(console: &mut Console, step_ns: i64, cause: StepCause) {
    let by = signed(step_ns);
    let what = match cause {
        StepCause::Set => format!("the system clock was set by {by} ns"),
        StepCause::Leap => format!("a leap second: the system clock was set by {by} ns"),
        StepCause::Suspend => format!(
            "the machine was suspended: the system clock went on {by} ns without CLOCK_MONOTONIC"
        ),
        StepCause::Tai => "the kernel was told another offset to TAI".into(),
    };
    console.warning(&format!("{what}: a new clock segment begins"));
    let body = serde_json::json!({ "step_ns": step_ns, "cause": cause });
    console.event("step", VERSION, body);
}

pub(super) fn file_closed(console: &mut Console, file: &ClosedFile) {
    let path = file.path.display();
    let (frames, bytes) = (counted(file.frames, "frame"), size(file.bytes));
    console.detail(&format!("{path}: {frames}, {bytes}"));
    let body = serde_json::json!({
        "file": path.to_string(),
        "frames": file.frames,
        "bytes": file.bytes,
        "start_ns": file.start,
        "end_ns": file.end,
    });
    console.event("file", VERSION, body);
}

pub(super) fn file_removed(console: &mut Console, path: &Path, frames: Option<u64>) {
    let path = path.display();
    let what = match frames {
        Some(1) => "1 frame is removed".into(),
        Some(frames) => format!("{} are removed", counted(frames, "frame")),
        None => "what was there before the capture is replaced".into(),
    };
    console.detail(&format!("{path}: {what}"));
    let body = serde_json::json!({ "file": path.to_string(), "frames": frames });
    console.event("removed", VERSION, body);
}

pub(super) fn command_ended(console: &mut Console, ended: &Ended) {
    if let Some(failure) = &ended.failure {
        let file = ended.file.display().to_string();
        console.warning(&format!("-z failed on {file}: {failure}"));
        let body = serde_json::json!({ "file": file, "failure": failure });
        console.event("command_failed", VERSION, body);
    }
}

pub(super) fn counter_jumped(console: &mut Console, jump_ns: i64) {
    console.warning(&format!(
        "the TSC jumped: the system clock is {} ns ahead of it, as after a move to another \
         machine; a new clock segment begins",
        signed(jump_ns)
    ));
    let body = serde_json::json!({ "counter_jump_ns": jump_ns });
    console.event("counter_jump", VERSION, body);
}

pub(super) fn progress(console: &mut Console, progress: &Progress) {
    console.progress(VERSION, progress, || live_parts(progress));
}

pub(super) fn summary(console: &mut Console, summary: &Summary) {
    if console.is_json() {
        let progress_left_out = console.progress_left_out();
        let end = End {
            summary,
            progress_left_out,
        };
        console.event("summary", VERSION, end);
    } else if console.is_quiet() {
        console.say(&one_line(summary));
    } else {
        console.say(whole(summary).trim_end());
    }
}

/// The parts of the live line, the most important ones first.
fn live_parts(progress: &Progress) -> Vec<String> {
    let seconds = progress.seconds as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    vec![
        format!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
        counted(progress.written, "frame"),
        counted(progress.drops, "drop"),
        format!("{}/s", grouped(progress.rate as u64)),
        format!("ring {:.0} %", progress.ring_fill * 100.0),
        size(progress.bytes),
        format!("clock ±{} ns", progress.host_bound_ns),
    ]
}

fn one_line(summary: &Summary) -> String {
    let mut line = format!("{} seen = {} written", summary.seen, summary.written);
    for (outcome, count) in summary.outcomes.entries() {
        if count > 0 {
            let _ = write!(line, " + {count} {}", outcome.name);
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
    for (outcome, number) in summary.outcomes.entries() {
        if number > 0 {
            count(number, outcome.name, &format!(" ({})", outcome.meaning));
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
    if let Some(files) = &summary.files {
        several_files(&mut text, files);
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
                "  {} itself missed {} before XDP",
                interface.name,
                counted(missed, "frame")
            );
        }
    }
    clock(&mut text, summary);
    text
}

fn several_files(text: &mut String, files: &FilesSummary) {
    let _ = writeln!(
        text,
        "  in {}; from one to the next within {}",
        counted(files.written, "file"),
        span(files.longest_cut_ns)
    );
    if files.removed > 0 {
        let _ = writeln!(
            text,
            "  removed of them: {} with {}",
            counted(files.removed, "file"),
            counted(files.frames_removed, "frame")
        );
    }
    if files.replaced > 0 {
        let _ = writeln!(
            text,
            "  replaced: {} of an earlier time",
            counted(files.replaced, "file")
        );
    }
    if let Some(commands) = &files.commands {
        let _ = writeln!(
            text,
            "  -z: {} succeeded, {} failed, {} not ended",
            grouped(commands.succeeded),
            grouped(commands.failed),
            grouped(commands.unfinished)
        );
    }
}

fn clock(text: &mut String, summary: &Summary) {
    let clock = &summary.clock;
    let _ = writeln!(
        text,
        "clock {} by {}, {} read (in XDP, not on the wire):\n  \
         stamps within ±{} ns of this host's clock",
        clock.source,
        clock.path,
        read_order(clock.ordered),
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
            "  the clock was set {}: {}",
            counted(clock.steps, "time"),
            counted(
                clock.segments_forgotten + clock.segments.len() as u64,
                "segment"
            )
        );
    }
    if clock.ambiguous > 0 {
        let _ = writeln!(
            text,
            "  {} without a bound: at a step or a jump, or after a stall",
            counted(clock.ambiguous, "stamp")
        );
    }
    if clock.bound_raised > 0 {
        let _ = writeln!(
            text,
            "  the bound was raised {} for what interrupted readings may hide",
            counted(clock.bound_raised, "time")
        );
    }
    if clock.segments_forgotten > 0 {
        let _ = writeln!(
            text,
            "  not told here, as there were too many: the first {}",
            counted(clock.segments_forgotten, "segment")
        );
    }
    let order = &clock.order;
    if order.stamp_decreases > 0 {
        let _ = writeln!(
            text,
            "  {} decreased, by {} ns at most",
            counted(order.stamp_decreases, "stamp"),
            grouped(order.largest_decrease_ns)
        );
    }
    if order.late > 0 {
        let _ = writeln!(
            text,
            "  behind younger frames of another CPU: {}, late by {} at most",
            counted(order.late, "frame"),
            span(order.largest_lateness_ns)
        );
    }
}

fn reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Signal => "stopped by a signal",
        Stop::Count => "as many frames as asked for",
        Stop::Duration => "the time asked for is over",
        Stop::Files => "as many files as asked for",
        Stop::ReaderGone => "the reader is gone",
        Stop::InterfaceGone => "the interface is gone",
        Stop::WriteError => "the output failed",
        Stop::InternalError => "stopped by an internal error",
    }
}
