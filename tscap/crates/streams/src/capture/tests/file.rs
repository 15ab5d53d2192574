//! A capture file, made by the pcap-file crate.

use std::borrow::Cow;
use std::io::Cursor;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::custom::{CustomBinaryOption, CustomUtf8Option};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use tscap_common::stream::{STAMP_MASK, StreamHeader};

use super::*;
use crate::StreamSummary;
use tscap_clock::{Bounds, CounterReport, MonoNs, NsPerCycle, RealNs, Segment};
use tscap_file::accounting::{Outcomes, StampOrder};
use tscap_file::pcapng::{ClockOption, Hooks, InterfaceOption, PEN, StampOption, StatisticsOption};

/// A file in the making.
pub(super) struct Capture(pub PcapNgWriter<Vec<u8>>);

impl Capture {
    pub fn new() -> Self {
        Self(PcapNgWriter::new(Vec::new()).unwrap())
    }

    /// Of tscap, with one Ethernet interface.
    pub fn ours() -> Self {
        let mut capture = Self::new();
        capture.our_interface("vb");
        capture
    }

    pub fn our_interface(&mut self, name: &str) {
        let stamp = StampOption::new(StampPath::Ktime);
        self.described(
            name,
            &InterfaceOption::new(Hooks::default(), stamp, Default::default()),
        );
    }

    pub fn described(&mut self, name: &str, tscap: &InterfaceOption) {
        self.interface(
            DataLink::ETHERNET,
            vec![
                InterfaceDescriptionOption::IfName(name.to_owned().into()),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
                InterfaceDescriptionOption::Common(json(tscap)),
            ],
        );
    }

    pub fn interface(&mut self, linktype: DataLink, options: Vec<InterfaceDescriptionOption<'_>>) {
        let mut block = InterfaceDescriptionBlock::new(linktype, 0);
        block.options = options;
        self.0.write_pcapng_block(block).unwrap();
    }

    pub fn packet(
        &mut self,
        interface_id: u32,
        time: u64,
        frame: &[u8],
        snaplen: usize,
        raw: Option<u64>,
    ) {
        let raw = raw.map(|raw| {
            EnhancedPacketOption::Common(CommonOption::CustomBinaryCopiable(CustomBinaryOption {
                pen: PEN,
                value: Cow::Owned(raw.to_ne_bytes().to_vec()),
            }))
        });
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: RealNs(time).since_epoch(),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(&frame[..snaplen.min(frame.len())]),
            options: raw.into_iter().collect(),
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    /// Frame `seq` of flow 0, sent at `NOW` + `sent` and received `delay` later.
    pub fn stream(&mut self, made: Headers, seq: u32, sent: u64, delay: i64) {
        let frame = made.frame(&stream(seq, sent));
        let received = (NOW + sent).wrapping_add_signed(delay);
        self.packet(0, received, &frame, usize::MAX, None);
    }

    pub fn statistics(&mut self, interface_id: u32, path: StampPath, tai_offsets_s: &[i64]) {
        let segment = |(from, tai_offset_s): (usize, &i64)| Segment {
            after: None,
            from: MonoNs(from as u64 * S),
            until: MonoNs(from as u64 * S),
            mono_to_real: Bounds {
                low: NOW as i64,
                high: NOW as i64,
            },
            tai_offset_s: *tai_offset_s,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 1,
        };
        let clock = ClockOption {
            stamp: StampOption::new(path),
            counter: Some(CounterReport {
                ns_per_cycle_2_58: NsPerCycle(1 << 57),
                rate_bound_ppb: 1,
                raw: None,
            }),
            host_bound_ns: 20,
            stamp_error_ns: 0,
            utc_bound_ns: None,
            reference: None,
            order: StampOrder::default(),
            segments_left_out: 0,
            segments: tai_offsets_s.iter().enumerate().map(segment).collect(),
            samples: Vec::new(),
        };
        let option = StatisticsOption::new(Outcomes::default(), clock, None);
        let block = InterfaceStatisticsBlock {
            interface_id,
            timestamp: RealNs(NOW).since_epoch(),
            options: vec![InterfaceStatisticsOption::Common(json(&option))],
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    pub fn read(self, sent: &Sent) -> StreamReport {
        read(&mut Cursor::new(self.0.into_inner()), sent).unwrap()
    }

    /// The only stream of the only interface.
    pub fn only_stream(self) -> StreamSummary {
        let mut report = self.read(&Sent::new());
        assert_eq!(report.warnings, [""; 0]);
        let mut streams = report.interfaces.remove(0).streams;
        assert_eq!(streams.len(), 1);
        streams.remove(0)
    }
}

pub(super) fn stream(seq: u32, sent: u64) -> StreamHeader {
    StreamHeader {
        tai: (NOW + sent + TAI_OFFSET_S as u64 * S) & STAMP_MASK,
        ..header(0, seq)
    }
}

pub(super) fn json(option: &impl serde::Serialize) -> CommonOption<'static> {
    CommonOption::CustomUtf8Copiable(CustomUtf8Option {
        pen: PEN,
        value: Cow::Owned(serde_json::to_string(option).unwrap()),
    })
}
