//! The programs of runtimes, for containers whose files are not where they usually are.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Places;
use super::container::{Process, Wanted};
use tscap_host::process;

/// Asks this machine's Docker, whatever the user's context is.
const DOCKER: &str = "--host unix:///run/docker.sock";
/// Prints the process of a container.
const INSPECT: &str = "inspect --type container --format {{.State.Pid}}";
/// The same by crictl, of a container and of a pod.
const CRI_INSPECT: &str = "inspect --output go-template --template {{.info.pid}}";
const CRI_INSPECT_POD: &str = "inspectp --output go-template --template {{.info.pid}}";
/// Prints the id of a pod.
const CRI_PODS: &str = "pods --quiet --state=ready";
/// How long a program may take: its daemon may not answer.
const WITHIN: Duration = Duration::from_secs(10);
/// How often its end is looked for.
const EVERY: Duration = Duration::from_millis(10);

/// The process of a container or pod, if a program knows it.
pub(super) fn ask(places: &Places, wanted: &Wanted<'_>) -> Option<Process> {
    if !places.files.are_live() {
        return None;
    }
    let pid = match *wanted {
        // It would be an option.
        Wanted::Container(text) if text.starts_with('-') => None,
        Wanted::Container(text) => number("docker", &format!("{DOCKER} {INSPECT}"), text)
            .or_else(|| number("podman", INSPECT, text))
            .or_else(|| number("crictl", CRI_INSPECT, text)),
        Wanted::Pod { namespace, name } => {
            let of = format!("--namespace={namespace}");
            let pods = output("crictl", CRI_PODS, &[&of, &format!("--name=^{name}$")])?;
            number("crictl", CRI_INSPECT_POD, pods.lines().next()?)
        }
    }?;
    let started = process::started(&places.files, pid).ok().flatten()?;
    Some(Process {
        pid,
        started: Some(started),
    })
}

fn number(program: &str, options: &str, object: &str) -> Option<u32> {
    let pid = output(program, options, &[object])?.trim().parse().ok();
    pid.filter(|pid| *pid != 0)
}

/// Variables by which the programs of Podman ask another machine.
const REMOTE: [&str; 2] = ["CONTAINER_HOST", "CONTAINER_CONNECTION"];

/// What a program prints, if there is one and it succeeds in time.
fn output(program: &str, options: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(options.split(' '))
        .args(arguments)
        .env_remove(REMOTE[0])
        .env_remove(REMOTE[1])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let deadline = Instant::now() + WITHIN;
    // A line at most, which the pipe holds.
    let status = loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => thread::sleep(EVERY),
            Ok(Some(status)) => break status,
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_and_may_fail() {
        assert_eq!(number("echo", "-n", "4711"), Some(4711));
        assert_eq!(number("echo", "-n", "0"), None, "it is not running");
        assert_eq!(number("echo", "-n", "no such container"), None);
        assert_eq!(output("cat", "/nonexistent", &[]), None);
        assert_eq!(output("no-such-program", "inspect", &[]), None);
    }
}
