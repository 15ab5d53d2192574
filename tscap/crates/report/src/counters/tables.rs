//! Which figures of counters are told in which table.

use std::collections::BTreeMap;

use tscap_base::text::numbers::{counted, grouped};
use tscap_document::words::{NOTHING, maybe, number, whole};
use tscap_document::{Table, columns, facts};
use tscap_lab::counters::schema::{Captured, Phase, Reference, Subject};
use tscap_lab::counters::{Characteristics, Quartiles};

/// Where and how it was measured.
pub(super) fn environment(of: &Characteristics) -> Table {
    let method = &of.method;
    let reported = format!(
        "on CPU {}, {} of {} s; every {} s at most {} of each counter in a row",
        method.cpu,
        counted(of.phases.len() as u64, "phase"),
        number(method.phase_seconds),
        number(method.every_seconds),
        counted(method.readings as u64, "reading"),
    );
    facts(&of.about, reported)
}

/// Counters that were not read, by reason.
pub(super) fn absent(of: &Characteristics) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for absent in &of.absent {
        let names = reasons.entry(&absent.why).or_default();
        names.push(absent.counter.name());
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    // In the order of the counters.
    let place = |names: &[&str]| {
        of.absent
            .iter()
            .position(|it| it.counter.name() == names[0])
    };
    reasons.sort_by_key(|(_, names)| place(names));
    let reported = reasons.into_iter();
    reported
        .map(|(why, names)| format!("not read: {}: {why}", names.join(", ")))
        .collect()
}

/// The same without the reasons.
pub(super) fn absent_briefly(of: &Characteristics) -> Option<String> {
    let names: Vec<_> = of.absent.iter().map(|it| it.counter.name()).collect();
    (!names.is_empty()).then(|| format!("not read: {} (-v says why)", names.join(", ")))
}

/// How each was read.
pub(super) fn ways(of: &Characteristics) -> Table {
    let row = |subject: &Subject| {
        let counter = subject.counter;
        vec![counter.name().to_owned(), counter.way().to_owned()]
    };
    let rows = of.counters.iter().map(row);
    Table::figures("", &columns("counter | read by"), rows.collect()).words(&[0, 1])
}

/// Table I of the paper.
pub(super) fn counters(of: &Characteristics) -> Table {
    let row = |subject: &Subject| {
        vec![
            subject.counter.name().to_owned(),
            grouped(subject.hertz.round() as u64),
            subject.bits.to_string(),
            lasting(subject.wraps_seconds),
            match subject.step_ticks {
                0 => NOTHING.to_owned(),
                ticks => grouped(ticks),
            },
            match subject.step_ticks {
                0 => NOTHING.to_owned(),
                _ => number(subject.step_ns),
            },
        ]
    };
    let rows = of.counters.iter().map(row);
    Table::figures(
        "Counters (Table I)",
        &columns("counter | Hz | bits | wraps after | step, ticks | step, ns"),
        rows.collect(),
    )
    .note(
        "Hz: what the counter states, nanoseconds for clocks of the kernel; of the TSC by the \
         host's clock, good to 10 ppm. Step: all differences of successive values were multiples \
         of it. The paper has: TSC, the CPU's frequency, 64 bits; HPET 14.3 MHz, 32 or 64; ACPI \
         3.57 MHz, 24 or 32",
    )
}

/// What the machine did.
pub(super) fn phases(of: &Characteristics) -> Table {
    let cpu = of.method.cpu as usize;
    let percent = |share: f64| number(100.0 * share);
    let row = |(index, phase): (usize, &Phase)| {
        let all = phase.busy.iter().sum::<f64>() / phase.busy.len().max(1) as f64;
        let of_frames = |figure: fn(&Phase, Captured) -> u64| {
            maybe(phase.captured, |captured| grouped(figure(phase, captured)))
        };
        vec![
            name(index, phase),
            number(phase.seconds),
            maybe(phase.busy.get(cpu).copied(), percent),
            percent(all),
            of_frames(|_, captured| captured.sent),
            of_frames(|phase, captured| (captured.sent as f64 / phase.seconds) as u64),
            of_frames(|_, captured| captured.sent.saturating_sub(captured.written)),
        ]
    };
    let rows = of.phases.iter().enumerate().map(row);
    Table::figures(
        "Phases",
        &columns("phase | s | its CPU, % | all CPUs, % | frames sent | a second | lost"),
        rows.collect(),
    )
    .note(
        "idle: but for tscap, which reads the counters; net: frames of 64 bytes as fast as can be; \
         lost: sent and not in the capture",
    )
}

/// "2 cpu".
pub(super) fn name(index: usize, phase: &Phase) -> String {
    format!("{} {}", index + 1, phase.stress.name())
}

/// IV-C: what a reading takes, a table for each phase.
pub(super) fn access(of: &Characteristics) -> Vec<Table> {
    let phases = of.phases.iter().enumerate();
    let table = |(index, phase): (usize, &Phase)| {
        let row = |subject: &Subject| {
            let quartiles = subject.latency.get(index).copied().flatten();
            let mut row = vec![subject.counter.name().to_owned()];
            row.extend(cells(quartiles.as_ref()));
            row
        };
        let rows = of.counters.iter().map(row);
        Table::figures(
            format!(
                "Reading a counter, {}: cycles of the TSC",
                name(index, phase)
            ),
            &columns("counter | min | p25 | p50 | p75 | p95 | p99.9 | max"),
            rows.collect(),
        )
    };
    let mut tables: Vec<_> = phases.map(table).collect();
    let median = |empty: &[Option<Quartiles>]| {
        let first = empty.first().copied().flatten();
        maybe(first.and_then(|empty| empty.p50), whole)
    };
    let note = format!(
        "TSC, counter, TSC, in bursts with warm caches, less the median of such a pair with nothing \
         in between ({} cycles in the first phase); by BPF programs between two readings of \
         CLOCK_MONOTONIC, whole nanoseconds, less the same ({})",
        median(&of.method.empty),
        median(&of.method.empty_program)
    );
    if let Some(last) = tables.pop() {
        tables.push(last.note(note));
    }
    tables
}

fn cells(of: Option<&Quartiles>) -> [String; 7] {
    let Some(of) = of else {
        return [const { NOTHING }; 7].map(str::to_owned);
    };
    let quantiles = [of.p25, of.p50, of.p75, of.p95, of.p99_9];
    let [p25, p50, p75, p95, p99_9] = quantiles.map(|it| maybe(it, whole));
    [whole(of.min), p25, p50, p75, p95, p99_9, whole(of.max)]
}

/// V-A: what the kernel's interface takes.
pub(super) fn interface(of: &Characteristics) -> Option<Table> {
    let rows = of.counters.iter().flat_map(|subject| {
        let phases = subject.interface.iter().zip(&of.phases).enumerate();
        phases.filter_map(|(index, (interface, phase))| {
            let interface = interface.as_ref()?;
            let mut row = vec![subject.counter.name().to_owned(), name(index, phase)];
            row.extend(cells(Some(interface)));
            Some(row)
        })
    });
    Table::figures(
        "What the kernel's interface takes more than the TSC alone (V-A), cycles",
        &columns("counter | phase | min | p25 | p50 | p75 | p95 | p99.9 | max"),
        rows.collect(),
    )
    .words(&[0, 1])
    .note("less the median of the ordered TSC where that was read, of the plain one otherwise")
    .if_any()
}

/// IV-B: rates by phase.
pub(super) fn rates(of: &Characteristics) -> Option<Table> {
    let rows = of.counters.iter().flat_map(|subject| {
        let phases = subject.rate.iter().zip(&of.phases).enumerate();
        phases.filter_map(|(index, (rate, phase))| {
            let rate = rate.as_ref()?;
            Some(vec![
                subject.counter.name().to_owned(),
                name(index, phase),
                format!("{:.3}", rate.hertz),
                signed(rate.ppm),
                format!("{:.4}", rate.bound_ppm),
            ])
        })
    });
    let title = match of.reference {
        Reference::Tsc => {
            "Rate beside the TSC, which says whether both are of one oscillator".into()
        }
        Reference::Ptp { .. } => format!("Rate by {} (IV-B)", of.reference.title()),
    };
    Table::figures(
        title,
        &columns("counter | phase | Hz | ppm | ± ppm"),
        rows.collect(),
    )
    .words(&[0, 1])
    .note("ppm: against the mean of the idle phases; ±: by the brackets of the readings")
    .if_any()
}

/// IV-A: deviations on each scale.
pub(super) fn scales(of: &Characteristics) -> Option<Table> {
    let rows = of.counters.iter().flat_map(|subject| {
        subject.scales.iter().map(|scale| {
            vec![
                subject.counter.name().to_owned(),
                format!("{:.1}", scale.tau_s),
                grouped(scale.terms),
                format!("{:.3e}", scale.deviation),
                format!("{:.2e}–{:.2e}", scale.interval[0], scale.interval[1]),
            ]
        })
    });
    Table::figures(
        format!(
            "Stability by {} (IV-A): overlapping Allan deviation",
            of.reference.title()
        ),
        &columns("counter | τ, s | terms | deviation | 95 % interval"),
        rows.collect(),
    )
    .note(
        "both oscillators together, over all phases, as long as no daemon steers one of them by the \
         other; on short scales, where it falls as 1/τ, it is the noise of the readings",
    )
    .if_any()
}

/// V-C: what a clock is worth that counts by each.
pub(super) fn clocks(of: &Characteristics) -> Option<Table> {
    let rows = of.counters.iter().filter_map(|subject| {
        let clock = subject.clock.as_ref()?;
        let ends = [
            clock.p1_ns,
            clock.p25_ns,
            clock.p50_ns,
            clock.p75_ns,
            clock.p99_ns,
        ];
        let mut row = vec![
            subject.counter.name().to_owned(),
            number(clock.poll_s),
            grouped(clock.n),
        ];
        row.extend(ends.map(whole));
        row.push(whole(clock.p75_ns - clock.p25_ns));
        row.push(grouped(clock.outside));
        Some(row)
    });
    Table::figures(
        format!(
            "A clock of each counter beside {} (V-C): error between polls, ns",
            of.reference.title()
        ),
        &columns("counter | poll, s | n | 1 % | 25 % | median | 75 % | 99 % | IQR | outside"),
        rows.collect(),
    )
    .note(
        "a feed-forward clock that polls the reference by one bracket, held against it at the looks \
         between two polls, in all phases; outside: farther off than its bound",
    )
    .if_any()
}

fn signed(ppm: f64) -> String {
    let sign = if ppm < 0.0 { "−" } else { "+" };
    format!("{sign}{:.4}", ppm.abs())
}

/// A time from seconds to centuries.
fn lasting(seconds: f64) -> String {
    const DAY: f64 = 86_400.0;
    const YEAR: f64 = 365.25 * DAY;
    match seconds {
        ..600.0 => format!("{} s", number(seconds)),
        ..DAY => format!("{} h", number(seconds / 3_600.0)),
        ..YEAR => format!("{} days", number(seconds / DAY)),
        _ => format!("{} years", grouped((seconds / YEAR) as u64)),
    }
}
