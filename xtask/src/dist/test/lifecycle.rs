//! What becomes of answers, owners and capabilities at upgrades, and what purge leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};

use super::Bed;
use super::capturing::captured;
use super::snapshot::Snapshot;
use super::system::{System, refused};
use crate::capture::Capture;
use crate::dist::empty;
use crate::sh;

/// The program, and the copy that a group may execute.
const PROGRAM: &str = "/usr/bin/tscap";
const COPY: &str = "/usr/libexec/tscap/tscap";
/// As [`state`] shows the copy.
const GROUP: &str = "root:tscap 750 cap_net_admin,cap_net_raw,cap_perfmon,cap_bpf=ep";
const NONE: &str = "not there";
/// As it shows the program: everybody's, without capabilities.
const ROOT: &str = "root:root 755";

/// Follows the package through all that dpkg does with it.
pub fn check(bed: &Bed<'_>, folder: &Path) -> Result<()> {
    let later = later(folder, &bed.packages.deb)?;
    by_default(bed, &later)?;
    refused_before(bed)?;
    without_capabilities(bed)
}

/// The answer is the default at first.
fn by_default(bed: &Bed<'_>, later: &Path) -> Result<()> {
    let system = prepared(bed)?;
    let before = Snapshot::of(&system)?;
    let deb = system.bring(&bed.packages.deb)?;
    system.install(&[&deb])?;
    expect(&system, "installed", GROUP)?;
    as_service(bed, &system)?;
    system.install(&[&system.bring(later)?])?;
    expect(&system, "upgraded", GROUP)?;
    ensure!(answer(&system)? == "true", "the upgrade lost the answer");

    system.sh("echo tscap tscap/group-captures boolean false | debconf-set-selections")?;
    system.sh("dpkg-reconfigure tscap")?;
    expect(&system, "answered with no", NONE)?;
    as_service(bed, &system)?;
    system.install(&["--reinstall", &system.bring(later)?])?;
    expect(&system, "upgraded after no", NONE)?;
    let mut capture = system.command_of("daemon", "tscap");
    capture.args(["capture", "-i", "any", "-w", "/tmp/x.pcapng"]);
    let said = refused(capture)?;
    ensure!(
        said.contains("CAP_BPF"),
        "a user is refused without a reason: {said}"
    );
    captured(bed, system.command("tscap"), "/root/x.pcapng")?;

    // An administrator's word counts more than the answer.
    system.sh("dpkg-statoverride --update --add root adm 0710 /usr/bin/tscap")?;
    system.sh("echo tscap tscap/group-captures boolean true | debconf-set-selections")?;
    system.sh("dpkg-reconfigure tscap")?;
    system.install(&["--reinstall", &system.bring(later)?])?;
    ensure!(
        state(&system, COPY)? == NONE && state(&system, PROGRAM)? == "root:adm 710",
        "the administrator's owner and mode of the program are not heeded"
    );
    system.sh("dpkg-statoverride --remove /usr/bin/tscap; chown root:root /usr/bin/tscap")?;
    system.sh(
        "chmod 755 /usr/bin/tscap; dpkg-statoverride --add root adm 0710 /usr/libexec/tscap/tscap",
    )?;
    system.sh("dpkg-reconfigure tscap")?;
    expect(
        &system,
        "overridden",
        &GROUP.replace("tscap 750", "adm 710"),
    )?;
    system.sh("dpkg-statoverride --remove /usr/libexec/tscap/tscap; dpkg-reconfigure tscap")?;
    expect(&system, "no longer overridden", GROUP)?;

    let own = features()?;
    killed(bed, &system)?;
    ensure!(features()? != own, "the capture changed nothing");
    system.sh("apt-get --quiet --yes remove tscap")?;
    ensure!(
        features()? == own,
        "removal does not restore what the killed capture changed"
    );
    ensure!(
        system
            .sh("getent group tscap && getent passwd tscap")
            .is_ok(),
        "removal took the group or the user"
    );
    purged(&system, &before)
}

/// The answer is no before the installation.
fn refused_before(bed: &Bed<'_>) -> Result<()> {
    let system = prepared(bed)?;
    // Somebody else's, which purge leaves alone.
    system.sh("addgroup --quiet --system tscap")?;
    let before = Snapshot::of(&system)?;
    system.sh("echo tscap tscap/group-captures boolean false | debconf-set-selections")?;
    system.install(&[&system.bring(&bed.packages.deb)?])?;
    expect(&system, "refused", NONE)?;
    purged(&system, &before)?;
    system.sh("getent group tscap").map(drop)
}

/// The file system, or the container, knows no capabilities.
fn without_capabilities(bed: &Bed<'_>) -> Result<()> {
    let system = prepared(bed)?;
    system.sh("printf '#!/bin/sh\\nexit 1\\n' >/usr/sbin/setcap")?;
    let mut install = system.command("dpkg");
    install.args(["--install", &system.bring(&bed.packages.deb)?]);
    let done = install
        .output()
        .map_err(|e| sh::not_started(&install, &e))?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success() && said.contains("Only root can capture"),
        "{said}"
    );
    expect(&system, "without capabilities", NONE)
}

/// Captures as systemd starts the service: a user that nobody else is, in the group, with
/// what a capture needs and no more.
fn as_service(bed: &Bed<'_>, system: &System) -> Result<()> {
    let capabilities = "-all,+bpf,+net_admin,+net_raw,+perfmon";
    let mut service = system.command("setpriv");
    service.args(["--reuid=61234", "--regid=61234", "--groups=tscap"]);
    for set in ["inh-caps", "ambient-caps", "bounding-set"] {
        service.arg(format!("--{set}={capabilities}"));
    }
    service.args(["--no-new-privs", "--", "tscap"]);
    captured(bed, service, "/var/tmp/service.pcapng")?;
    system.sh("rm /var/tmp/service.pcapng").map(drop)
}

/// A system with what the package depends on and recommends.
fn prepared(bed: &Bed<'_>) -> Result<System> {
    let system = System::new(bed)?;
    system.install(&["adduser", "libcap2-bin", "libpcap0.8"])?;
    Ok(system)
}

/// The same package with a later version.
fn later(folder: &Path, deb: &Path) -> Result<PathBuf> {
    let root = empty(folder.join("later"))?;
    let mut unpack = Command::new("dpkg-deb");
    sh::run(unpack.arg("--raw-extract").arg(deb).arg(&root))?;
    let control = root.join("DEBIAN/control");
    let text = fs::read_to_string(&control).context("the package has no control file")?;
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix("Version: ") {
            Some(version) => format!("Version: {version}.1\n"),
            None => format!("{line}\n"),
        });
    fs::write(&control, lines.collect::<String>())?;
    let later = folder.join("later.deb");
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "-z1", "--build"]);
    sh::run(build.arg(&root).arg(&later))?;
    Ok(later)
}

/// Owner, mode and capabilities of a file.
fn state(system: &System, path: &str) -> Result<String> {
    if system.sh(&format!("test -e {path}")).is_err() {
        return Ok(NONE.to_owned());
    }
    let owner = system.sh(&format!("stat --format '%U:%G %a' {path}"))?;
    let capabilities = system.sh(&format!("getcap {path}"))?;
    let capabilities = capabilities.trim().trim_start_matches(path);
    Ok(format!("{} {}", owner.trim(), capabilities.trim())
        .trim()
        .to_owned())
}

/// Holds the copy to be `expected`, and the program to be everybody's.
fn expect(system: &System, when: &str, expected: &str) -> Result<()> {
    for (path, expected) in [(COPY, expected), (PROGRAM, ROOT)] {
        let state = state(system, path)?;
        ensure!(
            state == expected,
            "{when}, {path} is {state}, not {expected}"
        );
    }
    Ok(())
}

fn answer(system: &System) -> Result<String> {
    let shown = system.sh("debconf-show tscap")?;
    let answer = shown.trim().rsplit(' ').next().unwrap_or_default();
    Ok(answer.to_owned())
}

/// A capture that changes the machine is killed, and before it the process that would
/// restore what it changed: they leave a journal.
fn killed(bed: &Bed<'_>, system: &System) -> Result<()> {
    let mut tscap = system.command("tscap");
    tscap.args(["capture", "-i", "va", "--offloads", "off", "--json"]);
    let capture = Capture::start(tscap.args(["-w", "/root/y.pcapng"]))?;
    bed.network.ping()?;
    let keeper = system.process("tscap-keeper")?;
    kill(keeper, Signal::SIGKILL).context("cannot kill tscap-keeper")?;
    drop(capture);
    let journals = system.sh("ls /run/tscap")?;
    ensure!(
        journals.contains(".json"),
        "no journal of the killed capture: {journals}"
    );
    Ok(())
}

fn features() -> Result<String> {
    sh::output(Command::new("ethtool").args(["--show-features", "va"]))
}

/// Purges the package, and holds the system to what it was before.
fn purged(system: &System, before: &Snapshot) -> Result<()> {
    system.sh("apt-get --quiet --yes purge tscap")?;
    let questions = system.sh("debconf-show tscap")?;
    ensure!(
        questions.trim().is_empty(),
        "debconf still knows: {questions}"
    );
    before.compare(&Snapshot::of(system)?)
}
