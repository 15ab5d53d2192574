//! The measuring programs, loaded, and what they leave.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use aya::maps::{Array, MapData, MapError};
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfLoader};
use tscap_common::compare::{
    ACTION, COUNTS, Counts, MORE_READS, MORE_WORK, MOST_SAMPLES, ON_CPU, SAMPLES, Sample, UNROLLED,
};

use super::{RoundItem, Stamp};
use tscap_clock::{Bounds, NsPerCycle, StampPath, TscPath};
use tscap_host::perf::EventPriority;
use tscap_network::map_value::MapValue;
use tscap_programs::hook::{
    COMPARE_PROGRAMS, Call, Code, InterruptKfuncs, KernelCounters, Kfunc, LoadError, Place,
    Program, TscError, TscEvents, calibrate, retry_interrupted, take,
};
use tscap_traffic::load::{Burst, Traffic};

/// Runs of the unrolled reads in one turn: a few milliseconds.
const READ_RUNS: u32 = 1_000;
/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

/// Why the programs can't measure.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The object or a program was refused, or is not as expected.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A map could not be used.
    #[error("cannot use a map of the measuring programs")]
    Map(#[from] MapError),
    /// A program could not be run.
    #[error("cannot run a measuring program")]
    Run(#[from] ProgramError),
    /// The TSC is not available.
    #[error(transparent)]
    Tsc(#[from] TscError),
    /// Frames are missing from a capture program's ring: the figure would be none.
    #[error("a capture program left {recorded} of {shown} frames in its ring")]
    Lost {
        /// Blocks found.
        recorded: u32,
        /// Frames shown to it.
        shown: u32,
    },
}

/// What to load.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The CPU whose frames are measured.
    pub cpu: u32,
    /// What becomes of a frame: `XDP_PASS` or `XDP_DROP`.
    pub action: u32,
    /// Reads besides the one, at most 8.
    pub more_reads: u32,
    /// Multiplications besides the reads, at most [`MOST_WORK`].
    ///
    /// [`MOST_WORK`]: tscap_common::compare::MOST_WORK
    pub more_work: u32,
}

/// A burst, measured.
pub struct Measured {
    /// The run that the frames belong to.
    pub run: u16,
    /// Frames sent, also those that the other end refused.
    pub sent: u64,
    /// Those that were measured, in the order of the frames.
    pub samples: Vec<Sample>,
    /// As [`Sent::tsc_moved_ns`].
    ///
    /// [`Sent::tsc_moved_ns`]: tscap_traffic::generator::Sent::tsc_moved_ns
    pub tsc_moved_ns: u64,
}

/// The programs.
pub struct Programs {
    ebpf: Ebpf,
    /// Those that are loaded.
    loaded: HashMap<(Kind, String), Program>,
    /// The code of all that needs no kfuncs, …
    plain: Code,
    /// … and for each turn that does.
    calling: HashMap<String, Code>,
    /// Where the kernel has what it counts, if programs can read it.
    counters: Option<KernelCounters>,
    samples: Array<MapData, MapValue<Sample>>,
    counts: Array<MapData, MapValue<Counts>>,
    /// Held open as long as they run.
    events: Option<TscEvents>,
    cpu: u32,
}

impl Programs {
    /// Loads what every kernel has: the floor and `ktime`. Of the kfuncs only those of
    /// `kfuncs` can be loaded later, and turns with interrupts off only by `interrupts`. The
    /// programs on frames look at `counters`, if there are any.
    pub fn load(
        settings: Settings,
        kfuncs: &[Kfunc],
        interrupts: Option<&InterruptKfuncs>,
        counters: Option<KernelCounters>,
    ) -> Result<Self, ProgramsError> {
        let mut ebpf = EbpfLoader::new()
            .override_global(ON_CPU, &settings.cpu, true)
            .override_global(ACTION, &settings.action, true)
            .override_global(MORE_READS, &settings.more_reads, true)
            .override_global(MORE_WORK, &settings.more_work, true)
            .load(COMPARE_PROGRAMS)
            .map_err(LoadError::from)?;
        let mut programs = Self {
            plain: Code::of(COMPARE_PROGRAMS, &ebpf, &[])?,
            calling: calling(kfuncs, interrupts, &ebpf)?,
            counters,
            loaded: HashMap::new(),
            samples: take(&mut ebpf, SAMPLES)?,
            counts: take(&mut ebpf, COUNTS)?,
            ebpf,
            events: None,
            cpu: settings.cpu,
        };
        programs.reload(None)?;
        programs.reload(Some(StampPath::Ktime))?;
        Ok(programs)
    }

    /// Loads those of TAI.
    pub fn load_tai(&mut self) -> Result<(), ProgramsError> {
        self.reload(Some(StampPath::Tai))
    }

    /// Loads those of a kfunc.
    pub(crate) fn load_kfunc(&mut self, path: TscPath) -> Result<(), ProgramsError> {
        self.reload(Some(StampPath::Tsc(path)))
    }

    /// Loads those of the TSC by a perf event; returns TSC less the event's count.
    pub fn load_tsc(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        self.reload(Some(StampPath::Tsc(TscPath::Perf)))?;
        let events = TscEvents::open(&mut self.ebpf, &[self.cpu], EventPriority::Flexible)?;
        self.events = Some(events);
        self.tsc_offset(rate)
    }

    /// TSC less the event's count, now: it moves when others open events.
    pub fn tsc_offset(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        Ok(calibrate(&mut self.ebpf, self.cpu, rate)?.cycles)
    }

    /// Loads those of a turn, or loads them once more, to another place in memory: where
    /// a program lies makes it up to 2 ns cheaper or more expensive, which is to be noise and not
    /// a difference. What is attached stays so until it is replaced.
    pub fn reload(&mut self, turn: impl Into<RoundItem>) -> Result<(), ProgramsError> {
        let turn = turn.into();
        for kind in [Kind::Cost, Kind::Read] {
            let code = self.calling.get(&turn.name()).unwrap_or(&self.plain);
            let place = Place {
                counters: self.counters.as_ref(),
                ..Place::FIRST
            };
            let program = code.load(&name(kind, turn), &place)?;
            self.loaded.insert((kind, turn.name()), program);
        }
        Ok(())
    }

    fn program(&self, kind: Kind, turn: RoundItem) -> Result<&Program, LoadError> {
        let program = self.loaded.get(&(kind, turn.name()));
        program.ok_or(LoadError::Missing("measuring program"))
    }

    /// The program that measures a turn on frames.
    pub fn cost_program(
        &self,
        turn: impl Into<RoundItem>,
    ) -> Result<BorrowedFd<'_>, ProgramsError> {
        Ok(self.program(Kind::Cost, turn.into())?.as_fd())
    }

    /// One read of the clock by unrolled calls, each of which turns interrupts off and
    /// on if the turn does; the empty run subtracted, ns. To be called on the CPU that is
    /// measured.
    pub fn read_ns(&self, turn: impl Into<RoundItem>) -> Result<f64, ProgramsError> {
        let reads = self.run_ns(turn.into())?;
        let empty = self.run_ns(RoundItem::from(None))?;
        Ok((reads - empty) / f64::from(UNROLLED))
    }

    fn run_ns(&self, turn: RoundItem) -> Result<f64, ProgramsError> {
        let program = self.program(Kind::Read, turn)?;
        Ok(f64::from(retry_interrupted(|| {
            program.run(&FRAME, READ_RUNS)
        })?))
    }

    /// So many readings of a turn's clock in a row, at most [`MOST_SAMPLES`], each between two
    /// checkpoints as on a frame, but on frames of nobody. Those of a run that a signal
    /// interrupted are there too. To be called on the CPU that is measured.
    pub fn costs(
        &mut self,
        turn: impl Into<RoundItem>,
        readings: u32,
    ) -> Result<Vec<Sample>, ProgramsError> {
        self.reset()?;
        let program = self.program(Kind::Cost, turn.into())?;
        retry_interrupted(|| program.run(&FRAME, readings))?;
        self.samples()
    }

    /// Lets the attached one see a burst, and takes what it left of these frames.
    pub fn measure(&mut self, traffic: &mut Traffic, burst: Burst) -> io::Result<Measured> {
        self.reset()?;
        let (run, sent) = traffic.send(burst)?;
        let mut samples = self.samples()?;
        samples.retain(|sample| sample.frame >> 48 == u64::from(run));
        Ok(Measured {
            run,
            sent: sent.sent + sent.refused,
            samples,
            tsc_moved_ns: sent.tsc_moved_ns,
        })
    }

    /// Forgets what was measured.
    pub fn reset(&mut self) -> Result<(), ProgramsError> {
        Ok(self.counts.set(0, MapValue::default(), 0)?)
    }

    /// Whether samples tell what the kernel counted.
    pub(crate) fn has_counters(&self) -> bool {
        self.counters.is_some()
    }

    /// How much has been measured.
    pub fn counts(&self) -> Result<Counts, ProgramsError> {
        Ok(self.counts.get(&0, 0)?.0)
    }

    /// The samples, in the order of the frames.
    pub fn samples(&self) -> Result<Vec<Sample>, ProgramsError> {
        let count = self.counts()?.measured.min(MOST_SAMPLES.into());
        let sample = |index: u64| {
            let index = u32::try_from(index).expect("less than MOST_SAMPLES");
            Ok(self.samples.get(&index, 0)?.0)
        };
        (0..count).map(sample).collect()
    }
}

/// What a program measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// One read on a frame.
    Cost,
    Read,
}

fn name(kind: Kind, turn: RoundItem) -> String {
    let kind = match kind {
        Kind::Cost => "cost",
        Kind::Read => "read",
    };
    let clock = match turn.stamp {
        None => "none",
        Some(StampPath::Ktime) => "ktime",
        Some(StampPath::Tai) => "tai",
        Some(StampPath::Tsc(TscPath::Perf)) => "tsc",
        Some(StampPath::Tsc(_)) => "kfunc",
    };
    let off = if turn.interrupts_off { "_off" } else { "" };
    format!("{kind}_{clock}{off}")
}

fn calling(
    kfuncs: &[Kfunc],
    interrupts: Option<&InterruptKfuncs>,
    ebpf: &Ebpf,
) -> Result<HashMap<String, Code>, LoadError> {
    let of_kfuncs = kfuncs.iter().map(|kfunc| {
        let stamp = Some(StampPath::Tsc(kfunc.path));
        (stamp, kfunc.calls())
    });
    let helpers = [StampPath::Ktime, StampPath::Tsc(TscPath::Perf)];
    let of_helpers = helpers.map(|path| (Some(path), [].as_slice()));
    let with_interrupts_off = interrupts.into_iter().flat_map(|interrupts| {
        let stamps = of_kfuncs.clone().chain(of_helpers);
        stamps.map(|(stamp, calls): (Stamp, &[Call])| {
            let turn = RoundItem {
                stamp,
                interrupts_off: true,
            };
            (turn, [calls, interrupts.calls()].concat())
        })
    });
    of_kfuncs
        .clone()
        .map(|(stamp, calls)| (RoundItem::from(stamp), calls.to_vec()))
        .chain(with_interrupts_off)
        .map(|(turn, calls)| Ok((turn.name(), Code::of(COMPARE_PROGRAMS, ebpf, &calls)?)))
        .collect()
}

/// As an [`io::Error`], for what runs in another namespace.
impl From<ProgramsError> for io::Error {
    fn from(error: ProgramsError) -> Self {
        Self::other(error)
    }
}
