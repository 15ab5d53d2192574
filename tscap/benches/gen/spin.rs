//! The bare loop: it waits as a sender does, and sends nothing.

use tscap_clock::TscCycles;
use tscap_common::gaps::{BUCKETS, bucket_of};
use tscap_common::generator::Gaps;
use tscap_testkit::process::on_cpu;
use tscap_time::tsc;
use tscap_traffic::generator::Period;

use crate::link::Link;

/// The first "frame" is due this much after the start.
const SET_UP_NS: u64 = 1_000_000;

/// Gaps less the period, of `frames` that might have been sent.
pub fn spin(link: &Link, period: Period, frames: u64) -> Box<Gaps> {
    on_cpu(link.cpu, || {
        let mut gaps = Box::new([0; BUCKETS]);
        let start = tsc::read();
        let mut last = None;
        for number in 0..frames {
            let due_ns = (SET_UP_NS + period.due_ns(number)).cast_signed();
            let due = TscCycles(start.0.wrapping_add_signed(link.rate.cycles_in(due_ns)));
            let now = reading_after(due);
            if let Some(TscCycles(last)) = last.replace(now) {
                let gap_ns = link.rate.duration_ns(now.0 - last);
                gaps[bucket_of(gap_ns.wrapping_sub(period.ns()).cast_signed())] += 1;
            }
        }
        gaps
    })
}

fn reading_after(due: TscCycles) -> TscCycles {
    loop {
        let now = tsc::read();
        if now >= due {
            return now;
        }
    }
}
