//! Of captures whose every packet is known.

use std::borrow::Cow;
use std::io::Cursor;
use std::process::Command;

use pcap_file::DataLink;
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
use serde::Serialize;

use super::*;
use crate::VoiceOptions;
use crate::fixtures::{rtp, udp};
use crate::rtp::ClockRates;
use crate::schema::FlowBy;
use tscap_clock::{CounterReport, NsPerCycle, NtpBase, StampPath, TimeBase, TscPath};
use tscap_file::accounting::{Outcomes, StampOrder, Totals};
use tscap_file::pcapng::{ClockOption, Hooks, InterfaceOption, PEN, StampOption, StatisticsOption};
use tscap_filter::Filter;
use tscap_streams::DelayBasis;

mod streams;

const NOW: u64 = 1_800_000_000_000_000_000;
const MS: u64 = 1_000_000;

/// A file in the making.
struct File(PcapNgWriter<Vec<u8>>);

impl File {
    fn new() -> Self {
        Self(PcapNgWriter::new(Vec::new()).unwrap())
    }

    fn interface(&mut self, linktype: DataLink, tscap: Option<&InterfaceOption>) {
        let mut block = InterfaceDescriptionBlock::new(linktype, 0);
        block.options = vec![
            InterfaceDescriptionOption::IfName("a".into()),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ];
        let tscap = tscap.map(|it| InterfaceDescriptionOption::Common(json(it)));
        block.options.extend(tscap);
        self.0.write_pcapng_block(block).unwrap();
    }

    fn packet(&mut self, interface_id: u32, at_ns: u64, raw: Option<u64>, bytes: &[u8]) {
        let raw = raw.map(|raw| {
            let value = Cow::Owned(raw.to_ne_bytes().to_vec());
            let raw = CustomBinaryOption { pen: PEN, value };
            EnhancedPacketOption::Common(CommonOption::CustomBinaryCopiable(raw))
        });
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: RealNs(NOW + at_ns).since_epoch(),
            original_len: bytes.len() as u32,
            data: Cow::Borrowed(bytes),
            options: raw.into_iter().collect(),
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    fn statistics(&mut self, path: StampPath) {
        self.with_totals(path, None);
    }

    /// Those at the end of a capture.
    fn last_statistics(&mut self, path: StampPath) {
        self.with_totals(path, Some(Totals::default()));
    }

    fn with_totals(&mut self, path: StampPath, totals: Option<Totals>) {
        let clock = ClockOption {
            stamp: StampOption::new(path),
            counter: Some(CounterReport {
                // Cycles of half a nanosecond.
                ns_per_cycle_2_58: NsPerCycle(NsPerCycle::ONE.0 / 2),
                rate_bound_ppb: 1_000,
                raw: None,
            }),
            host_bound_ns: 20,
            stamp_error_ns: 3,
            utc_bound_ns: None,
            utc: None,
            reference: None,
            references: Vec::new(),
            order: StampOrder::default(),
            segments_left_out: 0,
            segments: Vec::new(),
            samples: Vec::new(),
        };
        let statistics = StatisticsOption::new(Outcomes::default(), clock, totals);
        let block = InterfaceStatisticsBlock {
            interface_id: 0,
            timestamp: RealNs(NOW).since_epoch(),
            options: vec![InterfaceStatisticsOption::Common(json(&statistics))],
        };
        self.0.write_pcapng_block(block).unwrap();
    }

    fn measure(self, plan: &FilePlan) -> FileResult {
        measure_file(&mut Cursor::new(self.0.into_inner()), plan).unwrap()
    }
}

fn json(option: &impl Serialize) -> CommonOption<'static> {
    CommonOption::CustomUtf8Copiable(CustomUtf8Option {
        pen: PEN,
        value: Cow::Owned(serde_json::to_string(option).unwrap()),
    })
}

fn ours(path: StampPath) -> InterfaceOption {
    let hooks = Hooks {
        received: Some("native XDP".into()),
        sent: None,
    };
    InterfaceOption::new(hooks, StampOption::new(path), Default::default())
}

fn plan(by: FlowBy) -> FilePlan {
    FilePlan {
        options: FlowOptions {
            by,
            looks_inside: false,
            max_flows: 100,
            rates: ClockRates::default(),
            voice: VoiceOptions::default(),
        },
        sort: SortOrder::Packets,
        top: 10,
        filter: None,
    }
}

#[test]
fn raw_stamps_are_used_where_all_packets_have_them() {
    let path = StampPath::Tsc(TscPath::Module);
    for (raw_of_last, interval, clock) in [
        (Some(4_007), 2_000, path.function()),
        (None, 9_000, "the file's times"),
    ] {
        let mut file = File::new();
        file.interface(DataLink::ETHERNET, Some(&ours(path)));
        file.packet(0, 0, Some(7), &udp(1, b"x"));
        file.packet(0, 9_000, raw_of_last, &udp(1, b"x"));
        file.statistics(path);
        let result = file.measure(&plan(FlowBy::FiveTuple));
        let gaps = result.flows[0].inter_arrival.unwrap();
        assert_eq!((gaps.n, gaps.max_ns), (1, interval));
        assert_eq!(result.places[0].intervals.clock, clock);
        // Raw: both ends and the rounding, and 1 ppm. Times: both ends, as far as they may have
        // been moved, and a step.
        let bound = if raw_of_last.is_some() { 7 + 1 } else { 81 };
        assert_eq!(gaps.bound_ns, Some(bound));
        assert_eq!(result.warnings.len(), usize::from(raw_of_last.is_none()));
    }
}

#[test]
fn a_foreign_file_says_what_it_can_not_give() {
    let mut file = File::new();
    file.interface(DataLink::ETHERNET, None);
    file.interface(DataLink::RAW, None);
    file.packet(0, 0, None, &udp(1, b"x"));
    file.packet(0, 5_000, None, &udp(1, b"x"));
    file.packet(1, 6_000, None, &[0x45; 30]);
    let result = file.measure(&plan(FlowBy::FiveTuple));
    let gaps = result.flows[0].inter_arrival.unwrap();
    assert_eq!((gaps.max_ns, gaps.bound_ns), (5_000, None));
    let why = result.places[0].intervals.unbounded.clone().unwrap();
    assert!(why.starts_with("not captured by tscap"), "{why}");
    assert!(matches!(
        result.places[0].delays,
        DelayBasis::Unavailable { .. }
    ));
    assert_eq!((result.account.seen, result.account.not_ethernet), (3, 1));
    assert_eq!(result.seconds, 6e-6);
    assert!(result.warnings.iter().any(|it| it.contains("not Ethernet")));
}

#[test]
fn a_filter_leaves_out_and_counts() {
    let mut file = File::new();
    file.interface(DataLink::ETHERNET, None);
    for port in [1, 2, 1] {
        file.packet(0, 0, None, &udp(port, b"x"));
    }
    // tcpdump -y EN10MB -ddd 'ether[34:2] == 1'
    let bytecode = "4\n40 0 0 34\n21 0 1 1\n6 0 0 262144\n6 0 0 0\n";
    let filter = Filter::from_bytecode(bytecode, "test").unwrap();
    let plan = FilePlan {
        filter: Some(filter.program),
        ..plan(FlowBy::FiveTuple)
    };
    let account = file.measure(&plan).account;
    assert_eq!((account.in_flows, account.unrecorded["filtered"]), (2, 1));
    assert!(account.adds_up());
}

#[test]
fn a_torn_file_is_read_up_to_there() {
    let mut file = File::new();
    file.interface(DataLink::ETHERNET, None);
    file.packet(0, 0, None, &udp(1, b"x"));
    let mut bytes = file.0.into_inner();
    bytes.extend(6_u32.to_ne_bytes());
    let result = measure_file(&mut Cursor::new(bytes), &plan(FlowBy::FiveTuple)).unwrap();
    assert_eq!((result.is_whole, result.account.seen), (false, 1));
    assert!(measure_file(&mut Cursor::new(b"no"), &plan(FlowBy::FiveTuple)).is_err());
}

/// Numbers and times of a source: some lost, swapped, late and doubled.
fn script() -> Vec<(u16, u64)> {
    let mut script = Vec::new();
    for number in 0..400_u16 {
        let due = u64::from(number) * 20 * MS;
        let late = u64::from(number) * 7_919 % 13 * MS / 4;
        let seq = number.wrapping_add(65_400);
        match number {
            100 | 101 | 250 => {}
            200 => script.push((seq, due + 25 * MS)),
            300 => script.extend([(seq, due + late), (seq, due + late + MS)]),
            _ => script.push((seq, due + late)),
        }
    }
    script.sort_by_key(|it| it.1);
    script
}

/// What tshark tells of RTP: `tshark -q -z rtp,streams`.
#[test]
fn jitter_and_loss_are_those_of_tshark() {
    let mut file = File::new();
    file.interface(DataLink::ETHERNET, None);
    for (seq, at_ns) in script() {
        let number = seq.wrapping_sub(65_400);
        file.packet(0, at_ns, None, &rtp(seq, u32::from(number) * 160, 0x1234));
    }
    let bytes = file.0.into_inner();
    let result = measure_file(&mut Cursor::new(&bytes), &plan(FlowBy::Rtp)).unwrap();
    let flow = &result.flows[0];
    let (loss, jitter) = (flow.loss.unwrap(), flow.jitter.unwrap());
    assert_eq!((loss.lost, loss.loss_periods, loss.duplicates), (3, 2, 1));
    assert_eq!(flow.reordering.unwrap().reordered, 1);

    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &bytes).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.args(["-q", "-d", "udp.port==5004,rtp", "-z", "rtp,streams", "-r"]);
    let Ok(output) = tshark.arg(path.path()).output() else {
        eprintln!("SKIPPED: jitter_and_loss_are_those_of_tshark (no tshark)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .find(|line| line.contains("0x00001234"))
        .unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let ssrc = words.iter().position(|word| *word == "0x00001234").unwrap();
    // Behind the source: payload, packets, lost, its share, min, mean and max delta, then jitter.
    let packets: u64 = words[ssrc + 2].parse().unwrap();
    assert_eq!(packets, flow.packets, "{line}");
    // It takes a copy for a packet that came: expected less received (A.3).
    let lost: u64 = words[ssrc + 3].parse().unwrap();
    assert_eq!(lost, loss.lost - loss.duplicates, "{line}");
    let ms = |at: usize| words[ssrc + at].parse::<f64>().unwrap();
    // Its arithmetic is not in whole units of 125 µs.
    let unit_ms = 0.125;
    assert!(
        (ms(9) - jitter.mean_ns / 1e6).abs() < unit_ms,
        "{line}\n{jitter:?}"
    );
    assert!(
        (ms(10) - jitter.max_ns / 1e6).abs() < unit_ms,
        "{line}\n{jitter:?}"
    );
}

/// Another program joined two captures whose interfaces look alike; and an interface of a server's
/// time has the bound of that.
#[test]
fn intervals_are_of_one_clock() {
    let tsc = StampPath::Tsc(TscPath::Module);
    for joined in [false, true] {
        let mut file = File::new();
        file.interface(DataLink::ETHERNET, Some(&ours(tsc)));
        for at in 0..5 {
            file.packet(0, at * 1_000, Some(at * 2_000), &udp(5, b"x"));
        }
        file.last_statistics(tsc);
        if joined {
            file.last_statistics(tsc);
        }
        let result = file.measure(&plan(FlowBy::FiveTuple));
        let place = &result.places[0].intervals;
        assert_eq!(place.ends_ns.is_some(), !joined);
        let unbounded = place.unbounded.as_deref().unwrap_or("");
        assert_eq!(unbounded.contains("several clocks"), joined, "{unbounded}");
        let warns = result
            .warnings
            .iter()
            .any(|it| it.contains("several captures"));
        assert_eq!(warns, joined, "{:?}", result.warnings);
    }
    let mut of_server = ours(tsc);
    of_server.ntp = Some(NtpBase {
        server: "192.0.2.1:123".parse().unwrap(),
        bound_ns: 7_000,
        root_distance_ns: 90_000,
    });
    of_server.time_base = TimeBase::Ntp;
    let mut file = File::new();
    file.interface(DataLink::ETHERNET, Some(&of_server));
    for at in 0..5 {
        file.packet(0, at * 1_000, None, &udp(5, b"x"));
    }
    file.statistics(tsc);
    let result = file.measure(&plan(FlowBy::FiveTuple));
    assert_eq!(result.places[0].intervals.ends_ns, Some(14_001));
}
