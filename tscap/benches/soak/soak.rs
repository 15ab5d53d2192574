//! One long capture.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::{Capture, capture_on, generate_on};
use tscap_testkit::files::SmallDisk;
use tscap_testkit::process::cpus;
use tscap_time::timex::KernelClock;

use crate::files::{self, Read};
use crate::memory::{Growth, Memory};
use crate::report::Soak;

/// A new file after so many million bytes.
const FILE_MB: &str = "32";
/// Room for files that have not been read yet, bytes.
const DISK_BYTES: u64 = 2 << 30;
/// Between two looks at the memory.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The generator ends at most so long after its time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Length of the frames, bytes.
const SIZE: &str = "64";

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Frames a second; as fast as can be if `None`.
    pub rate: Option<f64>,
    /// For how long, s.
    pub seconds: f64,
    /// At a rate: whether frames go in bulks, which reach higher ones.
    pub in_bulks: bool,
}

/// Where it is sent.
pub struct TestBed {
    /// CPU of the converter, and of all that is not the generator.
    converter_cpu: usize,
    generator_cpu: usize,
    bench: Bench,
    place: Place,
}

/// Where files go.
enum Place {
    Memory(SmallDisk),
    Disk(TempDir),
}

impl Place {
    fn file(&self, name: &str) -> PathBuf {
        match self {
            Self::Memory(disk) => disk.file(name),
            Self::Disk(folder) => folder.path().join(name),
        }
    }
}

impl TestBed {
    /// Makes the pair, and a place for the files: in the folder `disk`, or in memory.
    pub fn new(converter_cpu: usize, disk: Option<&Path>) -> Result<Self> {
        let place = match disk {
            Some(folder) => Place::Disk(TempDir::new_in(folder)?),
            None => Place::Memory(SmallDisk::new(DISK_BYTES)),
        };
        Ok(Self {
            converter_cpu,
            generator_cpu: *cpus().first().context("no CPU")?,
            bench: Bench::new("soak"),
            place,
        })
    }

    /// Captures while frames are sent, and reads the files meanwhile.
    pub fn run(&self, name: &'static str, load: Load) -> Result<Soak> {
        let tai_offset_s = KernelClock::read()?.tai_offset_s;
        let capture = capture_on(&self.bench.rx, &self.place.file("soak.pcapng"))
            .with(["--io", self.io()])
            .with(["-C", FILE_MB])
            .with(["--converter-cpu", &self.converter_cpu.to_string()])
            .ready();
        let (read, sent, memory) = thread::scope(|scope| {
            let reader = scope.spawn(|| files::read_all(&capture, tai_offset_s));
            let sent = self.send(load, &capture, || reader.is_finished());
            // Also after a failure: the reader waits for the end.
            capture.signal(Signal::SIGINT);
            let read = reader.join().map_err(|_| anyhow!("the reader panicked"))?;
            let (sent, memory) = sent?;
            Ok::<(Read, Value, Growth), anyhow::Error>((read?, sent, memory))
        })?;
        let captured = capture.wait();
        ensure!(captured.code == Some(0), "{}", captured.stderr);
        Soak::new(name, load.rate, &read, &sent, &captured, memory)
    }

    /// How the files are to be written.
    fn io(&self) -> &'static str {
        match self.place {
            Place::Memory(_) => "auto",
            Place::Disk(_) => "direct",
        }
    }

    /// Sends, and looks at the capture's memory meanwhile; ends when `is_over`.
    fn send(
        &self,
        load: Load,
        capture: &Capture,
        is_over: impl Fn() -> bool,
    ) -> Result<(Value, Growth)> {
        let plan = generate_on(&self.bench.tx)
            .with(["--size", SIZE, "--duration", &load.seconds.to_string()])
            .with(["--cpu", &self.generator_cpu.to_string()]);
        let mut generator = match load.rate {
            Some(rate) => {
                let plan = plan.with(["--rate", &format!("{rate:.0}")]);
                let bulks = load.in_bulks.then_some("--bulks");
                plan.with(bulks).ready()
            }
            None => plan.with(["--flat-out"]).ready(),
        };
        let mut memory = Memory::default();
        let start = Instant::now();
        let most = Duration::from_secs_f64(load.seconds) + PATIENCE;
        while !generator.has_ended() {
            ensure!(!is_over(), "the capture has ended");
            ensure!(start.elapsed() < most, "the generator does not end");
            memory.look(start.elapsed().as_secs_f64(), capture.pid());
            thread::sleep(LOOK_EVERY);
        }
        let generated = generator.wait();
        ensure!(generated.code == Some(0), "{}", generated.stderr);
        let sent = generated.events("sent").pop();
        Ok((sent.context("nothing was sent")?, memory.growth()))
    }
}
