//! What one frame costs in the capture program with a filter, by `BPF_PROG_TEST_RUN`.
//!
//! Beside it stand an empty program and an empty program with the stamp: what a rejected
//! frame costs more than the latter is the filter's, with the counting.

mod report;

use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Result, anyhow};
use etherparse::PacketBuilder;
use tscap_filter::Filter;
use tscap_filter::translate::{FrameAccess, SCRATCH_BYTES, translate};
use tscap_programs::hook::PROGRAMS;
use tscap_statistics::Spread;

use crate::common::programs::ring_output::RingOutput;
use crate::common::programs::{Probe, Subject as _, repetition};
use crate::common::rounds::{self, Subject};
use crate::expressions::{HOSTS, OUTSIDERS, addresses, host_and_not_port, hosts};
pub use report::ProgramReport;
use report::{Cell, Compiled};

/// Room for the records of one repetition, bytes.
const BUFFER_BYTES: usize = 16 << 20;
/// Lengths of frames, bytes, and how many of them are in one repetition: recorded ones
/// fit the buffer.
const SIZES: [(usize, usize); 2] = [(64, 40_000), (1500, 8_000)];
/// Repetitions in one turn: the kernel tells whole nanoseconds of each.
const REPETITIONS: usize = 5;
/// The default snaplen: it takes frames whole.
const WHOLE: u32 = 262_144;
/// The program of a capture.
const CAPTURE: &str = "tscap_ktime";
/// Where translated filters are looked at: as if no other stack were used.
const SCRATCH: i16 = -(SCRATCH_BYTES as i16);

/// What a subject gives in a round: ns a frame, by length.
type RoundTimes = [f64; SIZES.len()];
/// A frame of each length.
type Frames = [Vec<u8>; SIZES.len()];

/// Measures the programs with the first `number` of the filters on CPU `cpu`, to which the
/// caller is pinned.
pub fn measure(cpu: usize, number: usize, rounds: u32) -> Result<ProgramReport> {
    let [_, to] = addresses();
    let accepted = frames(addresses(), 443);
    let rejected = frames(OUTSIDERS, 8443);
    let [some, many] = HOSTS.map(|number| hosts(number, to));
    let expressions = [
        ("tcp port", "tcp port 443".to_owned()),
        ("host and not port", host_and_not_port(to)),
        ("100 hosts", some),
        ("800 hosts", many),
    ];
    let mut subjects = vec![
        probe("probe_pass", &accepted)?,
        probe("probe_stamp", &accepted)?,
        recording("no filter", load(cpu, None)?, &accepted),
    ];
    let mut filters = Vec::new();
    for (name, expression) in expressions.into_iter().take(number) {
        let filter = Filter::from_expression(&expression);
        let filter = filter.map_err(|failure| anyhow!(failure.chain()))?;
        let begin = Instant::now();
        let program = load(cpu, Some(&filter))?;
        filters.push(Compiled {
            name,
            classic: filter.program.instructions().len(),
            ebpf: translate(&filter.program, &FrameAccess::XDP, SCRATCH)?.len(),
            load_ms: begin.elapsed().as_secs_f64() * 1e3,
            expression,
        });
        subjects.push(rejecting(name, load(cpu, Some(&filter))?, &rejected));
        subjects.push(recording(name, program, &accepted));
    }
    // Warms up the code, and faults in the consumers' mappings.
    rounds::run("program, to warm up", 1, &mut subjects)?;
    for subject in &mut subjects {
        subject.results.clear();
    }
    rounds::run("program", rounds, &mut subjects)?;
    let results: Vec<_> = subjects.into_iter().map(|it| it.results).collect();
    let cells = SIZES.iter().enumerate().map(|(index, (size, _))| {
        let spread =
            |turns: &Vec<RoundTimes>| Spread::of(turns.iter().map(|it| it[index]).collect());
        {
            let costs: Vec<_> = results.iter().map(spread).collect();
            Cell::new(*size, &filters, &costs)
        }
    });
    Ok(ProgramReport {
        cpu,
        rounds,
        cells: cells.collect(),
        filters,
    })
}

fn load(cpu: usize, filter: Option<&Filter>) -> Result<RingOutput> {
    let filter = filter.map(|filter| &filter.program);
    let cpu = u32::try_from(cpu)?;
    RingOutput::load(PROGRAMS, CAPTURE, filter, cpu, WHOLE, BUFFER_BYTES)
}

/// An empty program.
fn probe<'a>(name: &'static str, frames: &'a Frames) -> Result<Subject<'a, RoundTimes>> {
    let mut probe = Probe::load(name)?;
    Ok(Subject::new(name, move || {
        turn(frames, |frame, number| {
            repetition(&mut probe, frame, number, frame.len())
        })
    }))
}

/// A capture that records each frame.
fn recording<'a>(
    name: &'static str,
    mut capture: RingOutput,
    frames: &'a Frames,
) -> Subject<'a, RoundTimes> {
    Subject::new(name, move || {
        turn(frames, |frame, number| {
            repetition(&mut capture, frame, number, frame.len())
        })
    })
}

/// A capture whose filter rejects each frame.
fn rejecting<'a>(
    name: &'static str,
    mut capture: RingOutput,
    frames: &'a Frames,
) -> Subject<'a, RoundTimes> {
    Subject::new(name, move || {
        turn(frames, |frame, number| {
            let ns = capture.run(frame, u32::try_from(number)?)?;
            capture.all_filtered(number)?;
            Ok(ns)
        })
    })
}

/// Frames of each length.
fn turn(frames: &Frames, mut run: impl FnMut(&[u8], usize) -> Result<f64>) -> Result<RoundTimes> {
    let mut means = RoundTimes::default();
    for ((mean, frame), (_, number)) in means.iter_mut().zip(frames).zip(SIZES) {
        for _ in 0..REPETITIONS {
            *mean += run(frame, number)? / REPETITIONS as f64;
        }
    }
    Ok(means)
}

/// TCP frames of each length to a port.
fn frames(hosts: [Ipv4Addr; 2], port: u16) -> Frames {
    let [from, to] = hosts.map(|host| host.octets());
    SIZES.map(|(size, _)| {
        let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
            .ipv4(from, to, 64)
            .tcp(49_152, port, 0, 1024);
        let mut frame = Vec::new();
        let payload = vec![0; size - builder.size(0)];
        let written = builder.write(&mut frame, &payload);
        written.expect("memory can be written to");
        frame
    })
}
