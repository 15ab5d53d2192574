//! What tests must not leave behind on the machine: namespaces and veths of
//! ours, XDP programs, and journals of changes that nobody has restored.

use std::collections::BTreeSet;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::sh;

/// The kernel removes namespaces and programs some time after their last user
/// has gone.
const GRACE: Duration = Duration::from_secs(10);

/// Where captures keep journals of what they have to restore.
const JOURNALS: &str = "/run/tscap";

/// Things that look like ours, each as a line of text.
pub struct Leftovers(BTreeSet<String>);

#[derive(Deserialize)]
struct Program {
    id: u32,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
}

impl Leftovers {
    /// What there is now.
    pub fn now() -> Result<Self> {
        let mut found = BTreeSet::new();
        if sh::find("ip").is_some() {
            namespaces(&mut found)?;
            veths(&mut found)?;
        }
        // Only root has any. Where there is no such folder there are none.
        let journals = std::fs::read_dir(JOURNALS).into_iter().flatten().flatten();
        // The lock beside them stays.
        let journals = journals.filter(|entry| entry.file_name() != "lock");
        found.extend(journals.map(|journal| format!("journal {}", journal.path().display())));
        // Only root may list programs.
        if nix::unistd::geteuid().is_root()
            && let Some(bpftool) = sh::find("bpftool")
        {
            programs(&mut Command::new(bpftool), &mut found)?;
        }
        Ok(Self(found))
    }

    /// What there is now and was not there `before`, once the kernel has had
    /// time to tidy up.
    pub fn since(before: &Self) -> Result<Vec<String>> {
        let deadline = Instant::now() + GRACE;
        loop {
            let new: Vec<_> = Self::now()?.0.difference(&before.0).cloned().collect();
            if new.is_empty() || Instant::now() > deadline {
                return Ok(new);
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

fn namespaces(found: &mut BTreeSet<String>) -> Result<()> {
    let list = sh::output(Command::new("ip").args(["netns", "list"]))?;
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    found.extend(
        names
            .filter(|name| name.starts_with("tscap"))
            .map(|name| format!("network namespace {name}")),
    );
    Ok(())
}

fn veths(found: &mut BTreeSet<String>) -> Result<()> {
    let list = sh::output(Command::new("ip").args(["-oneline", "link", "show", "type", "veth"]))?;
    // "5: veth0@if4: <BROADCAST,..."
    let names = list.lines().filter_map(|line| line.split(": ").nth(1));
    found.extend(names.map(|name| format!("veth {name}")));
    Ok(())
}

fn programs(bpftool: &mut Command, found: &mut BTreeSet<String>) -> Result<()> {
    let list = sh::output(bpftool.args(["--json", "prog", "show"]))?;
    let list: Vec<Program> =
        serde_json::from_str(&list).context("cannot understand what bpftool printed")?;
    let ours = list.iter().filter(|p| {
        p.kind == "xdp" && (p.name.starts_with("tscap_") || p.name.starts_with("probe_"))
    });
    found.extend(ours.map(|p| format!("XDP program {} ({})", p.name, p.id)));
    Ok(())
}
