//! A tscap process under a deadline: `capture`, or another command.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::command::{ask_until_the_end, tscap_path, wait_for};
use crate::finished::Finished;
use crate::lines::Lines;
use crate::made;
use crate::netns::Netns;
use crate::old_kernel;
use crate::port::Port;
use crate::process::{self, interruptible};
use crate::wait;

/// More than any start or end takes, also on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A command to be started.
#[derive(Debug)]
pub struct Plan<'a> {
    netns: &'a Netns,
    command: &'static str,
    prefix: Vec<OsString>,
    arguments: Vec<OsString>,
    stdout: Option<Stdio>,
    json: bool,
    kernel: Option<fn() -> io::Result<()>>,
}

/// `tscap capture --json -Q in` in `netns`, without anything else yet: what a test sends is
/// what another interface receives.
pub fn capture(netns: &Netns) -> Plan<'_> {
    capture_both(netns).with(["-Q", "in"])
}

/// `tscap capture --json` in `netns`: both directions.
pub fn capture_both(netns: &Netns) -> Plan<'_> {
    plan("capture", netns)
}

/// `tscap gen --json -i <port>`.
pub fn generate_on(port: &Port) -> Plan<'_> {
    plan("gen", &port.netns).on(port)
}

/// `tscap gen --json --echo` in `netns`.
pub fn echo(netns: &Netns) -> Plan<'_> {
    plan("gen", netns).with(["--echo"])
}

/// `tscap delay --json` in `netns`.
pub fn delay(netns: &Netns) -> Plan<'_> {
    plan("delay", netns)
}

/// `tscap qos --json` in `netns`.
pub fn qos(netns: &Netns) -> Plan<'_> {
    plan("qos", netns)
}

/// `tscap qos --json -i <port>`.
pub fn qos_on(port: &Port) -> Plan<'_> {
    qos(&port.netns).on(port)
}

/// `tscap stamp --json` in `netns`.
pub fn stamp(netns: &Netns) -> Plan<'_> {
    plan("stamp", netns)
}

/// `tscap clock --json` in `netns`.
pub fn clock(netns: &Netns) -> Plan<'_> {
    plan("clock", netns)
}

fn plan<'a>(command: &'static str, netns: &'a Netns) -> Plan<'a> {
    Plan {
        netns,
        command,
        prefix: Vec::new(),
        arguments: Vec::new(),
        stdout: None,
        json: true,
        kernel: None,
    }
}

/// `tscap capture --json -i <port> -w <file>`.
pub fn capture_on<'a>(port: &'a Port, file: &Path) -> Plan<'a> {
    capture(&port.netns).on(port).to(file)
}

impl Plan<'_> {
    /// Adds `-i <port>`.
    pub fn on(self, port: &Port) -> Self {
        self.with(["-i", &port.name])
    }

    /// Adds `-w <file>`.
    pub fn to(self, file: &Path) -> Self {
        self.with([OsStr::new("-w"), file.as_os_str()])
    }

    /// Adds arguments.
    pub fn with<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments
            .extend(arguments.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Starts tscap through another program that `exec`s it, such as `setpriv`.
    pub fn through<S: AsRef<OsStr>>(mut self, prefix: impl IntoIterator<Item = S>) -> Self {
        self.prefix
            .extend(prefix.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Hands standard output to someone else; what tscap writes as JSON lines
    /// is then read from standard error.
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// Output for people, without `--json`.
    pub fn human(mut self) -> Self {
        self.json = false;
        self
    }

    /// Starts it.
    pub fn start(self) -> Capture {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", self.netns.name()])
            .args(&self.prefix);
        command
            .args([tscap_path(), self.command])
            .args(&self.arguments);
        if self.json {
            command.arg("--json");
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(self.stdout.unwrap_or_else(Stdio::piped));
        interruptible(&mut command);
        if let Some(kernel) = self.kernel {
            old_kernel::lacking(&mut command, kernel);
        }
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("start {command:?}: {e}"));
        made::note("process", child.id());
        Capture {
            stdout: child.stdout.take().map(Lines::collect),
            stderr: child.stderr.take().map(Lines::collect),
            child,
        }
    }

    /// Starts it and waits until it is ready.
    pub fn ready(self) -> Capture {
        let capture = self.start();
        capture.wait_ready();
        capture
    }

    /// Runs it to its own end on a kernel that lacks something.
    pub fn run_on(mut self, kernel: fn() -> io::Result<()>) -> Finished {
        self.kernel = Some(kernel);
        self.run()
    }

    /// Runs it to its own end: for captures that stop by themselves or fail.
    pub fn run(self) -> Finished {
        self.start().wait()
    }
}

/// A running tscap. Killed when it is dropped.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    stdout: Option<Lines>,
    stderr: Option<Lines>,
}

impl Capture {
    /// Waits for the readiness line and returns it.
    pub fn wait_ready(&self) -> String {
        self.wait_line("ready: ")
    }

    /// Waits for a line on standard error that starts with `start`.
    pub fn wait_line(&self, start: &str) -> String {
        let stderr = self.stderr.as_ref().expect("stderr is read until the end");
        let line = stderr.wait_for(LIMIT, |line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no line {start:?}; stderr so far:\n{}", stderr.so_far()))
    }

    /// Waits for a JSON line on standard output with `"event": <name>`.
    pub fn wait_event(&self, name: &str) -> serde_json::Value {
        self.wait_event_with(name, |_| true)
    }

    /// Waits for one that `wanted` accepts.
    pub fn wait_event_with(
        &self,
        name: &str,
        wanted: impl Fn(&serde_json::Value) -> bool,
    ) -> serde_json::Value {
        let stdout = self.stdout.as_ref().expect("stdout is ours");
        let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
        let found = stdout.wait_for(LIMIT, |line| {
            parse(line).is_some_and(|event| event["event"] == name && wanted(&event))
        });
        let line = found.unwrap_or_else(|| panic!("no event {name:?}:\n{}", stdout.so_far()));
        parse(&line).expect("parsed once already")
    }

    /// Waits for JSON line `number` on standard output, from 0; `None` behind the
    /// last one.
    pub fn event(&self, number: usize, limit: Duration) -> Option<serde_json::Value> {
        let stdout = self.stdout.as_ref().expect("stdout is ours");
        let line = stdout.line(number, limit)?;
        Some(serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}")))
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        let status = self.child.try_wait().expect("wait for tscap");
        status.is_some()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid() as i32);
        kill(pid, signal).unwrap_or_else(|error| panic!("send {signal} to {pid}: {error}"));
    }

    /// Stops the whole process: nobody drains the rings any more.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
        wait::until("the process to stop", LIMIT, || {
            (process::state(self.pid()) == 'T').then_some(())
        });
    }

    /// Lets a frozen process go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end.
    pub fn stop(self) -> Finished {
        self.stop_with(Signal::SIGINT)
    }

    /// Sends a signal and waits for the end. SIGKILL ends the process too that keeps its
    /// settings.
    pub fn stop_with(self, signal: Signal) -> Finished {
        if let (Signal::SIGKILL, Some(keeper)) = (signal, self.keeper()) {
            let keeper = Pid::from_raw(keeper.cast_signed());
            kill(keeper, Signal::SIGKILL).expect("kill the keeper of settings");
        }
        self.signal(signal);
        self.wait()
    }

    /// The process that keeps its settings, if there is one.
    pub fn keeper(&self) -> Option<u32> {
        self.helper("keep-settings")
    }

    /// The process that it has started with this hidden command, if there is one.
    pub fn helper(&self, command: &str) -> Option<u32> {
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let mut children = children.split_whitespace();
        let end = format!("\0{command}\0");
        let is_helper = |child: &&str| {
            let words = std::fs::read(format!("/proc/{child}/cmdline"));
            words.is_ok_and(|words| words.ends_with(end.as_bytes()))
        };
        let helper = children.find(is_helper)?;
        Some(helper.parse().expect("a number"))
    }

    /// Sends SIGINT until it has ended.
    pub fn ctrl_c_until_the_end(&mut self) {
        let pid = Pid::from_raw(self.pid().cast_signed());
        ask_until_the_end(&mut self.child, LIMIT, |_| {
            kill(pid, Signal::SIGINT).expect("send SIGINT");
        });
    }

    /// Waits for the end. Kills it and panics when there is none.
    pub fn wait(mut self) -> Finished {
        let status = wait_for(&mut self.child, LIMIT);
        let Some(status) = status else {
            let stderr = self.stderr.as_ref().map(Lines::so_far).unwrap_or_default();
            panic!("tscap did not end in {LIMIT:?}; stderr so far:\n{stderr}");
        };
        let text = |lines: Option<Lines>| lines.map(Lines::finish);
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        Finished::new(status, stdout, stderr.unwrap_or_default())
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
