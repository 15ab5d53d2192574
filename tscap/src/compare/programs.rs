//! The measuring programs, loaded, and what they leave.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use aya::maps::{Array, MapData, MapError};
use aya::programs::ProgramError;
use aya::{Ebpf, EbpfError, EbpfLoader};
use tscap_common::compare::{
    ACTION, COUNTS, Counts, MORE_READS, MORE_WORK, MOST_SAMPLES, ON_CPU, SAMPLES, Sample, UNROLLED,
};

use super::Stamp;
use crate::clock::{Bounds, NsPerCycle, StampPath, TscPath};
use crate::load::{Burst, Traffic};
use crate::sys::perf::Standing;
use crate::xdp::{
    Code, Kfunc, LoadError, Program, TscError, TscEvents, calibrate, load_by, retried, take,
};

/// The committed object, or the one that `TSCAP_COMPARE_OBJECT` named at build
/// time.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("TSCAP_COMPARE_OBJECT_PATH"));

/// Runs of the unrolled reads in one turn: a few milliseconds.
const READ_RUNS: u32 = 1_000;
/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

type SampleWords = [u64; size_of::<Sample>() / 8];
type CountsWords = [u64; size_of::<Counts>() / 8];

/// Why the programs can't measure.
#[derive(Debug, thiserror::Error)]
pub enum ProgramsError {
    /// The object was refused.
    #[error("cannot load the measuring programs")]
    Object(#[from] EbpfError),
    /// It is not as expected, or a program was refused.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A map could not be used.
    #[error("cannot use a map of the measuring programs")]
    Map(#[from] MapError),
    /// A program could not be run.
    #[error("cannot run a measuring program")]
    Run(#[from] ProgramError),
    /// The TSC is not to be had.
    #[error(transparent)]
    Tsc(#[from] TscError),
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
    /// [`Sent::tsc_moved_ns`]: crate::generator::Sent::tsc_moved_ns
    pub tsc_moved_ns: u64,
}

/// The programs.
pub struct Programs {
    ebpf: Ebpf,
    /// Those that are loaded, by name and stamp.
    loaded: HashMap<(Kind, &'static str), Program>,
    /// For each kfunc the code that calls it.
    calling: HashMap<&'static str, (Code, Kfunc)>,
    samples: Array<MapData, SampleWords>,
    counts: Array<MapData, CountsWords>,
    /// Held open as long as they run.
    events: Option<TscEvents>,
    cpu: u32,
}

impl Programs {
    /// Loads what every kernel has: the floor and `ktime`. Of the kfuncs only those of
    /// `kfuncs` can be loaded later.
    pub fn load(settings: Settings, kfuncs: &[Kfunc]) -> Result<Self, ProgramsError> {
        let mut ebpf = EbpfLoader::new()
            .override_global(ON_CPU, &settings.cpu, true)
            .override_global(ACTION, &settings.action, true)
            .override_global(MORE_READS, &settings.more_reads, true)
            .override_global(MORE_WORK, &settings.more_work, true)
            .load(OBJECT)?;
        let mut programs = Self {
            calling: calling(kfuncs, &ebpf)?,
            loaded: HashMap::new(),
            samples: take(&mut ebpf, SAMPLES)?,
            counts: take(&mut ebpf, COUNTS)?,
            ebpf,
            events: None,
            cpu: settings.cpu,
        };
        programs.load_anew(None)?;
        programs.load_anew(Some(StampPath::Ktime))?;
        Ok(programs)
    }

    /// Loads those of TAI.
    pub fn load_tai(&mut self) -> Result<(), ProgramsError> {
        self.load_anew(Some(StampPath::Tai))
    }

    /// Loads those of a kfunc.
    pub fn load_kfunc(&mut self, path: TscPath) -> Result<(), ProgramsError> {
        self.load_anew(Some(StampPath::Tsc(path)))
    }

    /// Loads those of the TSC by a perf event; returns TSC less the event's count.
    pub fn load_tsc(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        self.load_anew(Some(StampPath::Tsc(TscPath::Perf)))?;
        let events = TscEvents::open(&mut self.ebpf, &[self.cpu], Standing::Flexible)?;
        self.events = Some(events);
        self.tsc_offset(rate)
    }

    /// TSC less the event's count, now: it moves when others open events.
    pub fn tsc_offset(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        Ok(calibrate(&mut self.ebpf, self.cpu, rate)?.cycles)
    }

    /// Loads those of `stamp`, or loads them once more, to another place in memory: where a program
    /// lies makes it up to 2 ns cheaper or dearer, which is to be noise and not a
    /// difference. What is attached stays so until it is replaced.
    pub fn load_anew(&mut self, stamp: Stamp) -> Result<(), ProgramsError> {
        for kind in [Kind::Cost, Kind::Read] {
            let calling = self.calling.get(key(stamp));
            let program = load_by(&mut self.ebpf, &name(kind, stamp), calling)?;
            self.loaded.insert((kind, key(stamp)), program);
        }
        Ok(())
    }

    fn program(&self, kind: Kind, stamp: Stamp) -> Result<&Program, LoadError> {
        let program = self.loaded.get(&(kind, key(stamp)));
        program.ok_or(LoadError::Missing("measuring program"))
    }

    /// The program that measures `stamp` on frames.
    pub fn cost_program(&self, stamp: Stamp) -> Result<BorrowedFd<'_>, ProgramsError> {
        Ok(self.program(Kind::Cost, stamp)?.as_fd())
    }

    /// One read of the clock by unrolled calls, the empty run subtracted, ns. To be
    /// called on the CPU that is measured.
    pub fn read_ns(&self, path: StampPath) -> Result<f64, ProgramsError> {
        let reads = self.run_ns(Some(path))?;
        let empty = self.run_ns(None)?;
        Ok((reads - empty) / f64::from(UNROLLED))
    }

    fn run_ns(&self, stamp: Stamp) -> Result<f64, ProgramsError> {
        let program = self.program(Kind::Read, stamp)?;
        Ok(f64::from(retried(|| program.run(&FRAME, READ_RUNS))?))
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
        Ok(self.counts.set(0, CountsWords::default(), 0)?)
    }

    /// How much has been measured.
    pub fn counts(&self) -> Result<Counts, ProgramsError> {
        let [measured, elsewhere, bad, sink] = self.counts.get(&0, 0)?;
        Ok(Counts {
            measured,
            elsewhere,
            bad,
            sink,
        })
    }

    /// The samples, in the order of the frames.
    pub fn samples(&self) -> Result<Vec<Sample>, ProgramsError> {
        let count = self.counts()?.measured.min(MOST_SAMPLES.into());
        let sample = |index: u64| {
            let index = u32::try_from(index).expect("less than MOST_SAMPLES");
            let [stamp, cost_ns, frame, sent_tai, sent_tsc] = self.samples.get(&index, 0)?;
            Ok(Sample {
                stamp,
                cost_ns,
                frame,
                sent_tai,
                sent_tsc,
            })
        };
        (0..count).map(sample).collect()
    }
}

/// What a program measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// One read on a frame.
    Cost,
    /// Unrolled reads.
    Read,
}

/// What tells stamps apart.
fn key(stamp: Stamp) -> &'static str {
    stamp.map_or("none", StampPath::name)
}

fn name(kind: Kind, stamp: Stamp) -> String {
    let kind = match kind {
        Kind::Cost => "cost",
        Kind::Read => "read",
    };
    let clock = match stamp {
        None => "none",
        Some(StampPath::Ktime) => "ktime",
        Some(StampPath::Tai) => "tai",
        Some(StampPath::Tsc(TscPath::Perf)) => "tsc",
        Some(StampPath::Tsc(_)) => "kfunc",
    };
    format!("{kind}_{clock}")
}

fn calling(
    kfuncs: &[Kfunc],
    ebpf: &Ebpf,
) -> Result<HashMap<&'static str, (Code, Kfunc)>, LoadError> {
    let each = kfuncs.iter().map(|kfunc| {
        let key = StampPath::Tsc(kfunc.path).name();
        Ok((key, (Code::of(OBJECT, ebpf)?, kfunc.clone())))
    });
    each.collect()
}

/// As an [`io::Error`], for what runs in another namespace.
impl From<ProgramsError> for io::Error {
    fn from(error: ProgramsError) -> Self {
        Self::other(error)
    }
}
