//! Times by the clock of an NTP server, as `tscap clock --reference ntp:HOST` followed it.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

use super::gather::{Gathered, gather};
use super::log;
use super::stamp::StampError;
use crate::command::{Context, Failure, Hint as _};
use tscap_base::text::numbers::span;
use tscap_cli::ConvertPlan;
use tscap_clock::{
    FileClock, FileNs, NsPerCycle, NtpBase, RawStamp, Sample, StampSource, TimeBase, TscCycles,
};
use tscap_file::pcapng::{Copied, InterfaceOption, Packet, RewriteError, StatisticsOption, Times};
use tscap_references::log::{Entry, Line};
use tscap_references::ntp::{LONGEST_POLL, NtpLines, NtpPoint};
use tscap_statistics::{Distribution, Summary};

/// Exchanges are kept of so much of the time before the capture and after it, s.
const AROUND_S: u64 = 2 * LONGEST_POLL.as_secs();

/// What became of the times.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct ByServer {
    /// Which clock the copy's times are of.
    pub time_base: TimeBase,
    pub server: SocketAddr,
    /// Exchanges with it that the times rest on.
    pub exchanges: usize,
    /// Packets that have a time of it.
    pub timed: u64,
    /// Of these, between two exchanges between which the server was set: nobody knows whether
    /// before or after.
    pub ambiguous: u64,
    /// How far the times moved, later being positive, ns; null if there were none.
    pub moved_ns: Option<Summary>,
    /// Greatest error of the raw stamps as such, ns, which is in both bounds.
    pub stamp_error_ns: u64,
    /// Greatest error of each time against the server, ns.
    pub bound_ns: Option<Summary>,
    /// Greatest error of each time against UTC, ns: with the server's own, by its account.
    pub utc_bound_ns: Option<Summary>,
    /// Whether the last line of the log was torn, and passed over.
    pub is_log_torn: bool,
}

/// How the times are to be told.
#[derive(Debug)]
pub(super) struct ServerStamping {
    lines: NtpLines,
    clock: FileClock,
    server: SocketAddr,
    stamp_error_ns: u64,
    is_torn: bool,
    /// How far the start of the statistics moves: that of the first block.
    start_moved_ns: Option<i64>,
}

impl ServerStamping {
    /// By a look at all of the capture, and of the log.
    ///
    /// # Errors
    /// If the log does not tell the server's time of each packet.
    pub fn prepare(file: &File, plan: &ConvertPlan) -> Result<Self, Failure> {
        let capture = gather(file, &plan.input)?;
        capture.is_of_this_machine(&plan.input)?;
        let input = plan.input.display();
        let what = || format!("cannot convert {input} by an NTP server's clock");
        let refused = |why: &str, hint: &str| Failure::new(format!("{}: {why}", what())).hint(hint);
        if capture.source != StampSource::Tsc {
            let why = format!("its stamps are of {}", capture.source.name());
            return Err(refused(&why, "capture with --clock tsc --keep-raw"));
        }
        if !capture.all_have_stamps {
            let why = "not all of its packets kept their raw stamp";
            return Err(refused(why, "capture with --clock tsc --keep-raw"));
        }
        if capture.clock.base != TimeBase::Realtime {
            let why = format!("its times are of {}", capture.clock.base.name());
            return Err(refused(&why, "convert the capture that it was made of"));
        }
        let path = plan.clock_log.as_deref();
        let path = path.ok_or_else(|| refused("it needs a log", "give one by --clock-log"))?;
        let name = path.display();
        let exchanges = Exchanges::read(path, &capture, &plan.input)?;
        let (server, points) = exchanges.of(plan.server.as_deref(), path)?;
        let lines = NtpLines::new(points, exchanges.rate);
        let lines = lines.context(format!("{}: {name}, server {server}", what()));
        let lines =
            lines.hint("give a log of `tscap clock --reference ntp:HOST` beside the capture")?;
        let ends = capture.stamps.map(|ends| ends.map(|it| TscCycles(it.0)));
        let (mut bound_ns, mut root_distance_ns) = (0, 0);
        if let Some([from, until]) = ends {
            let away_ns = [from, until].map(|at| lines.at(at).away_ns);
            let away_ns = away_ns[0].max(away_ns[1]);
            if u128::from(away_ns) > LONGEST_POLL.as_nanos() {
                let why = format!(
                    "{name} has no exchange with {server} within {} s of all packets: the nearest \
                     is {} away",
                    LONGEST_POLL.as_secs(),
                    span(away_ns)
                );
                let hint = "give a log that was kept while the capture ran";
                return Err(refused(&why, hint));
            }
            (bound_ns, root_distance_ns) = lines.greatest(from, until);
        }
        Ok(Self {
            clock: FileClock {
                base: TimeBase::Ntp,
                ntp: Some(NtpBase {
                    server,
                    bound_ns: bound_ns.saturating_add(capture.stamp_error_ns),
                    root_distance_ns,
                }),
                ..FileClock::default()
            },
            lines,
            server,
            stamp_error_ns: capture.stamp_error_ns,
            is_torn: exchanges.is_torn,
            start_moved_ns: None,
        })
    }

    /// Makes a copy by `rewrite`, with these times.
    pub fn stamp(
        self,
        rewrite: impl FnOnce(Times<'_>) -> Result<Copied, RewriteError>,
    ) -> Result<(Copied, ByServer), StampError> {
        let Self {
            lines,
            clock,
            server,
            stamp_error_ns,
            is_torn,
            mut start_moved_ns,
        } = self;
        let (mut timed, mut ambiguous) = (0, 0);
        let [mut moves, mut bounds, mut utc_bounds] = [(); 3].map(|()| Distribution::new());
        let time = |packet: &Packet, of: Option<&InterfaceOption>| {
            let RawStamp(at) = packet.raw.filter(|_| of.is_some())?;
            let reported = lines.at(TscCycles(at));
            timed += 1;
            ambiguous += u64::from(reported.is_ambiguous);
            moves.add(reported.real.0.wrapping_sub(packet.time.0).cast_signed());
            let signed = |ns: u64| i64::try_from(ns.saturating_add(stamp_error_ns));
            bounds.add(signed(reported.bound_ns).unwrap_or(i64::MAX));
            utc_bounds.add(signed(reported.utc_bound_ns()).unwrap_or(i64::MAX));
            Some(FileNs(reported.real.0))
        };
        let moved = |statistics: &StatisticsOption| {
            let samples = &statistics.clock.samples;
            let by = |sample: Option<&Sample>| {
                let (sample, [at, _]) = sample.and_then(|it| Some((it, it.tsc?)))?;
                let reported = lines.at(at).real;
                Some(reported.0.wrapping_sub(sample.real.0).cast_signed())
            };
            let made = by(samples.last()).unwrap_or(0);
            let start = *start_moved_ns.get_or_insert_with(|| by(samples.first()).unwrap_or(made));
            [start, made]
        };
        let copied = rewrite(Times {
            clock,
            time: Box::new(time),
            moved: Box::new(moved),
        })?;
        let by_server = ByServer {
            time_base: TimeBase::Ntp,
            server,
            exchanges: lines.exchanges(),
            timed,
            ambiguous,
            moved_ns: moves.summary(),
            stamp_error_ns,
            bound_ns: bounds.summary(),
            utc_bound_ns: utc_bounds.summary(),
            is_log_torn: is_torn,
        };
        Ok((copied, by_server))
    }
}

/// What a log has of NTP servers.
#[derive(Debug)]
struct Exchanges {
    servers: BTreeMap<SocketAddr, Vec<NtpPoint>>,
    /// The counter's, by the host's clock.
    rate: NsPerCycle,
    is_torn: bool,
}

impl Exchanges {
    /// Those around a capture.
    fn read(path: &Path, capture: &Gathered, input: &Path) -> Result<Self, Failure> {
        let mut reader = log::open(path, capture, input)?;
        let name = path.display();
        let what = || format!("cannot convert {} by {name}", input.display());
        let mut servers: BTreeMap<SocketAddr, Vec<NtpPoint>> = BTreeMap::new();
        let mut found = None;
        while let Some(line) = reader.next_line().context(format!("cannot read {name}"))? {
            let Line::Entry(entry) = line else { continue };
            let Entry {
                status,
                segments,
                ntp,
                ..
            } = *entry;
            if segments.iter().any(|it| it.counter_jump_ns.is_some()) {
                return Err(
                    Failure::new(format!("{}: the TSC jumped while it was kept", what()))
                        .hint("give a log that was begun after that"),
                );
            }
            let rate = status.counter.ns_per_cycle_2_58;
            found = Some(rate);
            let around = rate.cycles_in((AROUND_S * 1_000_000_000).cast_signed());
            let is_near = |point: &NtpPoint| {
                capture.stamps.is_none_or(|[first, last]| {
                    let from = first.0.saturating_sub(around.unsigned_abs());
                    let until = last.0.saturating_add(around.unsigned_abs());
                    (from..=until).contains(&point.at.0)
                })
            };
            for of in ntp {
                let near = of.points.into_iter().filter(is_near);
                servers.entry(of.server).or_default().extend(near);
            }
        }
        servers.retain(|_, points| !points.is_empty());
        let rate = found.ok_or_else(|| Failure::new(format!("{}: it has no entry", what())))?;
        Ok(Self {
            servers,
            rate,
            is_torn: reader.is_torn(),
        })
    }

    /// Those with one server: that of this address, or the only one.
    fn of(&self, wanted: Option<&str>, path: &Path) -> Result<(SocketAddr, &[NtpPoint]), Failure> {
        let name = path.display();
        let is_it = |server: &SocketAddr| {
            wanted.is_none_or(|it| server.to_string() == it || server.ip().to_string() == it)
        };
        let mut fit = self.servers.iter().filter(|(server, _)| is_it(server));
        let all = || {
            let all: Vec<_> = self.servers.keys().map(SocketAddr::to_string).collect();
            all.join(", ")
        };
        match (fit.next(), fit.next()) {
            (Some((server, points)), None) => Ok((*server, points)),
            (Some(_), Some(_)) => Err(Failure::new(format!(
                "{name} has exchanges with several NTP servers: {}",
                all()
            ))
            .hint("name one: --time-base ntp:ADDRESS")),
            (None, _) if self.servers.is_empty() => Err(Failure::new(format!(
                "{name} has no exchange with an NTP server from the time of the capture"
            ))
            .hint("keep a log beside the capture by `tscap clock --reference ntp:HOST --log`")),
            (None, _) => Err(Failure::new(format!(
                "{name} has no exchange with NTP server {}, but with {}",
                wanted.unwrap_or_default(),
                all()
            ))
            .hint("give its address")),
        }
    }
}
