//! One program under `BPF_PROG_TEST_RUN`.

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

/// A program that does nothing.
pub struct Harness(Ebpf);

impl Harness {
    const NAME: &str = "probe_drop";

    /// Loads it.
    pub fn load() -> Result<Self> {
        let mut ebpf = EbpfLoader::new().load(probes::OBJECT)?;
        load_program(&mut ebpf, Self::NAME)?;
        Ok(Self(ebpf))
    }
}

impl Subject for Harness {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn run(&mut self, frame: &[u8], repeat: u32) -> Result<f64> {
        run(find_program(&mut self.0, Self::NAME)?, frame, repeat)
    }

    fn drain(&mut self, _frames: usize, _caplen: usize) -> Result<()> {
        Ok(())
    }
}
