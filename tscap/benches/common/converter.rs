//! A converter over synthetic rings, and the CPU time of a drain.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tscap_clock::{CrossTimestamp, HostClocks, RawStamp, Reference as _, StampPath, Tracker};
use tscap_common::hook::{Direction, Slot};
use tscap_engine::{Converter, Event, Frames, Output, Shared, Source};
use tscap_file::pcapng::{
    FileWriter, Hooks, InterfaceInfo, InterfaceOption, SectionInfo, StampOption,
};
use tscap_filter::LinkType;
use tscap_host::process::thread_cpu_time;
use tscap_programs::ring::synthetic::{self, Producer};

/// Interface number of the frames.
pub const SLOT: Slot = Slot::of(0, Direction::In);

/// Rings with their producers, and the converter that drains them.
pub struct Filled {
    /// One a ring.
    pub producers: Vec<Producer>,
    /// A stamp taken when this was made.
    pub now: RawStamp,
    converter: Converter<HostClocks>,
    shared: Arc<Shared>,
    events: UnboundedReceiver<Event>,
}

impl Filled {
    /// Empty rings for stamps by `path`, and headers in `output`.
    pub fn new(path: StampPath, rings: u32, ring_bytes: usize, mut output: Output) -> Result<Self> {
        let (producers, consumers) = synthetic::rings(rings, ring_bytes)?;
        let mut clocks = HostClocks::new(path.source());
        let mut tracker = Tracker::new(path.source(), &clocks.read()).context("torn clock")?;
        for _ in 0..100 {
            if tracker.is_settled() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
            tracker.observe(&clocks.read());
        }
        ensure!(tracker.is_settled(), "no rate of the TSC in 200 ms");
        let cross: CrossTimestamp = clocks.read();
        let now = tracker.stamp_at(&cross, cross.mono[0]);
        let start = tracker.real_at(tracker.current().from);
        let mut file = FileWriter::new(&section(), &[interface(path)], start)?;
        output.write(&file.take())?;
        let shared = Arc::new(Shared::default());
        let (tell, events) = unbounded_channel();
        let source = Source {
            consumers,
            clocks,
            tracker,
            frames: Frames::default(),
        };
        let converter = Converter::new(source, output, file, Arc::clone(&shared), tell);
        Ok(Self {
            producers,
            now,
            converter,
            shared,
            events,
        })
    }

    /// Drains the `frames` that are in the rings; CPU time in ns.
    pub fn drain(&mut self, frames: u64) -> Result<f64> {
        let written = self.shared.written.load(Ordering::Relaxed);
        let before = cpu_time_ns()?;
        let found = self.converter.drain();
        let taken = cpu_time_ns()? - before;
        let written = self.shared.written.load(Ordering::Relaxed) - written;
        ensure!(found && written == frames, "{written} of {frames}");
        ensure!(!self.converter.drain(), "frames left in the rings");
        self.is_quiet()?;
        Ok(taken)
    }

    /// Drains what is in the rings by now; frames, and CPU time in ns.
    pub fn drain_some(&mut self) -> Result<(u64, f64)> {
        let written = self.shared.written.load(Ordering::Relaxed);
        let before = cpu_time_ns()?;
        self.converter.drain();
        let taken = cpu_time_ns()? - before;
        self.is_quiet()?;
        Ok((self.shared.written.load(Ordering::Relaxed) - written, taken))
    }

    fn is_quiet(&mut self) -> Result<()> {
        match self.events.try_recv() {
            Ok(event) => anyhow::bail!("the converter reports {event:?}"),
            Err(_) => Ok(()),
        }
    }
}

/// CPU time of this thread, ns. Without system calls in between there are only
/// faults and interrupts in it besides user time.
pub fn cpu_time_ns() -> Result<f64> {
    Ok(thread_cpu_time()?.as_nanos() as f64)
}

/// Takes everything and does nothing.
pub struct Discard;

impl Write for Discard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn section() -> SectionInfo {
    SectionInfo {
        hardware: "none".into(),
        os: "Linux".into(),
        application: "tscap bench".into(),
        part: None,
    }
}

fn interface(path: StampPath) -> InterfaceInfo {
    let offloads = std::collections::BTreeMap::new();
    InterfaceInfo {
        name: "synthetic0".into(),
        description: None,
        link_type: LinkType::Ethernet,
        mac: None,
        speed: None,
        snaplen: 262_144,
        filter: None,
        os: "Linux".into(),
        tscap: InterfaceOption::new(Hooks::default(), StampOption::new(path), offloads),
    }
}
