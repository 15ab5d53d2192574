//! `cargo xtask bench capture`: tscap and other captures under the same load.
//!
//! Frames go through a veth pair to one program after the other, in turns: flat out,
//! at several rates, and once to none. Every frame sent must be in the file, counted
//! by us, or among those lost; a run that does not add up, or a program that hangs,
//! is told as failed and gives no figure.

mod amount;
mod cells;
mod ground;
mod ground_targets;
mod page;
mod pausing_disk;
mod precision;
mod report;
mod runs;
mod sent;
mod sent_report;
mod targets;

#[path = "../common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use tscap_testkit::command::tscap_path;
use tscap_testkit::process::{cpus, on_cpu};
use tscap_traffic::load::{Program, Stop, Tool, tool_cpus};

use amount::{Amount, BEGINNINGS, Kind, LONG, MIDDLING, SHORT, WHOLE};
use common::run::{Bench, Parts, Run, write};
use common::stop::stopped_by_signals;
use ground::Ground;
use pausing_disk::PausingDisk;
use report::{Captures, DiskAlone, ToolVersion};
use runs::Runs;

/// Options of its own.
#[derive(Debug, Args)]
struct Own {
    #[command(flatten)]
    parts: Parts<Part>,
    /// Write the JSON object to this file too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with the curves
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where the part `disk` writes [default: the first of cargo's target folder, the sources'
    /// and /var/tmp that can be written past the page cache]
    #[arg(long, value_name = "FOLDER")]
    disk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// 64 bytes
    Short,
    /// 256 bytes
    Middling,
    /// 1500 bytes, snaplen 128
    Beginnings,
    /// 1500 bytes, whole
    Long,
    /// Frames that are sent, by tscap and tcpdump
    Sent,
    /// How precise the programs' stamps are
    Precision,
    /// A port that only listens; measured only if it is named, alone with the frames named
    Tap,
    /// Files on a disk, and on one with pauses; measured only if it is named, alone with the
    /// frames named
    Disk,
}

/// The kinds that have a part of their own; the mix has none.
const PARTS: [(Part, Kind); 4] = [
    (Part::Short, SHORT),
    (Part::Middling, MIDDLING),
    (Part::Beginnings, BEGINNINGS),
    (Part::Long, LONG),
];

impl Own {
    /// Those of `kinds` that are wanted up the stack: none where only another ground is.
    fn of_stack(&self, kinds: &[(Kind, u64)]) -> Vec<(Kind, u64)> {
        let elsewhere = self.parts.names(Part::Tap) || self.parts.names(Part::Disk);
        let is_wanted = |kind| {
            let mut parts = PARTS.iter();
            parts.any(|(part, of)| *of == kind && self.parts.want(*part))
        };
        let kinds = kinds
            .iter()
            .filter(|(kind, _)| !elsewhere && is_wanted(*kind));
        kinds.copied().collect()
    }

    /// Those of `kinds` that are wanted on another ground: the whole ones, or those that are
    /// named beside it.
    fn of_ground(&self, kinds: &[(Kind, u64)]) -> Vec<(Kind, u64)> {
        let named = PARTS.iter().filter(|(part, _)| self.parts.names(*part));
        let named: Vec<_> = named.map(|(_, kind)| *kind).collect();
        let is_wanted = |kind| named.is_empty() || named.contains(kind);
        let kinds = kinds
            .iter()
            .filter(|(kind, _)| WHOLE.contains(kind) && is_wanted(kind));
        kinds.copied().collect()
    }
}

fn main() -> ExitCode {
    let bench = Bench {
        name: "capture",
        version: 1,
        about: "Loss, rate and CPU time of captures under load",
        // The sender's: the one that `tscap compare` takes.
        cpu: |cpus| cpus.first(),
    };
    bench.run(measure)
}

fn measure(run: &mut Run<Own>) -> Result<()> {
    let stop = stopped_by_signals()?;
    let _lock = run.alone()?;
    let allowed: Vec<u32> = cpus().into_iter().map(|cpu| cpu as u32).collect();
    ensure!(
        allowed.len() > 1,
        "captures need a CPU besides the sender's"
    );
    let capture_cpus = tool_cpus(run.cpu as u32, &allowed);
    if run.own.parts.want(Part::Sent) {
        let (rounds, times) = (run.options.rounds(5, 11), run.options.either(5, 20));
        let stop = Arc::clone(&stop);
        let sent = on_cpu(run.cpu, || {
            sent::measure(&capture_cpus, rounds, times, stop)
        })?;
        run.report.set("sent", &sent)?;
        run.report.add(&sent);
    }
    if run.own.parts.want(Part::Precision) {
        let rounds = run.options.rounds(3, 11);
        let (programs, _) = programs();
        let precision = on_cpu(run.cpu, || {
            precision::measure(&programs, &capture_cpus, rounds, &stop)
        })?;
        run.report.set("precision", &precision)?;
        run.report.add(&precision);
    }
    let amount = run.options.either(&amount::QUICK, &amount::FULL);
    let mut parts = Vec::new();
    let kinds = run.own.of_stack(amount.flat_out);
    if !kinds.is_empty() {
        let captures = captures(run, Ground::Stack, amount, kinds, &capture_cpus, &stop)?;
        run.report.add_whole(&captures)?;
        parts.push(captures);
    }
    if run.own.parts.names(Part::Tap) {
        let kinds = run.own.of_ground(amount.flat_out);
        let captures = captures(run, Ground::Tap, amount, kinds, &capture_cpus, &stop)?;
        run.report.set("tap", &captures)?;
        run.report.add(&captures);
        parts.push(captures);
    }
    if run.own.parts.names(Part::Disk) {
        parts.extend(quiet_disk(run, &capture_cpus, &stop)?);
        parts.extend(pausing_disk(run, &capture_cpus, &stop)?);
    }
    write(run.own.out.as_deref(), || run.report.json())?;
    match parts[..] {
        [] => Ok(()),
        _ => write(run.own.report.as_deref(), || {
            Ok(page::render(&run.report, &parts))
        }),
    }
}

/// With files on a disk; none without one, which the report then says.
fn quiet_disk(
    run: &mut Run<Own>,
    capture_cpus: &[u32],
    stop: &Arc<Stop>,
) -> Result<Option<Captures>> {
    let amount = run.options.either(&amount::DISK_QUICK, &amount::DISK_FULL);
    let kinds = run.own.of_ground(amount.flat_out);
    let folder = match ground::disk(run.own.disk.as_deref(), amount.largest_file(&kinds)) {
        Ok(folder) => folder,
        Err(why) => return skipped(run, "disk", &why),
    };
    let captures = captures(run, Ground::Disk(folder), amount, kinds, capture_cpus, stop)?;
    run.report.set("disk", &captures)?;
    run.report.add(&captures);
    Ok(Some(captures))
}

/// The same with a disk that pauses; none, too, if only frames are wanted that it does not get.
fn pausing_disk(
    run: &mut Run<Own>,
    capture_cpus: &[u32],
    stop: &Arc<Stop>,
) -> Result<Option<Captures>> {
    let amount = run
        .options
        .either(&amount::PAUSES_QUICK, &amount::PAUSES_FULL);
    let kinds = run.own.of_ground(amount.flat_out);
    if kinds.is_empty() {
        return Ok(None);
    }
    let bytes = amount.largest_file(&kinds);
    let disk = ground::disk(run.own.disk.as_deref(), bytes)
        .and_then(|folder| PausingDisk::open(&folder, bytes));
    let mut disk = match disk {
        Ok(disk) => disk,
        Err(why) => return skipped(run, "disk-pauses", &why),
    };
    let ground = Ground::Pauses(disk.folder().to_owned());
    let captures = captures(run, ground, amount, kinds, capture_cpus, stop)?;
    disk.still_pauses()?;
    run.report.set("disk_pauses", &captures)?;
    run.report.add(&captures);
    Ok(Some(captures))
}

/// Says why a part has no captures.
fn skipped(run: &mut Run<Own>, part: &str, why: &anyhow::Error) -> Result<Option<Captures>> {
    let skipped = format!("{part}: skipped: {why:#}");
    let name = format!("{}_skipped", part.replace('-', "_"));
    run.report.set(&name, &skipped)?;
    run.report.conditions.push(skipped);
    Ok(None)
}

/// All rounds on one ground, each kind with its frames flat out.
fn captures(
    run: &mut Run<Own>,
    ground: Ground,
    amount: &Amount,
    kinds: Vec<(Kind, u64)>,
    capture_cpus: &[u32],
    stop: &Arc<Stop>,
) -> Result<Captures> {
    let rounds = run.options.rounds(amount.rounds, amount.rounds);
    let (programs, absent) = programs();
    let tools = programs.iter().map(|program| {
        Ok(ToolVersion {
            tool: program.tool,
            version: program.version()?,
        })
    });
    let tools = tools.collect::<Result<Vec<_>>>()?;
    let (kinds, disk) = on_cpu(run.cpu, || {
        let stop = Arc::clone(stop);
        let mut runs = Runs::open(&ground, amount, kinds, &programs, capture_cpus, stop)?;
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            runs.round(round)?;
        }
        anyhow::Ok(runs.finish())
    })?;
    let captures = Captures {
        rounds,
        buffer_bytes: amount.buffer_bytes,
        capture_cpus: capture_cpus.to_vec(),
        tools,
        absent,
        kinds,
        ground,
        disk: DiskAlone::of(disk),
    };
    let conditions = captures.conditions(run.cpu);
    run.report.conditions.extend(conditions);
    Ok(captures)
}

/// The programs that are here, and why others are not.
fn programs() -> (Vec<Program>, Vec<String>) {
    let found = Tool::ALL.map(|tool| tool.find(Path::new(tscap_path())));
    let absent = found.iter().filter_map(|found| found.as_ref().err());
    let absent = absent.map(ToString::to_string).collect();
    (found.into_iter().flatten().collect(), absent)
}
