//! tcpdump as a second witness of the same traffic.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use pcap_file::pcap::PcapReader;

use crate::command::wait_for;
use crate::lines::Lines;
use crate::port::Port;

/// More than its start or end takes.
const LIMIT: Duration = Duration::from_secs(30);

/// A running tcpdump. Killed when it is dropped.
#[derive(Debug)]
pub struct Tcpdump {
    child: Child,
    path: PathBuf,
}

/// A packet of its: time since the epoch in ns, length on the wire, and bytes.
#[derive(Debug)]
pub struct Seen {
    /// Time since the epoch, ns.
    pub nanos: u64,
    /// Length on the wire.
    pub origlen: u32,
    /// Bytes.
    pub data: Vec<u8>,
}

impl Tcpdump {
    /// Starts to capture what comes in on `port`, `count` packets with
    /// nanoseconds; returns when it listens.
    pub fn listen(port: &Port, path: &Path, count: u64) -> Self {
        let mut command = port.netns.command("tcpdump");
        // As root also when writing: by default it becomes another user, who
        // can't write here.
        command.args(["-Z", "root", "-n", "-i", &port.name, "-Q", "in"]);
        command.args(["--time-stamp-precision", "nano", "-s", "0", "-B", "65536"]);
        command.args(["-c", &count.to_string(), "-w"]).arg(path);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start tcpdump");
        let stderr = Lines::collect(child.stderr.take().expect("piped"));
        let tcpdump = Self {
            child,
            path: path.to_owned(),
        };
        let listens = stderr.wait_for(LIMIT, |line| line.contains("listening on"));
        assert!(listens.is_some(), "tcpdump: {}", stderr.so_far());
        tcpdump
    }

    /// Waits until it has all its packets; returns them.
    pub fn finish(mut self) -> Vec<Seen> {
        let status = wait_for(&mut self.child, LIMIT).expect("tcpdump gets all packets");
        assert!(status.success(), "tcpdump: {status}");
        let file = std::fs::File::open(&self.path).expect("tcpdump's file");
        let mut reader = PcapReader::new(file).expect("a pcap file");
        let mut packets = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.expect("a packet");
            packets.push(Seen {
                nanos: u64::try_from(packet.timestamp().as_nanos()).expect("before 2554"),
                origlen: packet.orig_len(),
                data: packet.data().to_vec(),
            });
        }
        packets
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
