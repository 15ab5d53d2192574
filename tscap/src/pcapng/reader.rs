//! Reads a capture back with what tscap put into it: raw stamps and clock.

use std::io::Read;

use pcap_file::Endianness;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgReadError, PcapNgReader};

use super::custom::{InterfaceOption, PEN, StatisticsOption};
use crate::clock::{CounterReport, RawStamp, RealNs};

/// Why a capture can't be read any further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no pcapng, or it is torn here.
    #[error("not a whole pcapng block")]
    Block(#[from] PcapNgReadError),
    /// An option under our number that is not ours.
    #[error("a custom option of tscap's number is not as tscap writes it")]
    Option(#[from] serde_json::Error),
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index of its interface in the section.
    pub interface: u32,
    /// Its time in the file.
    pub time: RealNs,
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
    /// An interface; `None` if another program wrote it.
    Interface(Option<InterfaceOption>),
    /// A frame.
    Packet(Packet),
    /// Statistics with counts and clock of the interface with this index.
    Statistics(u32, Box<StatisticsOption>),
}

/// The records of a capture.
pub fn records<R: Read>(
    from: R,
) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    let mut reader = PcapNgReader::new(from)?;
    Ok(std::iter::from_fn(move || {
        loop {
            let endianness = reader.section().endianness;
            match reader.next_block()? {
                Err(error) => return Some(Err(error.into())),
                Ok((block, _)) => match record(&block, endianness) {
                    Ok(None) => {}
                    Ok(Some(record)) => return Some(Ok(record)),
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }))
}

fn record(block: &Block<'_>, endianness: Endianness) -> Result<Option<Record>, ReadError> {
    Ok(match block {
        Block::InterfaceDescription(description) => {
            let ours = description.options.iter().find_map(|option| match option {
                InterfaceDescriptionOption::Common(common) => json(common),
                _ => None,
            });
            Some(Record::Interface(
                ours.map(serde_json::from_str).transpose()?,
            ))
        }
        Block::EnhancedPacket(packet) => Some(Record::Packet(self::packet(packet, endianness))),
        Block::InterfaceStatistics(statistics) => {
            let ours = statistics.options.iter().find_map(|option| match option {
                InterfaceStatisticsOption::Common(common) => json(common),
                _ => None,
            });
            match ours {
                Some(ours) => Some(Record::Statistics(
                    statistics.interface_id,
                    Box::new(serde_json::from_str(ours)?),
                )),
                None => None,
            }
        }
        _ => None,
    })
}

fn json<'a>(option: &'a CommonOption<'_>) -> Option<&'a str> {
    match option {
        CommonOption::CustomUtf8Copiable(custom) if custom.pen == PEN => Some(&custom.value),
        _ => None,
    }
}

fn packet(packet: &EnhancedPacketBlock<'_>, endianness: Endianness) -> Packet {
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
        time: RealNs(u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX)),
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
