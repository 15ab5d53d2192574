//! The slowest packets as a capture: each as it entered and as it left, with a comment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};

use super::live::SlowPacket;
use tscap_clock::RealNs;

struct Seen<'a> {
    at: RealNs,
    interface: u32,
    bytes: &'a [u8],
    length: u32,
    comment: String,
}

/// A pcapng file of both sightings of each packet, in the order of time.
///
/// # Errors
/// If a block can't be encoded.
pub fn pcapng_of(packets: &[SlowPacket]) -> Result<Vec<u8>, PcapNgWriteError> {
    let mut interfaces = BTreeMap::new();
    let mut seen = Vec::new();
    for (
        place,
        SlowPacket {
            entry,
            exit,
            packet,
        },
    ) in packets.iter().enumerate()
    {
        let sides = [
            (entry, &packet.entered, "entered"),
            (exit, &packet.left, "left"),
        ];
        for (name, (at, bytes), how) in sides {
            let next = interfaces.len() as u32;
            seen.push(Seen {
                at: *at,
                interface: *interfaces.entry(name).or_insert(next),
                bytes,
                length: packet.length.max(bytes.len() as u32),
                comment: format!(
                    "number {} of the slowest: {how}, delay {} ns",
                    place + 1,
                    packet.delay_ns
                ),
            });
        }
    }
    seen.sort_by_key(|it| it.at);
    let mut names: Vec<_> = interfaces.into_iter().collect();
    names.sort_by_key(|(_, index)| *index);
    let mut writer = PcapNgWriter::new(Vec::new())?;
    for (name, _) in names {
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        })?;
    }
    for it in seen {
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: it.interface,
            timestamp: Duration::from_nanos(it.at.0),
            original_len: it.length,
            data: Cow::Borrowed(it.bytes),
            options: vec![EnhancedPacketOption::Common(CommonOption::Comment(
                Cow::Owned(it.comment),
            ))],
        })?;
    }
    Ok(writer.into_inner())
}
