//! What a sweep is run with: a test bed, a file for the captures, the CPUs.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use tempfile::NamedTempFile;

use super::error::LossError;
use super::grid::GridPoint;
use super::model::record_bytes;
use super::slow::SlowFile;
use tscap_file::accounting::Direction;
use tscap_host::{affinity, system};
use tscap_programs::hook::HookChoice;
use tscap_traffic::load::{
    Burst, LoadError, Pair, Point, Program, Setup, Stop, TestBed, Tool, tool_cpus, tool_cpus_apart,
};

/// A capture ends by itself after so long, should we be killed; no point lasts longer.
const LONGEST: Duration = Duration::from_secs(120);
/// The file's name begins so.
const PREFIX: &str = "tscap-loss-";
/// A capture's file takes at most this share of the room that there is, and of the
/// memory: it may be one and the same.
const SHARE_OF_ROOM: u64 = 4;
/// Longest file of a capture, bytes.
const LONGEST_FILE: u64 = 4 << 30;
/// Written at once to warm the folder's memory, bytes.
const CHUNK: usize = 1 << 20;

/// Where and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// `tscap`.
    pub executable: PathBuf,
    /// The CPU to send from.
    pub sender_cpu: u32,
    /// The CPU to receive on, if not the sender's.
    pub receive_cpu: Option<u32>,
    /// Where captures are written.
    pub folder: PathBuf,
    /// Slows the file of tscap's captures down to so many bytes a second.
    pub file_bytes_per_s: Option<u64>,
}

/// Into what a run is captured.
#[derive(Clone, Copy)]
pub(super) enum CaptureKind {
    /// A capture with a file.
    Usual,
    /// One that takes nothing out of its ring meanwhile.
    Held,
    /// One with a file that is slowed down.
    Slowly,
}

pub(super) struct LossBed {
    bed: TestBed,
    /// What every capture writes, one after the other.
    file: NamedTempFile,
    placement: Placement,
    pub stop: Arc<Stop>,
    capture_cpus: Vec<u32>,
    /// A CPU that neither sends nor is to receive.
    other_cpu: Option<u32>,
    rings: usize,
    /// Most bytes that a capture may write.
    room: u64,
    /// Of the pipe before the slow reader, bytes.
    slow_buffer_bytes: u64,
}

impl LossBed {
    /// In this thread, which is pinned and moved into another namespace.
    pub fn new(pair: Pair, placement: Placement, stop: Arc<Stop>) -> io::Result<Self> {
        let allowed = affinity::allowed_cpus()?;
        affinity::pin_to(placement.sender_cpu)?;
        let file = NamedTempFile::with_prefix_in(PREFIX, &placement.folder)?;
        stop.set_file(file.path().to_owned());
        let room = room(&placement.folder)?;
        let mut bed = TestBed::new(pair, Arc::clone(&stop))?;
        if placement.receive_cpu.is_some() {
            bed.receive_on(placement.receive_cpu)?;
        }
        Ok(Self {
            bed,
            file,
            stop,
            capture_cpus: capture_cpus(&placement, &allowed),
            other_cpu: allowed.into_iter().find(|cpu| *cpu != placement.sender_cpu),
            rings: system::online_cpus().map_err(io::Error::other)?.len(),
            room,
            slow_buffer_bytes: 0,
            placement,
        })
    }

    /// Whether frames are received on another CPU than the sender's.
    pub fn receives_apart(&self) -> bool {
        let sender = self.placement.sender_cpu;
        self.placement.receive_cpu.is_some_and(|cpu| cpu != sender)
    }

    /// Whether captures run on the sender's CPU.
    pub fn converter_shares(&self) -> bool {
        self.capture_cpus == [self.placement.sender_cpu]
    }

    /// Whether tscap's file is slowed down.
    pub fn is_slow(&self) -> bool {
        self.placement.file_bytes_per_s.is_some()
    }

    /// What the pipe to the slow reader held, bytes.
    pub fn slow_buffer_bytes(&self) -> u64 {
        self.slow_buffer_bytes
    }

    /// The CPUs that captures run on.
    pub fn capture_cpus(&self) -> &[u32] {
        &self.capture_cpus
    }

    /// CPUs with a ring.
    pub fn rings(&self) -> usize {
        self.rings
    }

    /// So many frames may be written at a point of the sweep; of those that go through
    /// a slow pipe any number.
    pub fn frames_in_room(&self, grid_point: &GridPoint) -> u64 {
        if self.is_slowed(grid_point.tool) {
            u64::MAX
        } else {
            self.frames_in_file(grid_point.caplen())
        }
    }

    /// So many frames of which `caplen` bytes are kept may be written to the file.
    pub fn frames_in_file(&self, caplen: u32) -> u64 {
        (self.room as f64 / record_bytes(caplen)) as u64
    }

    fn is_slowed(&self, tool: Tool) -> bool {
        self.is_slow() && tool == Tool::Tscap
    }

    /// Captures what is sent, at a point of the sweep.
    pub fn capture_point(
        &mut self,
        program: &Program,
        grid_point: &GridPoint,
        burst: Burst,
    ) -> Result<Point, LoadError> {
        let kind = if self.is_slowed(program.tool) {
            CaptureKind::Slowly
        } else {
            CaptureKind::Usual
        };
        self.capture(program, grid_point, burst, kind)
    }

    /// Captures what is sent.
    pub fn capture(
        &mut self,
        program: &Program,
        grid_point: &GridPoint,
        burst: Burst,
        kind: CaptureKind,
    ) -> Result<Point, LoadError> {
        let mut setup = self.setup(grid_point);
        match kind {
            CaptureKind::Usual => self.bed.capture(program, &setup, burst),
            CaptureKind::Held => self.bed.capture_held(program, &setup, burst),
            CaptureKind::Slowly => {
                let rate = self.placement.file_bytes_per_s.unwrap_or(u64::MAX);
                let slow = SlowFile::new(rate, &self.capture_cpus)?;
                self.slow_buffer_bytes = slow.holds;
                setup.output = slow.path();
                self.bed.capture(program, &setup, burst)
            }
        }
    }

    /// What sending a frame costs that another CPU receives and nobody captures, ns;
    /// `None` if there is no other, or it always receives.
    pub fn send_ns(&mut self, burst: Burst) -> Result<Option<f64>, LossError> {
        let Some(other) = self.other_cpu.filter(|_| !self.receives_apart()) else {
            return Ok(None);
        };
        self.stop.go_on()?;
        self.bed.receive_on(Some(other))?;
        let sent = self.bed.send(burst);
        self.bed.receive_on(None)?;
        let sent = sent?;
        let ns = sent.between.map(|[first, last]| last.0 - first.0);
        Ok(ns.map(|ns| ns as f64 / (sent.sent + sent.refused) as f64))
    }

    fn setup(&self, grid_point: &GridPoint) -> Setup {
        Setup {
            snaplen: grid_point.snaplen,
            buffer_bytes: (grid_point.ring * self.rings) as u64,
            direction: Direction::In,
            hook: HookChoice::Auto,
            tap: false,
            expression: None,
            clock: grid_point.clock,
            tsc_path: None,
            output: self.file.path().to_owned(),
            cpus: self.capture_cpus.clone(),
            longest: LONGEST,
        }
    }

    /// Fills the file once and empties it: memory that was never used is slower.
    pub fn warm(&mut self, bytes: u64) -> io::Result<()> {
        let chunk = vec![0; CHUNK];
        for _ in 0..bytes.min(self.room) / CHUNK as u64 {
            self.file.write_all(&chunk)?;
        }
        self.file.as_file().set_len(0)
    }
}

/// Not the CPU that receives, and the sender's only if there is no other.
fn capture_cpus(placement: &Placement, allowed: &[u32]) -> Vec<u32> {
    match placement.receive_cpu {
        Some(receiver) => tool_cpus_apart(placement.sender_cpu, receiver, allowed),
        None => tool_cpus(placement.sender_cpu, allowed),
    }
}

fn room(folder: &Path) -> io::Result<u64> {
    let disk = statvfs(folder)?;
    let disk = disk.blocks_available() * disk.fragment_size();
    let memory = system::memory_available_bytes().unwrap_or(u64::MAX);
    Ok((disk.min(memory) / SHARE_OF_ROOM).min(LONGEST_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_share_a_cpu_only_if_they_must() {
        let placement = |sender_cpu, receive_cpu| Placement {
            executable: "tscap".into(),
            sender_cpu,
            receive_cpu,
            folder: "/dev/shm".into(),
            file_bytes_per_s: None,
        };
        assert_eq!(capture_cpus(&placement(0, None), &[0, 1, 2]), [1, 2]);
        assert_eq!(capture_cpus(&placement(0, Some(1)), &[0, 1, 2]), [2]);
        assert_eq!(capture_cpus(&placement(0, Some(1)), &[0, 1]), [0]);
        assert_eq!(capture_cpus(&placement(0, None), &[0]), [0]);
    }
}
