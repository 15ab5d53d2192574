//! A converter over synthetic rings, and the CPU time of a drain.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use nix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tscap::clock::{HostClocks, Reference as _, StampSource, Tracker};
use tscap::engine::{Converter, Event, Output, Shared};
use tscap::pcapng::{FileWriter, InterfaceInfo, InterfaceOption, SectionInfo};
use tscap::ring::synthetic::{self, Producer};

/// Interface number of the frames.
pub const IFINDEX: u32 = 7;

/// Rings with their producers, and the converter that drains them.
pub struct Filled {
    /// One a ring.
    pub producers: Vec<Producer>,
    /// CLOCK_MONOTONIC when this was made, ns.
    pub now: u64,
    converter: Converter<HostClocks>,
    shared: Arc<Shared>,
    events: UnboundedReceiver<Event>,
}

impl Filled {
    /// Empty rings, and headers in `output`.
    pub fn new(rings: u32, ring_bytes: usize, mut output: Output) -> Result<Self> {
        let (producers, consumers) = synthetic::rings(rings, ring_bytes)?;
        let mut clocks = HostClocks;
        let tracker = Tracker::new(StampSource::Ktime, &clocks.read()).context("torn clock")?;
        let now = tracker.current().from;
        let mut file = FileWriter::new(&section(), &[interface()], tracker.real_at(now))?;
        output.write(&file.take())?;
        let shared = Arc::new(Shared::default());
        let (tell, events) = unbounded_channel();
        let converter = Converter::new(
            consumers,
            clocks,
            tracker,
            output,
            file,
            None,
            Box::new(|ifindex| (ifindex == IFINDEX).then_some(0)),
            Arc::clone(&shared),
            tell,
        );
        Ok(Self {
            producers,
            now: now.0,
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
        if let Ok(event) = self.events.try_recv() {
            anyhow::bail!("the converter reports {event:?}");
        }
        Ok(taken)
    }
}

/// CPU time of this thread, ns. Without system calls in between there are only
/// faults and interrupts in it besides user time.
fn cpu_time_ns() -> Result<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64)
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
    }
}

fn interface() -> InterfaceInfo {
    let offloads = std::collections::BTreeMap::new();
    InterfaceInfo {
        name: "synthetic0".into(),
        description: None,
        mac: None,
        speed: None,
        snaplen: 262_144,
        os: "Linux".into(),
        tscap: InterfaceOption::new("native", StampSource::Ktime, offloads),
    }
}
