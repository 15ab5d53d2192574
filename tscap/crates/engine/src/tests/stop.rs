//! The end of the drain loop.

use std::sync::atomic::Ordering;
use std::thread;

use super::*;

#[test]
fn it_goes_on_until_it_is_asked_to_stop() {
    let mut bench = unlimited(1);
    bench.push(0, 900_000, 60);
    let Bench {
        mut producers,
        converter,
        shared,
        bytes,
        ..
    } = bench;
    let running = thread::spawn(move || converter.run());
    let wait_for = |frames| {
        while shared.written.load(Ordering::Relaxed) < frames {
            assert!(!running.is_finished());
            thread::yield_now();
        }
    };
    wait_for(1);
    assert!(producers[0].push(SLOT, RawStamp(900_001), &[0; 60]));
    wait_for(2);
    shared.request_stop();
    let finished = running.join().unwrap();
    assert_eq!(finished.finisher.written(), 2);
    let length = bytes.lock().unwrap().len() as u64;
    assert_eq!(finished.bytes(), length);
    assert_eq!(shared.bytes.load(Ordering::Relaxed), length);
}

#[test]
fn asked_to_stop_it_takes_what_it_held_back() {
    let mut bench = unlimited(2);
    bench.push(0, 1_000_000, 60);
    bench.push(1, 1_000_001, 60);
    assert!(bench.converter.drain());
    assert!(bench.stamps().is_empty());
    assert!(bench.converter.drain_all());
    assert!(!bench.converter.drain_all());
    bench.shared.request_stop();
    assert_eq!(bench.converter.run().finisher.written(), 2);
}

#[test]
fn rings_that_are_empty_for_a_while_do_not_end_it() {
    let bench = unlimited(1);
    let Bench {
        mut producers,
        converter,
        shared,
        ..
    } = bench;
    let running = thread::spawn(move || converter.run());
    let before = shared.heartbeat();
    while shared.heartbeat() < before + 3 {
        assert!(!running.is_finished());
        thread::yield_now();
    }
    assert!(producers[0].push(SLOT, RawStamp(900_001), &[0; 60]));
    shared.request_stop();
    assert_eq!(running.join().unwrap().finisher.written(), 1);
}
