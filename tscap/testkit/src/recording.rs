//! A pcapng file as a foreign reader (the pcap-file crate) sees it.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;

/// Code of the `epb_queue` option, which the crate doesn't know.
const EPB_QUEUE: u16 = 6;
/// Private enterprise number of the custom options (RFC 5612, documentation).
const PEN: u32 = 32473;
/// Larger than any block.
const BUFFER: usize = 1 << 20;

/// All blocks of a file.
#[derive(Debug, Default)]
pub struct Recording {
    /// Hardware, operating system and application, as far as they are there.
    pub section: [Option<String>; 3],
    /// Interface descriptions, in order.
    pub interfaces: Vec<Interface>,
    /// Packets, in order.
    pub packets: Vec<Packet>,
    /// Interface statistics, in order.
    pub statistics: Vec<Statistics>,
}

/// An interface description.
#[derive(Debug, Default)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Hardware address.
    pub mac: Option<Vec<u8>>,
    /// The expression of `if_filter`.
    pub filter: Option<String>,
    /// Operating system.
    pub os: Option<String>,
    /// Bits per second.
    pub speed: Option<u64>,
    /// Most bytes of a packet.
    pub snaplen: u32,
    /// Whether the resolution is stated as nanoseconds.
    pub nanoseconds: bool,
    /// tscap's own option.
    pub custom: Value,
}

/// A packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Index of its interface.
    pub interface: usize,
    /// Time since the epoch, ns.
    pub nanos: u64,
    /// Length on the wire.
    pub origlen: u32,
    /// Captured bytes.
    pub data: Vec<u8>,
    /// `epb_flags`.
    pub flags: Option<u32>,
    /// `epb_queue`.
    pub queue: Option<u32>,
    /// `epb_dropcount`.
    pub drops: Option<u64>,
    /// Whether a raw stamp was kept.
    pub has_raw: bool,
    /// Its hardware stamp, ns of its interface's clock, and how much later its own was taken,
    /// ns.
    pub hardware: Option<(u64, i64)>,
}

/// Interface statistics.
#[derive(Debug, Default)]
pub struct Statistics {
    /// Index of the interface.
    pub interface: usize,
    /// Packets before it in the file.
    pub after: usize,
    /// When the block was made, ns since the epoch.
    pub nanos: u64,
    /// Start of the capture, ns since the epoch.
    pub start: Option<u64>,
    /// End of the capture, ns since the epoch.
    pub end: Option<u64>,
    /// Frames received.
    pub received: Option<u64>,
    /// Frames dropped by the interface.
    pub if_drop: Option<u64>,
    /// Frames that the filter accepted.
    pub filter_accepted: Option<u64>,
    /// Frames dropped by the operating system.
    pub os_drop: Option<u64>,
    /// Frames delivered.
    pub delivered: Option<u64>,
    /// tscap's own option.
    pub custom: Value,
}

impl Recording {
    /// Reads a whole file; panics at anything that is no pcapng.
    #[track_caller]
    pub fn read(path: &Path) -> Self {
        let (recording, error) = Self::read_torn(path);
        assert_eq!(
            error,
            None,
            "{} after {} packets",
            path.display(),
            recording.packets.len()
        );
        recording
    }

    /// Reads as far as it goes, and says what stopped it.
    pub fn read_torn(path: &Path) -> (Self, Option<String>) {
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut recording = Self::default();
        let mut reader = match PcapNgReader::with_capacity(file, BUFFER) {
            Ok(reader) => reader,
            Err(error) => return (recording, Some(error.to_string())),
        };
        for option in &reader.section().options {
            match option {
                SectionHeaderOption::Hardware(text) => {
                    recording.section[0] = Some(text.to_string())
                }
                SectionHeaderOption::OS(text) => recording.section[1] = Some(text.to_string()),
                SectionHeaderOption::UserApplication(text) => {
                    recording.section[2] = Some(text.to_string());
                }
                SectionHeaderOption::Common(_) => {}
            }
        }
        while let Some(block) = reader.next_block() {
            match block {
                Ok((block, _)) => recording.add(block),
                Err(error) => return (recording, Some(error.to_string())),
            }
        }
        (recording, None)
    }

    fn add(&mut self, block: Block<'_>) {
        match block {
            Block::InterfaceDescription(block) => self.interfaces.push(interface(&block)),
            Block::InterfaceStatistics(block) => {
                let statistics = statistics(&block, self.packets.len());
                self.statistics.push(statistics);
            }
            Block::EnhancedPacket(block) => {
                let mut packet = Packet {
                    interface: block.interface_id as usize,
                    nanos: nanos(block.timestamp),
                    origlen: block.original_len,
                    data: block.data.into_owned(),
                    flags: None,
                    queue: None,
                    drops: None,
                    has_raw: false,
                    hardware: None,
                };
                for option in block.options {
                    match option {
                        EnhancedPacketOption::Flags(flags) => packet.flags = Some(flags),
                        EnhancedPacketOption::DropCount(drops) => packet.drops = Some(drops),
                        EnhancedPacketOption::Common(CommonOption::Unknown(option))
                            if option.code == EPB_QUEUE =>
                        {
                            let value = option
                                .value
                                .as_ref()
                                .try_into()
                                .expect("a queue of 4 bytes");
                            packet.queue = Some(u32::from_ne_bytes(value));
                        }
                        EnhancedPacketOption::Common(CommonOption::CustomBinaryCopiable(raw))
                            if raw.pen == PEN && raw.value.len() == 8 =>
                        {
                            packet.has_raw = true;
                        }
                        EnhancedPacketOption::Common(CommonOption::CustomBinaryCopiable(stamp))
                            if stamp.pen == PEN && stamp.value.len() == 16 =>
                        {
                            let [stamp, delay] = [&stamp.value[..8], &stamp.value[8..]]
                                .map(|value| value.try_into().expect("8 bytes"));
                            let delay = i64::from_ne_bytes(delay);
                            packet.hardware = Some((u64::from_ne_bytes(stamp), delay));
                        }
                        other => panic!("an unexpected option {other:?}"),
                    }
                }
                self.packets.push(packet);
            }
            other => panic!("an unexpected block {other:?}"),
        }
    }

    /// Packets of one interface.
    pub fn packets_of(&self, interface: usize) -> impl Iterator<Item = &Packet> {
        self.packets
            .iter()
            .filter(move |packet| packet.interface == interface)
    }

    /// The last statistics of an interface.
    #[track_caller]
    pub fn last_statistics(&self, interface: usize) -> &Statistics {
        let mut of_it = self
            .statistics
            .iter()
            .filter(|block| block.interface == interface);
        of_it.next_back().expect("statistics of the interface")
    }

    /// All drops that packets report.
    pub fn reported_drops(&self) -> u64 {
        self.packets.iter().filter_map(|packet| packet.drops).sum()
    }
}

fn interface(block: &InterfaceDescriptionBlock<'_>) -> Interface {
    let mut interface = Interface {
        snaplen: block.snaplen,
        ..Interface::default()
    };
    for option in &block.options {
        match option {
            InterfaceDescriptionOption::IfName(name) => interface.name = name.to_string(),
            InterfaceDescriptionOption::IfDescription(text) => {
                interface.description = Some(text.to_string());
            }
            InterfaceDescriptionOption::IfMacAddr(mac) => interface.mac = Some(mac.to_vec()),
            InterfaceDescriptionOption::IfFilter(bytes) => {
                let text = bytes.strip_prefix(&[0]).expect("an expression of libpcap");
                interface.filter = Some(String::from_utf8(text.to_vec()).expect("UTF-8"));
            }
            InterfaceDescriptionOption::IfOs(text) => interface.os = Some(text.to_string()),
            InterfaceDescriptionOption::IfSpeed(speed) => interface.speed = Some(*speed),
            InterfaceDescriptionOption::IfTsResol(resolution) => {
                use pcap_file::pcapng::blocks::interface_description::InterfaceTsResolution;
                interface.nanoseconds = *resolution == InterfaceTsResolution::NANO;
            }
            InterfaceDescriptionOption::Common(option) => take(option, &mut interface.custom),
            other => panic!("an unexpected option {other:?}"),
        }
    }
    interface
}

fn statistics(block: &InterfaceStatisticsBlock<'_>, after: usize) -> Statistics {
    let mut statistics = Statistics {
        interface: block.interface_id as usize,
        after,
        nanos: nanos(block.timestamp),
        ..Statistics::default()
    };
    for option in &block.options {
        match option {
            InterfaceStatisticsOption::IsbStartTime(time) => statistics.start = Some(nanos(*time)),
            InterfaceStatisticsOption::IsbEndTime(time) => statistics.end = Some(nanos(*time)),
            InterfaceStatisticsOption::IsbIfRecv(count) => statistics.received = Some(*count),
            InterfaceStatisticsOption::IsbIfDrop(count) => statistics.if_drop = Some(*count),
            InterfaceStatisticsOption::IsbFilterAccept(count) => {
                statistics.filter_accepted = Some(*count);
            }
            InterfaceStatisticsOption::IsbOsDrop(count) => statistics.os_drop = Some(*count),
            InterfaceStatisticsOption::IsbUsrDeliv(count) => statistics.delivered = Some(*count),
            InterfaceStatisticsOption::Common(option) => take(option, &mut statistics.custom),
        }
    }
    statistics
}

/// What a custom option says; padding and comments say nothing.
fn take(option: &CommonOption<'_>, custom: &mut Value) {
    match option {
        CommonOption::CustomUtf8Copiable(option) => {
            assert_eq!(option.pen, PEN, "private enterprise number");
            *custom = serde_json::from_str(&option.value).expect("JSON in the custom option");
        }
        CommonOption::CustomBinaryNonCopiable(padding) => {
            assert_eq!(padding.pen, PEN, "private enterprise number");
            assert!(padding.value.iter().all(|byte| *byte == 0));
        }
        CommonOption::Comment(_) => {}
        other => panic!("an unexpected option {other:?}"),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a time before 2554")
}
