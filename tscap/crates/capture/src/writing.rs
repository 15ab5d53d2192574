//! The threads that write a capture's end: waited for, and interrupted if they hang.

use super::event::Reporter;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tscap_base::failure::{Context as _, Failure};
use tscap_engine::WriteWatch;
use tscap_host::caps;
use tscap_host::wake::wake;

/// How often a stopped converter is looked for.
const JOIN_EVERY: Duration = Duration::from_millis(2);
/// An output to which nothing could be written for so long hangs.
const HANGS_AFTER: Duration = Duration::from_secs(1);
/// A disk that is waited for longer than this is said to be.
const SAID_AFTER: Duration = Duration::from_secs(1);
/// A write that hangs has so long to return once it is interrupted.
const RETURNS_WITHIN: Duration = Duration::from_secs(1);

/// Waits for the end of a thread that writes. A request to end that has come, which
/// `is_asked` says, or comes meanwhile, ends the writing as soon as it hangs. False if it hangs
/// even then.
pub(super) async fn until_finished<T>(
    thread: &JoinHandle<T>,
    writes: &WriteWatch,
    (is_asked, asked): (&mut bool, &mut impl AsyncFnMut()),
    reporter: &mut Reporter<'_>,
) -> bool {
    let mut latest = (writes.done(), Instant::now());
    while !thread.is_finished() {
        tokio::select! {
            () = tokio::time::sleep(JOIN_EVERY) => {}
            () = asked() => {
                *is_asked = true;
                reporter.note(&format!(
                    "still writing: aborted once nothing can be written for {} s",
                    HANGS_AFTER.as_secs()
                ));
            }
        }
        if writes.done() != latest.0 {
            latest = (writes.done(), Instant::now());
        }
        let since = latest.1.elapsed();
        if *is_asked && since >= HANGS_AFTER {
            writes.abort();
            // The thread may have ended just now; else it is interrupted again.
            let _ = wake(thread);
            thread.thread().unpark();
            if since >= HANGS_AFTER + RETURNS_WITHIN {
                return thread.is_finished();
            }
        }
    }
    true
}

/// Waits for the end of a thread that waits for the disk, until the end is asked for again.
/// False if it does not return even then.
pub(super) async fn until_on_disk<T>(
    thread: &JoinHandle<T>,
    writes: &WriteWatch,
    asked: &mut impl AsyncFnMut(),
    reporter: &mut Reporter<'_>,
) -> bool {
    let begun = Instant::now();
    let mut is_said = false;
    let mut ended: Option<Instant> = None;
    while !thread.is_finished() {
        tokio::select! {
            () = tokio::time::sleep(JOIN_EVERY) => {}
            () = asked() => {
                writes.end_waiting();
                ended.get_or_insert_with(Instant::now);
            }
        }
        if !is_said && begun.elapsed() >= SAID_AFTER {
            is_said = true;
            reporter.note(
                "waiting until the disk has everything; Ctrl-C ends the wait, and then that is \
                 not known",
            );
        }
        if ended.is_some_and(|at| at.elapsed() >= RETURNS_WITHIN) {
            return thread.is_finished();
        }
    }
    true
}

/// Does what may hang on the output.
pub(super) fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let thread = std::thread::Builder::new().name("tscap-end".into());
    let thread = thread.spawn(|| {
        // What it needs is open.
        let _ = caps::keep_only(&[]);
        work()
    });
    thread.context("cannot start a thread")
}

pub(super) fn joined<T>(thread: JoinHandle<T>) -> Result<T, Failure> {
    let result = thread.join();
    result.map_err(|_| Failure::new("a thread panicked: please report this"))
}
