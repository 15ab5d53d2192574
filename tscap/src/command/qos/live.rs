//! A measurement that works now.

use std::time::Duration;

use serde::Serialize;

use super::method;
use crate::command::console::Console;
use crate::command::live::{self, give_up_privileges, judge, print_event, say_ready, watch};
use crate::command::measuring::Start;
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure, terminal};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::counted;
use tscap_capture::Event;
use tscap_cli::{AskedInterfaces, QosPlan};
use tscap_flows::live::{Latest, LivePlan};
use tscap_flows::schema::{Account, FlowReport, Quality, VERSION};
use tscap_report::flow_lines;
use tscap_results::envelope::Kind;
use tscap_session::EndReason;

/// Version of the JSON objects of each second.
const SECOND_VERSION: u32 = 1;

#[derive(Debug, Serialize)]
struct Second<'a> {
    /// Since the start, s.
    seconds: f64,
    /// Flows in the table.
    flows: u64,
    /// Without what the programs did not record, which is known at the end.
    account: &'a Account,
    /// Those that come first, since the start.
    top: &'a [FlowReport],
}

/// `None` if a signal ended it before anything was measured.
pub(super) async fn session(
    plan: &QosPlan,
    live: &LivePlan,
    asked: &AskedInterfaces,
) -> Result<Option<(Quality, Exit)>, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.output.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let (mut running, mut following) = {
        let mut on_event = |event| print_event(&mut console, event);
        let work = async |reference, on_event: &mut dyn FnMut(Event)| {
            let live = LivePlan {
                reference,
                ..live.clone()
            };
            live.start(on_event).await
        };
        tokio::select! {
            started = live::start(&asked.references, work, &mut on_event) => started?,
            () = signals.next() => return Ok(None),
        }
    };
    say_ready(&running, &mut console);
    let files = KernelFiles::live();
    let start = Start::now(&files);
    let makes_files = plan.output.report.is_some();
    give_up_privileges(&mut running, makes_files, &mut signals, &mut console)?;
    let tell = |console: &mut Console, _: &_, latest: Latest, since| tell(console, &latest, since);
    let heard = (&mut signals, &mut following);
    let over = watch(asked.duration, &mut running, heard, &mut console, tell).await;
    let found = running.finish()?;
    let mut warnings = found.warnings;
    let exit = judge(over, found.adds_up, &mut warnings);
    let interface = live.interfaces.first().map_or("-", String::as_str);
    let mut about = start.circumstances(&files, 0, interface);
    about.reference = found.reference;
    about.seconds = found.seconds;
    if live.namespace.is_some() {
        // Another interface may have this name here.
        about.machine.driver.clear();
    }
    let quality = Quality {
        about: about.envelope(Kind::Qos, VERSION, over == Some(EndReason::InterfaceGone)),
        method: method(plan, None),
        account: found.account,
        places: found.places,
        flows: found.flows,
        warnings,
    };
    Ok(Some((quality, exit)))
}

/// Tells a second: a JSON object, or a table that takes the place of the one before, or a
/// line where nobody is at a terminal.
fn tell(console: &mut Console, latest: &Latest, since: Duration) {
    let seconds = since.as_secs_f64();
    if console.is_json() {
        let second = Second {
            seconds,
            flows: latest.flows,
            account: &latest.account,
            top: &latest.top,
        };
        console.event("qos", SECOND_VERSION, &second);
        return;
    }
    if console.is_quiet() {
        return;
    }
    let packets = counted(latest.account.seen, "packet");
    let flows = counted(latest.flows, "flow");
    let summary = format!("{seconds:.0} s: {packets}, {flows}");
    match terminal::width(std::io::stderr()) {
        None => console.say(&summary),
        Some(width) => {
            let lines = std::iter::once(summary).chain(flow_lines(&latest.top));
            let lines: Vec<_> = lines.map(|line| terminal::cut(&line, width)).collect();
            console.show(&lines);
        }
    }
}
