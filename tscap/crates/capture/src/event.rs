//! What a capture has to say while it goes on.

use std::fmt;
use std::path::PathBuf;

use super::state::{Progress, ReadyInterface};
use super::summary::Stop;
use tscap_base::text::numbers::signed;
use tscap_clock::StepCause;
use tscap_engine::ClosedFile;

/// How much a [`Event::Notice`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// How something was prepared.
    Detail,
    /// Worth knowing, and no reason to worry.
    Note,
    /// Something in the file or on the machine is not as one may expect.
    Warning,
    /// Something failed.
    Error,
}

/// What a capture has to say.
#[derive(Debug)]
pub enum Event {
    /// The counters, each second.
    Progress(Progress),
    /// A text for people.
    Notice(Severity, String),
    /// A file is complete.
    FileClosed(ClosedFile),
    /// A file is gone, by its ring of files or because another took its name.
    FileRemoved {
        /// Its name.
        path: PathBuf,
        /// Frames in it, if it was of this capture.
        frames: Option<u64>,
    },
    /// Everything captured before that was asked for is written.
    Flushed {
        /// The file that began then.
        next: Option<PathBuf>,
    },
    /// The program of `-z` failed on a file.
    CommandFailed {
        /// The file.
        file: PathBuf,
        /// How.
        failure: String,
    },
    /// An interface joined the capture.
    Joined(ReadyInterface),
    /// An interface that was not named is gone.
    Left(ReadyInterface),
    /// The system clock was set.
    Stepped {
        /// By how much, ns.
        step_ns: i64,
        /// Why.
        cause: StepCause,
    },
    /// The raw counter jumped.
    CounterJumped {
        /// By how much the clock went ahead of it, ns.
        jump_ns: i64,
    },
    /// The hypervisor says that the counter was disrupted, as by a move to another machine.
    Disrupted,
    /// The capture has a reason to end: [`super::Running::finish`] is due.
    Stopped(Stop),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Progress(now) => {
                write!(f, "{} frames, {} drops", now.written, now.drops)
            }
            Self::Notice(Severity::Detail, text) => f.write_str(text),
            Self::Notice(Severity::Note, text) => write!(f, "note: {text}"),
            Self::Notice(Severity::Warning, text) => write!(f, "warning: {text}"),
            Self::Notice(Severity::Error, text) => write!(f, "error: {text}"),
            Self::FileClosed(file) => write!(f, "{}: complete", file.path.display()),
            Self::FileRemoved { path, .. } => write!(f, "{}: removed", path.display()),
            Self::Flushed { next: None } => {
                f.write_str("everything captured by now is written; the file goes on")
            }
            Self::Flushed { next: Some(next) } => write!(
                f,
                "everything captured by now is written; the next file is {}",
                next.display()
            ),
            Self::CommandFailed { file, failure } => {
                write!(f, "-z failed on {}: {failure}", file.display())
            }
            Self::Joined(interface) => write!(f, "{interface} joins"),
            Self::Left(interface) => write!(f, "{interface} is gone"),
            Self::Stepped { step_ns, cause } => {
                let by = signed(*step_ns);
                let what = match cause {
                    StepCause::Set => format!("the system clock was set by {by} ns"),
                    StepCause::Leap => {
                        format!("a leap second: the system clock was set by {by} ns")
                    }
                    StepCause::Suspend => format!(
                        "the machine was suspended: the system clock went on {by} ns without \
                         CLOCK_MONOTONIC"
                    ),
                    StepCause::Reference => {
                        format!("the reference was set: the times go on by {by} ns more")
                    }
                    StepCause::Tai => "the kernel was told another offset to TAI".into(),
                };
                write!(f, "{what}: a new clock segment begins")
            }
            Self::CounterJumped { jump_ns } => write!(
                f,
                "the TSC jumped: the system clock is {} ns ahead of it, as after a move to \
                 another machine; a new clock segment begins",
                signed(*jump_ns)
            ),
            Self::Disrupted => f.write_str(
                "the hypervisor says that the counter was disrupted, as by a move to another \
                 machine: stamps of then have no bound",
            ),
            Self::Stopped(stop) => f.write_str(stop.reason()),
        }
    }
}

/// Passes the events of a capture to a callback as they occur.
pub struct Reporter<'a>(&'a mut dyn FnMut(Event));

impl<'a> Reporter<'a> {
    /// Has `on_event` called with each event.
    pub fn new(on_event: &'a mut dyn FnMut(Event)) -> Self {
        Self(on_event)
    }

    /// Passes an event on.
    pub fn tell(&mut self, event: Event) {
        (self.0)(event);
    }

    pub(super) fn say(&mut self, severity: Severity, text: &str) {
        self.tell(Event::Notice(severity, text.into()));
    }

    pub(super) fn detail(&mut self, text: &str) {
        self.say(Severity::Detail, text);
    }

    pub(super) fn note(&mut self, text: &str) {
        self.say(Severity::Note, text);
    }

    /// Passes a warning on.
    pub fn warning(&mut self, text: &str) {
        self.say(Severity::Warning, text);
    }

    pub(super) fn error(&mut self, text: &str) {
        self.say(Severity::Error, text);
    }
}

impl fmt::Debug for Reporter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporter").finish_non_exhaustive()
    }
}

/// Drops events, in tests.
#[cfg(test)]
pub(super) fn nobody(_: Event) {}
