//! Each packet of a capture by the clock of another host, which captured meanwhile.

use std::io::{Read, Seek};

use tscap_clock::BootId;
use tscap_delay::schema::Match;
use tscap_file::accounting::Direction;
use tscap_file::pcapng::{ClockRelation, Packet};
use tscap_streams::Survey;

use super::common::CommonPackets;
use super::host::Host;
use super::peer_time::{ByExchanges, PeerTime};
use super::timeline::Line;
use super::{FilePlace, FilesError, drift_ppb, of_capture, said, see_all};

/// Two captures, the first of which has the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHostPlan {
    /// Names of both files, for people.
    pub files: [String; 2],
    /// Greatest difference of the clocks' rates, parts per billion, if it was given.
    pub max_drift_ppb: Option<u64>,
}

/// The clock of another host.
#[derive(Debug)]
pub struct OtherHost {
    /// Its boot.
    pub boot: BootId,
    /// Greatest error of a time by it, ns.
    pub bound_ns: u64,
    /// The same against UTC, ns, if its capture says how far its clock is from that.
    pub utc_bound_ns: Option<u64>,
    /// Packets from that host to this one that both captures have, and back.
    pub packets: [u64; 2],
    /// By how much the first packet's time moves, and the last one's, ns.
    pub moved_ns: [i64; 2],
    /// What a reader must know.
    pub warnings: Vec<String>,
    host: Host,
    peer_time: PeerTime,
}

/// The packets of a capture in the order of its file.
#[derive(Debug)]
pub struct OtherTimes<'a> {
    other: &'a OtherHost,
    line: Line<'a>,
    order: u64,
}

impl OtherHost {
    /// Looks at all of both captures: that of the other host, and the one whose packets are to have
    /// its times.
    ///
    /// # Errors
    /// If they do not tell the other host's time of each packet.
    pub fn find<R: Read + Seek>(
        files: [&mut R; 2],
        plan: &OtherHostPlan,
    ) -> Result<Self, FilesError> {
        let mut warnings = Vec::new();
        let [first, second] = files;
        let mut numbers = 0;
        let mut host = |file: &mut R, name: &String| {
            let mut place = FilePlace {
                file: name.clone(),
                interface: None,
                direction: Direction::In,
            };
            let survey = Survey::beside(file, numbers);
            let survey = survey.map_err(|error| of_capture(error, &place))?;
            numbers += survey.interfaces.len();
            let mut all = survey.interfaces.iter();
            let used = all.position(|it| it.frames > 0).unwrap_or(0);
            place.interface = Some(used.to_string());
            Host::find(&place, survey, &mut warnings)
        };
        let mut hosts = [host(first, &plan.files[0])?, host(second, &plan.files[1])?];
        let file = plan.files[0].clone();
        if hosts[0].interfaces().any(|it| it.was_set) {
            return Err(FilesError::WasSet { file });
        }
        hosts[0].use_times();
        let boot = hosts[0].boot().ok_or(FilesError::NoBoot { file })?;
        for host in &hosts {
            let mut others = host.survey.interfaces.iter().zip(&host.is_by_its_clock);
            if others.any(|(it, is_its)| it.frames > 0 && !is_its) {
                let file = host.file.clone();
                return Err(FilesError::SeveralClocks { file });
            }
        }
        if hosts[0].clock().kinship(hosts[1].clock()) == ClockRelation::Same {
            return Err(FilesError::OneClock);
        }
        let drift_ppb = drift_ppb(&hosts, plan.max_drift_ppb);
        let has_directions = hosts.iter().all(|it| it.has_directions);
        let mut packets = CommonPackets::new(Match::Route.key_of(), has_directions);
        for (index, file) in [&mut *first, &mut *second].into_iter().enumerate() {
            let seen = see_all(file, &mut hosts[index], |packet, at, order| {
                packets.see(index, packet, at, order);
            });
            seen.map_err(|error| FilesError::Capture {
                file: plan.files[index].clone(),
                error,
            })?;
        }
        let common = packets.meet(&hosts, drift_ppb);
        let may_be_set = hosts.iter().any(|it| it.timeline.may_be_set);
        let found = ByExchanges::of(&common.pairs, drift_ppb, None, may_be_set);
        let found = found.ok_or_else(|| FilesError::not_aligned(&hosts, &common))?;
        let peer_time = PeerTime::Exchanges(found);
        said(&hosts, &peer_time, &common, false, &mut warnings);
        let [other, host] = hosts;
        let stamps_ns = other.timeline.error_ns + host.timeline.error_ns;
        let (mut bound_ns, mut unknown) = (0, 0);
        let mut ends: Option<[i64; 2]> = None;
        let mut found = Self {
            boot,
            bound_ns: 0,
            utc_bound_ns: None,
            packets: common.packets,
            moved_ns: [0; 2],
            warnings,
            host,
            peer_time,
        };
        let records = found.host.survey.one_by_one(second);
        let records = records.map_err(|error| FilesError::Capture {
            file: plan.files[1].clone(),
            error,
        })?;
        let mut times = found.times();
        for record in records {
            let tscap_file::pcapng::Record::Packet(packet) = record else {
                continue;
            };
            match times.aligned(&packet) {
                Some((at, bound)) => {
                    bound_ns = bound_ns.max(bound);
                    let moved = at.wrapping_sub(packet.time.0).cast_signed();
                    ends = Some([ends.map_or(moved, |it| it[0]), moved]);
                }
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            return Err(FilesError::NotAllAligned {
                packets: unknown,
                file: plan.files[1].clone(),
            });
        }
        found.moved_ns = ends.unwrap_or_default();
        found.bound_ns = bound_ns.saturating_add(stamps_ns);
        let utc_ns = other.utc_bound_ns();
        found.utc_bound_ns = utc_ns.map(|ns| ns.saturating_add(found.bound_ns));
        Ok(found)
    }

    /// The times of its packets, from the start of the file on.
    pub fn times(&self) -> OtherTimes<'_> {
        OtherTimes {
            other: self,
            line: Line::new(&self.host.timeline),
            order: 0,
        }
    }
}

impl OtherTimes<'_> {
    /// The time of the next packet by the other host's clock, ns.
    pub fn next(&mut self, packet: &Packet) -> Option<u64> {
        Some(self.aligned(packet)?.0)
    }

    /// With its bound by the alignment, ns.
    fn aligned(&mut self, packet: &Packet) -> Option<(u64, u64)> {
        if !self.other.host.has(packet) {
            return None;
        }
        let at = self.line.at(packet);
        let order = self.order;
        self.order += 1;
        let aligned = self.other.peer_time.align(order, at)?;
        Some((aligned.at, aligned.bound_ns))
    }
}
