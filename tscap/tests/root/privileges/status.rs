//! What /proc says of the threads of a process.

use std::fs;
use std::time::Duration;

use tscap_testkit::wait;

/// The user that captures here go on as; everywhere there is one.
pub const NOBODY: &str = "nobody";
/// Its number.
pub const NOBODY_UID: u32 = 65534;

/// Bits of capabilities (`linux/capability.h`).
pub const FOR_FILES: u64 = 1 << 0 | 1 << 1 | 1 << 3;
pub const NET_ADMIN: u64 = 1 << 12;
pub const NET_RAW: u64 = 1 << 13;
pub const SYS_ADMIN: u64 = 1 << 21;
pub const SYS_NICE: u64 = 1 << 23;
pub const PERFMON: u64 = 1 << 38;
pub const BPF: u64 = 1 << 39;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Real, effective and saved user, all the same.
    pub uid: u32,
    /// Permitted and effective capabilities, both the same; there are no others.
    pub capabilities: u64,
    pub has_seccomp: bool,
    /// Programs that it executes have no more than it has, root's neither.
    pub no_new_privileges: bool,
    pub groups: Vec<u32>,
    /// Signals that it does not take, a bit each from 1.
    pub blocked: u64,
}

/// Waits until all threads of a process are as `expected` has them: some take a moment for that.
pub fn wait_for(pid: u32, expected: impl Fn(&str, &Status) -> bool) {
    wait_for_threads(pid, &[], expected);
}

/// The same, with threads of these names: they get them once they run.
pub fn wait_for_threads(pid: u32, names: &[&str], expected: impl Fn(&str, &Status) -> bool) {
    let what = "all threads to have given up what they do not need";
    wait::until(what, Duration::from_secs(10), || {
        let threads = read_all(pid)?;
        let is_there = |name: &&str| threads.iter().any(|(it, _)| it == name);
        let are_there = names.iter().all(is_there);
        let mut all = threads.iter();
        let is_expected =
            are_there && all.all(|(name, it)| it.no_new_privileges && expected(name, it));
        is_expected.then_some(())
    });
}

/// A process of one thread.
pub fn of(pid: u32) -> Status {
    let threads = wait::until("capabilities that stay", Duration::from_secs(10), || {
        read_all(pid)
    });
    let mut threads = threads.into_iter().map(|(_, status)| status);
    let only = threads.next().expect("a thread");
    assert_eq!(threads.next(), None);
    only
}

/// `None` while one changes its capabilities: a set at a time.
fn read_all(pid: u32) -> Option<Vec<(String, Status)>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a running process");
    let tasks = tasks.map(|task| task.expect("an entry").path().join("status"));
    // One may have ended meanwhile.
    let tasks = tasks.filter_map(|path| fs::read_to_string(path).ok());
    tasks.map(|status| read(&status)).collect()
}

fn read(status: &str) -> Option<(String, Status)> {
    let field = |name: &str| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        line.unwrap_or_else(|| panic!("no {name} in\n{status}"))
    };
    let numbers = |name| -> Vec<u32> {
        let words = field(name).split_whitespace();
        words.map(|word| word.parse().expect("a number")).collect()
    };
    let mask = |name| u64::from_str_radix(field(name), 16).expect("a mask");
    let uids = numbers("Uid");
    assert!(uids.iter().all(|uid| *uid == uids[0]), "{status}");
    assert_eq!((mask("CapInh"), mask("CapAmb")), (0, 0), "{status}");
    if mask("CapPrm") != mask("CapEff") {
        return None;
    }
    let status = Status {
        uid: uids[0],
        capabilities: mask("CapPrm"),
        has_seccomp: field("Seccomp") == "2",
        no_new_privileges: field("NoNewPrivs") == "1",
        groups: numbers("Groups"),
        blocked: mask("SigBlk"),
    };
    Some((field("Name").to_owned(), status))
}
