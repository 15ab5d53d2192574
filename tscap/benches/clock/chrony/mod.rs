//! chronyd beside tscap's own NTP client, between namespaces: both follow a chronyd that
//! serves the host's own clock, which is the truth, in quiet and under load, with a capture
//! beside (figure 11 of the paper).

mod daemon;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;
use tscap_document::Table;
use tscap_statistics::quantile;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on, clock, generate_on};
use tscap_testkit::files::folder;
use tscap_testkit::wait;

use crate::common::report::Section;
use crate::common::run::Options;
use crate::common::table::row;
use crate::common::target::Target;
use daemon::Chronyd;
pub use daemon::Programs;

/// How long a clock may take until it follows the server.
const STARTING: Duration = Duration::from_secs(60);
/// Replies that chronyd takes in before it is measured.
const SETTLED: usize = 10;
/// Between two looks at chronyd.
const EVERY: Duration = Duration::from_secs(1);
/// Shares of the errors that are given.
const QUANTILES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];
const HEAD: [&str; 9] = [
    "", "samples", "p1", "p25", "p50", "p75", "p99", "most", "of bound",
];

/// What goes on beside: (name, whether there is load, whether somebody captures).
const PHASES: [(&str, bool, bool); 4] = [
    ("quiet", false, false),
    ("a capture beside", false, true),
    ("load", true, false),
    ("load, and a capture beside", true, true),
];
/// Sent past the exchanges: 64-byte frames, as many a second as this.
const LOAD: [&str; 4] = ["--size", "64", "--rate", "50k"];

/// Errors of one clock in a phase.
#[derive(Debug, Serialize)]
struct Errors {
    clock: &'static str,
    samples: usize,
    /// Quantiles of the error's magnitude, ns.
    quantiles_ns: Vec<(f64, f64)>,
    /// The greatest, ns.
    most_ns: f64,
    /// Greatest error / stated bound; chronyd states none.
    of_bound: Option<f64>,
    /// All of them, sorted, ns.
    #[serde(skip)]
    sizes_ns: Vec<f64>,
}

/// One phase.
#[derive(Debug, Serialize)]
struct Phase {
    name: &'static str,
    seconds: u64,
    tscap: Errors,
    chronyd: Errors,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Chrony {
    /// chronyd's.
    version: String,
    phases: Vec<Phase>,
}

/// Measures half an hour, or a minute and a half.
pub fn measure(programs: &Programs, options: &Options) -> Result<Chrony> {
    let seconds = options.either(23, 450);
    let bench = Bench::new("chrony");
    bench.acquaint();
    let (server, client) = (&bench.tx.netns, &bench.rx.netns);
    let _server = Chronyd::start(programs, server, &["local stratum 1", "allow 10.9.0.0/24"])?;
    let follows = "server 10.9.0.1 minpoll 0 maxpoll 0 xleave";
    let chronyd = Chronyd::start(programs, client, &[follows])?;
    let tscap = clock(client)
        .with(["--reference", "ntp:10.9.0.1,poll=1s"])
        .with(["--interval", "1s"])
        .ready();
    let mut updates = BTreeSet::new();
    wait::until("chronyd to follow the server", STARTING, || {
        let tracking = chronyd.tracking().ok().filter(|it| it.has_server)?;
        updates.insert(tracking.updated);
        (updates.len() >= SETTLED).then_some(())
    });
    let mut lines = Lines { tscap, next: 0 };
    lines.until_it_follows()?;
    let mut phases = Vec::new();
    for (name, is_loaded, is_captured) in PHASES {
        eprintln!("{name}, {seconds} s");
        let beside = Beside::start(&bench, is_loaded, is_captured);
        lines.pass_over();
        let mut errors = Vec::new();
        let start = Instant::now();
        for second in 1..=seconds {
            let next = EVERY * second as u32;
            std::thread::sleep(next.saturating_sub(start.elapsed()));
            errors.push((chronyd.tracking()?.off_ns, None));
        }
        phases.push(Phase {
            name,
            seconds,
            tscap: Errors::of("tscap", lines.errors()?)?,
            chronyd: Errors::of("chronyd", errors)?,
        });
        beside.end();
    }
    Ok(Chrony {
        version: programs.version.clone(),
        phases,
    })
}

/// What goes on beside the clocks.
struct Beside {
    load: Option<Capture>,
    capture: Option<(Capture, TempDir)>,
}

impl Beside {
    fn start(bench: &Bench, is_loaded: bool, is_captured: bool) -> Self {
        let capture = || {
            let folder = folder();
            let capture = capture_on(&bench.rx, &folder.path().join("beside.pcapng"));
            (capture.ready(), folder)
        };
        let load = || generate_on(&bench.tx).with(LOAD).ready();
        Self {
            capture: is_captured.then(capture),
            load: is_loaded.then(load),
        }
    }

    fn end(self) {
        if let Some(load) = self.load {
            load.stop();
        }
        if let Some((capture, _folder)) = self.capture {
            capture.stop();
        }
    }
}

/// tscap's lines, of which some have been looked at.
struct Lines {
    tscap: Capture,
    next: usize,
}

impl Lines {
    fn next(&mut self, limit: Duration) -> Option<Value> {
        let line = self.tscap.event(self.next, limit)?;
        self.next += 1;
        Some(line)
    }

    fn until_it_follows(&mut self) -> Result<()> {
        let deadline = Instant::now() + STARTING;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self
                .next(left)
                .context("tscap does not follow the server")?;
            if error(&line).is_some() {
                return Ok(());
            }
        }
    }

    /// What has come so far is of another time.
    fn pass_over(&mut self) {
        while self.next(Duration::ZERO).is_some() {}
    }

    /// Errors and bounds since then, ns.
    fn errors(&mut self) -> Result<Vec<(f64, Option<f64>)>> {
        let mut errors = Vec::new();
        while let Some(line) = self.next(Duration::ZERO) {
            errors.extend(error(&line));
        }
        ensure!(!errors.is_empty(), "tscap said nothing of the server");
        Ok(errors)
    }
}

/// The host's clock against the server's, ns, with the bound of that: it is the same clock.
fn error(line: &Value) -> Option<(f64, Option<f64>)> {
    let reference = line.get("reference")?;
    let off = reference.get("host_ahead_ns")?.as_f64()?;
    Some((off, Some(reference.get("bound_ns")?.as_f64()?)))
}

impl Errors {
    fn of(clock: &'static str, errors: Vec<(f64, Option<f64>)>) -> Result<Self> {
        let of_bound = errors
            .iter()
            .map(|(off, bound)| Some(off.abs() / (*bound)?));
        let of_bound = of_bound.flatten().reduce(f64::max);
        let mut sizes: Vec<_> = errors.iter().map(|(off, _)| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let of = |share| quantile(&sizes, share).context("no errors");
        Ok(Self {
            clock,
            samples: sizes.len(),
            quantiles_ns: QUANTILES
                .into_iter()
                .map(|share| Ok((share, of(share)?)))
                .collect::<Result<_>>()?,
            most_ns: of(1.0)?,
            of_bound,
            sizes_ns: sizes,
        })
    }

    fn median_ns(&self) -> f64 {
        self.quantiles_ns[QUANTILES.len() / 2].1
    }

    fn row(&self, phase: &str) -> Vec<String> {
        let quantiles = self.quantiles_ns.iter().map(|(_, ns)| *ns);
        let us = quantiles.chain([self.most_ns]);
        let us = us.map(|ns| format!("{:.2}", ns / 1e3));
        let of_bound = self.of_bound.map(|it| format!("{it:.2}"));
        let figures = [self.samples.to_string()].into_iter().chain(us);
        let figures = figures.chain([of_bound.unwrap_or_default()]);
        row(format!("{phase}, {}", self.clock), figures)
    }
}

/// The median over several phases, ns.
fn median_of_all<'a>(errors: impl Iterator<Item = &'a Errors>) -> f64 {
    let mut sizes: Vec<_> = errors.flat_map(|it| it.sizes_ns.iter().copied()).collect();
    sizes.sort_by(f64::total_cmp);
    quantile(&sizes, 0.5).unwrap_or(f64::NAN)
}

impl Section for Chrony {
    fn targets(&self) -> Vec<Target> {
        let of_bound = self.phases.iter().filter_map(|it| it.tscap.of_bound);
        let bound = Target::at_most(
            "against chronyd -x: tscap's error / bound, most",
            of_bound.fold(0.0, f64::max),
            1.0,
        );
        let medians = self.phases.iter().map(|phase| {
            let [ours, theirs] = [&phase.tscap, &phase.chronyd].map(Errors::median_ns);
            let name = format!("{}: tscap's median error / chronyd's", phase.name);
            // On a busy machine both are what the scheduler makes of them.
            Target::at_most(name, ours / theirs, 1.0).asserted_if(false)
        });
        let ours = median_of_all(self.phases.iter().map(|it| &it.tscap));
        let theirs = median_of_all(self.phases.iter().map(|it| &it.chronyd));
        let name = "all phases: tscap's median error / chronyd's";
        let all = Target::at_most(name, ours / theirs, 1.0).asserted_if(false);
        [bound, all].into_iter().chain(medians).collect()
    }

    fn tables(&self) -> Vec<Table> {
        let phases = self.phases.iter();
        let rows = phases.flat_map(|it| [&it.tscap, &it.chronyd].map(|of| of.row(it.name)));
        let mut table = Table::figures(
            format!(
                "following {} -x between namespaces, a request a second: size of the error, µs",
                self.version
            ),
            &HEAD,
            rows.collect(),
        );
        table.notes.push(
            "the server serves the host's clock: the truth is 0; chronyd: the system time that it \
             would correct (chronyc tracking), stamps by software; both interleaved"
                .to_owned(),
        );
        vec![table]
    }
}
