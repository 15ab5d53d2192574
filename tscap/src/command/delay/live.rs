//! A measurement that works now.

use super::{method, packets, table};
use crate::command::console::Console;
use crate::command::live::{self, give_up_privileges, judge, print_event, say_ready, watch};
use crate::command::measuring::Start;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::{Event, interface};
use tscap_cli::{DelayPlan, LoadChoice, ParallelChoice};
use tscap_delay::live::{LivePlan, LiveSecond, Running};
use tscap_delay::schema::{Correction, Match, Measurement, Method, VERSION};
use tscap_delay::stress::{PaperLoad, ParallelTraffic};
use tscap_host::affinity;
use tscap_results::envelope::Kind;
use tscap_session::EndReason;

/// `None` if a signal ended it before anything was measured.
pub(super) async fn session(
    plan: &DelayPlan,
    live: &LivePlan,
    correction: Option<Correction>,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.output.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let mut on_event = |event| print_event(&mut console, event);
    let work = async |reference, on_event: &mut dyn FnMut(Event)| {
        let live = LivePlan {
            reference,
            ..live.clone()
        };
        live.start(on_event).await
    };
    let (mut running, mut following) = tokio::select! {
        started = live::start(&plan.references, work, &mut on_event) => started?,
        () = signals.next() => return Ok(None),
    };
    say_ready(&running, &mut console);
    let files = KernelFiles::live();
    let start = Start::now(&files);
    let load = plan.load.as_ref().map(begin_load).transpose()?;
    let parallel = plan.parallel.as_ref();
    let parallel = parallel.map(|choice| begin_parallel(live, choice));
    let parallel = parallel.transpose()?;
    let makes_files = plan.pcapng.is_some() || plan.output.report.is_some();
    give_up_privileges(&mut running, makes_files, &mut signals, &mut console)?;
    let mut line = 0;
    let tell = |console: &mut Console, running: &Running, latest: LiveSecond, since| {
        let second = table::Second::of(running.ways(), latest, since);
        table::tell(console, &second, line);
        line += 1;
    };
    let duration = plan.duration;
    let heard = (&mut signals, &mut following);
    let over = watch(duration, &mut running, heard, &mut console, tell).await;
    let load = load.map(PaperLoad::end);
    let parallel = parallel.map(ParallelTraffic::end);
    let finish = async |_: &mut dyn FnMut(Event)| running.finish(signals.next()).await;
    let mut on_event = |event| print_event(&mut console, event);
    let found = following.beside(finish, &mut on_event).await?;

    let mut warnings = found.warnings.clone();
    let mut exit = judge(over, found.adds_up, &mut warnings);
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
    about.reference = found.reference;
    if live.namespace.is_some() {
        // Another interface may have this name here.
        about.machine.driver.clear();
    }
    let mut measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, over == Some(EndReason::InterfaceGone)),
        method,
        passages: found.passages,
        sessions: Vec::new(),
        alignment: None,
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
