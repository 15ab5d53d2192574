//! CPUs, signals, and what /proc tells about a process.

#![allow(unsafe_code, reason = "what a child does before it executes")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::Pid;

/// CPUs that this process may run on.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).expect("affinity");
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// Calls `work` in a thread of its own that stays on CPU `cpu`.
pub fn on_cpu<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(cpu);
            work()
        });
        match worker.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Keeps the calling thread on CPU `cpu`.
pub fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).expect("a CPU number");
    sched_setaffinity(Pid::from_raw(0), &set).unwrap_or_else(|e| panic!("pin to CPU {cpu}: {e}"));
}

/// Gives a child SIGINT, SIGQUIT and SIGHUP as a terminal does: what a shell without job control
/// starts in the background ignores the first two, what nohup(1) starts the last, and so do
/// their children.
pub fn interruptible(command: &mut Command) {
    // SAFETY: the child makes system calls, which are safe after a fork.
    unsafe {
        command.pre_exec(|| {
            for number in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
                signal(number, SigHandler::SigDfl)?;
            }
            Ok(())
        });
    }
}

/// Memory of a process that is resident now, bytes (`VmRSS`).
pub fn resident_bytes(pid: u32) -> u64 {
    field(&format!("/proc/{pid}/status"), "VmRSS:") * 1024
}

/// How often any thread of a process has gone to sleep so far: it has been woken as
/// often.
pub fn sleeps(pid: u32) -> u64 {
    let folder = format!("/proc/{pid}/task");
    let tasks = fs::read_dir(&folder).unwrap_or_else(|e| panic!("read {folder}: {e}"));
    tasks
        .map(|task| {
            let status = task.expect("a task").path().join("status");
            let status = status.to_str().expect("a UTF-8 path");
            field(status, "voluntary_ctxt_switches:")
        })
        .sum()
}

/// State letter of a process (`T` for stopped).
pub fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat of the process");
    let (_, rest) = stat.rsplit_once(") ").expect("a command name");
    rest.chars().next().expect("a state")
}

fn field(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("read {path}: {e}"));
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next());
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {path}"))
}
