//! Who may run the root tests, and one at a time.

use std::fs::File;
use std::io::Write as _;

use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, unshare};

use super::process;

/// Held by a root test while it runs. Root tests measure times and fill CPUs:
/// they run one at a time, also across test binaries and checkouts.
#[derive(Debug)]
pub struct Turn {
    _lock: Flock<File>,
}

/// Waits for the turn of the root test `name`, or says on stderr why it is
/// skipped. With `TSCAP_NO_SKIP=1`, as in CI, a skip is a failure.
pub fn root(name: &str) -> Option<Turn> {
    root_with(name, &["ip", "ethtool"])
}

/// The same for a test that needs other programs than `ip` and `ethtool`.
pub fn root_with(name: &str, programs: &[&str]) -> Option<Turn> {
    if let Err(reason) = may_run(programs) {
        skip(name, &reason);
        return None;
    }
    // A folder in which only root makes files.
    let path = "/run/tscap-root-tests.lock";
    let file = File::create(path).unwrap_or_else(|error| panic!("create {path}: {error}"));
    let lock = Flock::lock(file, FlockArg::LockExclusive)
        .unwrap_or_else(|(_, error)| panic!("lock {path}: {error}"));
    Some(Turn { _lock: lock })
}

/// Two CPUs for the test `name`, which is skipped where there is only one.
pub fn two_cpus(name: &str) -> Option<(usize, usize)> {
    match process::cpus()[..] {
        [first, second, ..] => Some((first, second)),
        _ => {
            skip(name, "needs two CPUs");
            None
        }
    }
}

fn skip(name: &str, reason: &str) {
    assert!(
        std::env::var_os("TSCAP_NO_SKIP").is_none_or(|value| value != "1"),
        "{name} can't run here: {reason}"
    );
    // Past the test harness, which would swallow a passing test's output.
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {reason}");
}

fn may_run(programs: &[&str]) -> Result<(), String> {
    if !nix::unistd::geteuid().is_root() {
        return Err("needs root".into());
    }
    // In a thread of its own, which takes the namespace with it.
    std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET))
        .join()
        .map_err(|_| "the check for network namespaces panicked".to_owned())?
        .map_err(|error| format!("needs network namespaces: {error}"))?;
    for program in programs {
        if !is_installed(program) {
            return Err(format!(
                "needs `{program}` (`cargo xtask setup` installs it)"
            ));
        }
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
