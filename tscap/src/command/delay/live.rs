//! A measurement that works now.

use std::time::{Duration, Instant};

use super::{method, packets, table};
use crate::command::console::Console;
use crate::command::measuring::Start;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::{Event, Severity, interface};
use tscap_cli::{DelayPlan, LoadChoice, ParallelChoice};
use tscap_delay::live::{LivePlan, Over, Running};
use tscap_delay::schema::{Correction, Match, Measurement, Method, VERSION};
use tscap_delay::stress::{PaperLoad, ParallelTraffic};
use tscap_host::affinity;
use tscap_results::envelope::Kind;

/// Interfaces and programs are looked after so often.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A line of the table, or an object.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// `None` if a signal ended it before anything was measured.
pub(super) async fn session(
    plan: &DelayPlan,
    live: &LivePlan,
    correction: Option<Correction>,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let mut heard = |event| hear(&mut console, event);
    let mut running = tokio::select! {
        running = live.start(&mut heard) => running?,
        () = signals.next() => return Ok(None),
    };
    for warning in running.warnings() {
        console.warning(warning);
    }
    console.say(&format!("ready: {}", running.ready()));
    let files = KernelFiles::live();
    let start = Start::now(&files);
    let load = plan.load.as_ref().map(begin_load).transpose()?;
    let parallel = plan.parallel.as_ref();
    let parallel = parallel.map(|choice| begin_parallel(live, choice));
    let parallel = parallel.transpose()?;
    console.give_up_capabilities();
    signals.give_up_capabilities();
    let makes_files = plan.pcapng.is_some() || plan.report.is_some();
    running.give_up_privileges(makes_files, &mut |event| hear(&mut console, event))?;
    let (running, over) = watch(plan, running, &mut signals, &mut console).await;
    let load = load.map(PaperLoad::end);
    let parallel = parallel.map(ParallelTraffic::end);
    let found = running.finish(signals.next()).await?;

    let mut warnings = found.warnings.clone();
    let mut exit = match over {
        Some(Over::InterfaceGone) => {
            warnings.push("an interface is gone, or a program from it".into());
            Exit::Fault
        }
        Some(Over::Corrupt) => Exit::Fault,
        Some(Over::Count) | None => Exit::Success,
    };
    if !found.adds_up {
        warnings.push("the account of the programs does not add up: please report this".into());
        exit = Exit::DoesNotAddUp;
    }
    // What was measured is worth printing all the same.
    if let Some(path) = &plan.pcapng
        && let Err(failure) = packets::write(path, &found.slowest)
    {
        console.error(&failure.to_string());
        exit = Exit::Fault;
    }
    let method = Method {
        load,
        parallel,
        correction,
        ..method(
            plan,
            live,
            found.matched_by,
            &found.clock,
            found.memory_bytes,
        )
    };
    let interface = found.passages.first().map_or("-", |it| &it.entry.interface);
    let mut about = start.circumstances(&files, 0, interface);
    if live.namespace.is_some() {
        // Another interface may have this name here.
        about.machine.driver.clear();
    }
    let mut measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, over == Some(Over::InterfaceGone)),
        method,
        passages: found.passages,
        warnings,
    };
    measurement.warnings.extend(advice(&measurement));
    Ok(Some((measurement, exit)))
}

/// What to do where packets were seen at both ends, and none was matched.
fn advice(measurement: &Measurement) -> Option<String> {
    let exits = measurement
        .passages
        .iter()
        .filter_map(|it| it.exits.first());
    let accounts: Vec<_> = exits.map(|exit| exit.account).collect();
    let is_seen = accounts.iter().any(|it| it.entered > 0 && it.left > 0);
    let is_matched = accounts.iter().any(|it| it.matched > 0);
    let advice = match measurement.method.matched_by {
        Match::Nat => "--window may be too short, or payloads are changed on the way",
        Match::Gen | Match::Reply => "--window may be too short",
        Match::Bridge => "--match route is for what routes, nat for what translates addresses",
        Match::Route => "--match nat is for what translates addresses",
    };
    let says = format!("packets were seen at both ends, and none was matched: {advice}");
    (is_seen && !is_matched).then_some(says)
}

/// Tells what a user should know.
pub(in crate::command) fn hear(console: &mut Console, event: Event) {
    match event {
        Event::Notice(Severity::Detail, text) => console.detail(&text),
        Event::Notice(Severity::Note, text) => console.note(&text),
        Event::Notice(Severity::Warning, text) => console.warning(&text),
        Event::Notice(Severity::Error, text) => console.error(&text),
        _ => {}
    }
}

fn begin_load(choice: &LoadChoice) -> Result<PaperLoad, Failure> {
    let cpus = match &choice.cpus {
        Some(cpus) => cpus.clone(),
        None => affinity::allowed_cpus().context("cannot read this process's CPU affinity")?,
    };
    PaperLoad::start(&cpus).context("cannot load the CPUs")
}

/// In the namespace of the measurement, and only where no real network is behind.
fn begin_parallel(live: &LivePlan, choice: &ParallelChoice) -> Result<ParallelTraffic, Failure> {
    live.visit(|| {
        let name = &choice.interface;
        let link = interface::find(name, "send on")?;
        if !matches!(link.kind.as_deref(), Some("veth" | "tun")) {
            return Err(Failure::new(format!(
                "cannot send on {name}: it is neither a veth nor a tap interface, so that the \
                 frames might reach a real network"
            ))
            .hint("tscap gen --yes-send-here sends there, beside the measurement"));
        }
        let what = format!("cannot send on {name}");
        ParallelTraffic::start(choice.bits, name).context(what)
    })?
}

/// Tells the figures of each second until there is a reason to end.
async fn watch(
    plan: &DelayPlan,
    mut running: Running,
    signals: &mut Signals,
    console: &mut Console,
) -> (Running, Option<Over>) {
    let started = Instant::now();
    let mut told = started;
    let mut line = 0;
    loop {
        let left = plan
            .duration
            .map(|most| most.saturating_sub(started.elapsed()));
        let pause = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = signals.next() => return (running, None),
        }
        let over = running.look_after(&mut |event| hear(console, event));
        if over.is_some() || left.is_some_and(|left| left <= pause) {
            return (running, over);
        }
        if told.elapsed() >= TELL_EVERY {
            told += TELL_EVERY;
            let now = table::Second::of(&running, started.elapsed());
            table::tell(console, &now, line);
            line += 1;
        }
    }
}
