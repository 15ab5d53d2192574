//! Network namespaces that go away with their guard.

use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::command::{SHORT, must, run};
use crate::made;

/// A named network namespace with a working loopback and no IPv6, so that no
/// frame moves in it that a test did not send.
#[derive(Debug)]
pub struct Netns {
    name: String,
}

impl Netns {
    /// Makes `tscap-<tag>-<pid>-<n>`.
    pub fn new(tag: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tscap-{tag}-{}-{count}", std::process::id());
        made::note("namespace", &name);
        must(Command::new("ip").args(["netns", "add", &name]));
        let netns = Self { name };
        netns.enter(|| {
            for scope in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
                // A kernel without IPv6 sends no router solicitations either.
                let _ = std::fs::write(path, "1");
            }
        });
        netns.ip(&["link", "set", "lo", "up"]);
        netns
    }

    /// Name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets what is at `path` below `/proc/sys/net` in this namespace.
    pub fn set(&self, path: &str, value: &str) {
        let path = format!("/proc/sys/net/{path}");
        self.enter(|| {
            std::fs::write(&path, value).unwrap_or_else(|e| panic!("write {value} to {path}: {e}"));
        });
    }

    /// `ip -n <this> <arguments>`, which must succeed.
    pub fn ip(&self, arguments: &[&str]) -> String {
        must(Command::new("ip").args(["-n", &self.name]).args(arguments))
    }

    /// A program in this namespace (the same process: `ip` only `exec`s).
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a program that must succeed; returns its output.
    pub fn must(&self, program: &str, arguments: &[&str]) -> String {
        must(self.command(program).args(arguments))
    }

    /// Calls `work` in a thread of its own that is in this namespace.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let path = format!("/run/netns/{}", self.name);
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let file = File::open(&path).unwrap_or_else(|e| panic!("open {path}: {e}"));
                setns(file, CloneFlags::CLONE_NEWNET)
                    .unwrap_or_else(|e| panic!("enter {path}: {e}"));
                work()
            });
            match worker.join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let done = run(Command::new("ip").args(["netns", "del", &self.name]), SHORT);
        if !done.status.success() && !thread::panicking() {
            panic!("delete namespace {}: {}", self.name, done.stderr);
        }
    }
}
