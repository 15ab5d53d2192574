//! Who can capture after the installation, on a bare system with nothing but the package.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::Bed;
use super::network::REQUESTS;
use super::system::{System, refused};
use crate::capture::Capture;
use crate::sh;

/// From the end of the installation to the first captured frames.
const SOON: Duration = Duration::from_secs(10);

/// Installs the package and captures as a member of the group, as somebody else and as
/// root; tshark reads the files.
pub fn check(bed: &Bed<'_>) -> Result<()> {
    let system = System::new(bed)?;
    system.install(&[&system.bring(&bed.packages.deb)?])?;
    let installed = Instant::now();
    system.sh("useradd --create-home --groups tscap alice; useradd --create-home bob")?;
    let alice = captured(
        bed,
        system.command_of("alice", "tscap"),
        "/home/alice/x.pcapng",
    )?;
    let took = installed.elapsed();
    ensure!(
        took < SOON,
        "the first capture took {} s",
        took.as_secs_f64()
    );
    println!(
        "captured {alice} frames {:.1} s after the installation",
        took.as_secs_f64()
    );

    private(&system, "alice", "/home/alice/x.pcapng")?;

    stranger(&system)?;

    let root = captured(bed, system.command("tscap"), "/root/x.pcapng")?;
    // Root has gone on as the package's user.
    private(&system, "tscap", "/root/x.pcapng")?;
    // libpcap came along.
    let mut filter = system.command_of("alice", "tscap");
    sh::output(filter.args(["-d", "icmp"]))?;

    system.install(&["tshark"])?;
    let list = sh::output(system.command_of("alice", "tshark").arg("-D"))?;
    ensure!(
        list.contains("tscap-va"),
        "tshark lists no interface of tscap's: {list}"
    );
    for (user, frames) in [("alice", alice), ("root", root)] {
        let file = match user {
            "root" => "/root/x.pcapng".to_owned(),
            user => format!("/home/{user}/x.pcapng"),
        };
        ensure!(
            read(&system, user, &file, "frame")? == frames,
            "{user}: tshark counts others"
        );
        let echoes = read(&system, user, &file, "icmp")?;
        ensure!(
            echoes == 2 * REQUESTS,
            "{user}: tshark reads {echoes} echoes"
        );
    }
    Ok(())
}

/// Who is no member runs what needs no privilege, and is told how to become one.
fn stranger(system: &System) -> Result<()> {
    system.sh("install -o bob /home/alice/x.pcapng /home/bob/y.pcapng")?;
    for line in [
        "tscap --help",
        "tscap --version",
        "tscap convert y.pcapng -w /home/bob/z.pcapng icmp",
        "tscap merge y.pcapng z.pcapng -w /home/bob/m.pcapng",
        "tscap doctor --json >doctor.json || test $? = 1",
        "grep -q 'adduser .* tscap' doctor.json",
    ] {
        let mut bob = system.command_of("bob", "sh");
        bob.args(["-ec", &format!("cd /home/bob; {line}")]);
        sh::output(&mut bob).with_context(|| format!("as no member: {line}"))?;
    }
    let mut capture = system.command_of("bob", "tscap");
    capture.args(["capture", "-i", "any", "-w", "/home/bob/x.pcapng"]);
    let said = refused(capture)?;
    ensure!(said.contains("adduser USER tscap"), "{said}");
    let mut copy = system.command_of("bob", "sh");
    copy.args(["-c", "/usr/libexec/tscap/tscap --version"]);
    let said = refused(copy)?;
    ensure!(said.contains("Permission denied"), "{said}");
    // A member is not root.
    let mut stamp = system.command_of("alice", "tscap");
    stamp.args(["stamp", "-i", "va"]);
    let said = refused(stamp)?;
    ensure!(
        said.contains("a line stamp in /etc/tscap/members"),
        "{said}"
    );
    system.sh("rm /home/bob/*").map(drop)
}

/// Holds a file to belong to `user`, who alone may read it.
fn private(system: &System, user: &str, file: &str) -> Result<()> {
    let state = system.sh(&format!("stat --format '%U %a' {file}"))?;
    let expected = format!("{user} 600");
    ensure!(
        state.trim() == expected,
        "{file} is {}, not {expected}",
        state.trim()
    );
    Ok(())
}

/// Captures a ping on every interface; returns how many frames are in the file.
pub fn captured(bed: &Bed<'_>, mut tscap: Command, file: &str) -> Result<u64> {
    tscap.args(["capture", "-i", "any", "--json", "-w", file]);
    let capture = Capture::start(&mut tscap)?;
    bed.network.ping()?;
    let summary = capture.stop()?;
    ensure!(
        summary.written >= 2 * REQUESTS,
        "only {} frames are in {file}",
        summary.written
    );
    Ok(summary.written)
}

/// How many packets of a file match, by tshark.
fn read(system: &System, user: &str, file: &str, filter: &str) -> Result<u64> {
    let mut tshark = system.command_of(user, "tshark");
    tshark.args([
        "-r",
        file,
        "-Y",
        filter,
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]);
    let lines = sh::output(&mut tshark)?;
    u64::try_from(lines.lines().count()).context("too many lines")
}
