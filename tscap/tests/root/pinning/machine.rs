//! What the tests look at: RPS, poll threads, journals.

use std::fs;

use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use tscap_testkit::command::{Done, SHORT, run, tscap_path};
use tscap_testkit::finished::Finished;
use tscap_testkit::port::Port;

/// RPS of the first queue: a mask in hexadecimal, without leading zeros.
pub fn rps(port: &Port) -> String {
    let path = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", port.name);
    let mask = port.netns.must("cat", &[&path]);
    let digits = mask.trim().trim_start_matches(['0', ',']);
    if digits.is_empty() { "0" } else { digits }.to_owned()
}

/// Sets RPS of the first queue.
pub fn set_rps(port: &Port, mask: &str) {
    let path = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", port.name);
    let line = format!("echo {mask} > {path}");
    port.netns.must("sh", &["-c", &line]);
}

/// Makes threads poll for the port. Without GRO a veth has nothing that polls
/// before an XDP program is attached.
pub fn make_threaded(port: &Port) {
    port.offload("gro", true);
    let line = format!("echo 1 > /sys/class/net/{}/threaded", port.name);
    port.netns.must("sh", &["-c", &line]);
}

/// The poll threads with names of `interface` in any namespace, the oldest
/// first.
pub fn poll_threads(interface: &str) -> Vec<i32> {
    let prefix = format!("napi/{interface}-");
    let processes = fs::read_dir("/proc").expect("list /proc");
    let mut threads: Vec<i32> = processes
        .filter_map(|entry| {
            let entry = entry.expect("an entry of /proc");
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            name.starts_with(&prefix).then_some(pid)
        })
        .collect();
    threads.sort_unstable();
    threads
}

/// The CPUs of a thread.
pub fn cpus_of(thread: i32) -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(thread)).expect("affinity of a thread");
    (0..64)
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// The journals in /run/tscap.
pub fn journals() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/run/tscap") else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != "lock")
        .collect()
}

/// `tscap restore` in the port's namespace.
pub fn restore(port: &Port) -> Done {
    run(port.netns.command(tscap_path()).arg("restore"), SHORT)
}

/// `off_cpu` of the summary.
#[track_caller]
pub fn off_cpu(finished: &Finished) -> Option<u64> {
    finished.success();
    let summary = finished.events("summary").remove(0);
    let off_cpu = summary.get("off_cpu").expect("the field is always there");
    off_cpu.as_u64()
}

/// A warning on standard error with `part` in it.
#[track_caller]
pub fn warning<'a>(finished: &'a Finished, part: &str) -> &'a str {
    let mut lines = finished.stderr.lines();
    let warning = lines.find(|line| line.starts_with("warning: ") && line.contains(part));
    warning.unwrap_or_else(|| panic!("no warning with {part:?}:\n{}", finished.stderr))
}
