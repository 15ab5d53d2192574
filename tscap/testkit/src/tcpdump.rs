//! tcpdump as a second witness of the same traffic.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pcap_file::pcap::PcapReader;
use tscap_common::hook::Direction;

use crate::command::wait_for;
use crate::lines::Lines;
use crate::made;
use crate::port::Port;
use crate::process::interruptible;
use crate::wait;

/// More than its start or end takes.
const LIMIT: Duration = Duration::from_secs(30);
/// Where in a file its last frames are looked for, bytes.
const TAIL: u64 = 256 << 10;
/// Longer than a packet that it writes, bytes.
const LONGEST: usize = 1 << 20;

/// A running tcpdump. Killed when it is dropped.
#[derive(Debug)]
pub struct Tcpdump {
    child: Child,
    stderr: Lines,
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
        let count = count.to_string();
        Self::start(port, path, &["-Q", "in", "-B", "65536", "-c", &count])
    }

    /// Starts to capture what goes that way at `port`, with nanoseconds, until it is
    /// stopped; returns when it listens.
    pub fn watch(port: &Port, path: &Path, direction: Direction) -> Self {
        let direction = match direction {
            Direction::In => "in",
            Direction::Out => "out",
        };
        Self::start(port, path, &["-Q", direction, "-B", "16384", "-U"])
    }

    fn start(port: &Port, path: &Path, arguments: &[&str]) -> Self {
        let mut command = port.netns.command("tcpdump");
        // As root also when writing: by default it becomes another user, who
        // can't write here.
        command.args(["-Z", "root", "-n", "-i", &port.name, "-s", "0"]);
        command.args(["--time-stamp-precision", "nano", "-w"]);
        command.arg(path).args(arguments);
        interruptible(&mut command);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("start tcpdump");
        made::note("process", child.id());
        let stderr = Lines::collect(child.stderr.take().expect("piped"));
        let tcpdump = Self {
            child,
            stderr,
            path: path.to_owned(),
        };
        let listens = tcpdump
            .stderr
            .wait_for(LIMIT, |line| line.contains("listening on"));
        assert!(listens.is_some(), "tcpdump: {}", tcpdump.stderr.so_far());
        tcpdump
    }

    /// Waits until each of these frames is among the last ones in its file, ends it, and
    /// returns its packets. It must not have dropped any.
    pub fn stop_with(self, last: &[&[u8]]) -> Vec<Seen> {
        wait::until("tcpdump to write the last frames", LIMIT, || {
            let tail = tail(&self.path);
            let is_there = |frame: &[u8]| tail.windows(frame.len()).any(|it| it == frame);
            last.iter().all(|frame| is_there(frame)).then_some(())
        });
        self.stop()
    }

    /// Waits until so many packets are in its file, ends it, and returns them. It must not
    /// have dropped any.
    pub fn stop_after(self, packets: u64) -> Vec<Seen> {
        wait::until("tcpdump to write all packets", LIMIT, || {
            (count(&self.path) >= packets).then_some(())
        });
        self.stop()
    }

    fn stop(mut self) -> Vec<Seen> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).expect("end tcpdump");
        let status = wait_for(&mut self.child, LIMIT).expect("tcpdump ends");
        assert!(status.success(), "tcpdump: {status}");
        let kept = self
            .stderr
            .wait_for(LIMIT, |line| line == "0 packets dropped by kernel");
        assert!(kept.is_some(), "tcpdump: {}", self.stderr.so_far());
        read(&self.path)
    }

    /// Waits until it has all its packets; returns them.
    pub fn finish(mut self) -> Vec<Seen> {
        let status = wait_for(&mut self.child, LIMIT).expect("tcpdump gets all packets");
        assert!(status.success(), "tcpdump: {status}");
        read(&self.path)
    }
}

fn read(path: &Path) -> Vec<Seen> {
    let file = File::open(path).expect("tcpdump's file");
    let mut reader = PcapReader::with_capacity(file, LONGEST).expect("a pcap file");
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

/// Whole packets in a file that grows.
fn count(path: &Path) -> u64 {
    let file = File::open(path).expect("tcpdump's file");
    let Ok(mut reader) = PcapReader::with_capacity(file, LONGEST) else {
        return 0;
    };
    let mut packets = 0;
    while let Some(Ok(_)) = reader.next_packet() {
        packets += 1;
    }
    packets
}

fn tail(path: &Path) -> Vec<u8> {
    let mut file = File::open(path).expect("tcpdump's file");
    let length = file.metadata().expect("its length").len();
    let start = SeekFrom::Start(length.saturating_sub(TAIL));
    file.seek(start).expect("seek in tcpdump's file");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("read tcpdump's file");
    bytes
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // Both fail for a child that has been waited for: fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
