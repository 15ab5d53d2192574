//! A measurement in a thread of its own, with a progress bar and an end by Ctrl-C.

use std::cell::LazyCell;
use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep_until;

use super::console::Console;
use super::print::{json_line, print};
use super::report::{check_writable, write_page};
use super::signals::Signals;
use super::{Context, Exit, Failure, Hint as _, terminal};
use tscap_base::kernel_files::KernelFiles;
use tscap_cli::{ResultOutput, Verbosity};
use tscap_clock::RealNs;
use tscap_document::Layout;
use tscap_lab::EarlyEnd;
use tscap_report::saved::Kind;
use tscap_results::envelope::Circumstances;
use tscap_results::machine::{Ticks, describe};
use tscap_traffic::load::{Pair, Stop};

/// Columns of what goes to no terminal: tables in one piece.
const PIPED: usize = usize::MAX;
/// Columns that are taken at least.
const LEAST: usize = 40;
/// What goes on for so long after a second request to end hangs.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// Told after each step how many are over.
pub(super) type OnProgress = Box<dyn Fn(u32) + Send>;

/// The start of a measurement.
pub(super) struct Start {
    real: RealNs,
    at: Instant,
    ticks: Option<Ticks>,
}

impl Start {
    pub fn now(files: &KernelFiles) -> Self {
        Self {
            real: RealNs::now(),
            at: Instant::now(),
            ticks: Ticks::read(files),
        }
    }

    /// The circumstances of a measurement on `cpu` and `interface` that ends now.
    pub fn circumstances(self, files: &KernelFiles, cpu: u32, interface: &str) -> Circumstances {
        let stolen = self.ticks.zip(Ticks::read(files));
        let stolen = stolen.map_or(0.0, |(before, after)| after.steal_percent(before));
        Circumstances {
            command: env::args_os()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            started_ns: self.real.0,
            seconds: self.at.elapsed().as_secs_f64(),
            machine: describe(files, cpu, interface, stolen),
            captured: None,
            reference: None,
        }
    }
}

/// How a result is told on standard output.
pub(super) fn layout(is_whole: bool) -> Layout {
    let columns = terminal::width(io::stdout());
    Layout {
        // The last column stays free: some terminals wrap there.
        columns: columns.map_or(PIPED, |columns| columns.saturating_sub(1).max(LEAST)),
        is_whole,
    }
}

/// Runs a session, prints its result and writes the page. A session gives none if a second
/// signal ended it.
pub(super) fn run<T: Kind + Serialize>(
    shown: &ResultOutput,
    session: impl Future<Output = Result<Option<(T, Exit)>, Failure>>,
) -> Result<Exit, Failure> {
    if let Some(path) = &shown.report {
        check_writable(path)?;
    }
    let Some((result, exit)) = super::runtime()?.block_on(session)? else {
        return Ok(Exit::Aborted);
    };
    let document = LazyCell::new(|| result.document());
    let text = if shown.json {
        json_line(&result)
    } else {
        document.text(layout(shown.verbose))
    };
    print(&text)?;
    if let Some(path) = &shown.report {
        write_page(&document.page(), path)?;
    }
    Ok(exit)
}

/// A console for progress: as JSON lines only where nothing else is. On a terminal a
/// progress bar says more.
pub(super) fn console(json: bool) -> Result<Console, Failure> {
    let json = json && !io::stderr().is_terminal();
    Console::new(json, false, Verbosity::Normal).context("cannot start a thread")
}

/// What drives the interfaces of [`pair`].
const VETH: &str = "veth";

/// A veth pair; `otherwise` is what to do without one.
pub(super) fn pair(otherwise: &str) -> Result<Pair, Failure> {
    let pair = Pair::new().context("cannot make a veth pair in namespaces of its own");
    pair.hint(format!("it takes CAP_SYS_ADMIN: {otherwise}"))
}

/// How long it will take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount<E> {
    pub of: u32,
    /// About, s; given the duration of the first step, s, once that is known.
    pub seconds: E,
}

/// Does `work` in a thread called `name`; it says after each step how many are over,
/// by `progress` to machines. It says 0 when it is prepared, if the duration of the first
/// step gives a better estimate. The first request to end leaves `left_out` out. A second
/// one ends what that is doing: `None` if nothing was measured by then, or if it hangs.
pub(super) async fn measure<T: Send + 'static, E: Send + 'static, P: Serialize>(
    name: &str,
    amount: Amount<impl Fn(Option<f64>) -> f64>,
    left_out: &str,
    signals: &mut Signals,
    console: &mut Console,
    progress: impl Fn(u32) -> P,
    work: impl FnOnce(Arc<Stop>, OnProgress) -> Result<T, E> + Send + 'static,
) -> Result<Option<Result<T, E>>, Failure> {
    const VERSION: u32 = 1;
    let (done, mut steps) = unbounded_channel();
    let stop = Arc::new(Stop::default());
    let (mut start, mut seconds) = (Instant::now(), (amount.seconds)(None));
    let mut first_is_timed = false;
    let measuring = std::thread::Builder::new().name(name.into());
    let measuring = measuring
        .spawn({
            let stop = Arc::clone(&stop);
            // Nobody may be listening any more.
            let done = Box::new(move |step| _ = done.send(step));
            move || work(stop, done)
        })
        .context("cannot start the measuring thread")?;
    let mut deadline = None;
    loop {
        tokio::select! {
            step = steps.recv() => match step {
                Some(0) => (start, first_is_timed) = (Instant::now(), true),
                Some(step) => {
                    let share = f64::from(step) / f64::from(amount.of.max(1));
                    let spent = start.elapsed().as_secs_f64();
                    if step == 1 && first_is_timed {
                        seconds = (amount.seconds)(Some(spent));
                        let left = about(seconds - spent);
                        console.say(&format!("1 of {} done: about {left} left", amount.of));
                    }
                    let left = time_left(share, spent, seconds);
                    console.progress(VERSION, progress(step), || vec![bar(share), time(left)]);
                }
                None => break,
            },
            () = signals.next() => {
                if stop.ask() {
                    console.note(&format!("ending: {left_out} is left out; once more to abort it"));
                } else {
                    stop.kill_child();
                    deadline.get_or_insert_with(|| Instant::now() + HANGS_AFTER);
                }
            }
            () = sleep_until(deadline.unwrap_or(start).into()), if deadline.is_some() => {
                return Ok(None);
            }
        }
    }
    let measured = measuring.join();
    let measured =
        measured.map_err(|_| Failure::new("the measuring thread panicked: please report this"))?;
    match (measured, deadline) {
        (Err(_), Some(_)) => Ok(None),
        (measured, _) => Ok(Some(measured)),
    }
}

/// An experiment, as it is told.
pub(super) struct Experiment<'a, S> {
    /// Name of the measuring thread.
    pub thread: &'a str,
    /// What is about to be done.
    pub ready: &'a str,
    /// How long it will take.
    pub amount: Amount<S>,
    /// What the first request to end leaves out.
    pub left_out: &'a str,
    /// The CPU that it is about.
    pub cpu: u32,
    /// The interface that it is about; empty if there is none.
    pub interface: &'a str,
    /// The interface is of [`pair`].
    pub is_ours: bool,
}

/// Does [`measure`] as an experiment: says that it is ready, and tells its circumstances beside
/// what it gave. `None` if a second signal ended it at once.
pub(super) async fn experiment<T: Send + 'static, E: Send + 'static, P: Serialize>(
    console: &mut Console,
    experiment: Experiment<'_, impl Fn(Option<f64>) -> f64>,
    progress: impl Fn(u32) -> P,
    work: impl FnOnce(Arc<Stop>, OnProgress) -> Result<T, E> + Send + 'static,
) -> Result<Option<(Result<T, E>, Circumstances)>, Failure> {
    // Until here nothing lasts longer than the process.
    let mut signals = Signals::new()?;
    console.say(&format!("ready: {}", experiment.ready));
    let files = KernelFiles::live();
    let start = Start::now(&files);
    let measured = measure(
        experiment.thread,
        experiment.amount,
        experiment.left_out,
        &mut signals,
        console,
        progress,
        work,
    );
    let Some(results) = measured.await? else {
        console.error("aborted: nothing is reported");
        return Ok(None);
    };
    let mut about = start.circumstances(&files, experiment.cpu, experiment.interface);
    if experiment.is_ours {
        about.machine.driver = VETH.into();
    }
    Ok(Some((results, about)))
}

/// The exit code of an experiment with results.
pub(super) fn exit(ended_by: Option<&impl EarlyEnd>) -> Exit {
    match ended_by {
        Some(error) if !error.is_stop() => Exit::Fault,
        _ => Exit::Success,
    }
}

/// A time of so many seconds, for people.
pub(super) fn about(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds.max(0.0).ceil() as u64)).to_string()
}

/// The longer of what the steps so far promise and what is left of the estimate, s.
fn time_left(share: f64, spent: f64, estimate: f64) -> f64 {
    let promised = spent / share - spent;
    promised.max((estimate - spent) * (1.0 - share))
}

/// Seconds to the end.
fn time(left: f64) -> String {
    format!("{left:.0} s left")
}

/// A progress bar, which leaves room for the time in 40 columns.
fn bar(share: f64) -> String {
    const WIDTH: usize = 20;
    let done = ((share * WIDTH as f64) as usize).min(WIDTH);
    format!(
        "[{}{}] {:3.0} %",
        "#".repeat(done),
        "-".repeat(WIDTH - done),
        share * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_comes_to_nothing() {
        // Short steps first: the estimate counts.
        assert_eq!(time_left(0.1, 1.0, 101.0), 90.0);
        assert_eq!(time_left(0.5, 80.0, 100.0), 80.0);
        assert_eq!(time_left(1.0, 80.0, 100.0), 0.0);
        assert_eq!(time_left(1.0, 120.0, 100.0), 0.0);
    }
}
