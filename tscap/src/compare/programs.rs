//! The measuring programs, loaded, and what they leave.

use std::io;
use std::os::fd::BorrowedFd;

use aya::maps::{Array, MapData, MapError};
use aya::programs::{ProgramError, TestRun as _, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use tscap_common::compare::{
    ACTION, COUNTS, Counts, MORE_READS, MORE_WORK, MOST_SAMPLES, ON_CPU, SAMPLES, Sample, UNROLLED,
};

use super::Stamp;
use crate::clock::{Bounds, NsPerCycle, StampSource};
use crate::load::{Burst, Traffic};
use crate::sys::perf::Standing;
use crate::xdp::{LoadError, TscError, TscEvents, calibrate, load_program, retried, take};

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
    samples: Array<MapData, SampleWords>,
    counts: Array<MapData, CountsWords>,
    /// Held open as long as they run.
    events: Option<TscEvents>,
    cpu: u32,
}

impl Programs {
    /// Loads what every kernel has: the floor and `ktime`.
    pub fn load(settings: Settings) -> Result<Self, ProgramsError> {
        let mut ebpf = EbpfLoader::new()
            .override_global(ON_CPU, &settings.cpu, true)
            .override_global(ACTION, &settings.action, true)
            .override_global(MORE_READS, &settings.more_reads, true)
            .override_global(MORE_WORK, &settings.more_work, true)
            .load(OBJECT)?;
        let mut programs = Self {
            samples: take(&mut ebpf, SAMPLES)?,
            counts: take(&mut ebpf, COUNTS)?,
            ebpf,
            events: None,
            cpu: settings.cpu,
        };
        programs.load_stamp(None)?;
        programs.load_stamp(Some(StampSource::Ktime))?;
        Ok(programs)
    }

    /// Loads those of TAI.
    pub fn load_tai(&mut self) -> Result<(), ProgramsError> {
        self.load_stamp(Some(StampSource::Tai))
    }

    /// Loads those of the TSC; returns TSC less the event's count.
    pub fn load_tsc(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        self.load_stamp(Some(StampSource::Tsc))?;
        let events = TscEvents::open(&mut self.ebpf, &[self.cpu], Standing::Flexible)?;
        self.events = Some(events);
        self.tsc_offset(rate)
    }

    /// TSC less the event's count, now: it moves when others open events.
    pub fn tsc_offset(&mut self, rate: NsPerCycle) -> Result<Bounds, ProgramsError> {
        Ok(calibrate(&mut self.ebpf, self.cpu, rate)?.cycles)
    }

    /// Loads those of `stamp` once more, to another place in memory: where a program
    /// lies makes it up to 2 ns cheaper or dearer, which is to be noise and not a
    /// difference. What is attached stays so until it is replaced.
    pub fn load_anew(&mut self, stamp: Stamp) -> Result<(), ProgramsError> {
        for kind in ["cost", "read"] {
            program(&mut self.ebpf, &name(kind, stamp))?.unload()?;
        }
        self.load_stamp(stamp)
    }

    fn load_stamp(&mut self, stamp: Stamp) -> Result<(), ProgramsError> {
        for kind in ["cost", "read"] {
            let name = name(kind, stamp);
            load_program(program(&mut self.ebpf, &name)?, &name)?;
        }
        Ok(())
    }

    /// The program that measures `stamp` on frames.
    pub fn cost_program(&self, stamp: Stamp) -> Result<BorrowedFd<'_>, ProgramsError> {
        let name = name("cost", stamp);
        let program = self.ebpf.program(&name);
        let program: Option<&Xdp> = program.and_then(|program| program.try_into().ok());
        let program = program.ok_or(LoadError::Missing("measuring program"))?;
        Ok(std::os::fd::AsFd::as_fd(program.fd()?))
    }

    /// One read of the clock by unrolled calls, the empty run subtracted, ns. To be
    /// called on the CPU that is measured.
    pub fn read_ns(&mut self, source: StampSource) -> Result<f64, ProgramsError> {
        let reads = self.run_ns(Some(source))?;
        let empty = self.run_ns(None)?;
        Ok((reads - empty) / f64::from(UNROLLED))
    }

    fn run_ns(&mut self, stamp: Stamp) -> Result<f64, ProgramsError> {
        let program = program(&mut self.ebpf, &name("read", stamp))?;
        let run = retried(|| {
            program.test_run(TestRunOptions {
                data_in: Some(&FRAME),
                repeat: READ_RUNS,
                ..TestRunOptions::new()
            })
        })?;
        Ok(run.duration.as_nanos() as f64)
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

fn name(kind: &str, stamp: Stamp) -> String {
    format!("{kind}_{}", stamp.map_or("none", StampSource::name))
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Xdp, LoadError> {
    ebpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(LoadError::Missing("measuring program"))
}

/// As an [`io::Error`], for what runs in another namespace.
impl From<ProgramsError> for io::Error {
    fn from(error: ProgramsError) -> Self {
        Self::other(error)
    }
}
