//! The files of a capture as they come and go: told, counted, and handed to the
//! program of `-z`.

use super::event::{Event, Reporter};
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use super::commands::{Commands, Ended, REPLACED};
use super::plan::Capture;
use super::summary::FilesSummary;
use tscap_base::failure::Failure;
use tscap_base::text::numbers::counted;
use tscap_engine::{CloseError, ClosedFile};

/// Commands that work on complete files are waited for at most so long at the
/// end.
const COMMANDS_WITHIN: Duration = Duration::from_secs(600);

/// How the wait for the commands ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandsWait {
    /// All of them have ended.
    All,
    /// It took too long.
    TooLong,
    /// The end was asked for again.
    Aborted,
}

/// What is known of the files so far.
#[derive(Debug)]
pub(super) struct Files {
    summary: FilesSummary,
    commands: Option<Commands>,
    are_intact: bool,
    are_on_disk: bool,
}

/// What to say of a file that does not hold what was written into it.
pub(super) fn not_intact(file: &impl Display, error: &CloseError) -> String {
    match error {
        CloseError::Io(error) => format!(
            "cannot write to {file}: {error}\n\
             hint: the file may lack its end; make room, or give -w another place"
        ),
        CloseError::Removed | CloseError::Changed { .. } => format!(
            "{file}: {error}\n\
             hint: keep other programs from the file until the capture has ended"
        ),
        CloseError::NotOnDisk(_) => format!(
            "{file}: {error}\n\
             hint: frames that count as written may be missing in the file: see what the kernel \
             says of the disk (dmesg), and give -w another place"
        ),
        CloseError::NotAwaited => format!(
            "{file}: {error}: whether it has the frames that count as written is not known\n\
             hint: sync(1) waits for it"
        ),
        CloseError::Torn | CloseError::Unseen(_) => {
            format!("{file}: {error}\nhint: tshark -r shows how far it can be read")
        }
    }
}

impl Files {
    pub fn new(plan: &Capture) -> Result<Self, Failure> {
        let command = plan.rotation.as_ref().and_then(|it| it.command.as_deref());
        Ok(Self {
            summary: FilesSummary::default(),
            commands: command.map(Commands::start).transpose()?,
            are_intact: true,
            are_on_disk: true,
        })
    }

    /// Whether each file held what was written into it when it was closed.
    pub fn are_intact(&self) -> bool {
        self.are_intact
    }

    /// Whether the disk is known to have each of them.
    pub fn are_on_disk(&self) -> bool {
        self.are_on_disk
    }

    pub fn closed(
        &mut self,
        file: ClosedFile,
        error: Option<&CloseError>,
        reporter: &mut Reporter<'_>,
    ) {
        self.are_intact &= error.is_none();
        self.are_on_disk &= !error.is_some_and(CloseError::is_of_disk);
        self.summary.written += 1;
        reporter.tell(Event::FileClosed(file.clone()));
        match &mut self.commands {
            None => {}
            Some(commands) if file.is_replaced => {
                commands.leave_out();
                let ended = Ended {
                    file: file.path,
                    failure: Some(REPLACED.into()),
                };
                ended.tell(reporter);
            }
            Some(commands) => commands.run(file.path, file.id),
        }
    }

    pub fn removed(&mut self, path: PathBuf, frames: Option<u64>, reporter: &mut Reporter<'_>) {
        match frames {
            Some(frames) => {
                self.summary.removed += 1;
                self.summary.frames_removed += frames;
            }
            None => self.summary.replaced += 1,
        }
        reporter.tell(Event::FileRemoved { path, frames });
    }

    /// Waits for the end of a command. Safe to cancel.
    pub async fn command_ended(&mut self) -> Option<Ended> {
        match &mut self.commands {
            Some(commands) => commands.next().await,
            None => std::future::pending().await,
        }
    }

    /// Waits for all commands, unless it takes too long or a signal comes.
    pub async fn wait_for_commands(
        &mut self,
        mut asked: impl AsyncFnMut(),
        reporter: &mut Reporter<'_>,
    ) -> CommandsWait {
        let Some(commands) = &mut self.commands else {
            return CommandsWait::All;
        };
        commands.no_more();
        let limit = tokio::time::sleep(COMMANDS_WITHIN);
        tokio::pin!(limit);
        loop {
            let waited = tokio::select! {
                ended = commands.next() => match ended {
                    Some(ended) => {
                        ended.tell(reporter);
                        continue;
                    }
                    None => return CommandsWait::All,
                },
                () = asked() => CommandsWait::Aborted,
                () = &mut limit => CommandsWait::TooLong,
            };
            reporter.warning(&format!(
                "not ended: {}. Those that run are left to run, those that wait are not begun",
                counted(commands.summary().unfinished, "command")
            ));
            return waited;
        }
    }

    pub fn summary(&self) -> FilesSummary {
        FilesSummary {
            commands: self.commands.as_ref().map(Commands::summary),
            ..self.summary
        }
    }
}
