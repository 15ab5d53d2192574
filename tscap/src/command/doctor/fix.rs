//! `tscap doctor --fix`: what doctor advises, told or done.

use std::fmt::Write as _;

use serde::Serialize;

use crate::command::print::{json_line, print, say};
use crate::command::{Exit, Failure, runtime};
use tscap_base::failure::{Context as _, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_base::text::numbers::counted;
use tscap_cli::FixChoice;
use tscap_doctor::{Check, FixPlan, Remedy, UnfollowedAdvice};
use tscap_live::settings::{Change, InterfaceId, JournalFolder, SettingsGuard, State, turn};
use tscap_network::netdev::Link;

/// Version of the JSON object.
const VERSION: u32 = 1;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ChangeOutcome {
    /// It was only told.
    Planned,
    Done,
    /// The kernel refused it.
    Refused,
}

#[derive(Debug, Serialize)]
struct Row {
    check: &'static str,
    setting: String,
    /// Where a person finds it.
    path: String,
    now: String,
    then: String,
    became: ChangeOutcome,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    event: &'static str,
    v: u32,
    interface: &'a str,
    changes: Vec<Row>,
    /// What is left to whoever looks after the machine.
    left: Vec<UnfollowedAdvice>,
    /// The command that gives the changes back.
    undo: &'static str,
}

/// Tells what follows from the checks of `link`, and does it if that is asked for.
pub(super) fn run(
    checks: &[Check],
    link: &Link,
    choice: FixChoice,
    is_json: bool,
) -> Result<Exit, Failure> {
    let report = match choice {
        FixChoice::Tell => tell(checks, link)?,
        FixChoice::Do => change(checks, link)?,
    };
    print(&if is_json {
        json_line(&report)
    } else {
        report.text(choice)
    })?;
    let is_refused = |row: &Row| row.became == ChangeOutcome::Refused;
    Ok(if report.changes.iter().any(is_refused) {
        Exit::Fault
    } else {
        Exit::Success
    })
}

fn plan(checks: &[Check], link: &Link) -> Result<FixPlan, Failure> {
    let what = || format!("cannot tell what is to be changed of {}", link.name);
    let interface = InterfaceId::here(link).context(what())?;
    FixPlan::of(checks, &KernelFiles::live(), &interface).context(what())
}

fn tell<'a>(checks: &[Check], link: &'a Link) -> Result<Report<'a>, Failure> {
    let FixPlan { changes, left } = plan(checks, link)?;
    let changes = changes.iter();
    let rows = changes.map(|(check, change)| Row::of(check, change, ChangeOutcome::Planned, None));
    Ok(Report::of(link, rows.collect(), left))
}

fn change<'a>(checks: &[Check], link: &'a Link) -> Result<Report<'a>, Failure> {
    if !nix::unistd::geteuid().is_root() {
        let what = format!("cannot change settings of {}: only root may", link.name);
        return Err(Failure::new(what).hint("run it as root"));
    }
    let folder = JournalFolder::live();
    let failed = |error| turn::failure("cannot change settings", error);
    let note = || say("note: waiting for another tscap that is about to change settings");
    let turn = turn::lock_journals(&folder, turn::LOCK_TIMEOUT, note, failed);
    let _turn = runtime()?.block_on(turn)?;
    for journal in folder.all().map_err(failed)?.into_iter().flatten() {
        if matches!(folder.state(&journal), Ok(State::Live)) {
            turn::refuse_shared(&journal, &[link.index])?;
        }
    }
    // As it is now that nobody else changes anything.
    let FixPlan { changes, left } = plan(checks, link)?;
    let mut guard = SettingsGuard::lasting(folder, KernelFiles::live());
    let wanted = changes.iter().map(|(_, change)| change.clone()).collect();
    let refused = guard.make(wanted).map_err(failed);
    let refused = refused.hint("tscap restore gives back what was changed, if anything was")?;
    let rows = changes.iter().map(|(check, change)| {
        let refused = refused.iter().find(|it| it.change == *change);
        match refused {
            Some(it) => Row::of(
                check,
                change,
                ChangeOutcome::Refused,
                Some(chain(&it.error)),
            ),
            None => Row::of(check, change, ChangeOutcome::Done, None),
        }
    });
    Ok(Report::of(link, rows.collect(), left))
}

impl Row {
    fn of(
        check: &'static str,
        change: &Change,
        became: ChangeOutcome,
        error: Option<String>,
    ) -> Self {
        Self {
            check,
            setting: change.to_string(),
            path: change.path.clone(),
            now: change.old_shown().into(),
            then: change.new_shown().into(),
            became,
            error,
        }
    }

    fn line(&self) -> String {
        let Self {
            check,
            setting,
            now,
            then,
            ..
        } = self;
        let became = match (&self.became, &self.error) {
            (ChangeOutcome::Planned, _) => String::new(),
            (ChangeOutcome::Done, _) => ": done".into(),
            (ChangeOutcome::Refused, error) => {
                format!(": refused: {}", error.as_deref().unwrap_or_default())
            }
        };
        format!("  {check}: {setting}: {now} → {then}{became}\n")
    }
}

impl<'a> Report<'a> {
    fn of(link: &'a Link, changes: Vec<Row>, left: Vec<UnfollowedAdvice>) -> Self {
        Self {
            event: "doctor_fix",
            v: VERSION,
            interface: &link.name,
            changes,
            left,
            undo: "tscap restore",
        }
    }

    fn text(&self, choice: FixChoice) -> String {
        let mut text = String::new();
        let changes = counted(self.changes.len() as u64, "change");
        let head = match (self.changes.is_empty(), choice) {
            (true, _) => format!("{}: nothing for tscap to change", self.interface),
            (false, FixChoice::Tell) => format!("{}: {changes} to be made:", self.interface),
            (false, FixChoice::Do) => format!("{}: {changes}:", self.interface),
        };
        text += &head;
        text.push('\n');
        for row in &self.changes {
            text += &row.line();
        }
        let commands = |left: &&UnfollowedAdvice| matches!(left.remedy, Remedy::Fix(_));
        let (commands, words): (Vec<_>, Vec<_>) = self.left.iter().partition(commands);
        for left in [commands, words] {
            if let Some(first) = left.first() {
                let _ = writeln!(text, "\nnot done by tscap ({}):", first.reason);
            }
            for UnfollowedAdvice { check, remedy, .. } in left {
                let (Remedy::Fix(what) | Remedy::Advice(what)) = remedy;
                let _ = writeln!(text, "  {check}: {what}");
            }
        }
        let end = match (self.changes.is_empty(), choice) {
            (true, _) => return text,
            (_, FixChoice::Tell) => {
                "nothing is changed yet: --yes makes the changes; they last until the next boot or \
                 `tscap restore`"
            }
            (_, FixChoice::Do) => "`tscap restore` gives the changes back; the next boot does too",
        };
        text + "\n" + end + "\n"
    }
}
