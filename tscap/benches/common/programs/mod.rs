//! Programs under `BPF_PROG_TEST_RUN`, one frame at a time.

pub mod ring_output;

use anyhow::{Context, Result};
use aya::programs::{TestRun as _, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use tscap_testkit::probes;

/// A program with what takes its records.
pub trait Subject {
    /// Name of the program.
    fn name(&self) -> &'static str;

    /// Runs the program `repeat` times on a frame; returns ns a run.
    fn run(&mut self, frame: &[u8], repeat: u32) -> Result<f64>;

    /// Takes all records of `frames` frames, of which `caplen` bytes each should
    /// have been captured. An error unless it is exactly those and nothing was
    /// lost.
    fn drain(&mut self, frames: usize, caplen: usize) -> Result<()>;
}

/// Shows `frame` to the program `frames` times; returns ns a frame. The first
/// stores after a drain miss the cache: part of the cost, and spread over many
/// frames.
pub fn repetition(
    subject: &mut dyn Subject,
    frame: &[u8],
    frames: usize,
    caplen: usize,
) -> Result<f64> {
    let name = subject.name();
    // Past one page the kernel makes a frame of several buffers of it, which only a
    // frags-aware program gets.
    let ns = subject
        .run(frame, u32::try_from(frames)?)
        .with_context(|| format!("cannot run {name} on {} bytes", frame.len()))?;
    subject
        .drain(frames, caplen)
        .with_context(|| format!("{name}, {frames} frames of {} bytes", frame.len()))?;
    Ok(ns)
}

/// The XDP program `name` of an object, loaded.
pub fn load_program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp> {
    let program = find_program(ebpf, name)?;
    program
        .load()
        .with_context(|| format!("cannot load {name}"))?;
    Ok(program)
}

/// The XDP program `name` of an object.
pub fn find_program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp> {
    let program = ebpf
        .program_mut(name)
        .with_context(|| format!("no program {name}"))?;
    Ok(program.try_into()?)
}

/// Runs a program `repeat` times on a frame; returns ns a run.
pub fn run(program: &Xdp, frame: &[u8], repeat: u32) -> Result<f64> {
    let result = program.test_run(TestRunOptions {
        data_in: Some(frame),
        repeat,
        ..TestRunOptions::new()
    })?;
    Ok(result.duration.as_nanos() as f64)
}

/// A program of the probes that records nothing.
pub struct Probe {
    name: &'static str,
    ebpf: Ebpf,
}

impl Probe {
    /// Loads it.
    pub fn load(name: &'static str) -> Result<Self> {
        let mut ebpf = EbpfLoader::new().load(probes::OBJECT)?;
        load_program(&mut ebpf, name)?;
        Ok(Self { name, ebpf })
    }
}

impl Subject for Probe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, frame: &[u8], repeat: u32) -> Result<f64> {
        run(find_program(&mut self.ebpf, self.name)?, frame, repeat)
    }

    fn drain(&mut self, _frames: usize, _caplen: usize) -> Result<()> {
        Ok(())
    }
}
