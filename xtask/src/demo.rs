//! `demo`: captures real traffic between two fresh network namespaces.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::capture::Capture;
use crate::cargo::{cargo, target_dir};
use crate::netns::Namespace;
use crate::process::{Running, wait_until};
use crate::{interrupt, paths, setup, sh};

/// Addresses that are reserved for documentation (RFC 5737, RFC 3849).
const SENDER_V4: &str = "192.0.2.1";
const RECEIVER_V4: &str = "192.0.2.2";
const SENDER_V6: &str = "2001:db8::1";
const RECEIVER_V6: &str = "2001:db8::2";
/// Where the receiver waits for a TCP connection.
const PORT: &str = "5000";
/// Longest that any one program of the demo may take.
const STEP: Duration = Duration::from_secs(10);

/// Options of `demo`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to write
    #[arg(short, default_value = "out.pcapng", value_name = "FILE")]
    write: PathBuf,
}

/// Runs the task.
pub fn main(args: &Args) -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("the demo makes network namespaces and attaches an XDP program: run it as root");
    }
    let target = target_dir()?;
    let missing = setup::missing_for_demo()?;
    println!("{}", before(&missing, &target, &args.write));
    setup::demo()?;
    println!(
        "\nBuilding tscap without optimisation: cargo names each crate, tscap itself is the last\n"
    );
    sh::run(cargo().args(["build", "--package", "tscap", "--bin", "tscap"]))?;
    let tscap = target.join("debug/tscap");

    interrupt::watch()?;
    let summary = {
        let sender = Namespace::new(format!("tscap-demo-a-{}", std::process::id()))?;
        let receiver = Namespace::new(format!("tscap-demo-b-{}", std::process::id()))?;
        connect(&sender, &receiver)?;
        println!("\nTwo network namespaces, joined by a veth pair. Is this machine fit?\n");
        sh::run(
            receiver
                .exec(&tscap.to_string_lossy())
                .args(["doctor", "-i", "veth1"]),
        )?;
        println!("\nA capture in one of them:\n");
        let mut capture = receiver.exec(&tscap.to_string_lossy());
        capture.args(["capture", "-i", "veth1", "--json", "-w"]);
        let capture = Capture::start(capture.arg(&args.write))?;
        ping(&sender, RECEIVER_V4)?;
        ping(&sender, RECEIVER_V6)?;
        transfer(&sender, &receiver)?;
        capture.stop()?
    };
    println!("\nWhat it saw, with the namespaces removed again:\n\n{summary}\n");
    show(&args.write)?;
    println!("\n{}", left(&missing, &target, &args.write));
    if summary.seen == 0 {
        bail!("the capture saw no frame");
    }
    Ok(())
}

/// What the demo is about to do, and what of it stays.
fn before(missing: &[&str], target: &Path, file: &Path) -> String {
    let mut text =
        "demo: 2 to 5 minutes the first time, with 2 CPUs; later 15 seconds\n".to_owned();
    if !missing.is_empty() {
        text += &format!("  installs {}: they stay\n", missing.join(" "));
    }
    text + &format!(
        "  builds tscap into {}: some 1.5 GB, which stay\n  \
         captures between two network namespaces, which are removed again\n  \
         writes {}",
        target.display(),
        file.display()
    )
}

/// What stays, and how to remove it.
fn left(missing: &[&str], target: &Path, file: &Path) -> String {
    let mut text = format!(
        "The namespaces are removed. What stays:\n  {}\n  {} (to remove it: cargo clean)",
        file.display(),
        target.display()
    );
    if !missing.is_empty() {
        let packages = missing.join(" ");
        text += &format!(
            "\n  {packages}, and what they depend on\n  (to remove them: apt-get purge \
             --auto-remove {packages})"
        );
    }
    text
}

/// Joins both namespaces by a veth pair, `veth0` at the sender's end.
fn connect(sender: &Namespace, receiver: &Namespace) -> Result<()> {
    let peer = format!(
        "link add veth0 type veth peer name veth1 netns {}",
        receiver.name()
    );
    sender.ip(&peer)?;
    for (netns, interface, v4, v6) in [
        (sender, "veth0", SENDER_V4, SENDER_V6),
        (receiver, "veth1", RECEIVER_V4, RECEIVER_V6),
    ] {
        netns.ip(&format!("address add {v4}/24 dev {interface}"))?;
        // Without duplicate address detection, which would take a second.
        netns.ip(&format!("address add {v6}/64 dev {interface} nodad"))?;
        netns.ip(&format!("link set {interface} up"))?;
    }
    Ok(())
}

fn ping(sender: &Namespace, address: &str) -> Result<()> {
    interrupt::check()?;
    let mut ping = sender.exec("ping");
    ping.args(["-q", "-c", "5", "-i", "0.2", "-w", "5", address]);
    eprintln!("+ {}", sh::line(&ping));
    sh::output(&mut ping).map(drop)
}

/// Sends a file over TCP and makes sure that all of it arrives.
fn transfer(sender: &Namespace, receiver: &Namespace) -> Result<()> {
    interrupt::check()?;
    let file = paths::root().join("Cargo.lock");
    let source = File::open(&file).with_context(|| format!("cannot open {}", file.display()))?;
    let length = source.metadata()?.len();

    let mut listen = receiver.exec("nc.openbsd");
    listen.args(["-d", "-l", RECEIVER_V4, PORT]);
    listen.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = listen.spawn().map_err(|e| sh::not_started(&listen, &e))?;
    let mut server = Running::new("the receiving nc", child);
    let mut listening = receiver.exec("ss");
    listening.args(["-Hltn", "sport", "=", PORT]);
    wait_until("waiting for nc to listen", STEP, || {
        Ok(!sh::output(&mut listening)?.is_empty())
    })?;

    let mut send = sender.exec("nc.openbsd");
    send.args(["-N", RECEIVER_V4, PORT]);
    eprintln!("+ {} < {}", sh::line(&send), file.display());
    send.stdin(source);
    let child = send.spawn().map_err(|e| sh::not_started(&send, &e))?;
    let mut client = Running::new("the sending nc", child);

    let mut pipe = server
        .child
        .stdout
        .take()
        .context("nc has no standard output")?;
    let reader = std::thread::spawn(move || std::io::copy(&mut pipe, &mut std::io::sink()));
    for nc in [&mut client, &mut server] {
        let status = nc.wait(STEP)?;
        if !status.success() {
            bail!("nc failed: {status}");
        }
    }
    match reader.join() {
        Ok(Ok(received)) if received == length => Ok(()),
        Ok(Ok(received)) => bail!("nc sent {length} bytes, and {received} arrived"),
        Ok(Err(error)) => Err(error).context("cannot read what nc received"),
        Err(_) => bail!("the thread that reads what nc received panicked"),
    }
}

/// Prints the first packets of the file by a program that is not ours.
fn show(file: &Path) -> Result<()> {
    let mut reader = if sh::find("tshark").is_some() {
        let mut tshark = Command::new("tshark");
        tshark.args(["-n", "-t", "ud", "-c", "10", "-r"]).arg(file);
        tshark
    } else {
        let mut tcpdump = Command::new("tcpdump");
        tcpdump
            .args(["-n", "-tttt", "--nano", "-c", "10", "-r"])
            .arg(file);
        tcpdump
    };
    eprintln!("+ {}", sh::line(&reader));
    print!("{}", sh::output(&mut reader)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_said_before_and_after() {
        let (target, file) = (Path::new("/target"), Path::new("out.pcapng"));
        for said in [
            before(&["tcpdump"], target, file),
            left(&["tcpdump"], target, file),
        ] {
            for thing in ["/target", "out.pcapng", "tcpdump"] {
                assert!(said.contains(thing), "{said}");
            }
        }
        for said in [before(&[], target, file), left(&[], target, file)] {
            assert!(
                !said.contains("install") && !said.contains("purge"),
                "{said}"
            );
        }
    }
}
