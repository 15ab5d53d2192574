//! A user who is not root, with a tscap that has file capabilities in an extcap folder.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tscap_testkit::bench::Bench;
use tscap_testkit::command::{Done, finish, must, run, tscap_path};
use tscap_testkit::files;
use tscap_testkit::netns::Netns;
use tscap_testkit::wait;

use tscap_testkit::shown::root;

/// What the tests here need.
pub const PROGRAMS: [&str; 7] = [
    "ip", "ethtool", "ping", "setpriv", "setcap", "tshark", "dumpcap",
];
/// What a capture takes.
pub const CAPABILITIES: &str = "cap_bpf,cap_net_admin,cap_perfmon,cap_net_raw+ep";
/// More than a capture of a few seconds takes on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(40);

/// `nobody`, and a folder that is its home.
#[derive(Debug)]
pub struct User {
    folder: TempDir,
}

impl User {
    /// With a copy of tscap that has `capabilities`.
    pub fn with(capabilities: &str) -> Self {
        let user = Self {
            folder: files::public_folder(),
        };
        let extcap = user.file("extcap");
        fs::create_dir(&extcap).expect("an extcap folder");
        files::copy_program(tscap_path(), &user.program());
        must(Command::new("setcap").arg(capabilities).arg(user.program()));
        std::os::unix::fs::symlink(user.program(), extcap.join("tscap")).expect("a link");
        user
    }

    /// With one that may capture.
    pub fn new() -> Self {
        Self::with(CAPABILITIES)
    }

    /// The copy.
    pub fn program(&self) -> PathBuf {
        self.file("tscap")
    }

    /// A file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A copy of the Lua plugin.
    pub fn plugin(&self) -> PathBuf {
        let plugin = self.file("tscap.lua");
        let from = root().join("packaging/wireshark/tscap.lua");
        fs::copy(from, &plugin).expect("copy the plugin");
        plugin
    }

    /// A program, run by the user in `netns`.
    pub fn command(&self, netns: &Netns, program: &str) -> Command {
        let mut command = netns.command("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", program])
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("WIRESHARK_EXTCAP_DIR", self.file("extcap"));
        command
    }

    /// tshark, run to its end.
    pub fn tshark(&self, netns: &Netns, arguments: &[&str]) -> Done {
        run(self.command(netns, "tshark").args(arguments), LIMIT)
    }

    /// A line of a shell, run to its end.
    pub fn shell(&self, netns: &Netns, line: &str) -> Done {
        run(self.command(netns, "sh").args(["-ec", line]), LIMIT)
    }

    /// Waits until no process runs the copy.
    pub fn wait_for_the_end_of_tscap(&self) {
        let program = self.program();
        wait::until("the end of every tscap", LIMIT, || {
            let mut processes = fs::read_dir("/proc").expect("/proc").flatten();
            let runs = processes
                .any(|it| fs::read_link(it.path().join("exe")).is_ok_and(|exe| exe == program));
            (!runs).then_some(())
        });
    }
}

/// Pings from the sender until it is dropped, 50 a second.
#[derive(Debug)]
pub struct Pings(Child);

impl Pings {
    /// To 10.9.0.2: [`Bench::add_addresses`] comes first.
    pub fn on(bench: &Bench) -> Self {
        Self::to(bench, "10.9.0.2")
    }

    /// To another address.
    pub fn to(bench: &Bench, address: &str) -> Self {
        let mut ping = bench.tx.netns.command("ping");
        ping.args(["-q", "-i", "0.02", address]);
        let child = ping.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Self(child.expect("start ping"))
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The end of a child, which must succeed.
#[track_caller]
pub fn succeeds(child: Child, what: &str) -> Done {
    let done = finish(child, what, LIMIT);
    assert!(done.status.success(), "{what}: {}", done.stderr);
    done
}
