//! Answers, and heeds signals meanwhile.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep_until};

use super::report::VERSION;
use crate::command::console::Console;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure, Hint as _, choose_cpu};
use tscap_base::text::numbers::{counted, grouped};
use tscap_cli::EchoPlan;
use tscap_host::{affinity, caps};
use tscap_traffic::generator::{Echo, EchoControl, Echoed};

/// The responder as it begins.
#[derive(Serialize)]
struct Ready {
    /// Address and port that it answers on.
    address: String,
    /// CPU that it answers from; null for any.
    cpu: Option<u32>,
}

/// How far it is, or its end: `received` = `sent` + `unsent`.
#[derive(Serialize)]
struct Counts {
    received: u64,
    sent: u64,
    /// Packets that could not be sent back.
    unsent: u64,
    failed: u64,
    /// Packets that the socket had no room for; null if the kernel does not say.
    overflowed: Option<u64>,
    /// "done", "signal" or "error"; null while it goes on.
    stopped_by: Option<&'static str>,
}

impl Counts {
    fn new(of: Echoed, overflowed: Option<u64>, stopped_by: Option<&'static str>) -> Self {
        Self {
            received: of.received,
            sent: of.sent,
            unsent: of.unsent,
            failed: of.failed,
            overflowed,
            stopped_by,
        }
    }
}

/// Answers until it is done.
pub(super) async fn run(plan: &EchoPlan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let cpu = plan.cpu.map(|cpu| choose_cpu(Some(cpu), "answer from"));
    let cpu = cpu.transpose()?;
    let what = format!("cannot answer on UDP {}", plan.address);
    let echo = Echo::bind(plan.address)
        .context(&what)
        .hint("give --port one that no other program has; ports below 1024 are for root")?;
    let address = echo.address().context(&what)?.to_string();
    console.say(&format!("ready: answering on UDP {address}"));
    console.event("ready", VERSION, &Ready { address, cpu });
    console.give_up_capabilities();
    signals.give_up_capabilities();
    // Nor has the thread that answers any.
    caps::keep_only(&[]).context("cannot give up capabilities")?;

    let echo = Arc::new(echo);
    let control = echo.control();
    let (end, ended) = oneshot::channel();
    let (answering, count) = (Arc::clone(&echo), plan.count);
    let thread = std::thread::Builder::new().name("tscap-echo".into());
    let thread = thread.spawn(move || {
        let pinned = cpu.map_or(Ok(()), affinity::pin_to);
        let result = pinned.and_then(|()| answering.run(count));
        // Nobody waits any more if this fails.
        let _ = end.send(());
        result
    });
    let thread = thread.context("cannot start the thread that answers")?;
    let interrupted = watch(plan.duration, &control, ended, &mut console, &mut signals).await;
    control.stop();
    let result = thread
        .join()
        .map_err(|_| Failure::new("the thread that answers panicked: please report this"))?;
    let stopped_by = match (&result, interrupted) {
        (Err(_), _) => "error",
        (Ok(()), true) => "signal",
        (Ok(()), false) => "done",
    };
    let counts = Counts::new(control.so_far(), echo.overflowed(), Some(stopped_by));
    tell(&mut console, &counts);
    result.context(what).map(|()| Exit::Success)
}

/// Waits for the end; says whether it was a signal.
async fn watch(
    duration: Option<Duration>,
    control: &EchoControl,
    mut ended: oneshot::Receiver<()>,
    console: &mut Console,
    signals: &mut Signals,
) -> bool {
    let start = Instant::now();
    let mut ticks = interval(Duration::from_secs(1));
    ticks.tick().await;
    loop {
        let is_over = async {
            match duration {
                Some(duration) => sleep_until(start + duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = &mut ended => return false,
            () = signals.next() => return true,
            () = is_over => return false,
            _ = ticks.tick() => {
                let counts = Counts::new(control.so_far(), None, None);
                console.progress(VERSION, &counts, || vec![
                    format!("{:.0} s", start.elapsed().as_secs_f64()),
                    format!("{} received", counted(counts.received, "packet")),
                    format!("{} sent back", grouped(counts.sent)),
                ]);
            }
        }
    }
}

fn tell(console: &mut Console, counts: &Counts) {
    for (count, what) in [
        (counts.unsent, "packet could not be sent back"),
        (counts.failed, "reception failed"),
        (
            counts.overflowed.unwrap_or(0),
            "packet found no room in the socket",
        ),
    ] {
        if count > 0 {
            let (noun, rest) = what.split_once(' ').unwrap_or((what, ""));
            console.warning(&format!("{} {rest}", counted(count, noun)));
        }
    }
    console.event("summary", VERSION, counts);
    if !console.is_json() {
        console.say(&format!(
            "{} received, {} sent back",
            counted(counts.received, "packet"),
            grouped(counts.sent)
        ));
    }
}
