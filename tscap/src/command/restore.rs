//! `tscap restore`.

use std::io::{self, Write};

use super::print::print;
use super::{Exit, Failure, Hint};
use crate::changes::{Change, GivenBack, Journal, JournalError, JournalFolder, State};
use crate::sys::kernel_files::KernelFiles;

/// Gives back what killed captures left changed.
pub(super) fn run() -> Result<Exit, Failure> {
    let report = restore(&JournalFolder::live(), &KernelFiles::live())?;
    for problem in &report.problems {
        let _ = writeln!(io::stderr(), "tscap: {problem}");
    }
    let mut text = report.done.join("\n");
    text.push('\n');
    print(&text)?;
    Ok(match report.problems.is_empty() {
        true => Exit::Success,
        false => Exit::Fault,
    })
}

/// What was done and what was not, in sentences.
#[derive(Debug, Default)]
struct Report {
    done: Vec<String>,
    problems: Vec<String>,
}

impl Report {
    fn failed(&mut self, what: String, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        let failure = Err::<(), _>(error).trying(what).expect_err("it is one");
        self.problems.push(failure.to_string());
    }
}

fn restore(folder: &JournalFolder, files: &KernelFiles) -> Result<Report, Failure> {
    let journals = folder.all().map_err(|error| {
        let hint = match &error {
            JournalError::NotPrivate { path } => {
                format!("look who made it, then: rm -r {}", path.display())
            }
            _ => "run it as root".into(),
        };
        let failure = Err::<(), _>(error).trying("cannot look for what is to be restored");
        failure.expect_err("it is one").hint(hint)
    })?;
    let mut report = Report::default();
    for journal in journals {
        let told = journal.and_then(|journal| Ok((folder.state(&journal)?, journal)));
        match told {
            Ok((State::Left, journal)) => give_back(journal, folder, files, &mut report),
            Ok((State::Live, journal)) => report.problems.push(format!(
                "cannot restore what process {pid} has changed: it is running, and does so itself \
                 when it ends\nhint: kill -INT {pid} ends it",
                pid = journal.pid
            )),
            Ok((State::OtherBoot, journal)) => {
                report.done.push(format!(
                    "process {} ran before the last boot: its changes went with that",
                    journal.pid
                ));
                remove(&journal, folder, &mut report);
            }
            Err(error) => {
                let hint = "\nhint: look at the file, then remove it";
                report.failed("cannot restore from a journal".into(), error);
                if let Some(last) = report.problems.last_mut() {
                    last.push_str(hint);
                }
            }
        }
    }
    if report.done.is_empty() && report.problems.is_empty() {
        report.done.push("nothing to restore".into());
    }
    Ok(report)
}

/// Gives back the changes of one journal, and says what became of each.
fn give_back(journal: Journal, folder: &JournalFolder, files: &KernelFiles, report: &mut Report) {
    let done = journal.give_back(folder, files, |change, became| match became {
        GivenBack::Restored => report
            .done
            .push(format!("restored the {change}: {}", change.old_shown())),
        GivenBack::Already => report.done.push(format!(
            "the {change} had been restored already: {}",
            change.old_shown()
        )),
        GivenBack::LeftAlone { now } => report.done.push(change.left_alone(&now)),
        GivenBack::Gone => report
            .done
            .push(format!("there is no {change} any more: nothing to restore")),
        GivenBack::Elsewhere => report.problems.push(elsewhere(change)),
        GivenBack::Failed(error) => {
            report.failed(format!("cannot restore the {change}"), error);
        }
    });
    if let Err(error) = done {
        report.failed("cannot note what was restored".into(), error);
    }
}

fn elsewhere(change: &Change) -> String {
    let hint = match change.restore_command() {
        Some(command) => command,
        None => format!(
            "run tscap restore inside the namespace net:[{}] (lsns -t net lists them)",
            change.interface.netns
        ),
    };
    format!(
        "cannot restore the {change} from here: it is in another network namespace\nhint: {hint}"
    )
}

fn remove(journal: &Journal, folder: &JournalFolder, report: &mut Report) {
    if let Err(error) = folder.remove(journal) {
        report.failed("cannot remove a journal that is done with".into(), error);
    }
}

#[cfg(test)]
mod tests;
