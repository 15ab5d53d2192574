//! Delays on other kernels: each way to match, by programs at each hook.

use tscap::measuring::delay::schema::Measurement;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::machine::{Processor, Rig};

use super::directions::{PAIR, is_at_least};

/// Echo requests, and so many answers.
const ECHOES: u64 = 4;

/// Measures with these options, and asks meanwhile.
fn measure(guest: &Guest, options: &str) -> Measurement {
    let script = format!(
        "{TSCAP} delay {options} --window 100ms --json \
         > /tmp/delay 2> /tmp/said & \
         for turn in $(seq 100); do grep -q ready /tmp/said && break; sleep 0.2; done; \
         ping -c {ECHOES} 10.9.0.2 > /dev/null; wait $!; tail -n 1 /tmp/delay"
    );
    let json = guest.must(&["sh", "-c", &script]);
    let measurement = Measurement::from_json(&json);
    measurement.unwrap_or_else(|error| {
        let said = guest.must(&["head", "-c", "3000", "/tmp/said"]);
        panic!("{error}: {said}")
    })
}

/// At the tap and by XDP; then each key is computed by programs that this kernel verifies. The
/// verifier of 6.1 refuses them.
pub fn there_and_back(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    guest.must(&["sh", "-c", PAIR]);
    if !is_at_least(guest, (6, 12)) {
        let refused = format!("{TSCAP} delay --rtt va --duration 1 2>&1 | head -c 3000");
        let refused = guest.must(&["sh", "-c", &refused]);
        assert!(refused.contains("tested with Linux 6.18"), "{refused}");
        assert!(refused.lines().count() <= 2, "{refused}");
        return;
    }
    let measurement = measure(guest, &format!("--rtt va -c {ECHOES} --duration 60"));
    let exit = &measurement.passages[0].exits[0];
    assert_eq!(exit.account.matched, ECHOES, "{exit:?}");
    let delays = exit.delays.as_ref().expect("they were matched");
    assert!(delays.summary.min > 0, "{delays:?}");
    for matcher in ["gen", "bridge", "route", "nat"] {
        let options = format!("--reflect va --match {matcher} --duration 2");
        let measurement = measure(guest, &options);
        let entry = &measurement.passages[0].entry;
        let unrecorded: u64 = entry.unrecorded.values().sum();
        let all = entry.keyed + entry.unkeyed + unrecorded;
        assert_eq!(entry.seen, all, "{entry:?}");
    }
}
