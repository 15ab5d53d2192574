//! What a read of a shared clock costs, beside the kernel's own clock.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::time::ClockId;
use serde::Serialize;
use tscap_clock::{HostClocks, Reference as _, StampSource, Tracker};
use tscap_clock_reader::{Clock, State, system};
use tscap_document::Table;
use tscap_shared_clock::{PageFile, Publisher, Utc};
use tscap_statistics::Spread;
use tscap_time::now;

use crate::common::converter::cpu_time_ns;
use crate::common::report::Section;
use crate::common::table::{row, show};
use crate::common::target::Target;

/// Calls of each kind in a round.
const CALLS: u32 = 200_000;
/// Most that a read may take, ns.
const READ_NS: f64 = 50.0;
/// Between two readings of the clocks, as `tscap clock --serve` takes them.
const READ_EVERY: Duration = Duration::from_millis(10);

/// CPU time of one call, ns.
#[derive(Debug, Serialize)]
pub struct Read {
    /// `clock_gettime(CLOCK_REALTIME)`, by the vDSO.
    pub kernel_ns: Spread,
    /// The counter alone, in order.
    pub counter_ns: Spread,
    /// The present by the shared clock, with its bounds.
    pub now_ns: Spread,
    /// The times of a counter stamp of 5 s ago at most.
    pub of_raw_ns: Spread,
    /// The present by the shared clock over `clock_gettime`, in the same round.
    pub ratio: Spread,
    /// Reads that were refused, of all.
    pub refused: u64,
}

/// Measures on the CPU to which the caller is pinned; another thread shares the clock.
pub fn measure(rounds: u32) -> Result<Read> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let path = folder.path().join("clock");
    let (is_served, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let served = serve(&path, &is_served, &is_over);
            is_over.store(true, Ordering::Relaxed);
            served
        });
        while !is_served.load(Ordering::Acquire) && !is_over.load(Ordering::Relaxed) {
            thread::sleep(READ_EVERY);
        }
        let read = Clock::open(&path).context("cannot open the page");
        let read = read.and_then(|mut clock| read_in_turns(&mut clock, rounds));
        is_over.store(true, Ordering::Relaxed);
        let served = server.join().map_err(|_| anyhow!("the server panicked"))?;
        served.and(read)
    })
}

fn serve(path: &std::path::Path, is_served: &AtomicBool, is_over: &AtomicBool) -> Result<()> {
    let mut clocks = HostClocks::new(StampSource::Tsc);
    let first = clocks.read();
    let mut tracker = Tracker::new(StampSource::Tsc, &first).context("the clock is set")?;
    let mut publisher = Publisher::default();
    let mut file = PageFile::new(path);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(READ_EVERY);
        let (cross, seen) = tracker.look(&mut clocks);
        tracker.look_at_raw(cross.mono[1], &mut clocks);
        if let Some(page) = publisher.observe(&mut tracker, &cross, seen, &Utc::default()) {
            file.write(&page)?;
            is_served.store(true, Ordering::Release);
        }
    }
    Ok(())
}

fn read_in_turns(clock: &mut Clock, rounds: u32) -> Result<Read> {
    let mut figures: [Vec<f64>; 5] = Default::default();
    let mut refused = 0;
    for _ in 0..rounds {
        let kernel = per_call(|_| {
            black_box(now(ClockId::CLOCK_REALTIME));
        })?;
        let counter = per_call(|_| {
            black_box(system::read_counter());
        })?;
        let shared = per_call(|_| {
            let times = clock.now();
            refused += u64::from(!times.is_ok_and(|times| times.state != State::Stale));
        })?;
        let latest = clock.now().context("no time")?.raw;
        let of_raw = per_call(|_| {
            refused += u64::from(black_box(clock.of_raw(latest)).is_err());
        })?;
        let of_round = [kernel, counter, shared, of_raw, shared / kernel];
        for (all, figure) in figures.iter_mut().zip(of_round) {
            all.push(figure);
        }
    }
    let [kernel, counter, shared, of_raw, ratio] = figures.map(Spread::of);
    Ok(Read {
        kernel_ns: kernel,
        counter_ns: counter,
        now_ns: shared,
        of_raw_ns: of_raw,
        ratio,
        refused,
    })
}

/// CPU time of one call, ns.
fn per_call(mut call: impl FnMut(u32)) -> Result<f64> {
    let before = cpu_time_ns()?;
    (0..CALLS).for_each(&mut call);
    Ok((cpu_time_ns()? - before) / f64::from(CALLS))
}

impl Section for Read {
    fn targets(&self) -> Vec<Target> {
        vec![
            Target::at_most(
                "read of a shared clock, best round, ns",
                self.now_ns.min,
                READ_NS,
            )
            .asserted_if(false),
            Target::at_most("reads refused", self.refused as f64, 0.0),
        ]
    }

    fn tables(&self) -> Vec<Table> {
        let costs = [
            ("clock_gettime(CLOCK_REALTIME)", &self.kernel_ns, 1),
            ("the counter alone, in order", &self.counter_ns, 1),
            (
                "the present by the shared clock, with bounds",
                &self.now_ns,
                1,
            ),
            ("the times of a counter stamp", &self.of_raw_ns, 0),
            ("the present over clock_gettime", &self.ratio, 2),
        ];
        let rows = costs.map(|(name, figure, decimals)| row(name, [show(figure, decimals)]));
        vec![Table::figures(
            "a clock that programs read: CPU ns a call",
            &["", "figure"],
            rows.to_vec(),
        )]
    }
}
