//! What the capture says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use crate::capturing::capture::{
    DirectionSummary, Event, FilesSummary, FilterSummary, Progress, Ready, ReadyInterface,
    Severity, Summary, Target,
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
    let interfaces = ready.interfaces.iter().map(ReadyInterface::to_string);
    let interfaces: Vec<_> = interfaces.collect();
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
        Event::Joined(interface) => {
            console.note(&event.to_string());
            console.event("joined", VERSION, interface);
        }
        Event::Left(interface) => {
            console.note(&event.to_string());
            console.event("left", VERSION, interface);
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
        console.say(&whole(summary));
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
    let mut lines = vec![format!(
        "{}: {} in {:.3} s, {}",
        summary.file,
        size(summary.bytes_written),
        summary.seconds,
        summary.stopped_by.reason(),
    )];
    lines.extend(summary.filter.as_ref().map(|filter| {
        let FilterSummary {
            expression,
            compiler,
        } = filter;
        format!("  filter {expression:?} ({compiler})")
    }));
    let count = |number, name, note: &str| format!("{:>15} {name}{note}", grouped(number));
    lines.push(count(summary.seen, "seen", &by_direction(summary)));
    lines.push(count(summary.written, "written", ""));
    for (outcome, number) in summary.outcomes.entries() {
        if number > 0 {
            let meaning = format!(" ({})", outcome.meaning);
            lines.push(count(number, outcome.name, &meaning));
        }
    }
    lines.push(match summary.adds_up {
        true => "  seen = written + every named outcome, exactly".into(),
        false => {
            "  DOES NOT ADD UP: frames are missing from this account; please report this".into()
        }
    });
    lines.extend(summary.off_cpu.map(|off_cpu| match off_cpu {
        0 => "  all of them came in on the CPUs given by --rx-cpu".into(),
        off_cpu => {
            let off_cpu = grouped(off_cpu);
            format!("  {off_cpu} of them came in on other CPUs than --rx-cpu gives")
        }
    }));
    lines.extend(summary.files.iter().flat_map(several_files));
    if summary.interfaces.len() > 1 {
        lines.extend(summary.interfaces.iter().map(|interface| {
            format!(
                "  {}: {} seen, {} written, {} not",
                interface.whole_name(),
                grouped(interface.seen),
                grouped(interface.written),
                grouped(interface.outcomes.total())
            )
        }));
    }
    for interface in &summary.interfaces {
        if let Some(missed) = interface.ifdrop.filter(|missed| *missed > 0) {
            let missed = counted(missed, "frame");
            lines.push(format!(
                "  {} itself missed {missed} before XDP",
                interface.whole_name()
            ));
        }
    }
    lines.extend(clock(summary));
    lines.join("\n")
}

/// How many frames went each way, where both are captured.
fn by_direction(summary: &Summary) -> String {
    let [one, other] = summary.directions.as_slice() else {
        return String::new();
    };
    let part = |it: &DirectionSummary| format!("{} {}", grouped(it.totals.seen), it.direction);
    format!(" ({}, {})", part(one), part(other))
}

fn several_files(files: &FilesSummary) -> Vec<String> {
    let mut lines = vec![format!(
        "  in {}; from one to the next within {}",
        counted(files.written, "file"),
        span(files.longest_cut_ns)
    )];
    if files.removed > 0 {
        lines.push(format!(
            "  removed of them: {} with {}",
            counted(files.removed, "file"),
            counted(files.frames_removed, "frame")
        ));
    }
    if files.replaced > 0 {
        let replaced = counted(files.replaced, "file");
        lines.push(format!("  replaced: {replaced} of an earlier time"));
    }
    lines.extend(files.commands.as_ref().map(|commands| {
        format!(
            "  -z: {} succeeded, {} failed, {} not ended",
            grouped(commands.succeeded),
            grouped(commands.failed),
            grouped(commands.unfinished)
        )
    }));
    lines
}

fn clock(summary: &Summary) -> Vec<String> {
    let clock = &summary.clock;
    let mut lines = vec![
        format!(
            "clock {} by {}, {} read (in the kernel, not on the wire):",
            clock.source,
            clock.path,
            read_order(clock.ordered)
        ),
        format!(
            "  stamps within ±{} ns of this host's clock",
            clock.host_bound_ns
        ),
        match clock.utc_bound_ns.map(span) {
            Some(bound) => {
                format!("  this host's clock within ±{bound} of UTC, as the kernel says")
            }
            None => "  this host's clock is unsynchronised: no bound to UTC".into(),
        },
    ];
    if clock.steps > 0 {
        let segments = clock.segments_forgotten + clock.segments.len() as u64;
        lines.push(format!(
            "  the clock was set {}: {}",
            counted(clock.steps, "time"),
            counted(segments, "segment")
        ));
    }
    if clock.ambiguous > 0 {
        let stamps = counted(clock.ambiguous, "stamp");
        lines.push(format!(
            "  {stamps} without a bound: at a step or a jump, or after a stall"
        ));
    }
    if clock.bound_raised > 0 {
        let times = counted(clock.bound_raised, "time");
        lines.push(format!(
            "  the bound was raised {times} for what interrupted readings may hide"
        ));
    }
    if clock.segments_forgotten > 0 {
        let segments = counted(clock.segments_forgotten, "segment");
        lines.push(format!(
            "  not told here, as there were too many: the first {segments}"
        ));
    }
    let order = &clock.order;
    if order.stamp_decreases > 0 {
        lines.push(format!(
            "  {} decreased, by {} ns at most",
            counted(order.stamp_decreases, "stamp"),
            grouped(order.largest_decrease_ns)
        ));
    }
    if order.late > 0 {
        lines.push(format!(
            "  behind younger frames of another CPU: {}, late by {} at most",
            counted(order.late, "frame"),
            span(order.largest_lateness_ns)
        ));
    }
    lines
}
