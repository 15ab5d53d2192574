//! systemd as process 1 of a machine that is namespaces of this one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::command::{Done, SHORT, must, run, tscap_path};
use tscap_testkit::{files, wait};

/// The programs that it takes.
pub const PROGRAMS: &[&str] = &[
    "/lib/systemd/systemd",
    "systemctl",
    "systemd-analyze",
    "nsenter",
    "unshare",
    "ethtool",
    "setcap",
];

/// The machine. It ends, with all its processes, when this is dropped.
pub struct Booted {
    unshare: Child,
    /// Its process 1, as this machine numbers it.
    init: u32,
    _folder: TempDir,
}

impl Booted {
    /// In the network namespace of the receiving end, with tscap's unit.
    pub fn beside(bench: &Bench) -> Self {
        let folder = files::folder();
        let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/root/service/boot.sh");
        let mut command = bench.rx.netns.command("unshare");
        command.args(["-m", "-p", "-f", "-u", "-i", "-C", "--mount-proc", "sh"]);
        command.arg(script).arg(folder.path()).arg(tscap_path());
        command.arg(units).stdin(Stdio::null());
        // It complains when process 1 is killed.
        command.stderr(Stdio::null());
        let unshare = command.spawn().expect("start unshare");
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let init = wait::until("process 1", LIMIT, || {
            let list = fs::read_to_string(&children).ok()?;
            list.split_whitespace().next()?.parse().ok()
        });
        let booted = Self {
            unshare,
            init,
            _folder: folder,
        };
        wait::until("systemd to have booted", LIMIT, || {
            let mut look = booted.command("systemctl");
            let state = run(look.arg("is-system-running"), SHORT).stdout;
            ["running\n", "degraded\n"]
                .contains(&state.as_str())
                .then_some(())
        });
        booted
    }

    /// A program that runs there.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.init.to_string(), "-a", program]);
        command
    }

    /// The output of `systemctl`, which must succeed.
    #[track_caller]
    pub fn systemctl(&self, words: &[&str]) -> String {
        let done = self.try_systemctl(words);
        let why = || must(self.command("journalctl").args(["--no-pager", "-n", "40"]));
        assert!(done.status.success(), "{words:?}: {}{}", done.stderr, why());
        done.stdout
    }

    pub fn try_systemctl(&self, words: &[&str]) -> Done {
        run(self.command("systemctl").args(words), LIMIT)
    }

    /// A property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> String {
        let show = self.systemctl(&["show", "--value", "-p", name, unit]);
        show.trim().to_owned()
    }

    /// The process of a unit, as this machine numbers it.
    pub fn process(&self, unit: &str) -> u32 {
        let there = self.property(unit, "MainPID");
        let folder = format!("/proc/{}/root/proc/{there}/status", self.init);
        let status = fs::read_to_string(folder).expect("the status of the process");
        let here = field(&status, "NSpid");
        // As seen by the procfs there: the number in its own namespace.
        assert_eq!(here.split_whitespace().last(), Some(there.as_str()));
        let tasks = fs::read_dir("/proc").expect("/proc").flatten();
        let number = tasks.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut found = number.filter(|pid: &u32| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            let same_root = fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
                == fs::read_link(format!("/proc/{}/ns/pid", self.init)).ok();
            same_root
                && status
                    .is_ok_and(|it| field(&it, "NSpid").split_whitespace().last() == Some(&there))
        });
        found.next().expect("the process of the unit")
    }

    /// A path there.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.init))
    }
}

/// A line of /proc/PID/status.
pub fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.strip_prefix(':'));
    value.unwrap_or_default().trim().to_owned()
}

impl Drop for Booted {
    fn drop(&mut self) {
        // Everything in its PID namespace ends with it.
        let _ = kill(Pid::from_raw(self.init.cast_signed()), Signal::SIGKILL);
        let _ = self.unshare.wait();
    }
}
