//! `tscap qos --layers`.

use std::time::Duration;

use serde::Serialize;

use crate::command::console::Console;
use crate::command::following::Following;
use crate::command::live::{give_up_privileges, judge, print_event, say_ready, watch};
use crate::command::measuring::{self, Start};
use crate::command::signals::Signals;
use crate::command::{Context as _, Exit, Failure, terminal};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::numbers::counted;
use tscap_cli::LayersPlan;
use tscap_flows::layers::live::{Latest, Running};
use tscap_flows::layers::schema::{FlowResidences, LayerAccount, Residences, VERSION};
use tscap_programs::hook::Layer;
use tscap_report::layers_lines;
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
    /// The account of each layer, without what the programs did not record, which is known at
    /// the end.
    layers: Vec<AtLayer<'a>>,
    /// All packets together, since the start: those whose window is over.
    all: &'a FlowResidences,
}

#[derive(Debug, Serialize)]
struct AtLayer<'a> {
    layer: Layer,
    #[serde(flatten)]
    account: &'a LayerAccount,
}

/// Tells how long packets are between layers.
pub(in crate::command) fn run(plan: &LayersPlan) -> Result<Exit, Failure> {
    measuring::run(&plan.output, session(plan))
}

async fn session(plan: &LayersPlan) -> Result<Option<(Residences, Exit)>, Failure> {
    let mut signals = Signals::new()?;
    let console = Console::new(plan.output.json, true, plan.verbosity);
    let mut console = console.context("cannot start a thread")?;
    let mut running = {
        let mut on_event = |event| print_event(&mut console, event);
        tokio::select! {
            running = plan.live.start(&mut on_event) => running?,
            () = signals.next() => return Ok(None),
        }
    };
    say_ready(&running, &mut console);
    let files = KernelFiles::live();
    let start = Start::now(&files);
    let makes_files = plan.output.report.is_some();
    give_up_privileges(&mut running, makes_files, &mut signals, &mut console)?;
    let tell = |console: &mut Console, running: &Running, latest: Latest, since| {
        tell(console, &running.layers(), &latest, since);
    };
    let duration = plan.duration;
    let heard = (&mut signals, &mut Following::default());
    let over = watch(duration, &mut running, heard, &mut console, tell).await;
    let found = running.finish()?;
    let mut warnings = found.warnings;
    let exit = judge(over, found.adds_up, &mut warnings);
    let mut about = start.circumstances(&files, 0, &plan.live.interface);
    about.seconds = found.seconds;
    if plan.live.namespace.is_some() {
        // Another interface may have this name here.
        about.machine.driver.clear();
    }
    let residences = Residences {
        about: about.envelope(
            Kind::Layers,
            VERSION,
            over == Some(EndReason::InterfaceGone),
        ),
        method: found.method,
        layers: found.layers,
        absent: found.absent,
        all: found.all,
        flows: found.flows,
        others: found.others,
        warnings,
    };
    Ok(Some((residences, exit)))
}

/// Tells a second: a JSON object, or a table that takes the place of the one before, or a
/// line where nobody is at a terminal.
fn tell(console: &mut Console, layers: &[Layer], latest: &Latest, since: Duration) {
    let seconds = since.as_secs_f64();
    if console.is_json() {
        let accounts = layers.iter().zip(&latest.accounts);
        let second = Second {
            seconds,
            flows: latest.flows,
            layers: accounts
                .map(|(layer, account)| AtLayer {
                    layer: *layer,
                    account,
                })
                .collect(),
            all: &latest.all,
        };
        console.event("layers", SECOND_VERSION, &second);
        return;
    }
    if console.is_quiet() {
        return;
    }
    let packets = counted(latest.all.packets, "packet");
    let flows = counted(latest.flows, "flow");
    let summary = format!("{seconds:.0} s: {packets}, {flows}");
    match terminal::width(std::io::stderr()) {
        None => console.say(&summary),
        Some(width) => {
            let lines = std::iter::once(summary).chain(layers_lines(&latest.all, width));
            let lines: Vec<_> = lines.map(|line| terminal::cut(&line, width)).collect();
            console.show(&lines);
        }
    }
}
