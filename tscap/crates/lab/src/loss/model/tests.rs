use proptest::prelude::*;

use super::fixtures::{costs, load};
use super::*;

use Receiving::{Apart, OnSender};

/// Takes 40 MB/s and a pipe's 64 KiB.
const SLOW: Writer = Writer {
    bytes_per_s: 40e6,
    buffer_bytes: 65_536.0,
};

#[track_caller]
fn near(found: f64, expected: f64, within: f64) {
    assert!(
        (found - expected).abs() <= within,
        "{found}, not {expected}"
    );
}

#[test]
fn a_sender_that_receives_too_is_slowed_down_and_loses_nothing() {
    let prediction = predict(&costs(OnSender), &load(f64::INFINITY));
    assert_eq!(
        (prediction.before, prediction.ring, prediction.written),
        (0.0, 0.0, 1.0)
    );
    // 60 to send, 194.4 to receive.
    near(prediction.seconds, 0.2544, 1e-6);
}

#[test]
fn what_a_cpu_cannot_receive_is_lost_before_the_program() {
    let prediction = predict(&costs(Apart), &load(8e6));
    let received = 1.0 / 194.4e-9;
    near(prediction.before, 1.0 - received / 8e6, 1e-6);
    assert_eq!(prediction.ring, 0.0);
    assert_eq!(predict(&costs(Apart), &load(5e6)).lost(), 0.0);
}

#[test]
fn a_slow_writer_gets_what_the_buffers_hold_and_it_drains_meanwhile() {
    let costs = Costs {
        writer: Some(SLOW),
        ..costs(OnSender)
    };
    // 128 bytes a frame: 312,500 of them a second.
    let prediction = predict(&costs, &load(1e6));
    let drained = f64::from(1 << 20) + 65_536.0 + 40e6;
    near(prediction.seconds, 1.0, 1e-6);
    near(
        prediction.written,
        drained / (1e6 * record_bytes(96)),
        0.001,
    );
    near(prediction.ring, 1.0 - prediction.written, 1e-12);
    // What fits into the buffers does not wait.
    let short = Load {
        frames: 8_500.0,
        ..load(1e6)
    };
    assert_eq!(predict(&costs, &short).lost(), 0.0);
    // Nor does what the writer takes.
    let prediction = predict(&costs, &load(300e3));
    assert_eq!(prediction.lost(), 0.0);
}

#[test]
fn both_stages_lose() {
    let costs = Costs {
        writer: Some(SLOW),
        ..costs(Apart)
    };
    let prediction = predict(&costs, &load(8e6));
    assert!(
        prediction.before > 0.15 && prediction.ring > 0.2,
        "{prediction:?}"
    );
    // To turn a frame away takes less than to record it: more get that far.
    let without = predict(&fixtures::costs(Apart), &load(8e6));
    assert!(
        prediction.before < without.before,
        "{prediction:?} {without:?}"
    );
}

#[test]
fn one_cpu_for_all_is_slower_still() {
    let one = Costs {
        converter_shares: true,
        ..costs(OnSender)
    };
    let one = predict(&one, &load(f64::INFINITY));
    let two = predict(&costs(OnSender), &load(f64::INFINITY));
    assert!(one.seconds > two.seconds * 1.15, "{one:?} {two:?}");
}

#[test]
fn a_longer_run_needs_a_greater_ring_up_to_where_none_suffices() {
    let costs = Costs {
        writer: Some(SLOW),
        ..costs(Apart)
    };
    let for_s = |seconds: f64| {
        let frames = 1e6 * seconds;
        least_ring(
            &costs,
            &Load {
                frames,
                ..load(1e6)
            },
            0.001,
        )
    };
    // 88 MB a second too much.
    assert_eq!(for_s(0.01), Needed::Bytes(1 << 20));
    assert_eq!(for_s(0.5), Needed::Bytes(64 << 20));
    assert_eq!(for_s(4.0), Needed::NoneSuffices);
    // Nothing to fill it but a pause of the converter: 128 bytes, 100 ms.
    let fits = least_ring(&fixtures::costs(Apart), &load(1e6), 0.1);
    assert_eq!(fits, Needed::Bytes(16 << 20));
    // Lost before any ring.
    assert_eq!(
        least_ring(&fixtures::costs(Apart), &load(8e6), 0.0),
        Needed::NoneSuffices
    );
}

fn any_costs() -> impl Strategy<Value = Costs> {
    let sharing = (prop_oneof![Just(OnSender), Just(Apart)], any::<bool>());
    let cost = (1.0f64..500.0, 0.0f64..2.0);
    let writer = prop::option::of((1e6f64..5e9, 0.0f64..1e8));
    (
        sharing,
        20.0f64..500.0,
        cost.clone(),
        0.1f64..1.0,
        cost,
        1e4f64..5e6,
        writer,
    )
        .prop_map(
            |((receiving, converter_shares), send_ns, receive, away, convert, turn_ns, writer)| {
                let cost = |(frame_ns, byte_ns)| Cost { frame_ns, byte_ns };
                Costs {
                    receiving,
                    converter_shares,
                    send_ns,
                    receive: cost(receive),
                    // No more expensive than the shortest frame.
                    turned_away_ns: away * receive.0,
                    convert: cost(convert),
                    turn_ns,
                    writer: writer.map(|(bytes_per_s, buffer_bytes)| Writer {
                        bytes_per_s,
                        buffer_bytes,
                    }),
                }
            },
        )
}

fn any_load() -> impl Strategy<Value = Load> {
    let rate = prop_oneof![1e3f64..2e7, Just(f64::INFINITY)];
    (1e3f64..1e9, 14u32..1514, rate, 17u32..29).prop_map(|(frames, caplen, rate, ring)| Load {
        frames,
        caplen,
        rate,
        ring_bytes: f64::from(1u32 << ring),
    })
}

/// Rounding, and the halvings.
const SLACK: f64 = 1e-6;

proptest! {
    #[test]
    fn it_adds_up(costs in any_costs(), load in any_load()) {
        let prediction = predict(&costs, &load);
        let parts = [prediction.written, prediction.before, prediction.ring];
        prop_assert!(parts.iter().all(|part| (-SLACK..=1.0 + SLACK).contains(part)), "{prediction:?}");
        prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < SLACK);
        prop_assert!(prediction.seconds.is_finite() && prediction.seconds > 0.0);
        // No faster than asked for.
        prop_assert!(prediction.seconds >= load.frames / load.rate * (1.0 - SLACK));
        if costs.receiving == OnSender {
            prop_assert_eq!(prediction.before, 0.0);
        }
    }

    #[test]
    fn a_greater_ring_loses_no_more(costs in any_costs(), load in any_load()) {
        let twice = Load { ring_bytes: 2.0 * load.ring_bytes, ..load };
        let (small, great) = (predict(&costs, &load), predict(&costs, &twice));
        prop_assert!(great.written >= small.written - SLACK, "{small:?} {great:?}");
    }

    #[test]
    fn a_faster_writer_loses_no_more_in_the_ring(
        costs in any_costs(), load in any_load(), faster in 1.0f64..10.0,
    ) {
        let Some(writer) = costs.writer else { return Ok(()) };
        let bytes_per_s = writer.bytes_per_s * faster;
        let better = Costs { writer: Some(Writer { bytes_per_s, ..writer }), ..costs };
        let (slow, fast) = (predict(&costs, &load), predict(&better, &load));
        prop_assert!(fast.written >= slow.written - SLACK, "{slow:?} {fast:?}");
    }

    /// The same number of frames, faster: never a smaller share lost.
    #[test]
    fn a_higher_rate_loses_no_less(
        costs in any_costs(), load in any_load(), more in 1.0f64..5.0,
    ) {
        let faster = Load { rate: load.rate * more, ..load };
        let (slow, fast) = (predict(&costs, &load), predict(&costs, &faster));
        prop_assert!(fast.lost() >= slow.lost() - SLACK, "{slow:?} {fast:?}");
    }

    /// Nothing is lost where every stage is faster than what comes.
    #[test]
    fn what_every_stage_can_take_is_not_lost(
        costs in any_costs(), load in any_load(), share in 0.01f64..0.4,
    ) {
        // A third of each CPU at most, and half of the ring in a turn.
        let busy = costs.send_ns + costs.receive.of(load.caplen) + costs.convert.of(load.caplen);
        let record = record_bytes(load.caplen);
        let in_a_turn = load.ring_bytes / record / costs.turn_ns * 1e9 / 2.0;
        let writer = costs.writer.map_or(f64::INFINITY, |it| it.bytes_per_s / record);
        let rate = share * (1e9 / busy).min(in_a_turn).min(writer);
        let prediction = predict(&costs, &Load { rate, ..load });
        prop_assert_eq!(prediction.lost(), 0.0);
        prop_assert!((prediction.seconds * rate / load.frames - 1.0).abs() < SLACK);
    }
}
