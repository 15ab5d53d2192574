//! `tscap stamp`.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::sleep;
use tscap_common::send_times::SendCount;
use tscap_common::stamping::Count;

use super::console::Console;
use super::following::Following;
use super::live::{self, print_event};
use super::signals::Signals;
use super::{Context as _, Exit, Failure};
use tscap_base::text::numbers::{counted, grouped};
use tscap_capture::{Event, Stop};
use tscap_cli::{StampPlan, Verbosity};
use tscap_clock::read_order;
use tscap_sources::stamping::{Account, Progress, Running, SendSummary, Stamping, Summary};

/// Version of the JSON objects.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Ready<'a> {
    interface: &'a str,
    clock: &'static str,
    function: &'static str,
    is_ordered: bool,
    host_bound_ns: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    send_time_ports: Vec<u16>,
}

#[derive(Serialize)]
struct End<'a> {
    interface: &'a str,
    stop: Stop,
    seconds: f64,
    #[serde(flatten)]
    summary: Summary,
}

/// Stamps until it is told to stop, the time is over, or the programs are gone.
pub(super) fn run(plan: &StampPlan) -> Result<Exit, Failure> {
    super::runtime()?.block_on(session(plan))
}

async fn session(plan: &StampPlan) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.json, true, Verbosity::Normal);
    let console = &mut console.context("cannot start a thread")?;
    let mut reported = |event| print_event(console, event);
    let work = async |reference, on_event: &mut dyn FnMut(Event)| {
        let stamping = Stamping {
            reference,
            ..plan.stamping.clone()
        };
        stamping.start(on_event).await
    };
    let (mut running, mut following) = tokio::select! {
        started = live::start(&plan.references, work, &mut reported) => started?,
        () = signals.next() => return Ok(Exit::Success),
    };
    signals.give_up_capabilities();
    console.give_up_capabilities();
    running.give_up_privileges(&mut |event| print_event(console, event))?;
    say_ready(plan, &running, console);
    let begun = Instant::now();
    let heard = (&mut signals, &mut following);
    let stop = watch(plan.duration, begun, &mut running, heard, console).await;
    let summary = running.finish()?;
    let stop = stop?;
    say_end(plan, stop, begun, &summary, console);
    if !summary.adds_up {
        console.error("the counters of the programs do not add up: please report this");
        return Ok(Exit::DoesNotAddUp);
    }
    Ok(if stop.is_wanted() {
        Exit::Success
    } else {
        Exit::Fault
    })
}

/// Programs that go by a line, which is kept in step.
pub(super) trait InStep {
    /// Reads the clocks, and has the programs go by them.
    fn look_at_clocks(&mut self, console: &mut Console);
    /// Looks at the counter of each CPU again.
    fn recheck_counter(&mut self, console: &mut Console);
    /// Tells the counters; whether the programs are where they were attached.
    fn supervise(&mut self, console: &mut Console) -> Result<bool, Failure>;
}

impl InStep for Running {
    fn look_at_clocks(&mut self, console: &mut Console) {
        self.look_at_clocks(&mut |event| print_event(console, event));
    }

    fn recheck_counter(&mut self, console: &mut Console) {
        self.recheck_counter(&mut |event| print_event(console, event));
    }

    fn supervise(&mut self, console: &mut Console) -> Result<bool, Failure> {
        let progress = self.supervise(&mut |event| print_event(console, event))?;
        console.progress(VERSION, progress, || parts(&progress));
        Ok(progress.are_there)
    }
}

/// Keeps the clock in step, and tells the counters each second, until there is a reason to end.
pub(super) async fn watch(
    duration: Option<Duration>,
    begun: Instant,
    running: &mut impl InStep,
    (signals, following): (&mut Signals, &mut Following),
    console: &mut Console,
) -> Result<Stop, Failure> {
    let end = duration.map(|time| begun + time);
    let (mut supervised, mut rechecked) = (begun, begun);
    loop {
        tokio::select! {
            () = sleep(Running::LOOK_EVERY) => {}
            () = signals.next() => return Ok(Stop::Signal),
            () = following.due() => following.turn(&mut |event| print_event(console, event)),
        }
        let now = Instant::now();
        running.look_at_clocks(console);
        if now - rechecked >= Running::RECHECK_EVERY {
            rechecked = now;
            running.recheck_counter(console);
        }
        if now - supervised >= Running::SUPERVISE_EVERY {
            supervised = now;
            if !running.supervise(console)? {
                return Ok(Stop::InterfaceGone);
            }
        }
        if end.is_some_and(|end| now >= end) {
            return Ok(Stop::Duration);
        }
    }
}

fn say_ready(plan: &StampPlan, running: &Running, console: &mut Console) {
    let (interface, path) = (plan.stamping.interface.as_str(), running.path());
    let (clock, function) = (path.source().name(), path.function());
    let (is_ordered, bound) = (path.is_ordered(), running.host_bound_ns());
    let send_time_ports: Vec<_> = plan.stamping.send_times.ports().collect();
    let ports: Vec<_> = send_time_ports.iter().map(u16::to_string).collect();
    console.event(
        "ready",
        VERSION,
        Ready {
            interface,
            clock,
            function,
            is_ordered,
            host_bound_ns: bound,
            send_time_ports,
        },
    );
    console.say(&format!(
        "ready: receive times on {interface} are tscap's (native XDP, tcx ingress), clock {clock} \
         by {function} ({}), within {bound} ns of the host's clock",
        read_order(is_ordered)
    ));
    if !ports.is_empty() {
        let error = running.error_estimate();
        console.say(&format!(
            "test packets from and to UDP port {} get send times (tcx egress), Error Estimate {}",
            ports.join(", "),
            estimate(error.bound_ns(), error.synchronised)
        ));
    }
}

/// An Error Estimate, and what it is against.
fn estimate(ns: u64, synchronised: bool) -> String {
    let against = if synchronised {
        "UTC"
    } else {
        "this host's clock, which is not synchronised"
    };
    format!("{} ns to {against}", grouped(ns))
}

/// The live line, the first parts the most important.
fn parts(progress: &Progress) -> Vec<String> {
    let account = &progress.account;
    let stamped = grouped(account.get(Count::Stamped));
    let mut parts = vec![format!("{} stamped", stamped)];
    parts.extend(
        account
            .mean_earlier_ns()
            .map(|ns| format!("{} ns earlier", grouped(ns))),
    );
    parts.extend(progress.send_times.iter().map(|sent| {
        let written = grouped(sent.account.get(SendCount::Written));
        format!("{written} send times")
    }));
    parts.extend(left_alone(account));
    parts.push(format!("bound {} ns", grouped(progress.host_bound_ns)));
    parts
}

/// Why packets keep the kernel's stamp, those reasons that there were.
fn left_alone(account: &Account) -> impl Iterator<Item = String> {
    let reasons = Count::AT_TCX.into_iter().filter(|it| *it != Count::Stamped);
    let counted = reasons.map(|reason| (account.get(reason), reason));
    let there = counted.filter(|(number, _)| *number > 0);
    there.map(|(number, reason)| format!("{} {}", grouped(number), reason.name()))
}

fn say_end(plan: &StampPlan, stop: Stop, begun: Instant, summary: &Summary, console: &mut Console) {
    let end = End {
        interface: &plan.stamping.interface,
        stop,
        seconds: begun.elapsed().as_secs_f64(),
        summary: summary.clone(),
    };
    console.event("summary", VERSION, end);
    if !console.is_json() {
        console.say(&text(stop, summary));
    }
}

fn text(stop: Stop, summary: &Summary) -> String {
    let account = &summary.account;
    let mut lines = vec![
        stop.reason().to_owned(),
        format!(
            "{} reached tcx, {} got tscap's receive time",
            counted(account.get(Count::Seen), "packet"),
            grouped(account.get(Count::Stamped))
        ),
    ];
    if let Some(mean) = account.mean_earlier_ns() {
        lines.push(format!(
            "earlier than the kernel's own by {} ns on average, {} ns at most",
            grouped(mean),
            grouped(account.get(Count::MostEarlierNs))
        ));
    }
    let of_received = |count: &Count| (account.get(*count), count.name(), count.meaning());
    let kept = Count::AT_TCX[1..].iter().map(of_received);
    lines.extend(reasons("with the kernel's own:".into(), kept));
    let received = counted(account.get(Count::Received), "frame");
    let at_xdp = Count::AT_XDP.iter().map(of_received);
    lines.extend(reasons(format!("{received} at XDP:"), at_xdp));
    lines.push(format!(
        "bound of the stamps to {}: {} ns",
        match summary.reference {
            Some(_) => "the clock that follows the reference",
            None => "the host's clock",
        },
        grouped(summary.host_bound_ns)
    ));
    let reference = summary.reference.iter();
    lines.extend(reference.flat_map(|it| it.lines("times by")));
    lines.extend(summary.send_times.iter().flat_map(sent));
    lines.join("\n")
}

/// What became of send times.
fn sent(summary: &SendSummary) -> Vec<String> {
    let account = &summary.account;
    let of_sent = |count: &SendCount| (account.get(*count), count.name(), count.meaning());
    let mut lines = vec![format!(
        "{} reached tcx egress, {} got a send time",
        counted(account.get(SendCount::Seen), "packet"),
        grouped(account.get(SendCount::Written))
    )];
    let without = SendCount::OUTCOMES[1..].iter().map(of_sent);
    lines.extend(reasons("without one:".into(), without));
    lines.push(format!(
        "latest Error Estimate of send times: {}",
        estimate(summary.error_estimate_ns, summary.synchronised)
    ));
    lines
}

/// Those of numbers, names and meanings of which there were any, below a title.
fn reasons<'a>(
    title: String,
    all: impl Iterator<Item = (u64, &'a str, &'a str)>,
) -> impl Iterator<Item = String> {
    let there = all.filter(|(number, ..)| *number > 0);
    let there: Vec<_> = there
        .map(|(number, name, meaning)| {
            let meaning = meaning.trim_end_matches('.');
            format!("  {} {name}: {meaning}", grouped(number))
        })
        .collect();
    let title = (!there.is_empty()).then_some(title);
    title.into_iter().chain(there)
}

#[cfg(test)]
mod tests {
    use tscap_common::send_times::SendCounts;
    use tscap_common::stamping::Counts;
    use tscap_sources::stamping::SendAccount;

    use super::*;

    fn account() -> Account {
        let mut counts = Counts::default();
        for (count, number) in [
            (Count::Received, 12_004),
            (Count::Marked, 12_000),
            (Count::Tcp, 4),
            (Count::Seen, 12_004),
            (Count::Stamped, 11_990),
            (Count::Stale, 10),
            (Count::Unmarked, 4),
            (Count::EarlierNs, 11_990 * 1_500),
            (Count::MostEarlierNs, 90_000),
        ] {
            counts[count as usize] = number;
        }
        Account::of(&[counts])
    }

    fn send_times() -> SendSummary {
        let mut counts = SendCounts::default();
        counts[SendCount::Seen as usize] = 5_007;
        counts[SendCount::Written as usize] = 5_000;
        counts[SendCount::Authenticated as usize] = 7;
        SendSummary {
            account: SendAccount::of(&[counts]),
            error_estimate_ns: 1_006,
            synchronised: false,
        }
    }

    #[test]
    fn the_summary_names_each_reason_that_there_was() {
        let account = account();
        let summary = Summary {
            account,
            send_times: Some(send_times()),
            adds_up: account.adds_up(),
            host_bound_ns: 71,
            steps: 0,
            reference: None,
        };
        assert!(summary.adds_up);
        let text = text(Stop::Signal, &summary);
        for part in [
            "10 stale: ",
            "4 unmarked: ",
            "4 tcp: ",
            "by 1,500 ns",
            "71 ns",
            "5,007 packets reached tcx egress, 5,000 got a send time",
            "7 authenticated: ",
            "1,006 ns to this host's clock",
        ] {
            assert!(text.contains(part), "{part:?} in:\n{text}");
        }
        for part in ["paced", "fragment", "UTC"] {
            assert!(!text.contains(part), "{part:?} in:\n{text}");
        }
    }

    #[test]
    fn the_live_line_begins_with_what_was_stamped() {
        let progress = Progress {
            account: account(),
            host_bound_ns: 71,
            send_times: None,
            are_there: true,
        };
        let received = parts(&progress);
        assert!(received[0].ends_with("stamped"), "{received:?}");
        assert_eq!(received.len(), 5, "{received:?}");
        let send_times = Some(send_times());
        let both = parts(&Progress {
            send_times,
            ..progress
        });
        assert_eq!(both.len(), 6, "{both:?}");
        assert_eq!(both[2], "5,000 send times");
    }
}
