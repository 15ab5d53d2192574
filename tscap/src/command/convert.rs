//! `tscap convert`: a capture stamped again.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use super::print::print;
use super::whole_file::write_whole_by;
use super::{Exit, Failure, Hint};
use crate::cli::ConvertPlan;
use crate::clock::{Fit, History, StampSource};
use crate::measure::{Distribution, Summary};
use crate::numbers::{grouped, span};
use crate::pcapng::{Gatherer, Packet, ReadError, Record, RewriteError, records, rewrite};

/// Version of the JSON object.
const VERSION: u32 = 1;

/// What was done.
#[derive(Debug, PartialEq, Serialize)]
struct Converted {
    event: &'static str,
    v: u32,
    /// Which clock stamped.
    source: StampSource,
    /// Packets in the copy.
    packets: u64,
    /// Of these, left as they were: not told by the history, as when the clock was
    /// being set, or without a raw stamp.
    left: u64,
    /// How far the others moved, later being positive, ns; null if there were none.
    moved_ns: Option<Summary>,
    /// Samples of the clock in the file.
    samples: usize,
    /// Segments of the clock.
    segments: usize,
    /// Whether the capture was read to its end.
    is_whole: bool,
}

/// Converts.
pub(super) fn run(plan: &ConvertPlan) -> Result<Exit, Failure> {
    let input = plan.input.display();
    let trying = || format!("cannot read {input}");
    let file = File::open(&plan.input).trying(format!("cannot open {input}"))?;
    let about = file.metadata().trying(trying())?;
    if !about.is_file() {
        return Err(Failure::new(format!("cannot convert {input}"))
            .hint("give a regular file, not a pipe: it is read twice"));
    }
    let mut stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map(File::from)
        .trying("cannot use standard output")?;
    let same = |a: &Metadata, b: &Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    let is_dash = plan.output.as_os_str() == "-";
    let target = match is_dash {
        true => stdout.metadata(),
        false => fs::metadata(&plan.output),
    };
    if target.as_ref().is_ok_and(|target| same(target, &about)) {
        return Err(Failure::new(format!(
            "cannot convert {input} into itself: its live stamps would be lost"
        ))
        .hint("give -w another file"));
    }
    let history = gather(&file, &plan.input)?;
    let again = || File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    // Two more looks at this very file, whatever its path leads to by now.
    let inputs = [again().trying(trying())?, again().trying(trying())?];
    let output = plan.output.display();
    let write = |to: &mut File| {
        let converted = copy(inputs, &history, to)?;
        match file.metadata() {
            Ok(now) if now.len() == about.len() => Ok(converted),
            Ok(_) => Err(CopyError::Grown),
            Err(error) => Err(CopyError::Read(ReadError::from(error).into())),
        }
    };
    // /dev/stdout that leads to a file would be another file than standard output.
    let is_stdout = is_dash
        || target
            .as_ref()
            .is_ok_and(|target| stdout.metadata().is_ok_and(|out| same(target, &out)));
    let converted = match is_stdout {
        true => write(&mut stdout),
        false => write_whole_by(&plan.output, write),
    };
    let converted = converted.map_err(|error| match error {
        CopyError::Read(error) => failure(error, trying()),
        CopyError::Output(error) => failure(error, format!("cannot write {output}")),
        CopyError::Grown => Failure::new(format!(
            "cannot convert {input}: its length has changed meanwhile"
        ))
        .hint("wait until the capture has ended"),
    })?;
    let said = if plan.json {
        let json = serde_json::to_string(&converted).expect("plain structs always serialise");
        json + "\n"
    } else {
        text(&converted, plan)
    };
    if is_stdout || target.is_ok_and(|target| !target.is_file()) {
        // The copy may be where the summary would be.
        eprint!("{said}");
    } else {
        print(&said)?;
    }
    Ok(match converted.is_whole {
        true => Exit::Success,
        false => Exit::Fault,
    })
}

#[derive(Debug)]
enum CopyError {
    Read(RewriteError),
    Output(io::Error),
    /// The input is longer or shorter than it was.
    Grown,
}

fn failure<E>(error: E, trying: String) -> Failure
where
    Result<(), E>: Hint<()>,
{
    Err::<(), _>(error).trying(trying).expect_err("it is one")
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Looks at everything: the clock, and whether raw stamps were kept.
fn gather(file: &File, path: &Path) -> Result<History, Failure> {
    let input = path.display();
    let records = records(BufReader::new(file)).trying(format!("cannot read {input}"));
    let records = records.map_err(|failure| failure.hint("tscap converts its own captures"))?;
    let mut gatherer = Gatherer::default();
    let (mut packets, mut raw) = (0u64, 0u64);
    let (mut is_ours, mut has_statistics) = (false, false);
    for record in records {
        match record {
            Ok(Record::Packet(packet)) => {
                packets += 1;
                raw += u64::from(packet.raw.is_some());
            }
            // A capture describes its interfaces before anything else.
            Ok(Record::Interface(_)) if packets > 0 || has_statistics => {
                return Err(several(ReadError::OtherClock, path));
            }
            Ok(Record::Interface(interface)) => is_ours |= interface.tscap.is_some(),
            Ok(Record::Statistics(interface, statistics)) => {
                has_statistics = true;
                let taken = gatherer.take(interface, &statistics.clock);
                taken.map_err(|error| match error {
                    ReadError::OtherClock => several(error, path),
                    error => failure(error, format!("cannot read {input}")),
                })?;
            }
            Err(error) if error.is_torn_end() => break,
            Err(error) => return Err(error).trying(format!("cannot read {input}")),
        }
    }
    if !is_ours {
        return Err(
            Failure::new(format!("cannot convert {input}: not a file of tscap"))
                .hint("only tscap's captures carry raw stamps and the history of their clock"),
        );
    }
    if packets > 0 && raw == 0 {
        return Err(Failure::new(format!(
            "cannot convert {input}: none of its {} packets kept its raw stamp",
            grouped(packets)
        ))
        .hint("capture with --keep-raw"));
    }
    gatherer.history().ok_or_else(|| {
        Failure::new(format!(
            "cannot convert {input}: it has no statistics with the clock"
        ))
        .hint("a capture that is killed in its first 10 s has none")
    })
}

fn several(error: ReadError, path: &Path) -> Failure {
    failure(error, format!("cannot convert {}", path.display()))
        .hint("convert each capture on its own, before they are joined")
}

fn copy(inputs: [File; 2], history: &History, to: &mut File) -> Result<Converted, CopyError> {
    let [parsed, copied] = inputs.map(BufReader::new);
    let fit = Fit::new(history);
    let (mut packets, mut left) = (0, 0);
    let mut moves = Distribution::new();
    let mut to = BufWriter::new(to);
    let done = rewrite(parsed, copied, &mut to, |packet: &Packet| {
        packets += 1;
        let time = packet.raw.and_then(|raw| fit.refine(raw, packet.time));
        match time {
            Some(time) => moves.add(time.0.wrapping_sub(packet.time.0).cast_signed()),
            None => left += 1,
        }
        time
    });
    let is_whole = match done {
        Ok(()) => true,
        Err(RewriteError::Read(error)) if error.is_torn_end() => false,
        Err(RewriteError::Copy(error)) => return Err(CopyError::Output(error)),
        Err(error) => return Err(CopyError::Read(error)),
    };
    to.flush()?;
    Ok(Converted {
        event: "convert",
        v: VERSION,
        source: history.source,
        packets,
        left,
        moved_ns: moves.summary(),
        samples: history.samples.len(),
        segments: history.segments.len(),
        is_whole,
    })
}

fn text(converted: &Converted, plan: &ConvertPlan) -> String {
    let mut text = format!(
        "{}: {} packets stamped again by {} samples of the clock in {} segments\n",
        plan.output.display(),
        grouped(converted.packets - converted.left),
        grouped(converted.samples as u64),
        converted.segments
    );
    if let Some(moved) = &converted.moved_ns {
        let quantile = |value: Option<i64>| value.map_or("–".into(), |ns| format!("{ns} ns"));
        let farthest = moved.min.unsigned_abs().max(moved.max.unsigned_abs());
        let _ = writeln!(
            text,
            "  moved by p50 {}, p90 {}, p99 {}, at most {}",
            quantile(moved.p50),
            quantile(moved.p90),
            quantile(moved.p99),
            span(farthest)
        );
    }
    if converted.left > 0 {
        let _ = writeln!(
            text,
            "  {} left as they were: the history does not tell their time better",
            grouped(converted.left)
        );
    }
    if !converted.is_whole {
        text += "  the capture ends within a block: what comes before it was converted\n";
    }
    text
}
