//! Sources of UTC: real daemons between namespaces, which never touch the clock, and files in the
//! places of others, in mount namespaces of their own. All namespaces have the host's clock, so that
//! it is the truth. Needs root.

mod chrony;
mod ptp4l;
mod segments;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tscap_testkit::capture::clock;
use tscap_testkit::netns::Netns;
use tscap_testkit::root::skip;
use tscap_testkit::{debian, made};

/// A daemon that runs; ended on drop.
struct Daemon {
    child: Child,
    said: PathBuf,
}

impl Daemon {
    /// What it says goes to a file.
    fn start(mut command: Command, said: &Path) -> Self {
        let file = File::create(said).expect("a file");
        let same = file.try_clone().expect("a descriptor");
        command.stdin(Stdio::null()).stdout(file).stderr(same);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        made::note("process", child.id());
        Self {
            child,
            said: said.to_owned(),
        }
    }

    /// Panics if it has ended.
    fn must_run(&mut self) {
        let ended = self.child.try_wait().expect("a child");
        if let Some(status) = ended {
            let said = std::fs::read_to_string(&self.said).unwrap_or_default();
            panic!("it has ended, {status}: {said}");
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // `ip netns exec` is the same process. Both fail for one that has ended: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of a package that is not installed for tests; `None` where there is none.
fn program(package: &str, path: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian");
    match debian::program(&folder, package, path) {
        Ok(path) => Some(path),
        Err(why) => {
            skip(&why);
            None
        }
    }
}

/// What `tscap clock` says of UTC in its last line, started through these words.
fn utc_of(netns: &Netns, through: &[String]) -> Value {
    let seen = clock(netns)
        .through(through)
        .with(["--duration", "0.3", "--interval", "0.1"])
        .run();
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let last = seen
        .stdout
        .lines()
        .rfind(|line| line.contains(r#""event":"clock""#));
    let line: Value = serde_json::from_str(last.expect("a line")).expect("JSON");
    assert_eq!(line["utc_bound_ns"], line["utc"]["bound_ns"]);
    line["utc"].clone()
}

/// What one of the sources says.
fn by<'a>(utc: &'a Value, source: &str) -> &'a Value {
    let readings = utc["readings"].as_array().expect("readings");
    let found = readings.iter().find(|it| it["source"] == source);
    found.unwrap_or_else(|| panic!("no {source}: {utc}"))
}
