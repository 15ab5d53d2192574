//! From opened outputs to writers that run: headers, the first of several files, threads.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio::sync::mpsc::UnboundedSender;

use super::clocks::Clocks;
use super::event::Reporter;
use super::header;
use super::opened::Opened;
use super::plan::{Capture, Target};
use super::writers::{Writer, Writers};
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::{RealNs, Tracker};
use tscap_engine::{
    self as engine, Converter, Finished, Frames, Guard, Names, Output, PtpClock, Rotation, Shared,
    Source,
};
use tscap_file::pcapng::{FileWriter, InterfaceInfo};
use tscap_host::access::Owner;
use tscap_host::{affinity, caps, scheduling, seccomp, wake};
use tscap_programs::hook::Shares;
use tscap_programs::ring::Consumer;
use tscap_utc::Watched;

/// What all writers of a capture begin with.
pub(super) struct Beginning<'a> {
    pub plan: &'a Capture,
    /// When the files begin.
    pub start: RealNs,
    /// What stamps are held against.
    pub clocks: Watched<Clocks>,
    /// What is known of the clocks.
    pub tracker: Tracker,
    /// The interfaces so far.
    pub described: Vec<InterfaceInfo>,
    /// The clocks of their hardware stamps.
    pub stamps_by: Vec<Option<Arc<PtpClock>>>,
    /// Whose the files after the first ones are.
    pub next_owner: Owner,
    pub tell: UnboundedSender<engine::Event>,
}

/// An output that has its headers, and what it goes on with.
pub(super) struct Begun {
    target: Target,
    output: Output,
    file: FileWriter,
    /// The name of the first of several files, and how they are named.
    first: Option<(PathBuf, Names)>,
}

impl Beginning<'_> {
    /// Writes the headers to each of `outputs`: before privileges are given up, while what fails
    /// can be removed again.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn write_headers(
        &self,
        outputs: impl Iterator<Item = Opened>,
    ) -> Result<Vec<Begun>, Failure> {
        let sections = header::sections(self.plan.writers)?;
        let targets = self.plan.targets().into_iter().zip(sections);
        let begun = targets.zip(outputs).map(|((target, section), opened)| {
            let file = FileWriter::new(&section, &self.described, self.start);
            let mut file = file.context("cannot make headers")?;
            let to = (&target, self.plan.io);
            let (output, first) = header::write_headers(to, opened, &mut file, &self.tell)?;
            Ok(Begun {
                target,
                output,
                file,
                first,
            })
        });
        begun.collect()
    }

    /// Starts a writer for each of `outputs`, on the CPU beside it.
    ///
    /// # Errors
    /// If a thread can't be prepared. The writers so far end.
    pub fn start(
        self,
        outputs: impl Iterator<Item = (Begun, u32)>,
        mut consumers: Vec<Consumer>,
        shares: Shares,
        reporter: &mut Reporter<'_>,
    ) -> Result<Writers, Failure> {
        let mut writers = Writers::new(shares);
        for (index, (begun, cpu)) in outputs.enumerate() {
            let target = begun.target.clone();
            let rings = consumers.drain(..writers.shares.rings(index).len());
            let rings = rings.collect();
            let shared = Arc::new(Shared::default());
            for clock in &self.stamps_by {
                shared.stamps_by(clock.clone());
            }
            let (converter, io) = self.converter(begun, rings, &shared)?;
            let converter = match self.plan.writers {
                1 => converter,
                _ => converter.of_several(path_of(&target), index == 0),
            };
            writers.each.push(Writer {
                target,
                io,
                cpu,
                shared,
                thread: None,
            });
            let thread = spawn(converter, cpu, self.plan, reporter)?;
            if let Some(last) = writers.each.last_mut() {
                last.thread = Some(thread);
            }
            reporter.detail(&format!("converter pinned to CPU {cpu}"));
        }
        Ok(writers)
    }

    /// A converter, and how it writes.
    fn converter(
        &self,
        begun: Begun,
        consumers: Vec<Consumer>,
        shared: &Arc<Shared>,
    ) -> Result<(Converter<Watched<Clocks>>, &'static str), Failure> {
        let plan = self.plan;
        let Begun {
            output,
            file,
            first,
            ..
        } = begun;
        let output = output.written_out().context("cannot start a thread")?;
        let io = output.way();
        let rotation = plan.rotation.as_ref().zip(first);
        let rotation = rotation.map(|(plan, (path, names))| {
            let rotation = Rotation::new(plan, names, path, self.start, self.tell.clone());
            let rotation = rotation.map(|it| it.owned_by(self.next_owner));
            rotation.context("cannot start a thread")
        });
        let source = Source {
            consumers,
            clocks: self.clocks.clone(),
            tracker: self.tracker.clone(),
            frames: Frames {
                count: plan.count,
                keep_raw: plan.keep_raw,
                hardware_stamps: plan.hardware_stamps.is_some(),
            },
        };
        let converter = Converter::new(source, output, file, Arc::clone(shared), self.tell.clone())
            .with_statistics_every(plan.statistics_every);
        let converter = match rotation.transpose()? {
            Some(rotation) => converter.rotating(rotation),
            None => converter,
        };
        Ok((converter, io))
    }
}

/// What a file of several is called.
fn path_of(target: &Target) -> PathBuf {
    match target {
        Target::Path(path) => path.clone(),
        Target::Stdout => PathBuf::from("-"),
    }
}

/// Its thread ends when the writer is dropped.
fn spawn(
    mut converter: Converter<Watched<Clocks>>,
    cpu: u32,
    plan: &Capture,
    reporter: &mut Reporter<'_>,
) -> Result<JoinHandle<Finished>, Failure> {
    let (is_prepared, prepared) = mpsc::channel();
    let (priority, begins_files) = (plan.priority, plan.rotation.is_some());
    let thread = std::thread::Builder::new()
        .name("tscap-converter".into())
        .spawn(move || {
            // The receiver waits below.
            let _ = is_prepared.send(prepare(&mut converter, cpu, priority, begins_files));
            converter.run()
        })
        .context("cannot start the converter thread")?;
    let what = || format!("cannot prepare the converter's thread on CPU {cpu}");
    let prepared = prepared.recv();
    let prepared = prepared.map_err(|gone| Failure::from_error(gone, what()))?;
    let confined = prepared.map_err(|error| match error {
        Unprepared::Thread(error) => Failure::from_error(error, what()),
        Unprepared::Priority(error) => no_priority(error, priority.unwrap_or_default()),
    })?;
    if let Err(error) = confined {
        reporter.note(&format!(
            "the converter may make any system call, because seccomp is refused: {error}"
        ));
    }
    Ok(thread)
}

/// What a converter's thread can't be.
enum Unprepared {
    Thread(io::Error),
    Priority(io::Error),
}

/// Makes this thread the converter's. Says whether seccomp is refused.
fn prepare(
    converter: &mut Converter<Watched<Clocks>>,
    cpu: u32,
    priority: Option<u32>,
    begins_files: bool,
) -> Result<io::Result<()>, Unprepared> {
    let kept = begins_files.then_some(&caps::FOR_FILES[..]);
    affinity::pin_to(cpu)
        .and_then(|()| wake::take_no_others())
        .map_err(Unprepared::Thread)?;
    if let Some(priority) = priority {
        let guard = scheduling::run_in_real_time(priority).and_then(|()| Guard::new());
        converter.set_guard(guard.map_err(Unprepared::Priority)?);
    }
    caps::keep_only(kept.unwrap_or_default()).map_err(Unprepared::Thread)?;
    Ok(seccomp::only_write())
}

fn no_priority(error: io::Error, priority: u32) -> Failure {
    let what = format!("cannot run the converter at real-time priority {priority}");
    Failure::from_error(error, what).hint(
        "run as root; in a container the host must grant CAP_SYS_NICE; or leave out --priority",
    )
}
