//! What the capture says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::capturing::capture::{
    Event, FilesSummary, Progress, Ready, ReadyInterface, Severity, Summary, Target,
};
use crate::capturing::engine::ClosedFile;
use crate::cli::CapturePlan;
use crate::command::console::{Console, read_order};
use crate::text::numbers::{counted, grouped, ring, size, span};

/// Version of the JSON objects.
const VERSION: u32 = 1;

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
    let stdout_is_free = plan.capture.target != Target::Stdout;
    Console::new(plan.json, stdout_is_free, plan.verbosity)
}

pub(super) fn ready(console: &mut Console, ready: &Ready) {
    if !console.is_quiet() {
        console.say(&format!("ready: {}", begins(ready)));
    }
    console.event("ready", VERSION, ready);
}

fn begins(ready: &Ready) -> String {
    let interface = |it: &ReadyInterface| format!("{} ({})", it.name, it.xdp_mode.name());
    let interfaces: Vec<_> = ready.interfaces.iter().map(interface).collect();
    format!(
        "capturing on {}, clock {} by {}, {} read, ±{} ns, {} of {}",
        interfaces.join(", "),
        ready.clock.name(),
        ready.path,
        read_order(ready.ordered),
        ready.host_bound_ns,
        counted(ready.rings as u64, "ring"),
        ring(ready.ring_bytes as u64),
    )
}

/// Tells of an event: in a line for people, and in JSON where machines want to know.
pub(super) fn tell(console: &mut Console, event: &Event) {
    match event {
        Event::Progress(now) => console.progress(VERSION, now, || live_parts(now)),
        Event::Notice(Severity::Detail, text) => console.detail(text),
        Event::Notice(Severity::Note, text) => console.note(text),
        Event::Notice(Severity::Warning, text) => console.warning(text),
        Event::Notice(Severity::Error, text) => console.error(text),
        Event::FileClosed(file) => file_closed(console, file),
        Event::FileRemoved { path, frames } => file_removed(console, path, *frames),
        Event::CommandFailed { file, failure } => {
            console.warning(&event.to_string());
            let body = json!({ "file": file.display().to_string(), "failure": failure });
            console.event("command_failed", VERSION, body);
        }
        Event::Stepped { step_ns, cause } => {
            console.warning(&event.to_string());
            console.event(
                "step",
                VERSION,
                json!({ "step_ns": step_ns, "cause": cause }),
            );
        }
        Event::CounterJumped { jump_ns } => {
            console.warning(&event.to_string());
            console.event(
                "counter_jump",
                VERSION,
                json!({ "counter_jump_ns": jump_ns }),
            );
        }
        // The summary says why.
        Event::Stopped(_) => {}
    }
}

fn file_closed(console: &mut Console, file: &ClosedFile) {
    let path = file.path.display();
    let (frames, bytes) = (counted(file.frames, "frame"), size(file.bytes));
    console.detail(&format!("{path}: {frames}, {bytes}"));
    let body = json!({
        "file": path.to_string(),
        "frames": file.frames,
        "bytes": file.bytes,
        "start_ns": file.start,
        "end_ns": file.end,
    });
    console.event("file", VERSION, body);
}

fn file_removed(console: &mut Console, path: &Path, frames: Option<u64>) {
    let path = path.display();
    let what = match frames {
        Some(1) => "1 frame is removed".into(),
        Some(frames) => format!("{} are removed", counted(frames, "frame")),
        None => "what was there before the capture is replaced".into(),
    };
    console.detail(&format!("{path}: {what}"));
    let body = json!({ "file": path.to_string(), "frames": frames });
    console.event("removed", VERSION, body);
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
        summary.stopped_by.reason(),
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
