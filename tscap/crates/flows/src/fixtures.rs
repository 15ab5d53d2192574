//! Frames and results made by hand, for tests.

use etherparse::PacketBuilder;

use super::schema::{
    Account, Bin, Extent, Figures, FlowBy, FlowReport, Interval, IntervalBasis, Jitter, Loss,
    Method, Place, Quality, Reordering, Retransmissions, RtpFigures, SortOrder, VERSION,
};
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_streams::DelayBasis;

const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

/// UDP over IPv4.
pub fn udp(source_port: u16, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(HOSTS[0], HOSTS[1], 64)
        .udp(source_port, 9);
    written(|bytes| builder.write(bytes, payload).unwrap())
}

/// To this port, as the tunnel of VXLAN does.
pub fn udp_to(port: u16, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(HOSTS[0], HOSTS[1], 64)
        .udp(5, port);
    written(|bytes| builder.write(bytes, payload).unwrap())
}

/// TCP over IPv6, in a VLAN.
pub fn tcp(seq: u32, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .single_vlan(etherparse::VlanId::try_new(7).unwrap())
        .ipv6([0x20; 16], [0x21; 16], 64)
        .tcp(80, 5_000, seq, 1_000)
        .ack(1);
    written(|bytes| builder.write(bytes, payload).unwrap())
}

/// RTP of G.729 (payload type 18) with 20 bytes of media.
pub fn rtp(seq: u16, timestamp: u32, ssrc: u32) -> Vec<u8> {
    let mut payload = vec![0x80, 18];
    payload.extend(seq.to_be_bytes());
    payload.extend(timestamp.to_be_bytes());
    payload.extend(ssrc.to_be_bytes());
    payload.resize(32, 0);
    udp(5_004, &payload)
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

/// A source of RTP that has lost some, and a flow of TCP.
pub fn streams() -> Quality {
    let figures = |mean_ns: f64| Figures {
        n: 97,
        min_ns: 1_000,
        mean_ns,
        sd_ns: 1_250.5,
        p50_ns: Some(20_000_000),
        p90_ns: None,
        p99_ns: None,
        p99_9_ns: None,
        max_ns: 80_000_000,
        negative: 0,
        bound_ns: Some(80_002),
    };
    let interval = |at: u64| Interval {
        at_s: at as f64 * 0.64,
        packets: 32,
        longest_ns: 2e7 + at as f64,
    };
    let bin = |from_ns, to_ns, n| Bin { from_ns, to_ns, n };
    let rtp = FlowReport {
        name: "10.0.0.1:5004 → 10.0.0.2:5004 udp ssrc 0x00001234".into(),
        place: 0,
        vlans: vec![7],
        inner: false,
        evicted: false,
        first_s: 0.0,
        seconds: 2.0,
        packets: 98,
        bytes: 13_720,
        packets_per_s: Some(48.5),
        bits_per_s: Some(54_320.0),
        inter_arrival: Some(figures(20_618_556.7)),
        went_back: 0,
        delay: None,
        ipdv: None,
        interval_error: None,
        pdv: None,
        jitter: Some(Jitter {
            n: 97,
            last_ns: 312_500.0,
            mean_ns: 250_000.0,
            max_ns: 500_000.0,
            bound_ns: Some(205_002),
        }),
        loss: Some(Loss {
            received: 98,
            distinct: 96,
            duplicates: 2,
            too_late: 0,
            lost: 4,
            loss_periods: 2,
            longest_loss: 3,
            first: Some(0),
            last: Some(99),
        }),
        reordering: Some(Reordering {
            reordered: 1,
            extent: Some(Extent {
                mean: 1.0,
                max: 1,
                cut: 0,
                of_all: None,
            }),
        }),
        rtp: Some(RtpFigures {
            payload_type: 18,
            clock_hz: Some(8_000),
            jumped: 0,
            restarts: 0,
        }),
        retransmissions: None,
        histogram: vec![bin(1_000, 1_023, 1), bin(19_922_944, 20_971_519, 96)],
        series: (0..3).map(interval).collect(),
    };
    let tcp = FlowReport {
        name: "10.0.0.1:80 → 10.0.0.2:5000 tcp".into(),
        vlans: Vec::new(),
        jitter: None,
        loss: None,
        reordering: None,
        rtp: None,
        retransmissions: Some(Retransmissions {
            segments: 1,
            bytes: 1_448,
            gaps_forgotten: 0,
        }),
        histogram: Vec::new(),
        series: Vec::new(),
        ..rtp.clone()
    };
    let mut unrecorded = std::collections::BTreeMap::new();
    unrecorded.insert("filtered".to_owned(), 4);
    Quality {
        account: Account {
            seen: 105,
            in_flows: 98,
            fragments: 3,
            unrecorded,
            ..Account::default()
        },
        flows: vec![rtp, tcp],
        warnings: vec!["a: intervals are differences of the file's times".into()],
        ..nothing()
    }
}

/// No packet.
pub fn nothing() -> Quality {
    Quality {
        about: about("qos").envelope(Kind::Qos, VERSION, false),
        method: Method {
            flow: FlowBy::FiveTuple,
            inner: false,
            sort: SortOrder::Packets,
            top: 10,
            max_flows: 16_384,
            memory_bytes: 64 << 20,
            file: None,
        },
        account: Account::default(),
        places: vec![Place {
            interface: Some("a".into()),
            sent: false,
            intervals: IntervalBasis {
                clock: "bpf_ktime_get_ns".into(),
                step_ns: 1,
                ends_ns: Some(2),
                rate_ppb: 1_000,
                unbounded: None,
            },
            delays: DelayBasis::Unavailable {
                why: "not a file of tscap".into(),
            },
            streams: None,
        }],
        flows: Vec::new(),
        warnings: Vec::new(),
    }
}
