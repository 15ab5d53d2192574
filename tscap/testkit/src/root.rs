//! Which root tests may run, and which of them side by side.

use std::fs::File;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, unshare};

pub use tscap_base::skip::skip;
use tscap_base::skip::test_name;

use crate::programs::package;
use crate::{made, process};

/// Programs that nearly every root test needs.
const PROGRAMS: [&str; 2] = ["ip", "ethtool"];

/// A root test that takes longer hangs: the slowest takes half a minute.
const LONGEST: Duration = Duration::from_secs(300);

/// Nobody keeps the others waiting for longer: who holds the lock then hangs, or was left.
const LONGEST_WAIT: Duration = Duration::from_secs(1_200);

/// Held by a root test while it runs: beside others, or alone. This holds across test
/// binaries and checkouts.
#[derive(Debug)]
pub struct RootLock {
    _room: Flock<File>,
    is_alone: bool,
    began: Instant,
    /// Gone with the lock, which tells the watchdog that the test has ended.
    _watched: Option<Sender<()>>,
}

/// Writes down how long the test took, without its wait for the lock.
impl Drop for RootLock {
    fn drop(&mut self) {
        if let Some(name) = test_name() {
            let how = if self.is_alone { "alone" } else { "beside" };
            made::note(
                "test",
                format_args!("{how} {} {name}", self.began.elapsed().as_millis()),
            );
        }
    }
}

/// Waits until this root test may run beside others, or says on stderr why it is
/// skipped. With `TSCAP_NO_SKIP=1`, as in CI, a skip is a failure.
pub fn root() -> Option<RootLock> {
    root_with(&PROGRAMS)
}

/// The same for a test that needs other programs than `ip` and `ethtool`.
pub fn root_with(programs: &[&str]) -> Option<RootLock> {
    lock(FlockArg::LockShared, programs)
}

/// Waits until this root test is the only one: `_why` says in the code what others would
/// disturb, or what it would disturb of others.
pub fn alone(why: &str) -> Option<RootLock> {
    alone_with(why, &PROGRAMS)
}

/// The same for a test that needs other programs than `ip` and `ethtool`.
pub fn alone_with(_why: &str, programs: &[&str]) -> Option<RootLock> {
    lock(FlockArg::LockExclusive, programs)
}

/// Two CPUs for this test, which is skipped where there is only one.
pub fn two_cpus() -> Option<(usize, usize)> {
    match process::cpus()[..] {
        [first, second, ..] => Some((first, second)),
        _ => {
            skip("needs two CPUs");
            None
        }
    }
}

/// Through the door one by one: a test that waits for the room to be empty keeps the
/// door, so that those behind it can't keep the room full.
fn lock(how: FlockArg, programs: &[&str]) -> Option<RootLock> {
    if let Err(reason) = may_run(programs) {
        skip(&reason);
        return None;
    }
    let waits = test_name().map(|name| watch(name, LONGEST_WAIT, || std::process::abort()));
    let _door = locked("door", FlockArg::LockExclusive);
    let is_alone = matches!(how, FlockArg::LockExclusive);
    let room = locked("room", how);
    drop(waits);
    Some(RootLock {
        _room: room,
        is_alone,
        began: Instant::now(),
        // A bench takes its own time.
        _watched: test_name().map(|name| watch(name, LONGEST, || std::process::abort())),
    })
}

/// Calls `end` unless what this gives is dropped within `limit`. A test that hangs then
/// ends its binary, and `cargo xtask test` runs again what had not passed.
fn watch(name: String, limit: Duration, end: impl FnOnce() + Send + 'static) -> Sender<()> {
    let (watched, ended) = channel();
    thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // Past the test harness, which prints nothing of a test that has not ended.
            let _ = writeln!(
                std::io::stderr(),
                "HANGS {name}: not ended, or not begun, after {} s",
                limit.as_secs()
            );
            end();
        }
    });
    watched
}

fn locked(name: &str, how: FlockArg) -> Flock<File> {
    // A folder in which only root makes files.
    let path = format!("/run/tscap-root-tests.{name}");
    let file = File::create(&path).unwrap_or_else(|error| panic!("create {path}: {error}"));
    Flock::lock(file, how).unwrap_or_else(|(_, error)| panic!("lock {path}: {error}"))
}

fn may_run(programs: &[&str]) -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("needs root".into());
    }
    // In a thread of its own, which takes the namespace with it.
    thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET))
        .join()
        .map_err(|_| "the check for network namespaces panicked".to_owned())?
        .map_err(|error| format!("needs network namespaces: {error}"))?;
    for program in programs {
        let package = package(program)
            .unwrap_or_else(|| panic!("tscap/testkit/programs.txt does not know `{program}`"));
        if !is_installed(program) {
            return Err(format!(
                "needs `{program}` of the package {package} (`cargo xtask setup` installs it)"
            ));
        }
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn a_test_that_hangs_is_ended() {
        let (end, ended) = channel();
        let _watched = watch("a test".into(), SOON, move || end.send(()).expect("waits"));
        ended.recv_timeout(LATE).expect("it is ended");
    }

    #[test]
    fn a_test_that_has_ended_is_left_alone() {
        let (end, ended) = channel::<()>();
        drop(watch("a test".into(), LATE, move || {
            let _ = end.send(());
        }));
        // The watchdog has gone, and has not said anything.
        assert_eq!(
            ended.recv_timeout(LATE),
            Err(RecvTimeoutError::Disconnected)
        );
    }
}
