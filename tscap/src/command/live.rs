//! A live measurement, from the first line of its console to the last record.

use std::time::{Duration, Instant};

use super::Exit;
use super::Failure;
use super::console::Console;
use super::following::Following;
use super::signals::Signals;
use tscap_capture::{Event, Severity};
use tscap_references::Followed;
use tscap_session::{EndReason, Live};
use tscap_sources::reference::ReferencePlan;

/// Interfaces and programs are looked after so often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Tells what a user should know.
pub(super) fn print_event(console: &mut Console, event: Event) {
    match event {
        Event::Notice(Severity::Detail, text) => console.detail(&text),
        Event::Notice(Severity::Note, text) => console.note(&text),
        Event::Notice(Severity::Warning, text) => console.warning(&text),
        Event::Notice(Severity::Error, text) => console.error(&text),
        other => console.warning(&other.to_string()),
    }
}

/// Says that a measurement has begun, and what a reader must know before its figures.
pub(super) fn say_ready(running: &impl Live, console: &mut Console) {
    for warning in running.warnings() {
        console.warning(&warning);
    }
    console.say(&format!("ready: {}", running.ready()));
}

/// Has every thread give up what it does not need any more.
pub(super) fn give_up_privileges(
    running: &mut impl Live,
    makes_files: bool,
    signals: &mut Signals,
    console: &mut Console,
) -> Result<(), Failure> {
    console.give_up_capabilities();
    signals.give_up_capabilities();
    running.give_up_privileges(makes_files, &mut |event| print_event(console, event))
}

/// Starts a measurement, once the references are known if its times are to be of some; follows
/// them meanwhile.
pub(super) async fn start<R>(
    references: &[ReferencePlan],
    work: impl AsyncFnOnce(Option<Followed>, &mut dyn FnMut(Event)) -> Result<R, Failure>,
    on_event: &mut dyn FnMut(Event),
) -> Result<(R, Following), Failure> {
    let mut following = Following::start(references, on_event).await?;
    let followed = following.followed();
    let running = following
        .beside(async |on_event| work(followed, on_event).await, on_event)
        .await?;
    following.others_began();
    Ok((running, following))
}

/// Tells the figures of each second, and since when, until there is a reason to end.
pub(super) async fn watch<L: Live>(
    duration: Option<Duration>,
    running: &mut L,
    (signals, following): (&mut Signals, &mut Following),
    console: &mut Console,
    mut tell: impl FnMut(&mut Console, &L, L::Latest, Duration),
) -> Option<EndReason> {
    let started = Instant::now();
    loop {
        let left = duration.map(|most| most.saturating_sub(started.elapsed()));
        let pause = left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY));
        let mut pause_over = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut pause_over => break,
                () = signals.next() => return None,
                () = following.due() => following.turn(&mut |event| print_event(console, event)),
            }
        }
        let over = running.supervise(&mut |event| print_event(console, event));
        if over.is_some() || left.is_some_and(|left| left <= pause) {
            return over;
        }
        if let Some(latest) = running.take_latest() {
            tell(console, running, latest, started.elapsed());
        }
    }
}

/// The exit code of a measurement that is `over` by itself, and whose account `adds_up`; what a
/// reader must know of that goes to the `warnings`.
pub(super) fn judge(over: Option<EndReason>, adds_up: bool, warnings: &mut Vec<String>) -> Exit {
    if over == Some(EndReason::InterfaceGone) {
        warnings.push("an interface is gone, or a program from it".into());
    }
    if !adds_up {
        warnings.push("the account of the programs does not add up: please report this".into());
        return Exit::DoesNotAddUp;
    }
    match over {
        Some(EndReason::InterfaceGone | EndReason::Corrupt) => Exit::Fault,
        Some(EndReason::Count) | None => Exit::Success,
    }
}
