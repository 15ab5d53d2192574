//! Section header, interface descriptions and statistics blocks.

use std::borrow::Cow;

use pcap_file::Endianness;
use pcap_file::pcapng::PcapNgWriteError;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};

use super::custom::{
    ClockOption, HardwareStatistics, InterfaceOption, PartOption, StampOption, StatisticsOption,
    option,
};
use crate::accounting::{
    Counts, Directed, Direction, InterfaceCounts, InterfaceFrames, Outcome, StampOrder, Totals,
    Written,
};
use tscap_clock::{MonoNs, RealNs, Sample, Tracker};
use tscap_filter::LinkType;

/// What the section header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// The machine: CPU and number of CPUs.
    pub hardware: String,
    /// The operating system with its version.
    pub os: String,
    /// tscap with its version.
    pub application: String,
    /// Which part of a capture this is, if several writers write it.
    pub part: Option<PartOption>,
}

/// What an interface description says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceInfo {
    /// Name, such as `eth0`.
    pub name: String,
    /// The administrator's alias, or the driver.
    pub description: Option<String>,
    /// How its frames begin.
    pub link_type: LinkType,
    /// MAC address (`if_MACaddr`); absent of interfaces that have none.
    pub mac: Option<[u8; 6]>,
    /// Speed, bit/s, where it is known.
    pub speed: Option<u64>,
    /// Most bytes captured of a frame.
    pub snaplen: u32,
    /// The filter that frames had to match.
    pub filter: Option<String>,
    /// The operating system with its version.
    pub os: String,
    /// How frames of this interface were taken.
    pub tscap: InterfaceOption,
}

/// Why something could not go into the file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The block could not be encoded.
    #[error("cannot encode a pcapng block")]
    Encode(#[from] PcapNgWriteError),
    /// The output refused it.
    #[error("cannot write to the output")]
    Output(#[source] std::io::Error),
}

/// First byte of `if_filter`: an expression of libpcap follows (draft-ietf-opsawg-pcapng
/// section 4.2).
pub(super) const FILTER_TEXT: u8 = 0;

/// The value of `if_filter` with an expression.
pub(super) fn text_filter(expression: &str) -> Vec<u8> {
    [&[FILTER_TEXT], expression.as_bytes()].concat()
}

/// Most that the statistics at the end of a file take, bytes: a block with a full option, and
/// one more with little news where no other file could follow; and as many small blocks for
/// each interface after the first.
pub fn most_final_bytes(interfaces: usize) -> u64 {
    match interfaces as u64 {
        0 => 0,
        interfaces => (64 + 8) * 1024 + (interfaces - 1) * 8 * 1024,
    }
}

/// Encodes every block but the packets.
pub struct FileWriter {
    blocks: PcapNgWriter<Vec<u8>>,
    section: SectionInfo,
    interfaces: Vec<InterfaceInfo>,
    start: RealNs,
    /// What of the counts belongs to the files before this one.
    before: Counts,
    /// What has been said of interfaces that were gone by then, by interface.
    said: Vec<Option<Directed<Totals>>>,
    /// Segments that no statistics block can change any more.
    settled_segments: u64,
    /// The latest sample written.
    latest_sample: Option<Sample>,
}

impl std::fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWriter").finish_non_exhaustive()
    }
}

impl FileWriter {
    /// Encodes the headers of a capture that started at `start`; they are the
    /// first thing that [`Self::take`] gives.
    pub fn new(
        section: &SectionInfo,
        interfaces: &[InterfaceInfo],
        start: RealNs,
    ) -> Result<Self, WriteError> {
        Self::after(
            section.clone(),
            interfaces.to_vec(),
            start,
            Counts::default(),
        )
    }

    /// The same for the next file of the capture, begun at `start`, when the
    /// capture had counted `before`.
    pub fn next(&self, start: RealNs, before: Counts) -> Result<Self, WriteError> {
        let next = Self::after(self.section.clone(), self.interfaces.clone(), start, before)?;
        Ok(Self {
            // The segment in force is the last of those that it must have.
            settled_segments: self.settled_segments,
            latest_sample: self.latest_sample,
            ..next
        })
    }

    fn after(
        section: SectionInfo,
        interfaces: Vec<InterfaceInfo>,
        start: RealNs,
        before: Counts,
    ) -> Result<Self, WriteError> {
        let mut options = vec![
            SectionHeaderOption::Hardware(Cow::Borrowed(&section.hardware)),
            SectionHeaderOption::OS(Cow::Borrowed(&section.os)),
            SectionHeaderOption::UserApplication(Cow::Borrowed(&section.application)),
        ];
        let part = section.part.as_ref().map(option);
        options.extend(part.map(SectionHeaderOption::Common));
        let header = SectionHeaderBlock {
            endianness: Endianness::native(),
            options,
            ..SectionHeaderBlock::default()
        };
        let mut blocks = PcapNgWriter::with_section_header(Vec::new(), header)?;
        for interface in &interfaces {
            blocks.write_pcapng_block(description(interface))?;
        }
        Ok(Self {
            blocks,
            section,
            interfaces,
            start,
            before,
            said: Vec::new(),
            settled_segments: 0,
            latest_sample: None,
        })
    }

    /// Describes one more interface. Gives the block, which must be in the file before the
    /// interface's packets.
    ///
    /// # Errors
    /// If it can't be encoded; it counts among the interfaces all the same.
    pub fn describe(&mut self, interface: InterfaceInfo) -> Result<Vec<u8>, WriteError> {
        let written = self.blocks.write_pcapng_block(description(&interface));
        self.interfaces.push(interface);
        written?;
        Ok(self.take())
    }

    /// How many interfaces the file describes.
    pub fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    /// Start of the capture.
    pub fn start(&self) -> RealNs {
        self.start
    }

    /// What has been encoded since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.blocks.get_mut())
    }

    /// A statistics block for each interface: the counts of this file up to `at`,
    /// where the capture's are `counts`, and the clock since the last ones; in the
    /// capture's last ones, `totals`. `order` is that of this file.
    pub fn statistics(
        &mut self,
        tracker: &mut Tracker,
        at: MonoNs,
        counts: &Counts,
        order: StampOrder,
        totals: Option<&Directed<Totals>>,
    ) -> Result<Vec<u8>, WriteError> {
        let now = tracker.real_at(at);
        let Counts {
            written,
            observed,
            hardware_bounds_ns,
        } = counts.since(&self.before);
        let samples = self.next_samples(tracker);
        let Some(first) = self.interfaces.first() else {
            return Ok(Vec::new());
        };
        let stamp = StampOption {
            bracket: None,
            forced: None,
            ..first.tscap.stamp.clone()
        };
        let (segments, forgotten) = tracker.unsettled_segments(&mut self.settled_segments);
        let clock = ClockOption {
            // The same on all interfaces.
            stamp,
            counter: tracker.counter_report(),
            host_bound_ns: tracker.host_bound_ns(),
            stamp_error_ns: tracker.stamp_error_ns(),
            utc_bound_ns: match tracker.reference() {
                Some(bounds) => bounds.utc_ns(),
                None => observed.utc_bound_ns,
            },
            utc: observed.utc.filter(|_| tracker.reference().is_none()),
            reference: tracker.reference(),
            references: observed.references.clone(),
            order,
            segments: segments.to_vec(),
            segments_left_out: forgotten,
            samples,
        };
        self.said.resize(self.interfaces.len(), None);
        for (interface, written) in (0u32..).zip(written) {
            let counts = observed.interfaces.get(interface as usize).copied();
            let counts = counts.unwrap_or_default();
            let of_each = of_each(&written, &counts);
            let is_first = interface == 0;
            let said = &mut self.said[interface as usize];
            if !is_first && counts.is_gone && said.unwrap_or_default() == of_each {
                continue;
            }
            *said = counts.is_gone.then_some(of_each);
            // The history of the clock is the same for all, and may be long.
            let clock = if is_first {
                clock.clone()
            } else {
                clock.in_short()
            };
            let received = written[Direction::In];
            let counted = Counted {
                of_each,
                hardware: HardwareStatistics {
                    frames: received.hardware,
                    without: received.written - received.hardware.with,
                    bound_ns: hardware_bounds_ns
                        .get(interface as usize)
                        .copied()
                        .flatten(),
                },
                ifdrop: counts.ifdrop,
                own: counts.own,
                off_cpu: observed.off_cpu,
            };
            let block = self.statistics_block(interface, now, counted, clock, totals);
            self.blocks.write_pcapng_block(block)?;
        }
        Ok(self.take())
    }

    /// The samples since the last call; without any, the latest one once more.
    fn next_samples(&mut self, tracker: &mut Tracker) -> Vec<Sample> {
        let mut samples = tracker.take_samples();
        if samples.is_empty() {
            samples.extend(self.latest_sample);
        }
        self.latest_sample = samples.last().copied();
        samples
    }

    fn statistics_block(
        &self,
        interface_id: u32,
        now: RealNs,
        counted: Counted,
        clock: ClockOption,
        totals: Option<&Directed<Totals>>,
    ) -> InterfaceStatisticsBlock<'static> {
        let Counted {
            of_each,
            hardware,
            ifdrop,
            own,
            off_cpu,
        } = counted;
        let Totals {
            seen,
            written,
            outcomes,
        } = of_each.sum();
        let described = self.interfaces.get(interface_id as usize);
        let has_sent = described.is_some_and(|it| it.tscap.hooks.sent.is_some());
        let sent = |of: &Directed<Totals>| has_sent.then_some(of[Direction::Out]);
        let has_received = described.is_some_and(|it| it.tscap.hooks.received.is_some());
        let is_stamped = described.is_some_and(|it| it.tscap.hardware.is_some());
        let counted = |direction| own.map(|own| own[direction]);
        let mut options = vec![
            InterfaceStatisticsOption::IsbStartTime(self.start.since_epoch()),
            InterfaceStatisticsOption::IsbEndTime(now.since_epoch()),
            InterfaceStatisticsOption::IsbIfRecv(seen),
        ];
        options.extend(ifdrop.map(InterfaceStatisticsOption::IsbIfDrop));
        let is_filtered = described.is_some_and(|it| it.filter.is_some());
        let accepted = seen - outcomes[Outcome::Filtered];
        options.extend(is_filtered.then_some(InterfaceStatisticsOption::IsbFilterAccept(accepted)));
        options.extend([
            InterfaceStatisticsOption::IsbOsDrop(outcomes.lost_in_kernel()),
            InterfaceStatisticsOption::IsbUsrDeliv(written),
            InterfaceStatisticsOption::Common(option(&StatisticsOption {
                off_cpu,
                sent: sent(&of_each),
                counted_in: counted(Direction::In).filter(|_| has_received),
                counted_out: counted(Direction::Out).filter(|_| has_sent),
                hardware: is_stamped.then_some(hardware),
                totals_sent: totals.and_then(sent),
                ..StatisticsOption::new(outcomes, clock, totals.map(Directed::sum))
            })),
        ]);
        InterfaceStatisticsBlock {
            interface_id,
            timestamp: now.since_epoch(),
            options,
        }
    }
}

/// What was counted of an interface.
struct Counted {
    of_each: Directed<Totals>,
    hardware: HardwareStatistics,
    ifdrop: Option<u64>,
    own: Option<Directed<InterfaceFrames>>,
    off_cpu: Option<u64>,
}

/// The account of each direction of an interface.
fn of_each(written: &Directed<Written>, counts: &InterfaceCounts) -> Directed<Totals> {
    Directed::by(|direction| {
        let mut outcomes = counts.losses[direction];
        outcomes += written[direction].outcomes;
        Totals::of(written[direction].written, outcomes)
    })
}

fn description(interface: &InterfaceInfo) -> InterfaceDescriptionBlock<'_> {
    let mut options = vec![InterfaceDescriptionOption::IfName(Cow::Borrowed(
        &interface.name,
    ))];
    options.extend(
        interface.description.as_deref().map(|description| {
            InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description))
        }),
    );
    options.extend(
        interface
            .mac
            .as_ref()
            .map(|mac| InterfaceDescriptionOption::IfMacAddr(Cow::Borrowed(mac))),
    );
    options.extend(interface.speed.map(InterfaceDescriptionOption::IfSpeed));
    let filter = interface.filter.as_deref().map(text_filter);
    options.extend(filter.map(|it| InterfaceDescriptionOption::IfFilter(Cow::Owned(it))));
    options.extend([
        InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        InterfaceDescriptionOption::IfOs(Cow::Borrowed(&interface.os)),
        InterfaceDescriptionOption::Common(option(&interface.tscap)),
    ]);
    InterfaceDescriptionBlock {
        linktype: u32::from(interface.link_type.in_files()).into(),
        snaplen: interface.snaplen,
        options,
    }
}
