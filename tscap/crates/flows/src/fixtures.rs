//! Frames and results made by hand, for tests.

use etherparse::{PacketBuilder, TcpOptionElement};

use super::schema::{
    Account, Bin, Extent, Figures, FlowBy, FlowReport, Interval, IntervalBasis, Jitter, Loss,
    Method, PathDelay, Place, Quality, QuicFigures, QuicSign, Reordering, Retransmissions,
    RoundTrip, RoundTripBy, RtpFigures, SortOrder, SpinBit, VERSION, VoiceFigures,
};
use super::tcp::{Segment, Timestamps};
use tscap_results::envelope::Kind;
use tscap_results::fixtures::about;
use tscap_statistics::{Codec, DelayVariation, Voice, VoicePath};
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

/// A segment of TCP over IPv4 from one host to the other (`is_back`: the other way), with the
/// timestamps option.
pub fn segment(is_back: bool, segment: &Segment) -> Vec<u8> {
    let [from, to] = if is_back { [1, 0] } else { [0, 1] };
    let ports = [[80, 5_000], [5_000, 80]][from];
    let mut builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(HOSTS[from], HOSTS[to], 64)
        .tcp(ports[0], ports[1], segment.seq, 1_000);
    if segment.is_syn {
        builder = builder.syn();
    }
    if segment.is_fin {
        builder = builder.fin();
    }
    if let Some(ack) = segment.ack {
        builder = builder.ack(ack);
    }
    if let Some(Timestamps { value, echo }) = segment.timestamps {
        let option = TcpOptionElement::Timestamp(value, echo);
        builder = builder.options(&[option]).expect("it has room");
    }
    let payload = vec![7; segment.payload as usize];
    written(|bytes| builder.write(bytes, &payload).unwrap())
}

/// A datagram with a short header of QUIC, from port 443 of one host (`is_back`: to it).
pub fn quic(is_back: bool, spin: bool) -> Vec<u8> {
    let [from, to] = if is_back { [1, 0] } else { [0, 1] };
    let ports = [[443, 5_000], [5_000, 443]][from];
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(HOSTS[from], HOSTS[to], 64)
        .udp(ports[0], ports[1]);
    let mut payload = [9; 40];
    payload[0] = 0x40 | if spin { 0x20 } else { 0 };
    written(|bytes| builder.write(bytes, &payload).unwrap())
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
        variation: Some(Figures {
            p50_ns: Some(1_250_000),
            max_ns: 20_000_000,
            ..figures(2_500_000.0)
        }),
        voice: Some(VoiceFigures {
            voice: Voice::of(
                Codec::G729a,
                20_000_000,
                &VoicePath {
                    delay_ns: 0,
                    variation: DelayVariation {
                        max_ns: 20_000_000,
                        ..DelayVariation::default()
                    },
                    loss_ratio: 0.04,
                    burst_ratio: 1.92,
                },
            ),
            path: PathDelay::Unknown,
        }),
        retransmissions: None,
        quic: None,
        round_trips: Vec::new(),
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
        variation: None,
        voice: None,
        round_trips: [RoundTripBy::Acknowledgement, RoundTripBy::Timestamps]
            .map(|by| RoundTrip {
                by,
                figures: figures(20_618_556.7),
            })
            .to_vec(),
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

/// The same, and a flow of QUIC with a spinning bit.
pub fn with_quic() -> Quality {
    let mut quality = streams();
    let mut quic = quality.flows[1].clone();
    quic.name = "10.0.0.1:443 → 10.0.0.2:5000 udp".into();
    quic.retransmissions = None;
    quic.quic = Some(QuicFigures {
        known_by: QuicSign::Port443,
        short_packets: 97,
        spin: SpinBit::Spins,
        reordered_edges: 2,
    });
    quic.round_trips.truncate(1);
    quic.round_trips[0].by = RoundTripBy::SpinBit;
    quality.flows.push(quic);
    quality
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
