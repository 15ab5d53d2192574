//! A session-reflector that works now.

use std::time::Instant;

use serde::Serialize;

use super::key_file;
use crate::command::console::Console;
use crate::command::live::{self, print_event};
use crate::command::signals::Signals;
use crate::command::stamp::{InStep, watch};
use crate::command::{Context as _, Exit, Failure};
use tscap_base::text::numbers::{counted, grouped, span};
use tscap_capture::{Event, Stop};
use tscap_cli::{ReflectorPlan, Verbosity};
use tscap_sources::stamping::{SendTimes, Stamping, Summary};
use tscap_two_hosts::reflector::{Outcome, Policy, Rate};
use tscap_two_hosts::{ServePlan, Served, Serving};

/// Version of the JSON objects.
const VERSION: u32 = 1;
/// Replies to all sources together, for one to each.
const SOURCES: u64 = 10;

#[derive(Serialize)]
struct Ready<'a> {
    interface: &'a str,
    port: u16,
    clock: &'static str,
    function: &'static str,
    error_estimate_ns: u64,
    synchronised: bool,
}

#[derive(Serialize)]
struct End<'a> {
    interface: &'a str,
    stop: Stop,
    seconds: f64,
    #[serde(flatten)]
    served: Served,
    stamps: Summary,
}

/// Answers until it is told to stop, the time is over, or the programs are gone.
pub(in crate::command) fn run(plan: &ReflectorPlan) -> Result<Exit, Failure> {
    let serve = serve_plan(plan)?;
    crate::command::runtime()?.block_on(session(plan, &serve))
}

fn serve_plan(plan: &ReflectorPlan) -> Result<ServePlan, Failure> {
    let key = plan.key_file.as_deref().map(key_file::read).transpose()?;
    let rate = |per_second: u64| Rate {
        per_second,
        // A tenth of a second of them may come at once.
        burst: (per_second / 10).max(10),
    };
    Ok(ServePlan {
        stamping: Stamping {
            interface: plan.interface.clone(),
            namespace: plan.namespace.clone(),
            clock: plan.clock,
            tsc_path: None,
            reference: None,
            send_times: SendTimes::default(),
        },
        address: plan.address,
        policy: Policy {
            port: plan.port,
            allowed: plan.allowed.clone(),
            ssids: plan.ssids.clone(),
            key,
            is_stateless: plan.is_stateless,
            per_source: rate(plan.max_rate),
            whole: rate(plan.max_rate.saturating_mul(SOURCES)),
            most_sessions: plan.max_sessions,
            takes_twamp_light: plan.takes_twamp_light,
        },
    })
}

async fn session(plan: &ReflectorPlan, serve: &ServePlan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.json, true, Verbosity::Normal);
    let console = &mut console.context("cannot start a thread")?;
    let mut on_event = |event| print_event(console, event);
    let work = async |reference, on_event: &mut dyn FnMut(Event)| {
        let mut serve = serve.clone();
        serve.stamping.reference = reference;
        serve.start(on_event).await
    };
    let (mut serving, mut following) = tokio::select! {
        started = live::start(&plan.references, work, &mut on_event) => started?,
        () = signals.next() => return Ok(Exit::Success),
    };
    signals.give_up_capabilities();
    console.give_up_capabilities();
    serving.give_up_privileges(&mut |event| print_event(console, event))?;
    say_ready(plan, &serving, console);
    let begun = Instant::now();
    let heard = (&mut signals, &mut following);
    let stop = watch(plan.duration, begun, &mut serving, heard, console).await;
    let (served, stamps) = serving.finish()?;
    let (stop, adds_up) = (stop?, stamps.adds_up);
    let reference = stamps.reference.clone();
    let end = End {
        interface: &plan.interface,
        stop,
        seconds: begun.elapsed().as_secs_f64(),
        served,
        stamps,
    };
    console.event("summary", VERSION, end);
    if !console.is_json() {
        console.say(&text(stop, &served));
        let lines = reference.iter().flat_map(|it| it.lines("times by"));
        lines.for_each(|it| console.say(&it));
    }
    if !adds_up {
        console.error("the counters of the programs do not add up: please report this");
        return Ok(Exit::DoesNotAddUp);
    }
    if stop.is_wanted() {
        Ok(Exit::Success)
    } else {
        Ok(Exit::Fault)
    }
}

impl InStep for Serving {
    fn look_at_clocks(&mut self, console: &mut Console) {
        self.look_at_clocks(&mut |event| print_event(console, event));
    }

    fn recheck_counter(&mut self, console: &mut Console) {
        self.recheck_counter(&mut |event| print_event(console, event));
    }

    fn supervise(&mut self, console: &mut Console) -> Result<bool, Failure> {
        let served = self.supervise(&mut |event| print_event(console, event))?;
        if let Some(served) = served {
            console.progress(VERSION, served, || parts(&served));
        }
        Ok(served.is_some())
    }
}

fn say_ready(plan: &ReflectorPlan, serving: &Serving, console: &mut Console) {
    let running = serving.stamping();
    let (path, error) = (running.path(), running.error_estimate());
    let ready = Ready {
        interface: &plan.interface,
        port: plan.port,
        clock: path.source().name(),
        function: path.function(),
        error_estimate_ns: error.bound_ns(),
        synchronised: error.synchronised,
    };
    let says = format!(
        "ready: answers at UDP port {} of {} (native XDP, tcx), clock {} by {}, {}",
        plan.port,
        plan.interface,
        ready.clock,
        ready.function,
        error_words(error.bound_ns(), error.synchronised)
    );
    console.event("ready", VERSION, ready);
    console.say(&says);
}

/// What the clock of replies says of itself.
fn error_words(bound_ns: u64, synchronised: bool) -> String {
    let against = if synchronised {
        "UTC"
    } else {
        "this host's clock, which follows nothing"
    };
    format!("within {} of {against}", span(bound_ns))
}

/// The live line, the first parts the most important.
fn parts(served: &Served) -> Vec<String> {
    let answered = grouped(served.requests.of(Outcome::Answered));
    let mut parts = vec![
        format!("{answered} answered"),
        counted(served.sessions, "session"),
    ];
    let others = served.requests.counted();
    let others = others.filter(|it| it.0 != Outcome::Answered);
    parts.extend(others.map(|(outcome, count)| format!("{} {}", grouped(count), outcome.name())));
    if served.overflowed > 0 {
        parts.push(format!("{} overflowed", grouped(served.overflowed)));
    }
    parts
}

fn text(stop: Stop, served: &Served) -> String {
    let requests = &served.requests;
    let mut lines = vec![
        stop.reason().to_owned(),
        format!(
            "{} came, {} answered",
            counted(requests.total(), "request"),
            grouped(requests.of(Outcome::Answered))
        ),
    ];
    let others = requests.counted();
    let others = others.filter(|it| it.0 != Outcome::Answered);
    lines.extend(others.map(|(outcome, count)| {
        let meaning = outcome.meaning().trim_end_matches('.');
        format!("  {} {}: {meaning}", grouped(count), outcome.name())
    }));
    if served.overflowed > 0 {
        lines.push(format!(
            "{} had no room in the socket: they came faster than they were answered",
            counted(served.overflowed, "request")
        ));
    }
    lines.push(format!(
        "times of replies: {}",
        error_words(served.error_estimate_ns, served.synchronised)
    ));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_was_not_answered() {
        let mut requests = tscap_two_hosts::reflector::Outcomes::default();
        for (outcome, count) in [
            (Outcome::Answered, 12_000),
            (Outcome::NotAllowed, 3),
            (Outcome::Replayed, 1),
        ] {
            requests.add(outcome, count);
        }
        let served = Served {
            requests,
            overflowed: 2,
            sessions: 4,
            error_estimate_ns: 1_006,
            synchronised: false,
        };
        let text = text(Stop::Signal, &served);
        for part in [
            "12,004 requests",
            "12,000 answered",
            "3 not_allowed: ",
            "1 replayed: ",
        ] {
            assert!(text.contains(part), "{part:?} in:\n{text}");
        }
        assert!(!text.contains("too_many"), "{text}");
        let parts = parts(&served);
        assert_eq!(parts[0], "12,000 answered");
        assert_eq!(parts.len(), 5, "{parts:?}");
    }
}
