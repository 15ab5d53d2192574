//! `tscap loss --plan`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::LossArgs;
use super::checks::check_pace;
use crate::Plan;
use tscap_clock::StampSource;
use tscap_engine::Io;
use tscap_lab::loss::Pace;
use tscap_traffic::generator::{LineRate, Rate};

/// Ring that a plan asks about unless one is given: that of a capture.
const USUAL_RING: usize = 64 << 20;
/// Frames asked about unless others are given, bytes.
const USUAL_SIZES: [u32; 5] = [64, 256, 512, 1024, 1500];
/// How long a disk is written to unless a time is given: long enough that memory before it
/// is full.
const USUAL_DISK_TIME: Duration = Duration::from_secs(10);
/// How long it may be.
const DISK_TIMES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// What is to fit, as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictionPlan {
    /// About what.
    pub asked: PredictionScope,
    /// What stamps.
    pub clock: StampSource,
    /// Where the costs are from, if they are not measured.
    pub from: Option<PathBuf>,
    /// CPU to measure on.
    pub cpu: Option<u32>,
    /// Where the capture is to be written.
    pub folder: Option<PathBuf>,
    /// How long the disk there is written to.
    pub disk_time: Duration,
    /// How it is written to.
    pub io: Io,
    /// Most bytes a second that its file takes.
    pub file_rate: Option<u64>,
    /// Say it in JSON.
    pub json: bool,
}

/// About what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredictionScope {
    /// Whether a load fits.
    Load(Load),
    /// From which rate on each stage loses frames.
    Limits {
        /// Frame sizes, bytes.
        sizes: Vec<u32>,
        /// Most bytes of a frame that are kept; 0 for all.
        snaplens: Vec<u32>,
        /// What a port needs.
        port: Option<LineRate>,
    },
}

/// Frames that come for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Frame size, bytes.
    pub size: u32,
    /// How many come.
    pub rate: Rate,
    /// For how long they come.
    pub lasting: Duration,
    /// Most bytes of a frame that are kept; 0 for all.
    pub snaplen: u32,
    /// Length of a ring, bytes.
    pub ring: usize,
}

pub(super) fn plan(args: LossArgs) -> Result<Plan, String> {
    let clocks: Vec<_> = args.clock.iter().map(|clock| clock.source()).collect();
    let clock = only("--clock", &clocks)?.unwrap_or(StampSource::Ktime);
    if args.duration.is_some() && (args.folder.is_none() || args.file_rate.is_some()) {
        return Err(
            "with --plan, --duration is for the disk: give --folder, not --file-rate".into(),
        );
    }
    let disk_time = args.duration.unwrap_or(USUAL_DISK_TIME);
    if !DISK_TIMES.contains(&disk_time) {
        let (least, most) = (DISK_TIMES.start(), DISK_TIMES.end());
        return Err(format!("with --plan, --duration is {least:?} to {most:?}"));
    }
    Ok(Plan::Prediction(Box::new(PredictionPlan {
        asked: asked(&args)?,
        clock,
        from: args.from,
        cpu: args.cpu,
        folder: args.folder,
        disk_time,
        io: args.io.unwrap_or_default(),
        file_rate: args.file_rate,
        json: args.json,
    })))
}

fn asked(args: &LossArgs) -> Result<PredictionScope, String> {
    let sizes = args.size.as_ref().map_or(&[][..], |sizes| &sizes.0);
    let or = |given: &[u32], usual: &[u32]| match given {
        [] => usual.to_vec(),
        given => given.to_vec(),
    };
    let Some(rate) = only("--rate", &args.rate)? else {
        if !args.ring_size.is_empty() {
            return Err("with --plan, --ring-size is for a load: give --rate".into());
        }
        return Ok(PredictionScope::Limits {
            sizes: or(sizes, &USUAL_SIZES),
            snaplens: or(&args.snaplen, &[0]),
            port: args.port,
        });
    };
    let size = only("--size", sizes)?.ok_or("--plan with --rate needs a --size")?;
    check_pace(Pace::Rate(rate), size)?;
    Ok(PredictionScope::Load(Load {
        size,
        rate,
        lasting: args
            .lasting
            .ok_or("--plan with --rate needs a time, --for")?,
        snaplen: only("--snaplen", &args.snaplen)?.unwrap_or(0),
        ring: only("--ring-size", &args.ring_size)?.unwrap_or(USUAL_RING),
    }))
}

/// Of a list for a sweep the one value that a plan can have.
fn only<T: Copy>(option: &str, values: &[T]) -> Result<Option<T>, String> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(*value)),
        _ => Err(format!(
            "with --plan give {option} one value: it predicts one load"
        )),
    }
}
