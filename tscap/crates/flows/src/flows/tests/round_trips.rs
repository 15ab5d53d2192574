//! Round trips of TCP and QUIC.

use super::*;

/// Places where an interface receives and sends, and one where another receives.
fn three_places() -> Vec<PlaceClock> {
    let opposite = [Some(1), Some(0), None];
    let clocks = opposite.map(|opposite| PlaceClock {
        opposite,
        ..clocks().remove(0)
    });
    clocks.to_vec()
}

fn data(seq: u32, value: u32) -> Segment {
    Segment {
        seq,
        payload: 100,
        ack: Some(1),
        timestamps: Some(Timestamps { value, echo: 0 }),
        ..Segment::default()
    }
}

fn ack(number: u32, echo: u32) -> Segment {
    Segment {
        ack: Some(number),
        timestamps: Some(Timestamps { value: 1, echo }),
        ..Segment::default()
    }
}

/// Data of one direction at this place, every ms, and what acknowledges it at another place
/// 300 µs later.
fn connection(all: &mut Flows, [there, back]: [u16; 2], clocks: &[PlaceClock]) {
    for number in 0..40_u32 {
        let at = u64::from(number) * MS;
        let frame = segment(false, &data(100 * number, number));
        let mut sent = packet(at, &frame);
        sent.place = there;
        all.add(&sent, clocks);
        let frame = segment(true, &ack(100 * (number + 1), number));
        let mut answer = packet(at + 300_000, &frame);
        answer.place = back;
        all.add(&answer, clocks);
    }
}

fn trips(all: &Flows, clocks: &[PlaceClock]) -> Vec<(String, u16, RoundTripBy, u64, i64, i64)> {
    let mut flows = all.top(9, SortOrder::Packets, clocks);
    flows.sort_by_key(|it| it.name.clone());
    let found = flows.iter().flat_map(|flow| {
        flow.round_trips.iter().map(|it| {
            let figures = it.figures;
            // 2 ns at the ends, and 1 ppm of 300 µs.
            assert_eq!(figures.bound_ns, Some(3));
            let name = flow.name.clone();
            (
                name,
                flow.place,
                it.by,
                figures.n,
                figures.min_ns,
                figures.max_ns,
            )
        })
    });
    found.collect()
}

/// Where both directions pass one place, as on a port that mirrors another, or one interface.
#[test]
fn data_is_answered_in_the_other_direction() {
    let name = "10.0.0.1:80 → 10.0.0.2:5000 tcp".to_owned();
    for places in [[0, 0], [1, 0], [0, 1], [2, 2]] {
        let clocks = three_places();
        let mut all = flows(FlowBy::FiveTuple, 9);
        connection(&mut all, places, &clocks);
        let (place, trip) = (places[0], 300_000);
        // Of the first segment nobody knows whether it is sent again.
        let expected = [
            (
                name.clone(),
                place,
                RoundTripBy::Acknowledgement,
                39,
                trip,
                trip,
            ),
            (name.clone(), place, RoundTripBy::Timestamps, 39, trip, trip),
        ];
        assert_eq!(trips(&all, &clocks), expected, "{places:?}");
    }
    // Another interface.
    let clocks = three_places();
    let mut all = flows(FlowBy::FiveTuple, 9);
    connection(&mut all, [0, 2], &clocks);
    assert_eq!(trips(&all, &clocks), []);
}

/// On a loopback interface each packet is sent and received: a round trip begins where the packet
/// is sent and ends where its answer is received.
#[test]
fn each_packet_that_passes_twice_is_answered_where_it_belongs() {
    let clocks = three_places();
    let mut all = flows(FlowBy::FiveTuple, 9);
    for number in 0..40_u32 {
        let at = u64::from(number) * MS;
        let there = segment(false, &data(100 * number, number));
        let back = segment(true, &ack(100 * (number + 1), number));
        let passes = [
            (0, 1, &there),
            (100, 0, &there),
            (250, 1, &back),
            (300, 0, &back),
        ];
        for (us, place, frame) in passes {
            let mut passing = packet(at + us * 1_000, frame);
            passing.place = place;
            all.add(&passing, &clocks);
        }
    }
    let found = trips(&all, &clocks);
    let times: Vec<_> = found.iter().map(|it| (it.1, it.3, it.4, it.5)).collect();
    let whole = (1, 39, 300_000, 300_000);
    let own = (0, 39, 150_000, 150_000);
    assert_eq!(times.len(), 4, "{found:?}");
    assert_eq!(
        times.iter().filter(|it| **it == whole).count(),
        2,
        "{found:?}"
    );
    assert_eq!(
        times.iter().filter(|it| **it == own).count(),
        2,
        "{found:?}"
    );
}

/// Others end meanwhile, and take its place in the table.
#[test]
fn the_other_direction_may_have_made_room() {
    let clocks = clocks();
    let mut all = flows(FlowBy::FiveTuple, 2);
    for round in 0..3 {
        connection(&mut all, [0, 0], &clocks);
        // Of both directions, none is left.
        for port in [2, 3] {
            add(&mut all, round, &udp(port, b"x"));
        }
    }
    assert!(all.account().adds_up());
    let reports = all.reports(0, SortOrder::Packets, &clocks);
    let times = reports.iter().flat_map(|it| &it.round_trips);
    let times: Vec<_> = times.map(|it| (it.figures.n, it.figures.max_ns)).collect();
    assert!(
        !times.is_empty() && times.iter().all(|it| *it == (39, 300_000)),
        "{times:?}"
    );
}

/// A client and a server of QUIC, 20 packets in a round trip; the same with random values.
#[test]
fn quic_tells_its_round_trip_by_the_spin_bit() {
    let mut all = flows(FlowBy::FiveTuple, 9);
    for at in 0..1_000_u64 {
        for is_back in [false, true] {
            let spin = at / 20 % 2 == 1;
            add(&mut all, at * MS, &quic(is_back, spin));
        }
    }
    let reports = all.top(9, SortOrder::Packets, &clocks());
    assert_eq!(reports.len(), 2);
    for flow in reports {
        let figures = flow.quic.unwrap();
        assert_eq!(
            (figures.known_by, figures.spin),
            (QuicSign::Port443, SpinBit::Spins)
        );
        assert_eq!(figures.short_packets, 1_000);
        let [trip] = flow.round_trips[..] else {
            panic!("{:?}", flow.round_trips);
        };
        let times = trip.figures;
        assert_eq!(trip.by, RoundTripBy::SpinBit);
        assert_eq!((times.min_ns, times.max_ns), (20_000_000, 20_000_000));
        assert_eq!((times.n, times.bound_ns), (48, Some(22)));
    }
    // Another port has no sign of QUIC; with a long header it is known.
    let mut all = flows(FlowBy::FiveTuple, 9);
    let payload = [[0x40; 30], [0x60; 30]];
    add(&mut all, 0, &udp(1, &payload[0]));
    assert_eq!(all.top(1, SortOrder::Packets, &clocks())[0].quic, None);
    let mut long = [7; 40];
    long[..7].copy_from_slice(&[0xc0, 0, 0, 0, 1, 0, 0]);
    add(&mut all, 1, &udp(1, &long));
    for at in 2..300_u64 {
        add(
            &mut all,
            at * MS,
            &udp(1, &payload[usize::from(at % 60 < 30)]),
        );
    }
    let found = &all.top(1, SortOrder::Packets, &clocks())[0];
    assert_eq!(found.quic.unwrap().known_by, QuicSign::LongHeader);
    assert_eq!(found.round_trips[0].figures.min_ns, 30_000_000);
}
