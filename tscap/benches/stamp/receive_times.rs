//! Offsets by turns: with the kernel's own receive times, and with those of `tscap stamp`.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use aya::programs::XdpMode;
use serde::Serialize;
use tscap_document::Table;
use tscap_statistics::Spread;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::stamp;
use tscap_testkit::probes::Attached;

use crate::chrony::{self, Daemon, Measurement};
use crate::common::report::Section;
use crate::common::rounds::{self, Subject};
use crate::common::table::{row, show};
use crate::common::target::Target;

/// What is attached to the client's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attaching {
    /// Nothing: a veth hands frames over without its driver.
    Nothing,
    /// A program that lets every frame pass: the way of a driver.
    Pass,
    /// `tscap stamp`, by this clock.
    Stamp(&'static str),
}

/// Who makes the receive times, with `tscap stamp` last.
const SUBJECTS: [(&str, Attaching); 4] = [
    ("kernel, no XDP program", Attaching::Nothing),
    ("kernel, behind an XDP program", Attaching::Pass),
    ("tscap stamp, ktime", Attaching::Stamp("ktime")),
    ("tscap stamp, best clock", Attaching::Stamp("auto")),
];

/// What a turn gave, ns.
struct TurnResult {
    median: f64,
    iqr: f64,
    /// From the 5th to the 95th percentile.
    p90: f64,
    delay: f64,
    by_kernel: f64,
    /// How much earlier than the kernel's stamps of the same packets.
    earlier: Option<f64>,
}

/// By who makes the receive times; in ns.
#[derive(Debug, Serialize)]
struct Row {
    subject: &'static str,
    offset_median_ns: Spread,
    offset_iqr_ns: Spread,
    offset_5_to_95_ns: Spread,
    delay_median_ns: Spread,
    /// Share of measurements whose stamps are no times of chronyd itself.
    by_kernel: Spread,
    /// As `tscap stamp` counts it.
    earlier_ns: Spread,
}

/// The part of the report.
#[derive(Debug, Serialize)]
pub struct ReceiveTimes {
    rounds: u32,
    measurements: usize,
    rows: Vec<Row>,
}

/// Where both daemons are.
struct Bed {
    bench: Bench,
    program: PathBuf,
    folder: tempfile::TempDir,
    turns: u32,
}

/// Measures so many offsets in each turn.
pub fn measure(rounds: u32, measurements: usize) -> Result<ReceiveTimes> {
    let folder = tempfile::tempdir()?;
    let program = chrony::find(folder.path())?;
    let bench = Bench::new("bench-stamp");
    bench.acquaint();
    let _server = Daemon::server(&program, &bench.tx.netns, folder.path())?;
    let bed = std::cell::RefCell::new(Bed {
        bench,
        program,
        folder,
        turns: 0,
    });
    let mut subjects = SUBJECTS.map(|(name, attaching)| {
        let bed = &bed;
        Subject::new(name, move || bed.borrow_mut().turn(attaching, measurements))
    });
    rounds::run("chrony", rounds, &mut subjects)?;
    let rows = subjects.iter().map(|it| of_subject(it.name, &it.results));
    Ok(ReceiveTimes {
        rounds,
        measurements,
        rows: rows.collect(),
    })
}

impl Bed {
    fn turn(&mut self, attaching: Attaching, count: usize) -> Result<TurnResult> {
        self.turns += 1;
        let name = format!("client-{}", self.turns);
        let Bed {
            bench,
            program,
            folder,
            ..
        } = self;
        let rx = &bench.rx;
        let pass = (attaching == Attaching::Pass).then(|| Attached::pass(rx, XdpMode::Driver));
        let running = match attaching {
            Attaching::Stamp(clock) => {
                let running = stamp(&rx.netns).on(rx).with(["--clock", clock]).start();
                running.wait_event("ready");
                Some(running)
            }
            Attaching::Nothing | Attaching::Pass => None,
        };
        let measured = client(program, bench, folder.path(), &name, count)?;
        drop(pass);
        let earlier = match running {
            Some(running) => {
                let finished = running.stop();
                ensure!(finished.code == Some(0), "{}", finished.stderr);
                finished
                    .end
                    .and_then(|said| said["mean_earlier_ns"].as_f64())
            }
            None => None,
        };
        Ok(TurnResult {
            earlier,
            ..turn(&measured)
        })
    }
}

fn client(
    program: &Path,
    bench: &Bench,
    folder: &Path,
    name: &str,
    count: usize,
) -> Result<Vec<Measurement>> {
    let netns = &bench.rx.netns;
    let mut client = Daemon::client(program, netns, folder, name, "10.9.0.1")?;
    client.measurements(count)
}

fn turn(measured: &[Measurement]) -> TurnResult {
    let sorted = |of: fn(&Measurement) -> f64| {
        let mut all: Vec<_> = measured.iter().map(|it| of(it) * 1e9).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let at = |sorted: &[f64], share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
    let offsets = sorted(|it| it.offset);
    let by_kernel = measured.iter().filter(|it| it.by_kernel).count();
    TurnResult {
        median: at(&offsets, 0.5),
        iqr: at(&offsets, 0.75) - at(&offsets, 0.25),
        p90: at(&offsets, 0.95) - at(&offsets, 0.05),
        delay: at(&sorted(|it| it.delay), 0.5),
        by_kernel: by_kernel as f64 / measured.len() as f64,
        earlier: None,
    }
}

fn of_subject(subject: &'static str, turns: &[TurnResult]) -> Row {
    let of = |value: fn(&TurnResult) -> f64| Spread::of(turns.iter().map(value).collect());
    Row {
        subject,
        offset_median_ns: of(|it| it.median),
        offset_iqr_ns: of(|it| it.iqr),
        offset_5_to_95_ns: of(|it| it.p90),
        delay_median_ns: of(|it| it.delay),
        by_kernel: of(|it| it.by_kernel),
        earlier_ns: Spread::of(turns.iter().filter_map(|it| it.earlier).collect()),
    }
}

impl Section for ReceiveTimes {
    fn targets(&self) -> Vec<Target> {
        let stamped = self.rows.iter().map(|row| row.by_kernel.min);
        let least = stamped.fold(1.0, f64::min);
        let [_, kernel, ktime, _] = &self.rows[..] else {
            return Vec::new();
        };
        let ratio = ktime.offset_5_to_95_ns.median / kernel.offset_5_to_95_ns.median;
        let narrower = "spread of chronyd's offsets, tscap by ktime ÷ kernel at the same place";
        let share = "least share of chronyd's measurements without times of its own";
        vec![
            Target::at_least(share, least, 0.9),
            Target::at_most(narrower, ratio, 1.0).asserted_if(false),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let rows = self.rows.iter().map(|it| {
            let figures = [
                &it.offset_median_ns,
                &it.offset_iqr_ns,
                &it.offset_5_to_95_ns,
                &it.delay_median_ns,
                &it.earlier_ns,
            ];
            row(it.subject, figures.map(|figure| show(figure, 0)))
        });
        let title = format!(
            "offsets that chronyd measures to its own clock, ns, {} a turn",
            self.measurements
        );
        let columns = [
            "receive times",
            "median",
            "IQR",
            "5–95 %",
            "delay",
            "earlier",
        ];
        vec![Table::figures(&title, &columns, rows.collect())]
    }
}
