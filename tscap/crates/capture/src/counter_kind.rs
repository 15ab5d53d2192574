//! What a kfunc counts, before it is believed: the proposed `bpf_get_cpu_time_counter` gives
//! nanoseconds of CLOCK_MONOTONIC_RAW where the kernel does not count by the TSC itself.

use nix::time::ClockId;
use tscap_common::hook::ClockDomain;
use tscap_common::ring::MIN_RING_BYTES;

use tscap_base::failure::{Context as _, Failure};
use tscap_clock::StampPath;
use tscap_host::system;
use tscap_programs::hook::{KFUNC_BRACKET_PROGRAM, Kfunc, LoadOptions, Loaded, PROGRAMS};
use tscap_time::{now, tsc};

use super::load::load_failure;

/// Shortest frame that `BPF_PROG_TEST_RUN` takes.
const FRAME: [u8; 14] = [0; 14];

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CounterKind {
    /// Cycles of the TSC.
    Cycles,
    /// Nanoseconds of CLOCK_MONOTONIC_RAW.
    RawNs,
}

/// What clocks showed before a counter was read, and behind that.
#[derive(Clone, Copy, Debug)]
struct Around {
    tsc: [u64; 2],
    raw_ns: [u64; 2],
}

/// What it is that gave these counts, one after the other, between readings of both; `None` if it
/// is neither. A TSC that counts nanoseconds since boot is both.
fn kind_of(counts: &[u64], around: &Around) -> Option<CounterKind> {
    let is_within = |[first, last]: [u64; 2]| {
        let all = [first]
            .into_iter()
            .chain(counts.iter().copied())
            .chain([last]);
        !counts.is_empty() && all.is_sorted()
    };
    match () {
        () if is_within(around.tsc) => Some(CounterKind::Cycles),
        () if is_within(around.raw_ns) => Some(CounterKind::RawNs),
        () => None,
    }
}

/// Reads a kfunc between readings of the clocks, and refuses one whose stamps are not those of the
/// TSC.
///
/// # Errors
/// What it counts instead, or why it can't be called.
pub(super) fn check(kfunc: &Kfunc) -> Result<(), Failure> {
    let path = StampPath::Tsc(kfunc.path);
    let name = path.function();
    let what = format!("cannot find out what {name} counts");
    let cpus = system::online_cpus().context(what.clone())?;
    let first = &cpus[..cpus.len().min(1)];
    let possible = system::possible_cpus().context(what.clone())?;
    let loaded = Loaded::load(&LoadOptions {
        program: KFUNC_BRACKET_PROGRAM,
        clock: ClockDomain::Tsc,
        kfunc: Some(kfunc),
        ..LoadOptions::new(PROGRAMS, (MIN_RING_BYTES, first), possible)
    });
    let loaded = loaded.map_err(|error| load_failure(path, error, what.clone()))?;
    let read_clocks = || (tsc::read().0, now(ClockId::CLOCK_MONOTONIC_RAW));
    let before = read_clocks();
    let run = loaded.program.run(&FRAME, 1);
    // The clocks are read in the other order: the counts are between both of each.
    let after = read_clocks();
    run.context(what.clone())?;
    let counts = loaded.kfunc_counts().context(what)?;
    let around = Around {
        tsc: [before.0, after.0],
        raw_ns: [before.1, after.1],
    };
    match kind_of(&counts, &around) {
        Some(CounterKind::Cycles) => Ok(()),
        Some(CounterKind::RawNs) => Err(Failure::new(format!(
            "{name} gives nanoseconds of CLOCK_MONOTONIC_RAW on this machine, and not the TSC"
        ))
        .hint(
            "--clock ktime stamps by a clock of the kernel as well; tscap's module reads the TSC",
        )),
        None => Err(Failure::new(format!(
            "{name} gives neither the TSC nor CLOCK_MONOTONIC_RAW: {}",
            shown(&counts, &around)
        ))
        .hint("take another --clock, and please report this")),
    }
}

fn shown(counts: &[u64], around: &Around) -> String {
    let range = |[low, high]: [u64; 2]| format!("{low} to {high}");
    let least = counts.iter().min().copied().unwrap_or(0);
    let most = counts.iter().max().copied().unwrap_or(0);
    format!(
        "it read {} while the TSC went from {} and CLOCK_MONOTONIC_RAW from {} ns",
        range([least, most]),
        range(around.tsc),
        range(around.raw_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of 2.6 GHz that has run for an hour, and a counter that is read from the time of
    /// `read` on.
    fn kind(count: impl Fn(u64) -> u64) -> Option<CounterKind> {
        const HOUR: u64 = 3_600_000_000_000;
        let tsc = |ns: u64| ns * 26 / 10;
        let ends = [HOUR, HOUR + 50_000];
        let around = Around {
            tsc: ends.map(tsc),
            raw_ns: ends,
        };
        let counts: Vec<_> = (0..64).map(|it| count(HOUR + 1_000 + it * 60)).collect();
        kind_of(&counts, &around)
    }

    #[test]
    fn a_counter_is_what_is_on_either_side_of_it() {
        assert_eq!(kind(|ns| ns * 26 / 10), Some(CounterKind::Cycles));
        assert_eq!(kind(|ns| ns), Some(CounterKind::RawNs));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for (count, why) in [
            ((|ns| ns * 26 / 10 - 50_000_000) as fn(u64) -> u64, "behind"),
            (|ns| ns + 40_000_000, "ahead, as CLOCK_BOOTTIME"),
            (|ns| ns * 24 / 10, "at another rate"),
            (|_| 7, "it stands"),
            (|ns| u64::MAX - ns, "it counts down"),
        ] {
            assert_eq!(kind(count), None, "{why}");
        }
        let around = Around {
            tsc: [5, 9],
            raw_ns: [105, 109],
        };
        assert_eq!(kind_of(&[6, 7, 6], &around), None);
        assert_eq!(kind_of(&[], &around), None);
        let shown = shown(&[1, 2], &around);
        assert!(
            shown.contains("1 to 2") && shown.contains("105 to 109"),
            "{shown}"
        );
    }
}
