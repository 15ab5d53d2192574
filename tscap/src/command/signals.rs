//! What signals ask of a command: one thread takes them for all commands.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, oneshot};

use super::{Context as _, Exit, Failure, runtime};
use tscap_host::signals::{self, SignalRequest};
use tscap_host::whole_file;
use tscap_host::{caps, wake};

/// Signals within this time are one request: coreutils' `timeout` signals its child,
/// and then the group that the child is in.
const ONE_REQUEST: Duration = Duration::from_millis(500);
/// The thread needs little.
const STACK: usize = 256 << 10;
/// A command that has not taken up a request for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(5);

/// Where requests to end go, while there is a command that ends in order.
static LISTENER: Mutex<Option<Sender<()>>> = Mutex::new(None);
static COUNTS: Notify = Notify::const_new();
static NEXT_FILE: Notify = Notify::const_new();
/// The thread is to go on without capabilities.
static GIVES_UP: AtomicBool = AtomicBool::new(false);

/// Takes the signals from here on, in a thread of its own: what counts is when they came, not
/// when the command finds time for them. Until there are [`Signals`], and when these are gone,
/// one that asks to end ends the process at once. To be called once.
///
/// # Errors
/// If the kernel refuses a handler or the thread.
pub(super) fn take() -> Result<(), Failure> {
    signals::catch().context("cannot catch signals")?;
    std::thread::Builder::new()
        .name("tscap-signals".into())
        .stack_size(STACK)
        .spawn(watch)
        .context("cannot start a thread")?;
    Ok(())
}

fn watch() {
    let mut asked = None;
    loop {
        let wishes = signals::wait();
        if GIVES_UP.swap(false, Ordering::AcqRel) {
            // With more of them it does the same.
            let _ = caps::keep_only(&[]);
        }
        for wish in wishes {
            match wish {
                SignalRequest::Counts => COUNTS.notify_one(),
                SignalRequest::NextFile => NEXT_FILE.notify_one(),
                SignalRequest::End(number) => end(number, &mut asked),
            }
        }
    }
}

/// Passes a request on; `asked` is when the one before was.
fn end(number: i32, asked: &mut Option<Instant>) {
    let now = Instant::now();
    let since = asked.map(|asked| now - asked);
    if since.is_some_and(|since| since < ONE_REQUEST) {
        return;
    }
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let sent = listener.as_ref().map(|listener| listener.try_send(()));
    drop(listener);
    match sent {
        Some(Ok(())) => *asked = Some(now),
        Some(Err(TrySendError::Full(()))) if since.is_some_and(|since| since >= HANGS_AFTER) => {
            eprintln!("tscap: aborted: it hangs");
            whole_file::abandon();
            std::process::exit(Exit::Aborted.code().into());
        }
        // Since the request that waits.
        Some(Err(TrySendError::Full(()))) => {}
        None | Some(Err(TrySendError::Closed(()))) => {
            whole_file::abandon();
            signals::end_by(number);
        }
    }
}

/// Requests to end in order, by each signal that ends other programs, from the moment that this
/// is made until it is dropped.
#[derive(Debug)]
pub(super) struct Signals {
    requests: Receiver<()>,
}

impl Signals {
    /// Hears them, and lets [`wake`] end a system call that hangs.
    pub fn new() -> Result<Self, Failure> {
        wake::prepare().context("cannot catch signals")?;
        let (listener, requests) = channel(1);
        *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
        Ok(Self { requests })
    }

    /// Goes on without capabilities, in the thread that takes the signals.
    pub fn give_up_capabilities(&self) {
        GIVES_UP.store(true, Ordering::Release);
        signals::tell();
    }

    /// Nothing is left that could end in order: no request changes how this process ends, unless it
    /// hangs.
    pub fn ignore_the_rest(self) {
        std::mem::forget(self);
    }

    /// Waits for the next request. Safe to cancel.
    pub async fn next(&mut self) {
        // Others that were made later hear the requests then.
        if self.requests.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Does `work` in a thread of its own; `None` if a request came first: the thread is left
    /// to itself then, and ends with the process.
    ///
    /// # Errors
    /// If the thread can't be started, or `work` panicked.
    pub async fn unless_ended<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>, Failure> {
        let (done, result) = oneshot::channel();
        let worker = std::thread::Builder::new().name("tscap-work".into());
        let worker = worker.spawn(move || {
            // Nobody waits any more if this fails.
            let _ = done.send(work());
        });
        worker.context("cannot start a thread")?;
        tokio::select! {
            result = result => match result {
                Ok(done) => Ok(Some(done)),
                Err(_) => Err(Failure::new("the worker panicked: please report this")),
            },
            () = self.next() => Ok(None),
        }
    }
}

/// Waits until SIGUSR1 asks how far it is; at once if that was before. Safe to cancel.
pub(super) async fn counts_wanted() {
    COUNTS.notified().await;
}

/// Waits until SIGUSR2 asks for the next file; at once if that was before. Safe to cancel.
pub(super) async fn next_file_wanted() {
    NEXT_FILE.notified().await;
}

/// Does `work`, which writes a file whole or not at all; a signal ends it at once, and
/// its temporary files are removed.
pub(super) fn whole_or_nothing(
    work: impl FnOnce() -> Result<Exit, Failure> + Send + 'static,
) -> Result<Exit, Failure> {
    let mut signals = Signals::new()?;
    match runtime()?.block_on(signals.unless_ended(work))? {
        Some(result) => result,
        None => {
            whole_file::abandon();
            eprintln!("tscap: ended by a signal before it was done");
            Ok(Exit::Aborted)
        }
    }
}
