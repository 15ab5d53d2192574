//! Reads a capture back with what tscap put into it: raw stamps and clock.

use std::io::{self, ErrorKind, Read};

use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgReadError, PcapNgReader};
use pcap_file::{DataLink, Endianness};

use super::custom::{InterfaceOption, PEN, StatisticsOption};
use crate::clock::{CounterReport, FileNs, Impossible, RawStamp};

/// Why a capture can't be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no pcapng, or it is torn here.
    #[error("not a whole pcapng block")]
    Block(#[from] PcapNgReadError),
    /// An option under our number that is not ours.
    #[error("a custom option of tscap's number is not as tscap writes it")]
    Option(#[from] serde_json::Error),
    /// The history of the clock can't be one.
    #[error(transparent)]
    Clock(#[from] Impossible),
    /// Of another capture.
    #[error("it holds the clocks of several captures")]
    OtherClock,
    /// Its options are full.
    #[error("an interface description has no room for the name of another clock")]
    NoRoom,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        PcapNgReadError::Io(error).into()
    }
}

impl ReadError {
    /// Whether the file ends within a block, as that of a killed capture may.
    pub fn is_torn_end(&self) -> bool {
        matches!(self, Self::Block(PcapNgReadError::Io(error))
            if error.kind() == ErrorKind::UnexpectedEof)
    }
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// What its frames begin with.
    pub linktype: DataLink,
    /// Step of its stamps, ns; 1 if they are finer.
    pub resolution_ns: u64,
    /// How its frames were taken; `None` if another program wrote it.
    pub tscap: Option<InterfaceOption>,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its interface in the file.
    pub interface: u32,
    /// Its time in the file.
    pub time: FileNs,
    /// The stamp as it was taken, if the capture kept it: for the TSC already
    /// with its CPU's offset, so that stamps of all CPUs compare.
    pub raw: Option<RawStamp>,
    /// Its length on the wire, bytes.
    pub origlen: u32,
    /// What was captured of it.
    pub data: Vec<u8>,
}

/// What a capture holds, in the file's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An interface: they are numbered from 0 on, also in a file of several
    /// sections.
    Interface(Interface),
    /// A frame.
    Packet(Packet),
    /// Statistics with counts and clock of the interface with this index.
    Statistics(u32, Box<StatisticsOption>),
}

/// The records of a capture: enhanced packets, which is what every program of
/// today writes, descriptions and statistics of interfaces. They end with the
/// first error.
pub fn records<R: Read>(
    from: R,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    let mut reader = PcapNgReader::new(from)?;
    let mut first_interface = 0;
    let mut is_broken = false;
    Ok(std::iter::from_fn(move || {
        if is_broken {
            return None;
        }
        let record = next_record(&mut reader, &mut first_interface);
        is_broken = matches!(record, Some(Err(_)));
        record
    }))
}

fn next_record<R: Read>(
    reader: &mut PcapNgReader<R>,
    first_interface: &mut u32,
) -> Option<Result<Record, ReadError>> {
    loop {
        let interfaces = reader.interfaces().len() as u32;
        let record = match reader.next_block()? {
            Err(error) => return Some(Err(error.into())),
            Ok((Block::SectionHeader(_), _)) => {
                *first_interface += interfaces;
                continue;
            }
            Ok((block, state)) => record(&block, state.endianness(), *first_interface),
        };
        if let Some(record) = record.transpose() {
            return Some(record);
        }
    }
}

fn record(
    block: &Block<'_>,
    endianness: Endianness,
    first_interface: u32,
) -> Result<Option<Record>, ReadError> {
    Ok(match block {
        Block::InterfaceDescription(description) => {
            Some(Record::Interface(interface(description)?))
        }
        Block::EnhancedPacket(block) => {
            let mut packet = packet(block, endianness);
            packet.interface += first_interface;
            Some(Record::Packet(packet))
        }
        Block::InterfaceStatistics(block) => statistics(block)?.map(|ours| {
            let interface = first_interface.saturating_add(block.interface_id);
            Record::Statistics(interface, Box::new(ours))
        }),
        _ => None,
    })
}

/// What we put into a statistics block.
pub(super) fn statistics(
    block: &InterfaceStatisticsBlock<'_>,
) -> Result<Option<StatisticsOption>, ReadError> {
    let ours = block.options.iter().find_map(|option| match option {
        InterfaceStatisticsOption::Common(common) => json(common),
        _ => None,
    });
    Ok(ours.map(serde_json::from_str).transpose()?)
}

pub(super) fn interface(
    description: &InterfaceDescriptionBlock<'_>,
) -> Result<Interface, ReadError> {
    let mut name = None;
    let mut tscap = None;
    for option in &description.options {
        match option {
            InterfaceDescriptionOption::IfName(given) => name = Some(given.to_string()),
            InterfaceDescriptionOption::Common(common) => tscap = tscap.or(json(common)),
            _ => {}
        }
    }
    let step = description.ts_resolution().decode_timestamp(1);
    Ok(Interface {
        name,
        linktype: description.linktype,
        resolution_ns: u64::try_from(step.as_nanos()).map_or(u64::MAX, |ns| ns.max(1)),
        tscap: tscap.map(serde_json::from_str).transpose()?,
    })
}

fn json<'a>(option: &'a CommonOption<'_>) -> Option<&'a str> {
    match option {
        CommonOption::CustomUtf8Copiable(custom) if custom.pen == PEN => Some(&custom.value),
        _ => None,
    }
}

pub(super) fn packet(packet: &EnhancedPacketBlock<'_>, endianness: Endianness) -> Packet {
    let raw = packet.options.iter().find_map(|option| match option {
        EnhancedPacketOption::Common(CommonOption::CustomBinaryCopiable(custom))
            if custom.pen == PEN =>
        {
            let stamp = *custom.value.first_chunk()?;
            Some(RawStamp(match endianness {
                Endianness::Little => u64::from_le_bytes(stamp),
                Endianness::Big => u64::from_be_bytes(stamp),
            }))
        }
        _ => None,
    });
    Packet {
        interface: packet.interface_id,
        time: FileNs(u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX)),
        raw,
        origlen: packet.original_len,
        data: packet.data.to_vec(),
    }
}

/// Nanoseconds from one raw stamp to another, by the difference clock: `p̂·ΔN`
/// for a counter; for `ktime` and `tai`, which count nanoseconds, `ΔN` itself.
pub fn interval_ns(from: RawStamp, to: RawStamp, counter: Option<&CounterReport>) -> i64 {
    let cycles = to.0.abs_diff(from.0);
    let ns = counter.map_or(cycles, |counter| {
        counter.ns_per_cycle_2_58.duration_ns(cycles)
    });
    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
    if to >= from { ns } else { -ns }
}
