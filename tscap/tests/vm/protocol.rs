//! What the host asks of the agent in the guest, and what it answers: one JSON
//! value a line, each request answered before the next.

use std::io::{self, BufRead, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Name of the virtio-serial port between them.
pub const PORT: &str = "tscap-agent";
/// What the agent writes first.
pub const HELLO: &str = "the agent is ready";

/// Something to be done in the guest.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Start a program: [`Answer::Pid`].
    Start(Vec<String>),
    /// Wait for a line of a program's standard error that begins so:
    /// [`Answer::Line`].
    WaitLine {
        pid: u32,
        start: String,
        limit_ms: u64,
    },
    /// Send a signal to a program: [`Answer::Done`].
    Signal { pid: u32, signal: i32 },
    /// Wait for the end of a program, which is killed after `limit_ms`:
    /// [`Answer::Ended`].
    Wait { pid: u32, limit_ms: u64 },
    /// Read a file: [`Answer::Bytes`].
    Read(String),
    /// Set the system clock by this many nanoseconds: [`Answer::Done`].
    Step(i64),
    /// Frames that the running capture has recorded by CPU: [`Answer::Counts`].
    Recorded,
    /// Received frames that it has seen.
    Received,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    Pid(u32),
    Line(String),
    /// As `wait` gives the status.
    Ended {
        status: i32,
        stdout: String,
        stderr: String,
    },
    Bytes(Vec<u8>),
    Counts(Vec<u64>),
}

/// An answer, or why there is none.
pub type Reply = Result<Answer, String>;

/// Sends a request or a reply.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Receives one; `None` if the other end has gone.
pub fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}
