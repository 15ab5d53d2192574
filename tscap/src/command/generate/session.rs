//! Sends step by step, and heeds signals meanwhile.

use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::prepare::{self, Machine};
use super::report::{self, Progress, Ready, StepReport, Summary};
use crate::command::console::Console;
use crate::command::following::Following;
use crate::command::live::print_event;
use crate::command::signals::Signals;
use crate::command::{Context, Exit, Failure, Hint as _};
use tscap_cli::GenPlan;
use tscap_clock::MonoNs;
use tscap_host::caps::{self, Capability};
use tscap_host::{affinity, wake};
use tscap_traffic::generator::{Control, Orders, Pacing, SendError, Sender, Sent, Step, Template};

/// A sender that is to stop is woken so often until it has.
const WAKE_EACH: Duration = Duration::from_millis(5);
/// How often it is looked whether the interface is still there.
const LOOK_FOR_FAILURE_EACH: Duration = Duration::from_millis(100);
/// A paced step that falls behind is ended so long after its time.
const GRACE: Duration = Duration::from_millis(100);
/// How often it is looked whether a sender has begun.
const LOOK_EACH: Duration = Duration::from_millis(1);

pub(super) async fn run(plan: &GenPlan) -> Result<Exit, Failure> {
    let console = Console::new(plan.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let machine = prepare::check(plan, &mut console)?;
    let Machine {
        link,
        cpu,
        mut sender,
        tsc,
        steps,
    } = machine;
    // Until here nothing lasts longer than the process.
    let mut signals = Signals::new()?;
    let mut following = {
        let mut on_event = |event| print_event(&mut console, event);
        tokio::select! {
            started = Following::start(&plan.references, &mut on_event) => started?,
            () = signals.next() => return Ok(Exit::Success),
        }
    };
    report::ready(
        &mut console,
        &Ready {
            interface: &link.name,
            ifindex: link.index,
            sender: sender.name(),
            cpu,
            steps: steps.len(),
            tsc_path: tsc.map(|it| it.path),
            ordered: tsc.map(|it| it.ordered),
            tsc_bound_ns: tsc.map(|it| it.bound_ns),
            reference: following.beside_host(),
        },
    );
    console.give_up_capabilities();
    signals.give_up_capabilities();
    keep_what_works(&sender, &following)?;
    let mut summary = Summary {
        stopped_by: "done",
        ..Summary::default()
    };
    let mut failed = None;
    // Any number will do that another run at the same time hardly has.
    let first_run = MonoNs::now().0 as u16;
    let all = steps.len();
    for (index, (step, template)) in steps.into_iter().enumerate() {
        let run = first_run.wrapping_add(index as u16);
        let job = Job {
            step,
            template,
            run,
            flows: plan.flows,
            in_bulks: plan.in_bulks,
            frames: step.frames(plan.count, plan.duration.map(whole_ns)),
            cpu,
        };
        let watch = Watch {
            place: (index + 1, all),
            limit: plan.duration.map(|it| limit(step.pacing, it)),
            console: &mut console,
            signals: &mut signals,
            following: &mut following,
        };
        let ended = watch.send(sender, job).await?;
        let reported = StepReport::new(run, step, &ended.sent);
        report::step(&mut console, &reported);
        summary.steps += 1;
        summary.sent += reported.sent;
        summary.refused += reported.refused;
        summary.late += reported.late;
        sender = ended.sender;
        if let Err(error) = ended.result {
            summary.stopped_by = "error";
            failed = Some(error);
            break;
        }
        if ended.interrupted {
            summary.stopped_by = "signal";
            break;
        }
    }
    summary.reference = following.beside_host();
    report::summary(&mut console, &summary);
    match failed {
        None => Ok(Exit::Success),
        Some(error) => Err(error)
            .context("cannot send everything")
            .hint(format!("look at it: ip -s link show {}", link.name)),
    }
}

/// Gives up the capabilities that neither this sender nor the references need.
fn keep_what_works(sender: &Sender, following: &Following) -> Result<(), Failure> {
    // Before Linux 5.19 each run of a program takes CAP_BPF where unprivileged BPF is disabled
    // (commit c8644cd0efe7).
    let kept: &[_] = match sender {
        Sender::Native(_) => &[Capability::Bpf],
        // The programs that stamp exchanges have counters that are looked at.
        Sender::Packet(_) if following.followed().is_some() => &[Capability::Bpf],
        Sender::Packet(_) => &[],
    };
    caps::keep_only(kept).context("cannot give up capabilities")
}

fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long a step that was to last `duration` may take.
fn limit(pacing: Pacing, duration: Duration) -> Duration {
    match pacing {
        Pacing::FlatOut => duration,
        // Frames that were pushed back may still come.
        Pacing::Paced(_) => duration + GRACE,
    }
}

/// A step for the sending thread.
struct Job {
    step: Step,
    template: Template,
    run: u16,
    flows: u32,
    in_bulks: bool,
    frames: Option<u64>,
    cpu: u32,
}

/// A step that is over.
struct Ended {
    sender: Sender,
    sent: Sent,
    result: Result<(), SendError>,
    interrupted: bool,
}

/// Looks after a step.
struct Watch<'a> {
    /// Which step of how many.
    place: (usize, usize),
    /// How long it may send.
    limit: Option<Duration>,
    console: &'a mut Console,
    signals: &'a mut Signals,
    following: &'a mut Following,
}

type Outcome = (Sender, Sent, Result<(), SendError>);

impl Watch<'_> {
    async fn send(self, sender: Sender, job: Job) -> Result<Ended, Failure> {
        let control = sender.control();
        control.release().context("cannot start the sender")?;
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("tscap-sender".into());
        let thread = thread.spawn(move || {
            let outcome = send(sender, &job);
            // Nobody waits any more if this fails.
            let _ = end.send(());
            outcome
        });
        let thread = thread.context("cannot start the sender's thread")?;
        let watched = self.watch(&control, &thread, ended).await;
        let (sender, sent, result) = thread
            .join()
            .map_err(|_| Failure::new("the sender's thread panicked: please report this"))?
            .context("cannot start the sender")?;
        Ok(Ended {
            sender,
            sent,
            result,
            interrupted: watched?,
        })
    }

    /// Says whether a signal ended it. When this returns the thread is done, or
    /// about to be.
    async fn watch(
        self,
        control: &Control,
        thread: &JoinHandle<std::io::Result<Outcome>>,
        mut ended: oneshot::Receiver<()>,
    ) -> Result<bool, Failure> {
        let start = Instant::now();
        let mut ticks = interval(Duration::from_secs(1));
        ticks.tick().await;
        let mut looks = interval(LOOK_FOR_FAILURE_EACH);
        let mut before = 0;
        let limit = time_is_up(control, self.limit);
        tokio::pin!(limit);
        let interrupted = loop {
            tokio::select! {
                _ = &mut ended => return Ok(false),
                () = self.signals.next() => break true,
                () = &mut limit => break false,
                () = self.following.due() => {
                    self.following.turn(&mut |event| print_event(self.console, event));
                }
                _ = looks.tick() => if control.has_failed() { break false },
                _ = ticks.tick() => {
                    let sent = control.sent();
                    let progress = Progress {
                        step: self.place.0,
                        steps: self.place.1,
                        seconds: start.elapsed().as_secs_f64(),
                        sent,
                        rate: sent.saturating_sub(before) as f64,
                    };
                    before = sent;
                    report::progress(self.console, &progress);
                }
            }
        };
        control.stop().context("cannot stop the sender")?;
        // It may be about to begin a system call, so that once is not enough.
        let mut wakes = interval(WAKE_EACH);
        loop {
            tokio::select! {
                _ = &mut ended => return Ok(interrupted),
                _ = wakes.tick() => wake::wake(thread).context("cannot wake the sender")?,
            }
        }
    }
}

/// Waits until the sender has been at it for `limit`; without end if there is none.
async fn time_is_up(control: &Control, limit: Option<Duration>) {
    let Some(limit) = limit else {
        return std::future::pending().await;
    };
    let patience = Instant::now() + Duration::from_secs(1);
    while !control.has_begun() && Instant::now() < patience {
        sleep(LOOK_EACH).await;
    }
    sleep_until(Instant::now() + limit).await;
}

fn send(mut sender: Sender, job: &Job) -> std::io::Result<Outcome> {
    affinity::pin_to(job.cpu)?;
    let (sent, result) = sender.send(&Orders {
        in_bulks: job.in_bulks,
        template: &job.template,
        pacing: job.step.pacing,
        flows: job.flows,
        run: job.run,
        frames: job.frames,
    });
    Ok((sender, sent, result))
}
