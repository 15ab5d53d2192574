//! Loss against frame size and against the gap, frames received on a CPU of their own: there
//! a stamp that takes longer loses frames, instead of slowing the sender down.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::bed::setup;
use super::plan::Amount;
use super::request::ExperimentError;
use super::schema::{LossMethod, LossPoint};
use tscap_clock::StampPath;
use tscap_traffic::load::{
    Burst, Pair, Program, Stop, TestBed, Tool, cpu_apart, tool_cpus, tool_cpus_apart,
};

/// A ring of each CPU: it holds more than a burst, so that what is lost was lost on the CPU
/// that receives.
const RING_BYTES: u64 = 4 << 20;

/// One size and gap; a gap of `None` is flat out.
pub(super) type LossCase = (u32, Option<u64>);

/// All of them: sizes flat out, then gaps of the shortest frames.
pub(super) fn cases(amount: &Amount) -> Vec<LossCase> {
    let sizes = amount.sizes.iter().map(|size| (*size, None));
    let gaps = amount.gaps.iter().map(|gap| (64, Some(*gap)));
    sizes.chain(gaps).collect()
}

/// What sends and receives.
pub(super) struct LossBed {
    bed: TestBed,
    tscap: Program,
    /// How it is done.
    pub method: LossMethod,
}

impl LossBed {
    /// In this thread, which is pinned to `sender_cpu` and moved into another namespace.
    /// `allowed` are the CPUs that there are for all of it.
    pub fn new(
        tscap: &Path,
        sender_cpu: u32,
        allowed: &[u32],
        frames: u32,
        stop: Arc<Stop>,
    ) -> io::Result<Self> {
        let receive_cpu = cpu_apart(sender_cpu, allowed);
        let mut bed = TestBed::new(Pair::new()?, stop)?;
        if receive_cpu.is_some() {
            bed.receive_on(receive_cpu)?;
        }
        Ok(Self {
            bed,
            tscap: Tool::Tscap.find(tscap).map_err(io::Error::other)?,
            method: LossMethod {
                frames,
                rounds: 0,
                sender_cpu,
                receive_cpu: receive_cpu.unwrap_or(sender_cpu),
                capture_cpus: match receive_cpu {
                    Some(receiver) => tool_cpus_apart(sender_cpu, receiver, allowed),
                    None => tool_cpus(sender_cpu, allowed),
                },
                ring_bytes: RING_BYTES,
            },
        })
    }

    /// Captures one burst with a stamp into nothing, and adds it to a point.
    pub fn take(
        &mut self,
        path: StampPath,
        (size, gap): LossCase,
        point: &mut LossPoint,
    ) -> Result<(), ExperimentError> {
        let frames = self.method.frames.into();
        let burst = match gap {
            None => Burst::flat_out(size, frames),
            Some(gap) => Burst::with_gap(size, gap, frames).in_bulks_if_needed(),
        };
        let setup = setup(path, RING_BYTES, &self.method.capture_cpus)?;
        let run = self.bed.capture(&self.tscap, &setup, burst);
        point.take(&run.map_err(io::Error::other)?);
        Ok(())
    }
}
