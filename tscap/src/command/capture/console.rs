//! What the capture says while it runs and at its end: to people on standard
//! error, or as JSON lines to machines.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::{account, fields, short};
use crate::command::console::Console;
use tscap_base::text::numbers::{counted, grouped, ring, size};
use tscap_capture::{Event, Progress, Ready, ReadyInterface, Severity, Summary, Target};
use tscap_cli::CapturePlan;
use tscap_clock::read_order;
use tscap_engine::ClosedFile;
use tscap_file::pcapng::Hooks;

/// Of more interfaces the number is told, not each name.
const MOST_NAMES: usize = 5;
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
    let target = &plan.capture.target;
    let console = Console::new(plan.json, *target != Target::Stdout, plan.verbosity)?;
    // What reads the packets may print them on the same terminal.
    Ok(if is_read_meanwhile(target) {
        console.without_live_lines()
    } else {
        console
    })
}

/// Whether the frames go to another program: through a pipe or a socket.
fn is_read_meanwhile(target: &Target) -> bool {
    let mode = match target {
        Target::Stdout => nix::sys::stat::fstat(io::stdout()),
        Target::Path(path) => nix::sys::stat::stat(path),
    };
    // A file that is not there yet is none.
    mode.is_ok_and(|it| matches!(it.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK))
}

pub(super) fn ready(console: &mut Console, ready: &Ready) {
    if !console.is_quiet() {
        console.say(&format!("ready: {}", begins(ready)));
    }
    console.detail(&how(ready));
    console.event("ready", VERSION, ready);
}

/// What is captured, and how far stamps may be off.
fn begins(ready: &Ready) -> String {
    let mut line = format!(
        "capturing on {}{}, clock {} ±{} ns",
        by_hooks(&ready.interfaces),
        if ready.tap {
            ", of which the network stack sees nothing"
        } else {
            ""
        },
        ready.clock.name(),
        ready.host_bound_ns,
    );
    if let Some(reference) = &ready.reference {
        line += &format!(", times by {reference}");
    }
    line
}

/// How the clock is read, and how frames come to the file.
fn how(ready: &Ready) -> String {
    let mut line = format!(
        "clock {} by {}, {} read; {} of {}",
        ready.clock.name(),
        ready.path,
        read_order(ready.ordered),
        counted(ready.rings as u64, "ring"),
        ring(ready.ring_bytes as u64),
    );
    if ready.io == "direct" {
        line += "; direct I/O";
    }
    if let Some(priority) = ready.priority {
        line += &format!("; in real time (priority {priority})");
    }
    line
}

/// The counts so far, which somebody has asked for.
pub(super) fn counts(console: &mut Console, now: &Progress) {
    console.say(&format!("so far: {}", account::so_far(now)));
    console.event("counts", VERSION, now);
}

/// The interfaces, those with the same hooks together.
fn by_hooks(interfaces: &[ReadyInterface]) -> String {
    let mut groups: Vec<(&Hooks, Vec<String>)> = Vec::new();
    for interface in interfaces {
        let name = interface.whole_name();
        match groups
            .iter_mut()
            .find(|(hooks, _)| **hooks == interface.hooks)
        {
            Some((_, names)) => names.push(name),
            None => groups.push((&interface.hooks, vec![name])),
        }
    }
    let groups = groups.iter().map(|(hooks, names)| {
        let names = match names.len() {
            ..=MOST_NAMES => names.join(", "),
            many => format!("{many} interfaces"),
        };
        format!("{names} ({hooks})")
    });
    match groups.collect::<Vec<_>>().as_slice() {
        [] => "no interface yet".into(),
        groups => groups.join(", "),
    }
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
        Event::Flushed { next } => {
            console.note(&event.to_string());
            let next = next.as_ref().map(|next| next.display().to_string());
            console.event("flushed", VERSION, json!({ "next_file": next }));
        }
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
        Event::Disrupted => {
            console.warning(&event.to_string());
            console.event("disruption", VERSION, json!({}));
        }
        // The summary says why.
        Event::Stopped(_) => {}
    }
}

/// One of several files is complete.
fn file_closed(console: &mut Console, file: &ClosedFile) {
    let path = file.path.display();
    let (frames, bytes) = (counted(file.frames, "frame"), size(file.bytes));
    if !console.is_quiet() {
        console.say(&format!("{path}: {frames}, {bytes}"));
    }
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

/// `is_view`: the frames were only looked at.
pub(super) fn summary(console: &mut Console, summary: &Summary, is_view: bool) {
    if console.is_json() {
        let progress_left_out = console.progress_left_out();
        let end = End {
            summary,
            progress_left_out,
        };
        console.event("summary", VERSION, end);
        return;
    }
    if console.is_for_errors() {
        if summary.outcomes.lost() > 0 || !summary.adds_up {
            console.error(&format!("frames were lost: {}", account::one_line(summary)));
        }
        return;
    }
    let text = match (console.is_quiet(), console.is_verbose()) {
        (true, _) => account::one_line(summary),
        (_, true) => account::whole(summary, is_view),
        _ => short::short(summary, is_view),
    };
    console.say_with(&text, &fields::of(summary));
}

/// The parts of the live line, the most important ones first.
fn live_parts(progress: &Progress) -> Vec<String> {
    let seconds = progress.seconds as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut parts = vec![
        format!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
        counted(progress.written, "frame"),
        counted(progress.drops, "drop"),
    ];
    parts.extend(progress.tap.then(|| "stack sees nothing".into()));
    parts.extend([
        format!("{}/s", grouped(progress.rate as u64)),
        format!("ring {:.0} %", progress.ring_fill * 100.0),
        size(progress.bytes),
        format!("clock ±{} ns", progress.host_bound_ns),
    ]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_capture::Account;

    fn interface(name: &str, received: &str) -> ReadyInterface {
        ReadyInterface {
            name: name.into(),
            namespace: None,
            ifindex: 7,
            hooks: Hooks {
                received: Some(received.into()),
                sent: None,
            },
        }
    }

    #[test]
    fn the_live_line_says_that_the_stack_sees_nothing() {
        let mut now = Progress {
            seconds: 61.0,
            seen: 5,
            written: 5,
            bytes: 1000,
            drops: 0,
            rate: 2.0,
            ring_fill: 0.0,
            host_bound_ns: 7,
            tap: false,
            account: Account::default(),
        };
        let nothing = "stack sees nothing".to_owned();
        assert!(!live_parts(&now).contains(&nothing));
        now.tap = true;
        let parts = live_parts(&now);
        assert_eq!(parts[..4], ["00:01:01", "5 frames", "0 drops", &nothing]);
    }

    #[test]
    fn interfaces_are_told_by_their_hooks() {
        assert_eq!(by_hooks(&[]), "no interface yet");
        let mut interfaces = vec![interface("lo", "tcx"), interface("a", "xdp")];
        interfaces[1].namespace = Some("container web".into());
        interfaces.push(interface("wg0", "tcx"));
        let expected = "lo, wg0 (in: tcx), a in container web (in: xdp)";
        assert_eq!(by_hooks(&interfaces), expected);
        interfaces.extend((0..4).map(|_| interface("veth", "xdp")));
        assert!(
            by_hooks(&interfaces).ends_with("a in container web, veth, veth, veth, veth (in: xdp)")
        );
        interfaces.push(interface("veth", "xdp"));
        assert_eq!(
            by_hooks(&interfaces),
            "lo, wg0 (in: tcx), 6 interfaces (in: xdp)"
        );
    }
}
