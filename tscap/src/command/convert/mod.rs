//! `tscap convert`: a capture stamped again, or with a part of its packets.

mod base;
mod gather;
mod log;
mod ntp;
mod stamp;
mod summary;
mod unconverted;
mod with;

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use ntp::{ByServer, ServerStamping};
use stamp::{StampError, Stamped, Stamping};
use with::{ByPeer, PeerStamping};

use super::copy_target::CopyTarget;
use super::print::{json_line, say};
use super::{Context, Exit, Failure, filter};
use tscap_capture::FilterSummary;
use tscap_cli::{ConvertPlan, FilterSource};
use tscap_clock::TimeBase;
use tscap_file::pcapng::{AccountError, Changes, Damage, ReadError, RewriteError, Times, rewrite};
use tscap_filter::Filter;
use tscap_host::whole_file::is_one;

/// Version of the JSON object.
const VERSION: u32 = 1;

#[derive(Debug, PartialEq, Serialize)]
struct Converted {
    event: &'static str,
    v: u32,
    /// Packets in the copy.
    packets: u64,
    /// With a filter: what came of it.
    #[serde(flatten)]
    filtered: Option<Filtered>,
    /// What came of the times, if they were to change.
    #[serde(flatten)]
    stamped: Option<Stamped>,
    /// The same where they are of an NTP server's clock.
    #[serde(flatten)]
    by_server: Option<ByServer>,
    /// The same where they are of another host's clock.
    #[serde(flatten)]
    by_peer: Option<ByPeer>,
    /// Whether all of the capture was read.
    is_whole: bool,
    /// What can't be read of it, and is not in the copy.
    #[serde(skip_serializing_if = "Damage::is_none")]
    damage: Damage,
}

/// What came of a filter.
#[derive(Debug, PartialEq, Serialize)]
struct Filtered {
    filter: FilterSummary,
    /// Packets that are not in the copy.
    filtered: u64,
}

pub(super) fn run(plan: &ConvertPlan) -> Result<Exit, Failure> {
    let filter = plan.filter.as_ref().map(filter::compile_for_file);
    let filter = filter.transpose()?;
    let input = plan.input.display();
    let trying = || format!("cannot read {input}");
    let file = File::open(&plan.input).context(format!("cannot open {input}"))?;
    let about = file.metadata().context(trying())?;
    if !about.is_file() {
        return Err(
            Failure::new(format!("cannot convert {input}")).hint("give a regular file, not a pipe")
        );
    }
    let mut target = CopyTarget::of(&plan.output)?;
    if let Some(target) = target.metadata() {
        keeps_its_inputs(target, &about, plan)?;
    }
    let is_filtered_only = filter.is_some() && plan.clock_log.is_none() && plan.time_base.is_none();
    let stamping = match plan.time_base {
        _ if plan.with.is_some() => By::Peer(Box::new(PeerStamping::prepare(&file, plan)?)),
        _ if is_filtered_only => By::Nothing,
        Some(TimeBase::Ntp) => By::Server(ServerStamping::prepare(&file, plan)?),
        _ => By::Host(Stamping::prepare(&file, plan)?),
    };
    // One more look at this very file, whatever its path leads to by now.
    let again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).context(trying())?;
    let write = |to: &mut File| {
        let converted = copy(again, stamping, filter.as_ref(), to)?;
        match file.metadata() {
            Ok(now) if now.len() == about.len() => Ok(converted),
            Ok(_) => Err(CopyError::Grown),
            Err(error) => Err(RewriteError::from(ReadError::Io(error)).into()),
        }
    };
    let converted = target.write(about.mode(), write);
    let converted = converted.map_err(|error| error.into_failure(plan))?;
    if let Some(warning) = warning(&converted, filter.as_ref()) {
        say(&warning);
    }
    let said = if plan.json {
        json_line(&converted)
    } else {
        summary::text(&converted, plan)
    };
    target.tell(&said)?;
    Ok(if converted.is_whole {
        Exit::Success
    } else {
        Exit::Fault
    })
}

/// What the times go by.
enum By {
    Nothing,
    /// The host's clock.
    Host(Stamping),
    /// An NTP server's.
    Server(ServerStamping),
    /// Another host's.
    Peer(Box<PeerStamping>),
}

/// Fails if the copy would be written over what it is made of.
fn keeps_its_inputs(
    target: &Metadata,
    input: &Metadata,
    plan: &ConvertPlan,
) -> Result<(), Failure> {
    let name = plan.input.display();
    let is_over = |path: &Path| fs::metadata(path).is_ok_and(|it| is_one(target, &it));
    let filter = match &plan.filter {
        Some(FilterSource::File(path) | FilterSource::Bytecode(path)) => Some(path),
        _ => None,
    };
    let what = if is_one(target, input) {
        format!("cannot convert {name} into itself: the capture as it was would be lost")
    } else if plan.clock_log.as_deref().is_some_and(is_over) {
        format!("cannot write the copy of {name} over the log of the clock")
    } else if plan.with.as_deref().is_some_and(is_over) {
        format!("cannot write the copy of {name} over the other host's capture")
    } else if filter.is_some_and(|path| is_over(path)) {
        format!("cannot write the copy of {name} over the filter")
    } else {
        return Ok(());
    };
    Err(Failure::new(what).hint("give -w another file"))
}

/// A filter that leaves nothing is hardly meant.
fn warning(converted: &Converted, filter: Option<&Filter>) -> Option<String> {
    let (filter, filtered) = filter.zip(converted.filtered.as_ref())?;
    let matches_none = converted.packets == 0 && filtered.filtered > 0;
    (matches_none || !filter.can_match).then(|| {
        format!(
            "warning: the filter {:?} matches no packet",
            filter.expression
        )
    })
}

#[derive(Debug)]
enum CopyError {
    Stamp(StampError),
    Output(io::Error),
    /// The input is longer or shorter than it was.
    Grown,
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<StampError> for CopyError {
    fn from(error: StampError) -> Self {
        match error {
            StampError::Rewrite(RewriteError::Copy(error)) => Self::Output(error),
            error => Self::Stamp(error),
        }
    }
}

impl From<RewriteError> for CopyError {
    fn from(error: RewriteError) -> Self {
        StampError::from(error).into()
    }
}

impl CopyError {
    fn into_failure(self, plan: &ConvertPlan) -> Failure {
        let input = plan.input.display();
        let converting = format!("cannot convert {input}");
        match self {
            Self::Output(error) => {
                Failure::from_error(error, format!("cannot write {}", plan.output.display()))
            }
            Self::Grown => Failure::new(format!("{converting}: its length has changed meanwhile"))
                .hint("wait until the capture has ended"),
            Self::Stamp(StampError::Rewrite(RewriteError::Read(error))) => {
                let hint = matches!(error, ReadError::NotPcapng)
                    .then_some("`editcap -F pcapng` makes a pcapng of files in other formats");
                let failure = Failure::from_error(error, format!("cannot read {input}"));
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            Self::Stamp(error) => {
                let hint = match &error {
                    StampError::Rewrite(RewriteError::LinkType { .. }) => {
                        "take the packets of this interface out first: \
                         `tshark -r IN -Y 'frame.interface_name != \"NAME\"' -w OUT`"
                    }
                    StampError::Rewrite(RewriteError::Filter(_)) => {
                        "give the filter as an expression"
                    }
                    StampError::Rewrite(RewriteError::Account(AccountError::Several)) => {
                        "convert each capture on its own, before they are joined"
                    }
                    StampError::Rewrite(_) => {
                        "the file is damaged, or another program has changed it since"
                    }
                    StampError::OutOfRange => {
                        "the file is damaged: the history of its clock contradicts its packets"
                    }
                };
                Failure::from_error(error, converting).hint(hint)
            }
        }
    }
}

fn copy(
    from: File,
    stamping: By,
    filter: Option<&Filter>,
    to: &mut File,
) -> Result<Converted, CopyError> {
    let mut to = BufWriter::new(to);
    let rewrite = |times: Option<Times<'_>>| rewrite(from, &mut to, Changes { times, filter });
    let (mut by_server, mut by_peer) = (None, None);
    let (copied, stamped) = match stamping {
        By::Nothing => (rewrite(None)?, None),
        By::Host(stamping) => {
            let (copied, stamped) = stamping.stamp(|times| rewrite(Some(times)))?;
            (copied, Some(stamped))
        }
        By::Server(stamping) => {
            let (copied, by) = stamping.stamp(|times| rewrite(Some(times)))?;
            by_server = Some(by);
            (copied, None)
        }
        By::Peer(stamping) => {
            let (copied, by) = stamping.stamp(|times| rewrite(Some(times)))?;
            by_peer = Some(by);
            (copied, None)
        }
    };
    to.flush()?;
    Ok(Converted {
        event: "convert",
        v: VERSION,
        packets: copied.packets,
        filtered: filter.map(|filter| Filtered {
            filter: FilterSummary::of(filter),
            filtered: copied.filtered,
        }),
        stamped,
        by_server,
        by_peer,
        is_whole: copied.damage.is_none(),
        damage: copied.damage,
    })
}
