//! The whole capture program on one frame, by `BPF_PROG_TEST_RUN`.

use tscap_common::hook::Hook;

use super::Stamp;
use super::programs::ProgramsError;
use tscap_clock::{RawStamp, StampPath, TscPath};
use tscap_host::perf::EventPriority;
use tscap_programs::hook::COMPARE_PROGRAMS;
use tscap_programs::hook::{
    Kfunc, LoadError, LoadOptions, Loaded, PROGRAMS, TscEvents, retry_interrupted,
};
use tscap_programs::ring::Consumer;

/// Ring of one program: it takes all frames of a turn.
const RING_BYTES: usize = 4 << 20;
/// Frames of a turn: their blocks fill half of the ring.
const FRAMES: u32 = 20_000;
/// A whole frame, as in the papers' worst case.
const FRAME: [u8; 64] = [0; 64];

/// A capture program with its ring.
pub struct WholeProgram {
    loaded: Loaded,
    consumer: Consumer,
    /// Held open as long as it runs.
    _events: Option<TscEvents>,
}

impl WholeProgram {
    /// Loads the program that stamps so, by one of `kfuncs` if by a kfunc, with a
    /// ring for `cpu`.
    pub fn load(
        stamp: Stamp,
        kfuncs: &[Kfunc],
        cpu: u32,
        possible_cpus: u32,
    ) -> Result<Self, ProgramsError> {
        let mut kfuncs = kfuncs.iter();
        let cpus = [cpu];
        let object = match stamp {
            Some(_) => PROGRAMS,
            None => COMPARE_PROGRAMS,
        };
        let mut options = LoadOptions::new(object, (RING_BYTES, &cpus), possible_cpus);
        options.program = stamp.map_or("program_none", |path| Hook::Xdp.program(path.domain()));
        options.kfunc = kfuncs.find(|kfunc| stamp == Some(StampPath::Tsc(kfunc.path)));
        let mut loaded = Loaded::load(&options)?;
        let rings = loaded.rings.take().ok_or(LoadError::Missing("ring"))?;
        let consumer = Consumer::all(rings).pop();
        let events = match stamp {
            Some(StampPath::Tsc(TscPath::Perf)) => {
                Some(loaded.open_tsc_events(&[cpu], EventPriority::Flexible)?)
            }
            _ => None,
        };
        Ok(Self {
            consumer: consumer.ok_or(LoadError::Missing("ring"))?,
            loaded,
            _events: events,
        })
    }

    /// Loads it once more, to another place in memory.
    pub fn reload(&mut self) -> Result<(), ProgramsError> {
        Ok(self.loaded.reload()?)
    }

    /// The whole program per frame, ns. To be called on its CPU.
    pub fn ns_per_frame(&mut self) -> Result<f64, ProgramsError> {
        let duration_ns = retry_interrupted(|| {
            // What an interrupted run left.
            drain(&mut self.consumer);
            self.loaded.program.run(&FRAME, FRAMES)
        })?;
        let recorded = drain(&mut self.consumer);
        if recorded != FRAMES {
            let shown = FRAMES;
            return Err(ProgramsError::Lost { recorded, shown });
        }
        Ok(f64::from(duration_ns))
    }
}

/// Takes all blocks; returns how many.
fn drain(consumer: &mut Consumer) -> u32 {
    let head = consumer.head();
    let mut blocks = 0;
    while let Some(mut run) = consumer.run(head, RawStamp::NEVER) {
        while let Some(Ok(_)) = run.next_block() {
            blocks += 1;
        }
        let taken = run.taken();
        consumer.take(taken);
        consumer.release();
        if taken == 0 {
            break;
        }
    }
    blocks
}
