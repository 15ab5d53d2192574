//! What tests must not leave behind on the machine: processes, network namespaces,
//! journals of changes that nobody has restored, XDP programs. Others' captures and
//! tests may run meanwhile, so only what these tests made counts: their processes
//! carry a variable, and they write down namespaces and captures (`tscap/testkit/src/made.rs`).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::{sh, times};

/// The kernel removes programs some time after their last user has gone.
const GRACE: Duration = Duration::from_secs(10);
/// The variable in the environment of the tests: the file that they write to.
const RECORD: &str = "TSCAP_TEST_RECORD";
/// Where captures keep journals of what they have to restore.
const JOURNALS: &str = "/run/tscap";
/// Where `ip netns` keeps the namespaces that it has named.
const NAMESPACES: &str = "/run/netns";

/// Looks for what one run of the tests leaves behind.
pub struct Leftovers {
    record: PathBuf,
    journals: PathBuf,
    namespaces: PathBuf,
    /// Programs that were there before the tests.
    programs: BTreeSet<u32>,
}

/// An XDP program of tscap or of its tests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Program {
    id: u32,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    /// Where it is pinned in a BPF file system.
    #[serde(default)]
    pinned: Vec<String>,
}

impl Leftovers {
    /// Begins: the tests write into a file in `folder`.
    pub fn watch(folder: &Path) -> Result<Self> {
        let record = folder.join(format!("made-by-tests-{}", std::process::id()));
        File::create(&record).with_context(|| format!("cannot make {}", record.display()))?;
        Ok(Self {
            record,
            journals: JOURNALS.into(),
            namespaces: NAMESPACES.into(),
            programs: programs()?.iter().map(|program| program.id).collect(),
        })
    }

    /// Marks the processes that `tests` starts.
    pub fn mark(&self, tests: &mut Command) {
        tests.env(RECORD, &self.record);
    }

    /// Prints which tests took longest.
    pub fn tell_times(&self) -> Result<()> {
        times::tell(&self.read()?);
        Ok(())
    }

    /// What is left behind, once the kernel has had time to tidy up.
    pub fn find(&self) -> Result<Vec<String>> {
        let deadline = Instant::now() + GRACE;
        loop {
            let mut found = self.made_and_there()?;
            let new = programs()?
                .into_iter()
                .filter(|program| !self.programs.contains(&program.id));
            let new: Vec<_> = new.collect();
            if !new.is_empty() {
                found.extend(held_by_no_process(new, &attached_here()?, &held()));
            }
            if found.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Processes, namespaces and journals of these tests.
    fn made_and_there(&self) -> Result<Vec<String>> {
        let mut found = self.processes();
        let record = self.read()?;
        let made: BTreeSet<_> = record.lines().filter_map(|it| it.split_once(' ')).collect();
        for name in names(&self.namespaces) {
            if made.contains(&("namespace", name.as_str())) {
                found.push(format!("network namespace {name}"));
            }
        }
        for name in names(&self.journals) {
            // Called <process>-<start>.json.
            let pid = name.split_once('-').map_or("", |(pid, _)| pid);
            if made.contains(&("process", pid)) {
                found.push(format!("journal {}", self.journals.join(name).display()));
            }
        }
        Ok(found)
    }

    /// What the tests have written down.
    fn read(&self) -> Result<String> {
        fs::read_to_string(&self.record)
            .with_context(|| format!("cannot read {}", self.record.display()))
    }

    /// Processes with the variable in their environment.
    fn processes(&self) -> Vec<String> {
        let mark = format!("{RECORD}={}", self.record.display());
        let is_marked = |pid: &String| {
            let environment = fs::read(Path::new("/proc").join(pid).join("environ"));
            let environment = environment.unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == mark.as_bytes())
        };
        let marked = names("/proc").into_iter().filter(is_marked);
        let named = marked.map(|pid| {
            let name = fs::read_to_string(Path::new("/proc").join(&pid).join("comm"));
            format!("process {pid} ({})", name.unwrap_or_default().trim())
        });
        named.collect()
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.record);
    }
}

/// Those that stay without a process: attached to an interface of this namespace, or
/// pinned. (A process of the tests counts itself; a namespace of theirs too.)
fn held_by_no_process(
    programs: Vec<Program>,
    attached: &BTreeSet<u32>,
    held: &BTreeSet<u32>,
) -> Vec<String> {
    let stays = |program: &Program| {
        !held.contains(&program.id)
            && (attached.contains(&program.id) || !program.pinned.is_empty())
    };
    let left = programs.into_iter().filter(stays);
    left.map(|program| format!("XDP program {} ({})", program.name, program.id))
        .collect()
}

/// The programs with names of tscap's; only root may list them.
fn programs() -> Result<Vec<Program>> {
    let Some(bpftool) = sh::find("bpftool") else {
        return Ok(Vec::new());
    };
    if !nix::unistd::geteuid().is_root() {
        return Ok(Vec::new());
    }
    let list = sh::output(Command::new(bpftool).args(["--json", "--bpffs", "prog", "show"]))?;
    let mut list: Vec<Program> =
        serde_json::from_str(&list).context("cannot understand what bpftool printed")?;
    list.retain(|program| {
        let names = ["tscap_", "probe_"];
        program.kind == "xdp" && names.iter().any(|name| program.name.starts_with(name))
    });
    Ok(list)
}

/// Programs on interfaces of this namespace.
fn attached_here() -> Result<BTreeSet<u32>> {
    let list = sh::output(Command::new("ip").args(["-details", "-json", "link", "show"]))?;
    let links: Vec<Value> =
        serde_json::from_str(&list).context("cannot understand what ip printed")?;
    let ids = links
        .iter()
        .filter_map(|link| link["xdp"]["prog"]["id"].as_u64());
    Ok(ids.filter_map(|id| u32::try_from(id).ok()).collect())
}

/// Programs that a process holds open, also by a link.
fn held() -> BTreeSet<u32> {
    let mut held = BTreeSet::new();
    for pid in names("/proc") {
        let folder = Path::new("/proc").join(pid).join("fdinfo");
        for file in names(&folder) {
            let info = fs::read_to_string(folder.join(file)).unwrap_or_default();
            let ids = info
                .lines()
                .filter_map(|line| line.strip_prefix("prog_id:"));
            held.extend(ids.filter_map(|id| id.trim().parse::<u32>().ok()));
        }
    }
    held
}

/// Names of the entries of a folder; none where there is no such folder.
fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests;
