//! Sessions with reflectors that work now.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use serde::Serialize;

use super::key_file;
use crate::command::console::Console;
use crate::command::live::{self, give_up_privileges, judge, print_event, say_ready, watch};
use crate::command::measuring::Start;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::{grouped, span};
use tscap_capture::Event;
use tscap_cli::{DelayPlan, PeerName, SessionsPlan};
use tscap_delay::Latest;
use tscap_delay::live::LivePlan;
use tscap_delay::schema::{How, Match, Measurement, Method, VERSION};
use tscap_protocol::Mode;
use tscap_results::envelope::Kind;
use tscap_session::EndReason;
use tscap_two_hosts::sender::{Peer, Running, SenderPlan, SessionSecond};

/// Version of the JSON objects of each second.
const SECOND_VERSION: u32 = 1;
/// Longest that a name is looked up.
const LOOK_UP: Duration = Duration::from_secs(10);
/// A heading stands before so many lines.
const HEADING_EVERY: u64 = 20;

#[derive(Serialize)]
struct Second {
    /// Since the start, s.
    seconds: f64,
    sessions: Vec<SecondOfSession>,
}

#[derive(Serialize)]
struct SecondOfSession {
    peer: String,
    round_trip: Option<Latest>,
    forward: Option<Latest>,
    back: Option<Latest>,
    missing: u64,
    bound_ns: Option<u64>,
}

/// `None` if a signal ended it before anything was measured.
pub(super) async fn session(
    plan: &DelayPlan,
    live: &LivePlan,
    asked: &SessionsPlan,
) -> Result<Option<(Measurement, Exit)>, Failure> {
    let sender = sender_plan(live, asked).await?;
    let mut signals = Signals::new()?;
    let console = Console::new(plan.output.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let mut on_event = |event| print_event(&mut console, event);
    let work = async |reference, on_event: &mut dyn FnMut(Event)| {
        let sender = SenderPlan {
            reference,
            ..sender.clone()
        };
        sender.start(on_event).await
    };
    let (mut running, mut following) = tokio::select! {
        started = live::start(&plan.references, work, &mut on_event) => started?,
        () = signals.next() => return Ok(None),
    };
    say_ready(&running, &mut console);
    let files = KernelFiles::live();
    let start = Start::now(&files);
    give_up_privileges(
        &mut running,
        plan.output.report.is_some(),
        &mut signals,
        &mut console,
    )?;
    let mut line = 0;
    let tell = |console: &mut Console, running: &Running, latest, since: Duration| {
        tell(console, running, latest, (since, line));
        line += 1;
    };
    let over = watch(
        plan.duration,
        &mut running,
        (&mut signals, &mut following),
        &mut console,
        tell,
    )
    .await;
    let finish = async |_: &mut dyn FnMut(Event)| running.finish(signals.next()).await;
    let mut on_event = |event| print_event(&mut console, event);
    let found = following.beside(finish, &mut on_event).await?;
    let mut warnings = found.warnings;
    let exit = judge(over, found.adds_up, &mut warnings);
    let interface = found.sessions.first().map_or("-", |it| &it.interface);
    let mut about = start.circumstances(&files, 0, interface);
    about.reference = found.reference;
    if live.namespace.is_some() {
        // Another interface may have this name here.
        about.machine.driver.clear();
    }
    warnings.extend(found.sessions.iter().filter_map(|it| {
        let contradictions = it.alignment.contradictions;
        let says = format!(
            "{}: the packets and both clocks' errors against UTC exclude each other for {} of \
             them: one of the clocks is not where it says. --align exchange does without UTC",
            it.peer,
            grouped(contradictions)
        );
        (contradictions > 0).then_some(says)
    }));
    warnings.extend(found.sessions.iter().filter(|it| it.account.answered == 0).map(|it| {
        format!(
            "{}: nothing was answered. On that host: tscap delay --serve INTERFACE; a firewall \
             may drop UDP to its port",
            it.peer
        )
    }));
    let measurement = Measurement {
        about: about.envelope(Kind::Delay, VERSION, over == Some(EndReason::InterfaceGone)),
        method: Method {
            how: How::Sessions,
            matched_by: Match::Reply,
            label: plan.label.clone(),
            clock: found.clock,
            file: None,
            window_ns: u64::try_from(live.window.as_nanos()).unwrap_or(u64::MAX),
            capacity: live.capacity as u64,
            memory_bytes: 0,
            load: None,
            parallel: None,
            correction: None,
        },
        passages: Vec::new(),
        sessions: found.sessions,
        alignment: None,
        warnings,
    };
    Ok(Some((measurement, exit)))
}

async fn sender_plan(live: &LivePlan, asked: &SessionsPlan) -> Result<SenderPlan, Failure> {
    let key = asked.key_file.as_deref().map(key_file::read).transpose()?;
    let mode = match key {
        Some(_) => Mode::Authenticated,
        None => Mode::Unauthenticated,
    };
    let size = asked.size.unwrap_or_else(|| SenderPlan::usual_size(mode));
    if (size as usize) < mode.base() {
        return Err(Failure::new(format!(
            "--size {size} is too small: an authenticated test packet has {} octets",
            mode.base()
        )));
    }
    let mut peers = Vec::new();
    for name in &asked.peers {
        peers.push(Peer {
            name: name.host.clone(),
            address: resolve(name).await?,
        });
    }
    Ok(SenderPlan {
        peers,
        namespace: live.namespace.clone(),
        pacing: asked.pacing,
        size,
        dscp: asked.dscp,
        count: live.count,
        ssid: asked.ssid,
        key,
        wait: live.window,
        align: asked.align,
        max_drift_ppb: asked.max_drift_ppb,
        max_asymmetry_ns: asked.max_asymmetry_ns,
        clock: live.clock,
        reference: None,
        ring_bytes: live.ring_bytes,
    })
}

/// The first address of a name.
async fn resolve(name: &PeerName) -> Result<SocketAddr, Failure> {
    let what = || format!("cannot look up {}", name.host);
    let target = (name.host.clone(), name.port);
    // The resolver has no deadline; a thread that it holds up ends with the process.
    let found = tokio::task::spawn_blocking(move || target.to_socket_addrs());
    let found = tokio::time::timeout(LOOK_UP, found).await;
    let found = found.map_err(|_| Failure::new(format!("{}: no answer in 10 s", what())))?;
    let mut addresses = found.context(what())?.context(what())?;
    let first = addresses.next();
    first.ok_or_else(|| Failure::new(format!("{}: it has no address", what())))
}

/// Tells a second: a JSON object, or lines of a table; to nobody who wants quiet.
fn tell(
    console: &mut Console,
    running: &Running,
    latest: Vec<SessionSecond>,
    (since, line): (Duration, u64),
) {
    let sessions = running.peers().zip(latest);
    let second = Second {
        seconds: since.as_secs_f64(),
        sessions: sessions
            .map(|(peer, it)| SecondOfSession {
                peer: peer.to_owned(),
                round_trip: it.round_trip,
                forward: it.forward,
                back: it.back,
                missing: it.missing,
                bound_ns: it.bound_ns,
            })
            .collect(),
    };
    if console.is_json() {
        console.event("delay", SECOND_VERSION, second);
    } else if !console.is_quiet() {
        for text in lines(&second, line) {
            console.say(&text);
        }
    }
}

fn lines(second: &Second, line: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if line.is_multiple_of(HEADING_EVERY) {
        lines.push(format!(
            "{:>5} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7}  {}",
            "s", "replies", "rtt", "there", "back", "±", "missing", "peer"
        ));
    }
    let median = |latest: &Option<Latest>| {
        let ns = latest.as_ref().map(|it| it.p50_ns.unwrap_or(it.min_ns));
        let sign = |ns: i64| if ns < 0 { "−" } else { "" };
        ns.map_or("-".into(), |ns| {
            sign(ns).to_owned() + &span(ns.unsigned_abs())
        })
    };
    for it in &second.sessions {
        let replies = it.round_trip.as_ref().map_or(0, |latest| latest.n);
        lines.push(format!(
            "{:>5.0} {replies:>8} {:>9} {:>9} {:>9} {:>9} {:>7}  {}",
            second.seconds,
            median(&it.round_trip),
            median(&it.forward),
            median(&it.back),
            it.bound_ns.map_or("-".into(), span),
            it.missing,
            it.peer
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_line_for_each_session_and_fits_a_terminal() {
        let latest = |ns| Latest {
            n: 100,
            min_ns: ns,
            p50_ns: Some(ns),
            p99_ns: None,
            max_ns: ns,
            mean_ns: ns as f64,
        };
        let second = Second {
            seconds: 12.3,
            sessions: vec![SecondOfSession {
                peer: "192.0.2.7".into(),
                round_trip: Some(latest(52_400_000)),
                forward: Some(latest(-1_100)),
                back: None,
                missing: 3,
                bound_ns: Some(26_200_000),
            }],
        };
        let lines_said = lines(&second, 0);
        assert_eq!(lines_said.len(), 2);
        assert!(
            lines_said.iter().all(|line| line.chars().count() < 80),
            "{lines_said:?}"
        );
        let words: Vec<_> = lines_said[1].split_whitespace().collect();
        let expected = [
            "12",
            "100",
            "52.4",
            "ms",
            "−1.1",
            "µs",
            "-",
            "26.2",
            "ms",
            "3",
            "192.0.2.7",
        ];
        assert_eq!(words, expected);
        assert_eq!(lines(&second, 1).len(), 1);
    }
}
