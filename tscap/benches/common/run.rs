//! The runner of every bench: its command line, the parts that are wanted, its report,
//! and its end by the targets.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, FromArgMatches, ValueEnum};
use serde::Serialize;
use tscap_testkit::process::cpus;
use tscap_testkit::root::{RootLock, alone};

use super::report::{Report, Section};
use super::target::missed;

/// A bench.
pub struct Bench {
    /// As `cargo xtask bench` calls it.
    pub name: &'static str,
    /// Version of the report's schema.
    pub version: u32,
    /// What it measures, for `--help`.
    pub about: &'static str,
    /// The CPU that is measured, of those that it may use.
    pub cpu: fn(&[usize]) -> Option<&usize>,
}

/// Options of every bench.
#[derive(Debug, Args)]
pub struct Options {
    /// A short run for CI: fewer rounds, fewer frames
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Rounds of each part [default: its own number, fewer with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Fail when a target is missed
    #[arg(long)]
    assert: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Writes a file that was asked for.
pub fn write(path: Option<&Path>, text: impl FnOnce() -> Result<String>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, text()?).with_context(|| format!("cannot write {}", path.display()))
}

impl Options {
    /// Rounds of a part that has `quick` of them in a quick run, else `full`.
    pub fn rounds(&self, quick: u32, full: u32) -> u32 {
        self.rounds.unwrap_or(self.either(quick, full))
    }

    /// `quick` in a quick run, else `full`.
    pub fn either<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Which parts of a bench are wanted.
#[derive(Debug, Args)]
pub struct Parts<P: ValueEnum + Send + Sync + 'static> {
    /// Only this part; may be given several times
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<P>,
}

impl<P: ValueEnum + PartialEq + Send + Sync> Parts<P> {
    /// Whether `part` is one of them.
    pub fn want(&self, part: P) -> bool {
        self.only.is_empty() || self.names(part)
    }

    /// Whether `part` was asked for by its name.
    pub fn names(&self, part: P) -> bool {
        self.only.contains(&part)
    }
}

impl Bench {
    /// Parses the arguments, measures, prints the report for people or for machines, and
    /// with `--assert` holds it to its targets. `A` are the bench's own options.
    pub fn run<A: Args>(self, measure: impl FnOnce(&mut Run<A>) -> Result<()>) -> ExitCode {
        let command =
            clap::Command::new(self.name).bin_name(format!("cargo xtask bench {}", self.name));
        let command = A::augment_args(Options::augment_args(command)).about(self.about);
        let matches = command.get_matches();
        let args = Options::from_arg_matches(&matches)
            .and_then(|options| Ok((options, A::from_arg_matches(&matches)?)));
        let (options, own) = args.unwrap_or_else(|error| error.exit());
        if !options.bench {
            // `cargo test --all-targets` runs benches too.
            eprintln!("not measuring: this is for `cargo bench`");
            return ExitCode::SUCCESS;
        }
        match self.measure(options, own, measure) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bench {}: {error:#}", self.name);
                ExitCode::FAILURE
            }
        }
    }

    fn measure<A>(
        &self,
        options: Options,
        own: A,
        measure: impl FnOnce(&mut Run<A>) -> Result<()>,
    ) -> Result<()> {
        let cpus = cpus();
        let cpu = *(self.cpu)(&cpus).context("too few CPUs to run on")?;
        let mut run = Run {
            cpu,
            report: Report::new(self.name, self.version, options.quick, cpu),
            options,
            own,
        };
        measure(&mut run)?;
        if run.options.json {
            println!("{}", run.report.json()?);
        } else {
            print!("{}", run.report.text());
        }
        let missed = missed(&run.report.targets);
        if run.options.assert && !missed.is_empty() {
            bail!("target missed: {}", missed.join("; "));
        }
        Ok(())
    }
}

/// A bench that runs.
pub struct Run<A> {
    /// Options of every bench.
    pub options: Options,
    /// The bench's own.
    pub own: A,
    /// The CPU that is measured.
    pub cpu: usize,
    /// What was found so far.
    pub report: Report,
}

impl<A> Run<A> {
    /// Waits until no root test runs, which would disturb what is measured.
    pub fn alone(&self) -> Result<RootLock> {
        eprintln!("waiting until no root test is running");
        alone("measures").context("nothing can be measured")
    }
}

impl<P: ValueEnum + Send + Sync + 'static> AsRef<Self> for Parts<P> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<A> Run<A> {
    /// Measures a part, if it is wanted, and reports it under its name.
    pub fn part<P, S: Section + Serialize>(
        &mut self,
        part: P,
        measure: impl FnOnce(&Options) -> Result<S>,
    ) -> Result<Option<S>>
    where
        P: ValueEnum + PartialEq + Send + Sync + 'static,
        A: AsRef<Parts<P>>,
    {
        let name = part.to_possible_value().context("a hidden part")?;
        let name = name.get_name().replace('-', "_");
        let wanted = self.own.as_ref().want(part);
        let section = wanted.then(|| measure(&self.options)).transpose()?;
        self.report.set(&name, &section)?;
        if let Some(section) = &section {
            self.report.add(section);
        }
        Ok(section)
    }
}
