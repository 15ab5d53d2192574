//! The signals that end a command in order.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, oneshot};

use super::whole_file;
use super::{Context as _, Exit, Failure, runtime};
use crate::capturing::host::{caps, wake};

/// Signals within this time are one request: coreutils' `timeout` signals its child,
/// and then the group that the child is in.
const ONE_REQUEST: Duration = Duration::from_millis(500);
/// The thread needs little.
const STACK: usize = 256 << 10;
/// A command that has not taken up a request for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// Requests to end, by SIGINT, SIGTERM or SIGHUP, from the moment that this is made.
///
/// A thread of its own takes the signals: what counts is when they came, not when the
/// command finds time for them.
#[derive(Debug)]
pub(super) struct Signals {
    requests: Receiver<()>,
    /// Tells the thread to go on without capabilities.
    give_up: Arc<Notify>,
}

/// What the thread owns.
struct Watch {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Caught so that a write past the file size limit (`ulimit -f`) fails as
    /// one on a full disk does, instead of killing the process.
    _file_too_large: Signal,
    requests: Sender<()>,
    give_up: Arc<Notify>,
}

impl Signals {
    /// Catches them, and lets [`wake`] end a system call that hangs.
    pub fn new() -> Result<Self, Failure> {
        let runtime = runtime()?;
        let guard = runtime.enter();
        let (requests, taken) = channel(1);
        let give_up = Arc::new(Notify::new());
        let watch = Watch::new(requests, Arc::clone(&give_up));
        let watch = watch.context("cannot catch signals")?;
        wake::prepare().context("cannot catch signals")?;
        drop(guard);
        std::thread::Builder::new()
            .name("tscap-signals".into())
            .stack_size(STACK)
            .spawn(move || runtime.block_on(watch.run()))
            .context("cannot start a thread")?;
        Ok(Self {
            requests: taken,
            give_up,
        })
    }

    /// Goes on without capabilities, in the thread that takes the signals.
    pub fn give_up_capabilities(&self) {
        self.give_up.notify_one();
    }

    /// Waits for the next request. Safe to cancel.
    pub async fn next(&mut self) {
        // The thread sends for as long as there is somebody to receive.
        let _ = self.requests.recv().await;
    }
}

impl Watch {
    fn new(requests: Sender<()>, give_up: Arc<Notify>) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            _file_too_large: signal(SignalKind::from_raw(libc::SIGXFSZ))?,
            requests,
            give_up,
        })
    }

    /// Makes requests of signals until the command is done with them.
    async fn run(mut self) {
        let mut asked: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
                _ = self.hangup.recv() => {}
                () = self.requests.closed() => return,
                () = self.give_up.notified() => {
                    // With more of them it does the same.
                    let _ = caps::keep_only(&[]);
                    continue;
                }
            }
            let now = Instant::now();
            match asked {
                Some(asked) if now - asked < ONE_REQUEST => continue,
                Some(asked) if now - asked >= HANGS_AFTER && self.requests.capacity() == 0 => {
                    eprintln!("tscap: aborted: it hangs");
                    whole_file::abandon();
                    std::process::exit(Exit::Aborted.code().into());
                }
                _ => {}
            }
            match self.requests.try_send(()) {
                // Since the request that waits.
                Err(TrySendError::Full(())) => {}
                Ok(()) | Err(TrySendError::Closed(())) => asked = Some(now),
            }
        }
    }
}

/// Does `work`, which writes a file whole or not at all; a signal ends it at once, and
/// its temporary files are removed.
pub(super) fn whole_or_nothing(
    work: impl FnOnce() -> Result<Exit, Failure> + Send + 'static,
) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    let (done, result) = oneshot::channel();
    let worker = std::thread::Builder::new().name("tscap-work".into());
    let worker = worker.spawn(move || {
        // Nobody waits any more if this fails.
        let _ = done.send(work());
    });
    worker.context("cannot start a thread")?;
    runtime()?.block_on(async {
        tokio::select! {
            result = result => result
                .unwrap_or_else(|_| Err(Failure::new("the worker panicked: please report this"))),
            () = signals.next() => {
                whole_file::abandon();
                eprintln!("tscap: ended by a signal before it was done");
                Ok(Exit::Aborted)
            }
        }
    })
}
