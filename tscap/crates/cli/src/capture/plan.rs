//! What the options of `tscap capture` ask for.

use std::path::PathBuf;
use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use tscap_common::block::MAX_CAPLEN;

use super::{Autostop, CaptureArgs, Verbosity};
use crate::filter::FilterSource;
use crate::reference::ReferenceArgs;
use crate::{Cli, Plan};
use tscap_capture::{Capture, HardwareStamps, Offloads, Privileges, Tap, Target};
use tscap_engine::{Io, RotationPlan};
use tscap_host::access::folder_of;
use tscap_live::membership::PrivilegedTask;
use tscap_network::namespaces;
use tscap_programs::hook::EgressPoint;
use tscap_sources::reference::ReferencePlan;

/// Where frames go that are only looked at.
const NO_FILE: &str = "/dev/null";
/// As much of each of them is copied, bytes.
const VIEW_SNAPLEN: u32 = 64;

/// A capture, and what to say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlan {
    /// The capture, but for its filter.
    pub capture: Capture,
    /// Its filter, not compiled yet.
    pub filter: Option<FilterSource>,
    /// Show the frames of each interface, and keep none.
    pub is_view: bool,
    /// How much to say.
    pub verbosity: Verbosity,
    /// Say it in JSON.
    pub json: bool,
    /// Whose time the times are; none for the host's.
    pub references: Vec<ReferencePlan>,
    /// Where its counters go, for Prometheus.
    pub metrics_file: Option<PathBuf>,
}

impl CapturePlan {
    /// What it asks for that is not for everybody who may capture.
    pub fn acts(&self) -> Vec<PrivilegedTask> {
        let capture = &self.capture;
        let takes = capture.tap == Some(Tap::Force);
        let changes = capture.offloads == Offloads::Off
            || capture.hardware_stamps == Some(HardwareStamps::Set)
            || capture.rx_cpus.is_some();
        let takes = takes.then_some(PrivilegedTask::TakeInterface);
        takes
            .into_iter()
            .chain(changes.then_some(PrivilegedTask::ChangeSettings))
            .collect()
    }
}

/// What to say where a file is missing: `who` wants one.
pub fn no_file(who: &str) -> clap::Error {
    let message = format!(
        "{who} want --write <FILE>: the live view is for a terminal\n\n  tip: -w FILE writes a \
         file, and -w - | tshark -r - shows packets"
    );
    Cli::command().error(ErrorKind::MissingRequiredArgument, message)
}

/// When a capture ends by itself.
struct Stops {
    count: Option<u64>,
    duration: Option<Duration>,
}

/// Where frames go.
struct Output {
    target: Target,
    rotation: Option<RotationPlan>,
    is_view: bool,
}

impl CaptureArgs {
    pub(crate) fn into_plan(mut self) -> Result<Plan, clap::Error> {
        self.foreign.check()?;
        let namespaces = self.take_namespaces();
        if self.list_interfaces {
            return Ok(Plan::ListInterfaces(namespaces));
        }
        let filter = std::mem::take(&mut self.filter).into_source();
        if let Some(form) = self.show_filter.form() {
            let filter = filter.unwrap_or(FilterSource::Expression(String::new()));
            return Ok(Plan::ShowFilter { filter, form });
        }
        let stops = self.stops()?;
        let interfaces = self.take_interfaces(&namespaces)?;
        let clock = self.reference.clock(self.clock.clock)?;
        let reference = std::mem::take(&mut self.reference);
        let references = followed(reference, &interfaces, &namespaces)?;
        if self.egress_point == EgressPoint::Driver && !self.direction.takes_sent() {
            let message = "--egress-point is for sent frames, and -Q in takes none";
            return Err(conflict(message));
        }
        let output = self.take_output()?;
        let metrics_file = self.metrics_file.take();
        let (json, verbosity) = (self.json, Verbosity::of(self.quiet, self.verbose > 0));
        let is_view = output.is_view;
        let folders = metrics_file.iter().map(|it| folder_of(it).into());
        let privileges = Privileges::GiveUp {
            user: self.relinquish_privileges.take(),
            folders: folders.collect(),
        };
        let capture = Capture {
            target: output.target,
            snaplen: snaplen(self.snapshot_length, is_view),
            count: stops.count,
            duration: stops.duration,
            promiscuous: !self.no_promiscuous_mode,
            clock,
            tsc_path: self.clock.path,
            direction: self.direction,
            hook: self.hook,
            tap: self.tap,
            egress_point: self.egress_point,
            offloads: self.offloads,
            hardware_stamps: self.hw_stamps,
            keep_raw: self.keep_raw,
            force: self.force,
            packet_meta: self.packet_meta,
            ring_bytes: self.ring_size,
            writers: self.writers,
            priority: self.priority,
            converter_cpus: self.converter_cpu.map(|cpus| cpus.0),
            rx_cpus: self.rx_cpu.map(|cpus| cpus.0),
            io: self.io,
            rotation: output.rotation,
            namespaces,
            group: self.group,
            privileges,
            ..Capture::on(interfaces, "")
        };
        if let Some(contradiction) = capture.contradiction() {
            return Err(conflict(contradiction));
        }
        Ok(Plan::Capture(Box::new(CapturePlan {
            capture,
            filter,
            is_view,
            verbosity,
            json,
            references,
            metrics_file,
        })))
    }

    fn take_namespaces(&mut self) -> Vec<namespaces::Target> {
        let netns = self.netns.drain(..).map(namespaces::Target::Netns);
        let containers = self.container.drain(..);
        let containers = containers.map(namespaces::Target::Container);
        netns.chain(containers).chain(self.pod.drain(..)).collect()
    }

    /// --count, --duration and dumpcap's -a, each condition once.
    fn stops(&self) -> Result<Stops, clap::Error> {
        let (mut count, mut duration) = (self.count, self.duration);
        for condition in &self.autostop {
            let is_twice = match *condition {
                Autostop::Duration(time) => duration.replace(time).is_some(),
                Autostop::Frames(frames) => count.replace(frames).is_some(),
            };
            if is_twice {
                let message = "-a: each condition once, and not beside --duration or --count";
                return Err(conflict(message));
            }
        }
        Ok(Stops { count, duration })
    }

    /// Those of `-i`, each once; all of other network namespaces where none is given.
    fn take_interfaces(
        &mut self,
        namespaces: &[namespaces::Target],
    ) -> Result<Vec<String>, clap::Error> {
        let mut interfaces = std::mem::take(&mut self.interface);
        if interfaces.is_empty() && !namespaces.is_empty() {
            interfaces.push("any".into());
        }
        for (index, name) in interfaces.iter().enumerate() {
            if interfaces[..index].contains(name) {
                return Err(conflict(format!("interface {name} is given twice")));
            }
        }
        Ok(interfaces)
    }

    /// What -w and the options for several files ask for; without -w a live view.
    fn take_output(&mut self) -> Result<Output, clap::Error> {
        let is_view = self.write.is_none();
        if is_view && (self.json || self.quiet) {
            return Err(no_file("--json and -q"));
        }
        let path = self.write.take().unwrap_or_else(|| NO_FILE.into());
        let rotation = std::mem::take(&mut self.rotation).into_plan(&path)?;
        if is_view && rotation.is_some() {
            return Err(no_file("-C, -G and -b"));
        }
        let target = if path.as_os_str() == "-" {
            Target::Stdout
        } else {
            Target::Path(path)
        };
        if self.io == Io::Direct && (is_view || target == Target::Stdout) {
            return Err(conflict(
                "--io direct is for files: give -w the name of one",
            ));
        }
        if self.writers > 1 && is_view {
            return Err(no_file("--writers"));
        }
        Ok(Output {
            target,
            rotation,
            is_view,
        })
    }
}

fn conflict(message: impl std::fmt::Display) -> clap::Error {
    Cli::command().error(ErrorKind::ArgumentConflict, message)
}

/// The references to follow. A passive one asks for the interface of the host's daemon.
fn followed(
    asked: ReferenceArgs,
    interfaces: &[String],
    namespaces: &[namespaces::Target],
) -> Result<Vec<ReferencePlan>, clap::Error> {
    let only = match interfaces {
        [only] if namespaces.is_empty() => Some(&**only),
        _ => None,
    };
    asked.plans(only)
}

/// Bytes of each frame that are copied. 0 asks for all that is possible.
fn snaplen(asked: u32, is_view: bool) -> u32 {
    match asked {
        0 if is_view => VIEW_SNAPLEN,
        0 => MAX_CAPLEN as u32,
        snaplen => snaplen.min(MAX_CAPLEN as u32),
    }
}
