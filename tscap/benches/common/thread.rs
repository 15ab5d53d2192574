//! CPU time of a thread of a program that runs.

use std::fs;

use anyhow::{Context, Result};
use tscap_testkit::capture::LIMIT;
use tscap_testkit::wait;

/// CPU time so far of the thread that calls itself `name`, ns
/// (Documentation/scheduler/sched-stats.rst). It names itself when it has begun.
pub fn cpu_ns(pid: u32, name: &str) -> Result<u64> {
    let task = wait::until(&format!("the thread {name}"), LIMIT, || {
        let mut tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        tasks.find_map(|task| {
            let task = task.ok()?.path();
            let found = fs::read_to_string(task.join("comm")).ok()?;
            (found.trim() == name).then_some(task)
        })
    });
    let text = fs::read_to_string(task.join("schedstat"))?;
    let ns = text.split_whitespace().next().context("no CPU time")?;
    Ok(ns.parse()?)
}
