//! The same work by `bpf_perf_event_output`.

use std::os::fd::{AsFd as _, OwnedFd};

use anyhow::{Context, Result, bail, ensure};
use aya::maps::perf::{PerfEvent, PerfEventArrayBuffer};
use aya::maps::{Map, MapData, PerfEventArray};
use aya::{Ebpf, EbpfLoader};
use nix::unistd::{SysconfVar, sysconf};
use tscap_common::config::SNAPLEN;
use tscap_testkit::probes;

use super::perf_event;
use crate::common::programs::{Subject, find_program, load_program, run};

const NAME: &str = "probe_perf_output";
const EVENTS: &str = "EVENTS";
/// Stamp and lengths before the bytes of the frame.
const HEADER_BYTES: usize = 16;

/// The program with the perf buffer of one CPU.
pub struct PerfOutput {
    ebpf: Ebpf,
    buffer: PerfEventArrayBuffer<MapData>,
    _event: OwnedFd,
}

impl PerfOutput {
    /// Loads the program with a buffer of `buffer_bytes`, a power of two.
    ///
    /// The buffer is aya's, but the event in the map is our own: aya asks for a
    /// wake-up with every record, which is an interrupt to the CPU itself each
    /// time (5.5 µs a frame on the bench machine). Ours wakes up once in half a
    /// buffer: the least that `bpf_perf_event_output` can cost.
    pub fn load(cpu: u32, snaplen: u32, buffer_bytes: usize) -> Result<Self> {
        let mut ebpf = EbpfLoader::new()
            .override_global(SNAPLEN, &snaplen, true)
            .load(probes::OBJECT)?;
        load_program(&mut ebpf, NAME)?;
        let Some(Map::PerfEventArray(map)) = ebpf.map(EVENTS) else {
            bail!("the object has no perf event array {EVENTS}");
        };
        let map = map.fd().as_fd().try_clone_to_owned()?;
        let events = ebpf.take_map(EVENTS).context("no perf event array")?;
        let mut events = PerfEventArray::try_from(events)?;
        let page = sysconf(SysconfVar::PAGE_SIZE)?.context("no page size")?;
        let buffer = events.open(cpu, Some(buffer_bytes / usize::try_from(page)?))?;
        let event = perf_event::open(cpu, u32::try_from(buffer_bytes / 2)?)
            .context("cannot open a perf event")?;
        perf_event::set_output(event.as_fd(), buffer.as_fd())
            .context("cannot lead the perf event into the buffer")?;
        perf_event::put_into_map(map.as_fd(), cpu, event.as_fd())
            .context("cannot put the perf event into the map")?;
        Ok(Self {
            ebpf,
            buffer,
            _event: event,
        })
    }
}

impl Subject for PerfOutput {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&mut self, frame: &[u8], repeat: u32) -> Result<f64> {
        run(find_program(&mut self.ebpf, NAME)?, frame, repeat)
    }

    fn drain(&mut self, frames: usize, caplen: usize) -> Result<()> {
        let (mut records, mut misfits, mut lost) = (0, 0, 0);
        // The kernel pads a record so that its end is a multiple of eight.
        let lengths = HEADER_BYTES + caplen..HEADER_BYTES + caplen + 8;
        self.buffer.for_each(|event| match event {
            PerfEvent::Sample { head, tail } => {
                records += 1;
                misfits += usize::from(!lengths.contains(&(head.len() + tail.len())));
            }
            PerfEvent::Lost { count } => lost += count,
        });
        // A loss at the very end is not reported, but then records are missing.
        ensure!(lost == 0, "{lost} frames lost");
        ensure!(records == frames, "{records} records in the perf buffer");
        ensure!(misfits == 0, "{misfits} records of the wrong length");
        Ok(())
    }
}
