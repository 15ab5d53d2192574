//! Causes of outliers, by the kernel's own counters of each CPU.

use std::thread;
use std::time::{Duration, Instant};

use tscap_base::kernel_files::KernelFiles;
use tscap_clock::measure_tsc_rate;
use tscap_common::compare::Sample;
use tscap_host::affinity;
use tscap_lab::compare::{Programs, Settings};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_programs::hook::KernelCounters;
use tscap_traffic::load::{Burst, Pair, Traffic};

use super::comparison;
use crate::agent::{INTERRUPTED, PROGRAM};
use crate::machine::Rig;
use crate::nic::Kind;

/// The CPU that measures and is interrupted: the first column of the kernel's tables.
const CPU: u32 = 0;
/// Timers of that CPU, …
const TIMERS: u32 = 32;
/// … and how long each of them runs.
const TIMER: Duration = Duration::from_millis(2);
/// Frames until the tables are looked at.
const FRAMES: u64 = 200;
/// Within this an interrupt comes during a frame and a tick between two.
const LONGEST: Duration = Duration::from_secs(120);
/// `enum xdp_action`.
const XDP_DROP: u32 = 1;

/// Each outlier of a comparison has one cause.
pub fn each_outlier_has_one(rig: &Rig) {
    let machine = rig.boot(&[Kind::Virtio]);
    let comparison = comparison::of_one_round(&machine.guest, &machine.nics[0], &[]);
    let method = &comparison["method"];
    assert!(method["causes_unknown"].is_null(), "{method}");
    let subjects = comparison["subjects"].as_array().expect("a list").iter();
    // The floor has no cost, and a stamp that costs nothing no outliers.
    let outliers = subjects.map(|subject| &subject["frame"]["outliers"]);
    let outliers: Vec<_> = outliers.filter(|it| it.is_object()).collect();
    assert!(!outliers.is_empty(), "{comparison}");
    for outliers in outliers {
        let causes = outliers["causes"].as_array().expect("a list");
        let names: Vec<_> = causes.iter().map(|it| &it["cause"]).collect();
        assert_eq!(names, ["steal", "interrupt", "softirq", "none"]);
        let sum = |count: &str| {
            let counts = causes.iter().map(|it| it[count].as_u64().expect("a count"));
            counts.sum::<u64>()
        };
        assert_eq!(sum("outliers"), outliers["frames"], "{outliers}");
        let all = sum("outliers") + sum("others");
        assert_eq!(all, outliers["of"], "{outliers}");
        // QEMU's emulation tells no guest what it takes of its time.
        assert_eq!(causes[0]["outliers"], 0, "{outliers}");
    }
}

/// What programs read is what the kernel tells of that CPU in its tables.
pub fn counters_are_the_kernels(rig: &Rig) {
    rig.boot(&[]).guest.must(&[PROGRAM, INTERRUPTED]);
}

/// `agent interrupted`: measures on a CPU with timers until one has interrupted a frame.
pub fn interrupted() {
    affinity::pin_to(CPU).expect("go to the CPU");
    let end = Instant::now() + LONGEST;
    for _ in 0..TIMERS {
        thread::spawn(move || {
            while Instant::now() < end {
                thread::sleep(TIMER);
            }
        });
    }
    let pair = Pair::new().expect("a pair");
    let counters = KernelCounters::find(&KernelFiles::live()).expect("the kernel's counters");
    let settings = Settings {
        cpu: CPU,
        action: XDP_DROP,
        more_reads: 0,
        more_work: 0,
    };
    let programs = Programs::load(settings, &[], None, Some(counters));
    let mut programs = programs.expect("measuring programs");
    let attach = || {
        let program = programs.cost_program(None)?;
        InterfaceLink::attach(program, pair.rx.index, LinkPoint::NativeXdp)
    };
    let _link = pair.rx_netns.within(attach).expect("attach");
    pair.tx_netns.enter().expect("go to the sender's end");
    let rate = measure_tsc_rate().expect("the TSC's rate");
    let mut traffic = Traffic::new(&pair, CPU, Some(rate)).expect("a sender");

    let (mut interrupts, mut accounted) = (0, Vec::new());
    while interrupts == 0 || accounted.first() == accounted.last() {
        assert!(Instant::now() < end, "{interrupts} {accounted:?}");
        let before = Told::now();
        let measured = programs.measure(&mut traffic, Burst::fast(FRAMES));
        let samples = measured.expect("measure frames").samples;
        let after = Told::now();
        assert!(!samples.is_empty(), "no frame came");
        interrupts += within(&samples, &before, &after);
        accounted.extend(samples.iter().map(|it| it.accounted_ns));
    }
    assert!(accounted.is_sorted(), "{accounted:?}");
}

/// Interrupts during these frames; panics unless the tables allow for what the frames tell.
fn within(samples: &[Sample], before: &Told, after: &Told) -> u64 {
    let interrupts: u64 = samples.iter().map(|it| u64::from(it.interrupts)).sum();
    let reported = after.interrupts - before.interrupts;
    assert!(interrupts <= reported, "{interrupts} of {reported}");
    let softirqs = samples.iter().map(|it| u64::from(it.other_softirqs));
    let bounded = [before.other_softirqs].into_iter().chain(softirqs);
    let bounded: Vec<_> = bounded.chain([after.other_softirqs]).collect();
    assert!(bounded.is_sorted(), "{bounded:?}");
    assert!(samples.iter().all(|it| it.stolen_ns == 0), "{samples:?}");
    interrupts
}

/// What the kernel tells of the CPU.
struct Told {
    interrupts: u64,
    other_softirqs: u64,
}

impl Told {
    fn now() -> Self {
        Self {
            interrupts: column("/proc/interrupts", |_| true),
            other_softirqs: column("/proc/softirqs", |row| row != "NET_RX:"),
        }
    }
}

/// Sum of the CPU's column in a table with a head, of the rows with such a name.
fn column(table: &str, is_one: fn(&str) -> bool) -> u64 {
    let table = std::fs::read_to_string(table).expect("the kernel's table");
    let rows = table.lines().skip(1).map(str::split_whitespace);
    let counts = rows.filter_map(|mut row| {
        let name = row.next()?;
        let count = row.nth(CPU as usize)?.parse::<u64>();
        is_one(name).then(|| count.expect("a count"))
    });
    counts.sum()
}
