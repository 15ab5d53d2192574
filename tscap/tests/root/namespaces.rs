//! Network namespaces found by name, path, process and container. Needs root: makes
//! namespaces and processes in them.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use tscap_base::kernel_files::KernelFiles;
use tscap_host::process;
use tscap_network::namespaces::{Namespace, NamespaceError, Places, Target};
use tscap_network::netdev;
use tscap_network::netns::NetnsId;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::root;

/// A process that waits until it is dropped.
pub(super) struct Waiting(Child);

impl Waiting {
    /// One of `command`, which then is `cat` or executes it.
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        // It is what it will be when it says so.
        let mut line = String::new();
        let stdin = child.stdin.as_mut().expect("a pipe");
        std::io::Write::write_all(stdin, b"ready\n").expect("it reads");
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it writes");
        assert_eq!(line, "ready\n");
        Self(child)
    }

    pub(super) fn within(netns: &Netns) -> Self {
        Self::start(netns.command("cat"))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn netns(text: impl ToString) -> Target {
    Target::Netns(text.to_string())
}

/// Has the namespace found be this one, by an interface of its own.
#[track_caller]
fn check(target: &Target, places: &Places, expected: &Netns) {
    let found = Namespace::open(target, places).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found.id(), expected.enter(NetnsId::here).unwrap());
    let link = found.visit(|| netdev::by_name("here0"));
    assert!(link.unwrap().unwrap().is_some());
    assert_eq!(found.label(), target.to_string());
}

#[test]
fn a_namespace_is_found_by_whatever_names_it() {
    let Some(_lock) = root() else { return };
    let expected = Netns::new("ns");
    expected.ip(&[
        "link", "add", "here0", "type", "veth", "peer", "name", "here1",
    ]);
    let (live, process) = (Places::live(), Waiting::within(&expected));
    let path = format!("/run/netns/{}", expected.name());
    for target in [
        netns(expected.name()),
        netns(&path),
        netns(process.pid()),
        netns(format!("/proc/{}/ns/net", process.pid())),
    ] {
        check(&target, &live, &expected);
    }

    // A container of crun, whose process is that one.
    let folder = tempfile::tempdir().unwrap();
    symlink("/proc", folder.path().join("proc")).unwrap();
    let state = folder.path().join("run/crun/0123456789abcdef");
    std::fs::create_dir_all(&state).unwrap();
    let started = process::started(&KernelFiles::live(), process.pid());
    let started = started.unwrap().expect("it runs");
    let write = |started: u64| {
        let pid = process.pid();
        let json = format!(r#"{{"pid": {pid}, "process-start-time": {started}, "bundle": "/x"}}"#);
        std::fs::write(state.join("status"), json).unwrap();
    };
    let places = Places::below(folder.path());
    let container = Target::Container("0123".into());
    write(started);
    check(&container, &places, &expected);
    write(started + 1);
    let refused = Namespace::open(&container, &places).unwrap_err();
    assert!(
        matches!(refused, NamespaceError::NotRunning { .. }),
        "{refused:?}"
    );
}

#[test]
fn what_is_no_other_namespace_is_refused() {
    let Some(_lock) = root() else { return };
    let live = Places::live();
    let here = Waiting::start(Command::new("cat"));
    let refused = Namespace::open(&netns(here.pid()), &live).unwrap_err();
    assert!(
        matches!(refused, NamespaceError::Here { .. }),
        "{refused:?}"
    );
    let pid = here.pid();
    drop(here);
    let refused = Namespace::open(&netns(pid), &live).unwrap_err();
    assert!(
        matches!(refused, NamespaceError::NoProcess { .. }),
        "{refused:?}"
    );

    for (path, part) in [
        ("/proc/self/ns/mnt", "no network namespace"),
        ("/dev/null", "no network namespace"),
        ("/nonexistent/ns", "lsns"),
    ] {
        let refused = Namespace::open(&netns(path), &live).unwrap_err();
        assert!(
            matches!(refused, NamespaceError::File { .. }),
            "{refused:?}"
        );
        assert!(
            refused.remedy().contains(part),
            "{path}: {}",
            refused.remedy()
        );
    }
}
