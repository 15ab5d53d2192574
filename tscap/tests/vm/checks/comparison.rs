//! A comparison in a guest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::agent::TSCAP;
use crate::guest::Guest;
use crate::nic::Nic;

/// Compares on frames that come in on CPU 0, as sending them all is too slow here. It is ended
/// after its first round: 40 take many minutes.
pub fn of_one_round(guest: &Guest, nic: &Nic, options: &[&str]) -> Value {
    let to_cpu_0 = "for irq in /proc/irq/*/smp_affinity; do echo 1 > $irq; done 2> /dev/null; :";
    guest.must(&["sh", "-c", to_cpu_0]);
    let until_a_round_is_over = "\
        \"$@\" 2> /tmp/compare.err & \
        until grep -q ' of 40 done' /tmp/compare.err || ! kill -0 $!; do sleep 1; done; \
        kill -TERM $!; wait $!; code=$?; cat /tmp/compare.err >&2; exit $code";
    let shell = ["timeout", "300", "sh", "-c", until_a_round_is_over, "sh"];
    let compare = [
        TSCAP, "compare", "--quick", "--json", "--cpu", "0", "-i", &nic.name,
    ];
    let line = [&shell[..], &compare, options].concat();
    let is_over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                nic.send_paced(&nic.frame(64), 0..64, Duration::from_micros(50));
            }
        });
        let _ends = Ends(&is_over);
        guest.run(&line)
    });
    assert_eq!(done.status.code(), Some(0), "{}", done.stderr);
    serde_json::from_str(&done.stdout).expect("JSON")
}

/// Says that something is over, also when a panic ends it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
