mod round_trips;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tscap_common::stream::{STAMP_MASK, StreamHeader};

use super::*;
use crate::fixtures::{quic, rtp, segment, tcp, udp};
use crate::schema::{IntervalBasis, PathDelay, QuicSign, RoundTripBy, SpinBit};
use crate::tcp::Timestamps;
use tscap_clock::{NsPerCycle, RawStamp, TaiNs};
use tscap_statistics::Codec;
use tscap_streams::fixtures::Headers;
use tscap_streams::{DelayBasis, HostMoment};

const MS: u64 = 1_000_000;

fn clocks() -> Vec<PlaceClock> {
    let intervals = IntervalBasis {
        clock: "bpf_ktime_get_ns".into(),
        step_ns: 1,
        ends_ns: Some(2),
        rate_ppb: 1_000,
        unbounded: None,
    };
    let delays = DelayBasis::Clocks {
        tai_offsets_s: vec![37],
        host_bound_ns: 40,
        utc_bound_ns: None,
        reference: None,
    };
    let place = Place {
        interface: Some("a".into()),
        sent: false,
        intervals,
        delays,
        streams: None,
    };
    vec![PlaceClock {
        place,
        counter: None,
        opposite: None,
    }]
}

fn flows(by: FlowBy, max_flows: usize) -> Flows {
    let options = FlowOptions {
        by,
        looks_inside: false,
        max_flows,
        rates: ClockRates::default(),
        voice: VoiceOptions::default(),
    };
    Flows::new(options, false)
}

fn packet(at_ns: u64, data: &[u8]) -> Packet<'_> {
    Packet {
        place: 0,
        stamp: RawStamp(at_ns),
        at_ns,
        tai: Some(TaiNs(at_ns)),
        host: None,
        data,
        origlen: data.len() as u32,
    }
}

fn add(flows: &mut Flows, at_ns: u64, data: &[u8]) {
    flows.add(&packet(at_ns, data), &clocks());
    assert!(flows.account().adds_up());
}

#[test]
fn each_packet_has_one_outcome() {
    let mut all = flows(FlowBy::Rtp, 10);
    add(&mut all, 0, &rtp(0, 0, 1));
    add(&mut all, 1, &udp(5, b"short"));
    add(&mut all, 2, &tcp(0, b"x"));
    add(&mut all, 3, &[0; 60]);
    add(&mut all, 4, &rtp(1, 160, 1)[..30]);
    let mut fragment = udp(5, &[0; 30]);
    fragment[20] |= 0x20;
    add(&mut all, 5, &fragment);
    let long = rtp(1, 160, 1);
    all.add(
        &Packet {
            origlen: 74,
            ..packet(6, &long[..44])
        },
        &clocks(),
    );
    all.add_not_ethernet(0);
    all.add_untimed();
    let account = all.account();
    assert!(account.adds_up(), "{account:?}");
    let counts = [account.in_flows, account.without_key, account.non_ip];
    assert_eq!(counts, [1, 2, 1]);
    assert_eq!([account.malformed, account.fragments, account.cut], [1; 3]);
    assert_eq!((account.seen, account.untimed), (9, 1));
}

#[test]
fn the_longest_idle_flow_makes_room() {
    let mut all = flows(FlowBy::FiveTuple, 2);
    for (at_ns, port) in [(0, 1), (1, 2), (2, 1), (3, 3), (4, 1), (5, 2), (6, 4)] {
        add(&mut all, at_ns, &udp(port, b"x"));
    }
    let account = all.account().clone();
    // 2 made room for 3, that for 2 again, 1 for 4: two of them are listed.
    assert_eq!(account.evicted.flows, 3);
    assert_eq!(
        (account.evicted.unlisted, account.evicted.unlisted_packets),
        (1, 3)
    );
    let reports = all.reports(1, SortOrder::Packets, &clocks());
    let listed: u64 = reports.iter().map(|it| it.packets).sum();
    assert_eq!(listed + account.evicted.unlisted_packets, account.in_flows);
    let ended: Vec<_> = reports.iter().map(|it| it.evicted).collect();
    assert_eq!(ended, [false, false, true, true]);
    let ports: Vec<_> = reports.iter().map(|it| &it.name[9..10]).collect();
    assert_eq!(ports, ["4", "2", "2", "3"]);
}

#[test]
fn rates_are_of_what_came_behind_the_first_packet() {
    let mut all = flows(FlowBy::FiveTuple, 2);
    for at in 0..=100 {
        add(&mut all, at * 20 * MS, &udp(1, &[0; 98]));
    }
    let reports = all.reports(1, SortOrder::Packets, &clocks());
    let flow = &reports[0];
    assert_eq!((flow.packets, flow.bytes, flow.seconds), (101, 14_140, 2.0));
    assert_eq!(flow.packets_per_s, Some(50.0));
    assert_eq!(flow.bits_per_s, Some(56_000.0));
    let gaps = flow.inter_arrival.unwrap();
    assert_eq!(
        (gaps.n, gaps.min_ns, gaps.max_ns),
        (100, 20_000_000, 20_000_000)
    );
    assert_eq!((gaps.p50_ns, gaps.sd_ns), (Some(20_000_000), 0.0));
    // 2 ns at the ends, and 1 ppm of 20 ms.
    assert_eq!(gaps.bound_ns, Some(22));
    assert_eq!(flow.histogram.iter().map(|it| it.n).sum::<u64>(), 100);
    assert_eq!(flow.series.iter().map(|it| it.packets).sum::<u64>(), 101);
}

/// 2 is lost, 4 and 5 are swapped, 6 comes twice.
#[test]
fn a_stream_has_delays_and_their_variation() {
    let mut all = flows(FlowBy::Gen, 2);
    let came = [
        (0, 0, 100),
        (1, 1_000, 1_130),
        (3, 3_000, 3_100),
        (5, 5_000, 5_100),
        (4, 4_000, 5_200),
        (6, 6_000, 6_300),
        (6, 6_000, 6_900),
    ];
    let start = 1_u64 << 60;
    for (seq, sent, received) in came {
        let header = StreamHeader {
            run: 1,
            flow: 0,
            seq,
            tsc: 0,
            tai: (start + sent) & STAMP_MASK,
        };
        add(&mut all, start + received, &Headers::V4.frame(&header));
    }
    let reports = all.reports(1, SortOrder::Packets, &clocks());
    let flow = &reports[0];
    let loss = flow.loss.unwrap();
    assert_eq!((loss.lost, loss.duplicates, loss.distinct), (1, 1, 6));
    assert_eq!(flow.reordering.unwrap().reordered, 1);
    let delay = flow.delay.unwrap();
    assert_eq!((delay.n, delay.min_ns, delay.max_ns), (6, 100, 1_200));
    assert_eq!(delay.bound_ns, None);
    let pdv = flow.pdv.unwrap();
    assert_eq!((pdv.min_ns, pdv.max_ns, pdv.bound_ns), (0, 1_100, None));
    let ipdv = flow.ipdv.unwrap();
    // 1 behind 0 only: what came just behind was not sent so.
    assert_eq!(
        (ipdv.figures.n, ipdv.figures.max_ns, ipdv.tai_pairs),
        (1, 30, 1)
    );
    let jitter = flow.jitter.unwrap();
    assert_eq!((jitter.n, jitter.last_ns), (1, 30.0 / 16.0));
}

/// The sender's TSC counts nanoseconds, as that of the receiving host does.
#[test]
fn delays_have_a_bound_where_the_sender_has_the_receivers_clocks() {
    let start = 1_u64 << 60;
    for (ahead_ns, bound_ns) in [(0, Some(40)), (5_000_000, None)] {
        let mut all = flows(FlowBy::Gen, 2);
        for seq in 0..3 {
            let sent = start + 1_000 * u64::from(seq);
            let header = StreamHeader {
                run: 1,
                flow: 0,
                seq,
                tsc: sent & STAMP_MASK,
                tai: (sent + ahead_ns) & STAMP_MASK,
            };
            let came = sent + 300;
            let host = Some(HostMoment {
                tsc: RawStamp(came),
                tai: TaiNs(came),
                rate: NsPerCycle::ONE,
            });
            let data = Headers::V4.frame(&header);
            let packet = Packet {
                host,
                ..packet(came, &data)
            };
            all.add(&packet, &clocks());
        }
        let reports = all.reports(1, SortOrder::Packets, &clocks());
        let flow = &reports[0];
        assert_eq!(flow.delay.unwrap().bound_ns, bound_ns);
        assert_eq!(flow.pdv.unwrap().bound_ns, bound_ns.map(|it| 2 * it));
        let ipdv = flow.ipdv.unwrap();
        assert_eq!((ipdv.tai_pairs, ipdv.figures.n), (2, 2));
        assert_eq!(ipdv.figures.bound_ns.is_some(), bound_ns.is_some());
        assert_eq!(flow.jitter.unwrap().bound_ns.is_some(), bound_ns.is_some());
    }
}

#[test]
fn flows_are_sorted_by_what_is_asked_for() {
    let mut all = flows(FlowBy::Rtp, 10);
    // Source 1 has the most packets, 2 jitter, 3 loss.
    for at in 0..20_u16 {
        let time = u64::from(at) * 20 * MS;
        let timestamp = u32::from(at) * 160;
        add(&mut all, time, &rtp(at, timestamp, 1));
        if at < 15 {
            let late = u64::from(at % 2) * 5 * MS;
            add(&mut all, time + 1 + late, &rtp(at, timestamp, 2));
        }
        if at % 3 == 0 {
            add(&mut all, time + 2, &rtp(at, timestamp, 3));
        }
    }
    let first = |sort| all.top(1, sort, &clocks())[0].name.clone();
    assert!(first(SortOrder::Packets).ends_with('1'));
    assert!(first(SortOrder::Jitter).ends_with('2'));
    assert!(first(SortOrder::Loss).ends_with('3'));
    assert_eq!(all.top(9, SortOrder::Loss, &clocks()).len(), 3);
}

#[test]
fn a_clock_that_goes_back_is_told() {
    let mut all = flows(FlowBy::FiveTuple, 2);
    for at in [0, 100, 50, 200] {
        add(&mut all, at, &udp(1, b"x"));
    }
    let flow = &all.reports(1, SortOrder::Packets, &clocks())[0];
    assert_eq!((flow.went_back, flow.inter_arrival.unwrap().n), (1, 2));
}

/// G.729 (payload type 18), one packet of 100 lost, a packet of ten 4 ms late.
#[test]
fn a_source_of_voice_has_a_rating() {
    let with = |voice: VoiceOptions| {
        let mut all = flows(FlowBy::Rtp, 1);
        all.options.voice = voice;
        for number in (0..2_000_u16).filter(|number| number % 100 != 50) {
            let late = u64::from(number % 10 == 3) * 4 * MS;
            let at = u64::from(number) * 20 * MS + late;
            add(&mut all, at, &rtp(number, u32::from(number) * 160, 1));
        }
        all.top(1, SortOrder::Packets, &clocks()).remove(0)
    };
    let flow = with(VoiceOptions::default());
    let variation = flow.variation.unwrap();
    assert_eq!((variation.n, variation.max_ns), (1_980, 4_000_000));
    let found = flow.voice.unwrap();
    let voice = found.voice;
    assert_eq!(
        (voice.codec, found.path),
        (Codec::G729a, PathDelay::Unknown)
    );
    assert_eq!(
        (voice.packet_ms, voice.playout_ms, voice.path_ms),
        (20.0, 4.0, 0.0)
    );
    assert!((voice.lost_percent - 1.0).abs() < 1e-9, "{voice:?}");
    assert_eq!((voice.burst_ratio, voice.late_percent), (1.0, 0.0));
    // 11 + 84 · 1/(1 + 19).
    assert!(
        (voice.equipment_impairment - 15.2).abs() < 1e-9,
        "{voice:?}"
    );
    let other = with(VoiceOptions {
        codec: Some(Codec::GsmEfr),
        delay_ns: Some(400 * MS),
    });
    let other = other.voice.unwrap();
    assert_eq!((other.path, other.voice.path_ms), (PathDelay::Given, 400.0));
    assert!(other.voice.r < voice.r && other.voice.codec == Codec::GsmEfr);
}

/// What is stated for the default of 16,384 flows holds: 64 bytes of each are a MiB.
#[test]
fn the_memory_of_a_flow_is_small() {
    for (by, most) in [
        (FlowBy::FiveTuple, 128 * 64),
        (FlowBy::Dscp, 49 * 64),
        (FlowBy::Rtp, 103 * 64),
        (FlowBy::Gen, 241 * 64),
    ] {
        let bytes = flows(by, 1).options.memory_bytes();
        assert!(bytes <= most, "{by:?}: {bytes}");
    }
}

proptest! {
    /// Each flow's figures from a list of all its packets.
    #[test]
    fn figures_of_interleaved_flows_are_those_of_each(
        came in proptest::collection::vec((0..5_u16, 0..50_000_u64, 40..1_400_usize), 1..300),
    ) {
        let mut all = flows(FlowBy::FiveTuple, 8);
        let mut by_hand: BTreeMap<u16, Vec<(u64, usize)>> = BTreeMap::new();
        let mut at = 0;
        for (port, gap, length) in came {
            at += gap;
            add(&mut all, at, &udp(port + 1, &vec![0; length]));
            by_hand.entry(port + 1).or_default().push((at, length + 42));
        }
        let reports = all.reports(0, SortOrder::Packets, &clocks());
        prop_assert_eq!(reports.len(), by_hand.len());
        for (port, packets) in by_hand {
            let name = format!("10.0.0.1:{port} → 10.0.0.2:9 udp");
            let flow = reports.iter().find(|it| it.name == name).unwrap();
            prop_assert_eq!(flow.packets, packets.len() as u64);
            prop_assert_eq!(flow.bytes, packets.iter().map(|it| it.1 as u64).sum::<u64>());
            let gaps: Vec<u64> = packets.windows(2).map(|it| it[1].0 - it[0].0).collect();
            let figures = flow.inter_arrival;
            prop_assert_eq!(figures.map_or(0, |it| it.n), gaps.len() as u64);
            if let Some(figures) = figures {
                let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
                prop_assert!((figures.mean_ns - mean).abs() < 1e-6 * mean.max(1.0));
                prop_assert_eq!(figures.max_ns as u64, *gaps.iter().max().unwrap());
            }
        }
    }
}
