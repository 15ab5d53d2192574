//! A process of its own that keeps the journal of a capture that has given up its privileges,
//! and what giving back takes: `tscap keep-settings`, which the capture starts.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Child;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::guard::{Refused, RestoreSummary};
use super::{Change, ChangeError, Journal, JournalError, JournalFolder, SettingsGuard};
use crate::helper_process;
use tscap_base::kernel_files::KernelFiles;
use tscap_base::text::causes::chain;
use tscap_host::caps::{self, Capability};

/// The hidden command of tscap.
pub const COMMAND: &str = "keep-settings";
/// What giving back takes, and making changes of the same kinds: files of sysfs and procfs
/// are root's.
const NEEDS: [Capability; 2] = [Capability::NetAdmin, Capability::SysNice];
/// The same where the process enters other network namespaces.
const NEEDS_ELSEWHERE: [Capability; 3] = [NEEDS[0], NEEDS[1], Capability::SysAdmin];

/// The first line that the capture sends.
#[derive(Serialize, Deserialize)]
struct Begin {
    journal: Journal,
    is_elsewhere: bool,
}

/// What the capture asks for, a line of JSON each.
#[derive(Serialize, Deserialize)]
enum Request {
    /// [`SettingsGuard::make`].
    Make(Vec<Change>),
    /// [`SettingsGuard::journal_ahead`].
    Foresee(Vec<Change>),
    /// [`SettingsGuard::is_made`].
    IsMade(Change),
    /// [`SettingsGuard::give_back`]; the last one.
    GiveBack,
}

/// Refused changes, each with the reason.
type RefusedTexts = Vec<(Change, String)>;

/// What [`RestoreSummary`] has.
type Answer = (Vec<String>, bool);

/// The process, from the capture's side.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    stream: BufReader<UnixStream>,
}

impl Keeper {
    /// Starts it with privileges that this thread has now, and hands over `journal`.
    pub fn start(journal: Journal, is_elsewhere: bool) -> io::Result<Self> {
        let (process, own) = helper_process::start(COMMAND)?;
        let mut keeper = Self {
            process,
            stream: BufReader::new(own),
        };
        let begin = Begin {
            journal,
            is_elsewhere,
        };
        let ready: Result<(), String> = keeper.exchange(&begin)?;
        ready.map_err(io::Error::other)?;
        Ok(keeper)
    }

    fn exchange<T: DeserializeOwned>(&mut self, line: &impl Serialize) -> io::Result<T> {
        send(self.stream.get_mut(), line)?;
        receive(&mut self.stream)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, JournalError> {
        let answer: Result<T, String> = self.exchange(request).map_err(JournalError::Keeper)?;
        answer.map_err(JournalError::Kept)
    }

    pub fn make(&mut self, changes: Vec<Change>) -> Result<Vec<Refused>, JournalError> {
        let refused: RefusedTexts = self.ask(&Request::Make(changes))?;
        let refused = refused.into_iter().map(|(change, why)| Refused {
            change,
            error: ChangeError::Kept(why),
        });
        Ok(refused.collect())
    }

    pub fn journal_ahead(&mut self, changes: Vec<Change>) -> Result<(), JournalError> {
        self.ask(&Request::Foresee(changes))
    }

    pub fn is_made(&mut self, change: &Change) -> Result<bool, JournalError> {
        self.ask(&Request::IsMade(change.clone()))
    }

    /// Whether it is gone.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    pub fn give_back(mut self) -> RestoreSummary {
        let given_back: Result<Answer, _> = self.ask(&Request::GiveBack);
        drop(self.stream);
        helper_process::wait_for_end(&mut self.process);
        match given_back {
            Ok((problems, is_left)) => RestoreSummary { problems, is_left },
            Err(error) => RestoreSummary {
                problems: vec![format!(
                    "cannot tell whether settings were restored: {}\nhint: tscap restore",
                    chain(&error)
                )],
                is_left: true,
            },
        }
    }
}

/// Serves the capture that has started this process, whose end of the socket is standard
/// input. If the capture ends without a word, by `kill -9`, gives everything back.
///
/// # Errors
/// If no capture has started it, standard input is no such socket, or what comes from it can't be understood.
pub fn serve() -> io::Result<()> {
    let stream = helper_process::begin(c"tscap-keeper")?;
    let mut requests = BufReader::new(stream.try_clone()?);
    let Some(Begin {
        journal,
        is_elsewhere,
    }) = receive(&mut requests)?
    else {
        return Ok(());
    };
    caps::keep_only(if is_elsewhere {
        &NEEDS_ELSEWHERE
    } else {
        &NEEDS
    })?;
    let mut guard = SettingsGuard::new(JournalFolder::live(), KernelFiles::live());
    guard.adopt(journal);
    let mut answers = stream;
    send(&mut answers, &Ok::<_, String>(()))?;
    // What is given back on drop is told of on standard error.
    while let Some(request) = receive(&mut requests)? {
        match request {
            Request::Make(changes) => {
                let texts = |refused: Vec<Refused>| {
                    let why = |it: Refused| (it.change, chain(&it.error));
                    refused.into_iter().map(why).collect::<RefusedTexts>()
                };
                send(&mut answers, &kept(guard.make(changes).map(texts)))?;
            }
            Request::Foresee(changes) => send(&mut answers, &kept(guard.journal_ahead(changes)))?,
            Request::IsMade(change) => send(&mut answers, &kept(guard.is_made(&change)))?,
            Request::GiveBack => {
                let RestoreSummary { problems, is_left } = guard.give_back();
                return send(&mut answers, &Ok::<Answer, String>((problems, is_left)));
            }
        }
    }
    Ok(())
}

fn kept<T>(result: Result<T, JournalError>) -> Result<T, String> {
    result.map_err(|error| chain(&error))
}

fn send(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// The next line; `None` at the end.
fn receive<T: DeserializeOwned>(stream: &mut BufReader<UnixStream>) -> io::Result<Option<T>> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line)?)),
    }
}
