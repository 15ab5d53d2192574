//! `cargo xtask bench capture`: tscap and other captures under the same load.
//!
//! Frames go through a veth pair to one program after the other, in turns: flat out,
//! at several rates, and once to none. Every frame sent must be in the file, counted
//! by us, or among those lost; a run that does not add up, or a program that hangs,
//! is told as failed and gives no figure.

mod amount;
mod cells;
mod page;
mod report;
mod runs;
mod table;
mod targets;

#[path = "../common/mod.rs"]
mod common;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use tscap::measuring::load::{Program, Tool, tool_cpus};

use common::cli::{self, Options, Parts};
use common::header::Header;
use common::stop::stopped_by_signals;
use report::{Report, ToolReport, VERSION};
use runs::Runs;
use support::capture::TSCAP;
use support::process::{cpus, on_cpu};

/// Loss, rate and CPU time of captures under load
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench capture")]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    parts: Parts<Part>,
    /// Write the JSON object to this file too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with the curves
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
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
}

/// In the order of their kinds.
const PARTS: [Part; 4] = [Part::Short, Part::Middling, Part::Beginnings, Part::Long];

fn main() -> ExitCode {
    let args = Args::parse();
    cli::main(
        "capture",
        &args.options,
        || measure(&args),
        table::render,
        Report::missed,
    )
}

fn measure(args: &Args) -> Result<Report> {
    let stop = stopped_by_signals()?;
    eprintln!("waiting until no root test is running");
    let _turn = support::root::root("bench capture").context("nothing can be measured")?;
    let options = &args.options;
    let amount = if options.quick {
        &amount::QUICK
    } else {
        &amount::FULL
    };
    let rounds = options.rounds(amount.rounds, amount.rounds);
    let cpus = cpus();
    ensure!(cpus.len() > 1, "captures need a CPU besides the sender's");
    // The one that `tscap compare` takes.
    let cpu = cpus[0];
    let header = Header::new("capture", VERSION, options, cpu);
    let (programs, absent) = programs();
    let tools = programs.iter().map(|program| {
        Ok(ToolReport {
            tool: program.tool,
            version: program.version()?,
        })
    });
    let tools = tools.collect::<Result<Vec<_>>>()?;
    let allowed: Vec<u32> = cpus.iter().map(|cpu| *cpu as u32).collect();
    let captures = tool_cpus(cpu as u32, &allowed);
    let kinds = amount.flat_out.into_iter().zip(PARTS);
    let kinds = kinds.filter(|(_, part)| args.parts.want(*part));
    let kinds: Vec<_> = kinds.map(|(kind, _)| kind).collect();
    let kinds = on_cpu(cpu, || {
        let mut runs = Runs::open(amount, kinds, &programs, &captures, stop)?;
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            runs.round(round)?;
        }
        anyhow::Ok(runs.finish())
    })?;
    let report = Report {
        header,
        rounds,
        buffer_bytes: amount.buffer_bytes,
        capture_cpus: captures,
        targets: targets::of(&kinds),
        tools,
        absent,
        kinds,
    };
    write(args.out.as_deref(), || Ok(serde_json::to_string(&report)?))?;
    write(args.report.as_deref(), || Ok(page::render(&report)))?;
    Ok(report)
}

/// The programs that are here, and why others are not.
fn programs() -> (Vec<Program>, Vec<String>) {
    let found = Tool::ALL.map(|tool| tool.find(Path::new(TSCAP)));
    let absent = found.iter().filter_map(|found| found.as_ref().err());
    let absent = absent.map(ToString::to_string).collect();
    (found.into_iter().flatten().collect(), absent)
}

fn write(path: Option<&Path>, text: impl FnOnce() -> Result<String>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text()?).with_context(|| format!("cannot write {}", path.display()))
}
