//! The custom options: JSON in UTF-8 (option code 2988, "may be copied"), under
//! one private enterprise number, each with a version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pcap_file::pcapng::blocks::custom::CustomUtf8Option;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use serde::{Deserialize, Serialize};
pub use tscap_common::block::PEN;

use crate::accounting::{
    HardwareFrames, InterfaceFrames, Outcomes, ReferenceStanding, StampOrder, Totals,
};
use tscap_clock::{
    CounterReport, FileClock, NtpBase, OffsetBracket, PeerBase, ReferenceBounds, Sample, Segment,
    StampPath, StampSource, TableOffset, TimeBase,
};
use tscap_network::netns::NetnsId;
use tscap_utc::UtcBounds;

/// Version of the options' schema.
const VERSION: u32 = 1;

/// An option holds at most 64 KiB, so at most this many segments.
const MOST_SEGMENTS: usize = 100;

/// How stamps were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampOption {
    /// Which clock.
    pub source: StampSource,
    /// The helper that read it.
    pub path: String,
    /// Whether the read was ordered (fenced).
    pub ordered: bool,
    /// Where in the frame's way: always "xdp", which is after interrupt
    /// moderation and polling, not the arrival at the interface.
    pub point: String,
    /// Where each CPU stamps with a counter of its own, in the interface
    /// description: how closely their offsets were known at the start, the worst
    /// of all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bracket: Option<OffsetBracket>,
    /// Why the counter would have been refused without `--force`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

impl StampOption {
    /// For stamps by `path`.
    pub fn new(path: StampPath) -> Self {
        Self {
            source: path.source(),
            path: path.function().into(),
            ordered: path.is_ordered(),
            point: "xdp".into(),
            bracket: None,
            forced: None,
        }
    }
}

/// Whether the VLAN tag that a frame arrived with is in the frame as captured. A device,
/// or the network stack before the frame came to this interface, may have moved it out of
/// the frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VlanTags {
    /// Nothing took it off, or the program put it back.
    Kept,
    /// The device takes it off, and the program can't read it.
    Stripped,
    /// Unknown: it may have been taken off.
    Unknown,
}

/// Where frames are stamped, by name: "native XDP", "generic XDP", "tcx egress", … Only
/// at native XDP a frame is never an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    /// Received ones.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub received: Option<String>,
    /// Sent ones.
    #[serde(default, rename = "out", skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
}

impl fmt::Display for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.received, &self.sent) {
            (Some(received), Some(sent)) => write!(f, "in: {received}, out: {sent}"),
            (Some(received), None) => write!(f, "in: {received}"),
            (None, Some(sent)) => write!(f, "out: {sent}"),
            (None, None) => f.write_str("nowhere"),
        }
    }
}

/// In a section header: which part of a capture the file is, where several writers each
/// write the frames of their CPUs to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartOption {
    /// Schema version.
    pub v: u32,
    /// The same in all files of the capture, and in no other capture's.
    pub capture: String,
    /// Writers of the capture.
    pub writers: u32,
    /// Those whose frames are here, from 0 on: one, or several once they were merged.
    pub parts: BTreeSet<u32>,
}

impl PartOption {
    /// What `writer` of so many writes, with the current version.
    pub fn new(capture: String, writer: u32, writers: u32) -> Self {
        Self {
            v: VERSION,
            capture,
            writers,
            parts: [writer].into(),
        }
    }

    /// The writers whose frames are not here.
    pub fn missing(&self) -> impl Iterator<Item = u32> {
        (0..self.writers).filter(|writer| !self.parts.contains(writer))
    }
}

/// In an interface description: by what the times follow a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerOption {
    /// The same in all interfaces whose times one capture took from its reference, and in no
    /// other.
    pub id: String,
    /// Clocks that follow it, each by itself: one for each writer.
    pub clocks: u32,
}

/// How an interface stamps frames itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareOption {
    /// The PTP clock that it stamps by, such as `/dev/ptp0`; without one no stamp is converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// Which frames it stamps, by ethtool's name (`all`, `none`, `ptpv2-event`), if it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rx_filter: Option<String>,
}

/// In a statistics block: the hardware stamps of the frames that were received and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareStatistics {
    /// Frames with one, and what became of these.
    #[serde(flatten)]
    pub frames: HardwareFrames,
    /// Received frames that were written without a hardware stamp.
    pub without: u64,
    /// Greatest error of the time from hardware stamp to the frame's own, of the capture so
    /// far, ns; none before the interface's clock is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<u64>,
}

impl HardwareStatistics {
    /// Those of two writers together.
    #[must_use]
    pub(super) fn and(mut self, other: Self) -> Self {
        self.frames += other.frames;
        self.without += other.without;
        self.bound_ns = self.bound_ns.max(other.bound_ns);
        self
    }
}

/// In an interface description: how frames of this interface were taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceOption {
    /// Schema version.
    pub v: u32,
    /// Where frames were stamped. Not in captures of early versions.
    #[serde(default)]
    pub hooks: Hooks,
    /// The network namespace that it is in, as it was asked for, if that is not the one that
    /// tscap ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What identifies that namespace among those of its boot. Not in captures of early
    /// versions.
    #[serde(flatten)]
    pub netns: Option<NetnsId>,
    /// How stamps were taken.
    pub stamp: StampOption,
    /// Offloads in force that change what a frame looks like, by kernel name.
    pub offloads: BTreeMap<String, bool>,
    /// Whether VLAN tags are in the frames. Not in captures of early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan_tags: Option<VlanTags>,
    /// The interface only listened: frames ended in tscap's program, and the network stack
    /// saw none of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tap: bool,
    /// How it stamps frames itself, where its hardware stamps were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareOption>,
    /// The machine's boot, as in `/proc/sys/kernel/random/boot_id`: raw stamps are of
    /// this boot. Not in captures of early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Who compiled the filter of `if_filter`: libpcap with its version, or "bytecode".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_compiler: Option<String>,
    /// The reference whose time takes the place of CLOCK_REALTIME in times and in the clock's
    /// history: "ntp:" and a server, or the path of a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// By what they follow it. Not in captures of early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follower: Option<FollowerOption>,
    /// Which clock the times of its packets and statistics are of, where `tscap
    /// convert` changed that. The clock's history in the statistics names its clocks.
    #[serde(default, skip_serializing_if = "TimeBase::is_realtime")]
    pub time_base: TimeBase,
    /// TAI − UTC that `tscap convert` took from a table of leap seconds, where the kernel
    /// had not been given its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leap_table: Option<TableOffset>,
    /// The NTP server whose clock `tscap convert` took the times from, with their bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp: Option<NtpBase>,
    /// The other host whose clock `tscap convert --with` took the times from, with their bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<PeerBase>,
}

impl InterfaceOption {
    /// With the current version.
    pub fn new(hooks: Hooks, stamp: StampOption, offloads: BTreeMap<String, bool>) -> Self {
        Self {
            v: VERSION,
            hooks,
            namespace: None,
            netns: None,
            stamp,
            offloads,
            vlan_tags: None,
            tap: false,
            hardware: None,
            boot_id: None,
            filter_compiler: None,
            reference: None,
            follower: None,
            time_base: TimeBase::Realtime,
            leap_table: None,
            ntp: None,
            peer: None,
        }
    }

    /// Whether both are in one network namespace, where interfaces of one name are one
    /// interface; `None` if nobody can tell, as of captures of early versions.
    pub fn is_in_namespace_of(&self, other: &Self) -> Option<bool> {
        if self.boot_id.is_none() || self.boot_id != other.boot_id {
            return Some(false);
        }
        if let Some((one, other)) = self.netns.zip(other.netns) {
            return Some(one.is(other));
        }
        (self.namespace != other.namespace).then_some(false)
    }

    /// Which clock the times of its packets are of.
    pub fn clock(&self) -> FileClock {
        FileClock {
            base: self.time_base,
            table: self.leap_table,
            ntp: self.ntp,
            peer: self.peer,
        }
    }
}

/// In a statistics block: the clock since the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOption {
    /// How stamps are taken.
    pub stamp: StampOption,
    /// The raw counter, where one stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<CounterReport>,
    /// Greatest error of a stamp against the host's CLOCK_REALTIME, ns.
    pub host_bound_ns: u64,
    /// Of that, the error of raw stamps as such, so far, ns: where each CPU stamps with a
    /// counter of its own, how well the offsets were known, and how far they moved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stamp_error_ns: u64,
    /// Most that CLOCK_REALTIME is off UTC, ns, by `utc`; absent while nothing bounds it. Not part
    /// of `host_bound_ns`. Of a clock that follows a reference, the sum of `reference`.
    pub utc_bound_ns: Option<u64>,
    /// Each source that bounds CLOCK_REALTIME against UTC, and which is used. Not where the
    /// clock follows a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc: Option<UtcBounds>,
    /// Where the clock follows a reference instead of being the host's: the greatest errors so
    /// far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceBounds>,
    /// What each reference is to the times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<ReferenceStanding>,
    /// Stamps out of order so far, over all interfaces.
    #[serde(flatten)]
    pub order: StampOrder,
    /// Segments that are new or have grown since the last statistics block, the
    /// latest ones.
    pub segments: Vec<Segment>,
    /// Earlier ones of these that found no room in the option.
    #[serde(default)]
    pub segments_left_out: u64,
    /// Samples since the last statistics block, one a second.
    pub samples: Vec<Sample>,
}

impl ClockOption {
    /// Without any history, as once the files of several writers were merged: each had its own.
    #[must_use]
    pub(crate) fn without_history(&self) -> Self {
        Self {
            segments: Vec::new(),
            ..self.in_short()
        }
    }

    /// Without the history, but for the latest segment: what another block of the same moment
    /// has.
    #[must_use]
    pub(crate) fn in_short(&self) -> Self {
        Self {
            segments: self.segments.last().copied().into_iter().collect(),
            segments_left_out: 0,
            samples: Vec::new(),
            utc: None,
            stamp: self.stamp.clone(),
            references: self.references.clone(),
            ..*self
        }
    }
}

/// In a statistics block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatisticsOption {
    /// Schema version.
    pub v: u32,
    /// Frames of this interface that were not written, by reason.
    pub outcomes: Outcomes,
    /// The clock.
    pub clock: ClockOption,
    /// With `--rx-cpu`: frames that came in on other CPUs, over all interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_cpu: Option<u64>,
    /// In the last statistics block: the accounting over all interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<Totals>,
    /// Of this interface, what it sent, where the capture takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Totals>,
    /// What this interface counted itself of what it received; not in captures of early
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_in: Option<InterfaceFrames>,
    /// The same of what it sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_out: Option<InterfaceFrames>,
    /// Of this interface, where its hardware stamps were taken. As captured: `tscap convert`
    /// leaves it where it leaves out frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareStatistics>,
    /// In the last statistics block: of `totals`, what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals_sent: Option<Totals>,
}

impl StatisticsOption {
    /// With the current version.
    pub fn new(outcomes: Outcomes, mut clock: ClockOption, totals: Option<Totals>) -> Self {
        let excess = clock.segments.len().saturating_sub(MOST_SEGMENTS);
        clock.segments.drain(..excess);
        clock.segments_left_out += excess as u64;
        Self {
            v: VERSION,
            outcomes,
            clock,
            off_cpu: None,
            totals,
            sent: None,
            counted_in: None,
            counted_out: None,
            hardware: None,
            totals_sent: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A value as a custom option.
pub(super) fn option(value: &impl Serialize) -> CommonOption<'static> {
    let json = serde_json::to_string(value).expect("plain structs always serialise");
    CommonOption::CustomUtf8Copiable(CustomUtf8Option {
        pen: PEN,
        value: Cow::Owned(json),
    })
}
