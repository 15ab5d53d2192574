//! The command lines by which Wireshark and tshark ask a program in their extcap folder
//! (extcap(4)): the words of `tscap capture`, some by other names, and a few questions.

mod config;
mod name;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser};

pub use config::config;
pub use name::{interface_of, value_of};

use super::capture::CaptureArgs;
use super::{CapturePlan, Cli, FilterSource, Plan, Verbosity};

/// The only word of Wireshark's that does not begin with [`PREFIX`].
const CAPTURE: &str = "--capture";
const PREFIX: &str = "--extcap-";

/// What Wireshark asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum ExtcapPlan {
    /// The interfaces.
    Interfaces,
    /// The link type of an interface.
    LinkType {
        /// Its name.
        interface: String,
    },
    /// The options of a capture.
    Config,
    /// What is wrong with a filter.
    CheckFilter {
        /// The interface that it is for.
        interface: String,
        /// The filter.
        filter: FilterSource,
    },
    /// A capture into a named pipe.
    Capture {
        /// The capture.
        plan: Box<CapturePlan>,
        /// The pipe.
        fifo: PathBuf,
    },
    /// A capture whose options are wrong: its reader waits all the same.
    Refused {
        /// The pipe.
        fifo: PathBuf,
        /// What is wrong.
        error: String,
    },
    /// Something that takes no answer.
    Nothing,
}

/// Wireshark's questions.
#[derive(Debug, Args)]
struct Questions {
    #[arg(long)]
    extcap_interfaces: bool,
    #[arg(long)]
    extcap_dlts: bool,
    #[arg(long)]
    extcap_config: bool,
    #[arg(long)]
    capture: bool,
    /// Wireshark's version, beside one of the others.
    #[arg(long, num_args = 0..=1)]
    extcap_version: Option<Option<String>>,
    /// After a capture that was killed (Wireshark 4.4).
    #[arg(long)]
    extcap_cleanup_postkill: bool,
}

#[derive(Debug, Parser)]
#[command(name = "tscap")]
struct ExtcapArgs {
    #[command(flatten)]
    questions: Questions,
    #[command(flatten)]
    capture: CaptureArgs,
}

/// Whether a command line that begins with `first` is one of Wireshark's.
pub(super) fn is_asked(first: &str) -> bool {
    first == CAPTURE || first.starts_with(PREFIX)
}

/// The plan of a command line, the program's name first.
pub(super) fn plan(words: &[OsString]) -> Result<Plan, clap::Error> {
    let plan = matches(words).and_then(|it| ExtcapArgs::from_arg_matches(&it)?.into_plan());
    match (plan, fifo(words)) {
        (Err(error), Some(fifo)) => Ok(ExtcapPlan::Refused {
            fifo,
            error: first_line(&error),
        }),
        (plan, _) => plan,
    }
    .map(|plan| Plan::Extcap(Box::new(plan)))
}

fn matches(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    // `is_asked` has found one of them.
    let asked = [
        "extcap_interfaces",
        "extcap_dlts",
        "extcap_config",
        "extcap_version",
        "extcap_cleanup_postkill",
        "capture",
        "capture_filter",
    ];
    ExtcapArgs::command()
        .mut_arg("interface", |arg| {
            arg.alias("extcap-interface")
                .required_unless_present_any(asked)
        })
        .mut_arg("write", |arg| arg.alias("fifo"))
        .mut_arg("capture_filter", |arg| arg.alias("extcap-capture-filter"))
        .try_get_matches_from(words)
}

/// The named pipe of a command line that is not understood.
fn fifo(words: &[OsString]) -> Option<PathBuf> {
    let at = words.iter().position(|word| word == "--fifo")?;
    words.get(at + 1).map(PathBuf::from)
}

/// What a usage error says, without the usage.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl ExtcapArgs {
    fn into_plan(mut self) -> Result<ExtcapPlan, clap::Error> {
        let questions = &self.questions;
        if questions.extcap_interfaces {
            return Ok(ExtcapPlan::Interfaces);
        }
        if questions.extcap_cleanup_postkill {
            return Ok(ExtcapPlan::Nothing);
        }
        for value in &mut self.capture.interface {
            *value = interface_of(value).ok_or_else(|| not_offered(value))?;
        }
        let one = match &self.capture.interface[..] {
            [name] => Ok(name.clone()),
            _ => Err(missing("--extcap-interface")),
        };
        if questions.extcap_config {
            return one.map(|_| ExtcapPlan::Config);
        }
        let interface = one?;
        if questions.extcap_dlts {
            return Ok(ExtcapPlan::LinkType { interface });
        }
        if !questions.capture {
            let filter = self.capture.filter.into_source();
            let filter = filter.ok_or_else(|| missing("--extcap-capture-filter"))?;
            return Ok(ExtcapPlan::CheckFilter { interface, filter });
        }
        let fifo = self.capture.write.clone();
        let fifo = fifo.ok_or_else(|| missing("--fifo"))?;
        match self.capture.into_plan()? {
            Plan::Capture(mut plan) => {
                // Whatever stands on standard error is an error for Wireshark.
                if plan.verbosity == Verbosity::Normal {
                    plan.verbosity = Verbosity::Errors;
                }
                Ok(ExtcapPlan::Capture { plan, fifo })
            }
            _ => Err(missing("--extcap-interface")),
        }
    }
}

fn missing(option: &str) -> clap::Error {
    let message = format!("{option} is missing: Wireshark gives it");
    Cli::command().error(ErrorKind::MissingRequiredArgument, message)
}

fn not_offered(value: &str) -> clap::Error {
    let message = format!("{value} is no interface of --extcap-interfaces");
    Cli::command().error(ErrorKind::ValueValidation, message)
}

#[cfg(test)]
mod tests;
