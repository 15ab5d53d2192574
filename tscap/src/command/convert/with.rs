//! Times by the clock of another host, by the packets that both captures have.

use std::cell::RefCell;
use std::fs::File;
use std::io::BufReader;

use serde::Serialize;

use super::gather::gather;
use super::stamp::StampError;
use crate::command::{Context, Failure, Hint as _};
use tscap_cli::ConvertPlan;
use tscap_clock::{FileClock, FileNs, PeerBase, TimeBase};
use tscap_file::pcapng::{Copied, InterfaceOption, Packet, RewriteError, StatisticsOption, Times};
use tscap_statistics::{Distribution, Summary};
use tscap_two_hosts::files::{OtherHost, OtherHostPlan};

/// What became of the times.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ByPeer {
    /// Which clock the copy's times are of.
    pub time_base: TimeBase,
    /// The other host's capture.
    pub with: String,
    /// Its boot.
    pub boot: String,
    /// Packets from that host to this one that both captures have, and back.
    pub exchanged: [u64; 2],
    /// Packets that have a time of it.
    pub timed: u64,
    /// How far the times moved, later being positive, ns; null if there were none.
    pub moved_ns: Option<Summary>,
    /// Greatest error of a time against that clock, ns.
    pub bound_ns: u64,
    /// The same against UTC, ns, if that host's capture says it.
    pub utc_bound_ns: Option<u64>,
    /// What a reader must know.
    pub warnings: Vec<String>,
}

/// How the times are to be told.
#[derive(Debug)]
pub(super) struct PeerStamping {
    other: OtherHost,
    clock: FileClock,
    with: String,
}

impl PeerStamping {
    /// By a look at all of both captures.
    ///
    /// # Errors
    /// If they do not tell the other host's time of each packet.
    pub fn prepare(file: &File, plan: &ConvertPlan) -> Result<Self, Failure> {
        let capture = gather(file, &plan.input)?;
        capture.is_of_this_machine(&plan.input)?;
        let input = plan.input.display().to_string();
        let path = plan.with.clone().unwrap_or_default();
        let with = path.display().to_string();
        let what = format!("cannot convert {input} by {with}");
        let other = File::open(&path).context(what.clone());
        let other = other.hint("give the capture of the other host")?;
        let mut files = [
            BufReader::new(other),
            BufReader::new(file.try_clone().context(what.clone())?),
        ];
        let [first, second] = &mut files;
        let asked = OtherHostPlan {
            files: [with.clone(), input],
            max_drift_ppb: plan.max_drift_ppb,
        };
        let other = OtherHost::find([first, second], &asked);
        let other = other
            .context(what)
            .hint("give captures of both hosts from one time, with both directions")?;
        let clock = FileClock {
            base: TimeBase::Peer,
            peer: Some(PeerBase {
                boot: other.boot,
                bound_ns: other.bound_ns,
                utc_bound_ns: other.utc_bound_ns,
            }),
            ..FileClock::default()
        };
        Ok(Self { other, clock, with })
    }

    /// Makes a copy by `rewrite`, with these times.
    pub fn stamp(
        self,
        rewrite: impl FnOnce(Times<'_>) -> Result<Copied, RewriteError>,
    ) -> Result<(Copied, ByPeer), StampError> {
        let Self { other, clock, with } = self;
        let [start_moved_ns, end_moved_ns] = other.moved_ns;
        let moves = RefCell::new(Distribution::new());
        let mut times = other.times();
        let time = |packet: &Packet, of: Option<&InterfaceOption>| {
            of?;
            let at = times.next(packet)?;
            let moved_ns = at.wrapping_sub(packet.time.0).cast_signed();
            moves.borrow_mut().add(moved_ns);
            Some(FileNs(at))
        };
        let moved = move |_: &StatisticsOption| [start_moved_ns, end_moved_ns];
        let copied = rewrite(Times {
            clock,
            time: Box::new(time),
            moved: Box::new(moved),
        })?;
        let moved_ns = moves.borrow().summary();
        let by_peer = ByPeer {
            time_base: TimeBase::Peer,
            with,
            boot: other.boot.to_string(),
            exchanged: other.packets,
            timed: moved_ns.as_ref().map_or(0, |it| it.n),
            moved_ns,
            bound_ns: other.bound_ns,
            utc_bound_ns: other.utc_bound_ns,
            warnings: other.warnings.clone(),
        };
        Ok((copied, by_peer))
    }
}
