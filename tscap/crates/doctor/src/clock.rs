//! The counter, the clock that the kernel makes of it, and how near that is to
//! UTC.

use super::check::{Check, Topic, advice, fix};
use tscap_arch::{CLOCK_SOURCE, CONSTANT_FEATURES, COUNTER};
use tscap_base::kernel_files::{KernelFiles, read};
use tscap_clock::LEAST_TAI_OFFSET_S;
use tscap_host::process;
use tscap_time::cpuinfo::Flags;
use tscap_time::timex::KernelClock;
use tscap_time::tsc;

const TSC: Topic = Topic {
    id: "tsc",
    why: "A counter that changes its rate or stops is no clock: --clock tsc refuses it.",
};
const SOURCE: Topic = Topic {
    id: "clocksource",
    why: "Every ktime and tai stamp reads it, and none is read as fast and as finely as the TSC.",
};
const SYNC: Topic = Topic {
    id: "clock_sync",
    why: "Wall-clock times are no nearer to UTC than this clock is; intervals hold without it.",
};
const TAI: Topic = Topic {
    id: "tai_offset",
    why: "`convert --time-base tai` and stamps of --clock tai are TAI only by this offset; the \
          times in a capture do not need it.",
};

/// Where the kernel's clock source is chosen.
const FOLDER: &str = "devices/system/clocksource/clocksource0";
/// Daemons that set the clock, by the name of the process, and how to see what
/// each is at.
const DAEMONS: [(&str, &str); 5] = [
    ("chronyd", "chronyc waitsync 30"),
    ("ntpd", "ntpq -p"),
    ("systemd-timesyn", "timedatectl timesync-status"),
    ("ptp4l", "pmc -u -b 0 'GET TIME_STATUS_NP'"),
    ("phc2sys", "pmc -u -b 0 'GET TIME_STATUS_NP'"),
];
const NO_ADJTIMEX: &str = "a seccomp filter forbids adjtimex: run tscap outside of the container";
/// A synchronised clock with more than this between it and UTC has lost its
/// reference: over the internet NTP keeps some tens of milliseconds.
const LARGEST_ERROR_NS: u64 = 100_000_000;

/// Whether the counter runs at one rate at all times.
pub(super) fn tsc(files: &KernelFiles) -> Check {
    counter(files, CONSTANT_FEATURES)
}

/// The same, if `needed` are the features that say so.
fn counter(files: &KernelFiles, needed: &[&str]) -> Check {
    TSC.by_files(|| {
        let flags = Flags::read(files)?;
        let missing: Vec<_> = needed.iter().filter(|flag| !flags.has(flag)).collect();
        Ok(if let [first, more @ ..] = &missing[..] {
            let more: String = more.iter().map(|flag| format!(" and no {flag}")).collect();
            let remedy = if flags.is_virtual() {
                "take --clock ktime, or let the host give this machine an invariant TSC \
                 (QEMU: -cpu host,migratable=no,+invtsc)"
            } else {
                "take --clock ktime: this CPU has no better counter"
            };
            TSC.warning(format!("this CPU has no {first}{more}"), advice(remedy))
        } else if !tsc::is_offered(files)? {
            TSC.warning(
                "the kernel found it unstable and does not use it",
                advice("take --clock ktime; `dmesg | grep -i clocksource` says what was found"),
            )
        } else {
            TSC.good("constant, nonstop, and the kernel trusts it")
        })
    })
}

/// Which clock source the kernel uses.
pub(super) fn source(files: &KernelFiles) -> Check {
    SOURCE.by_files(|| {
        let file = files.sys(FOLDER).join("current_clocksource");
        let current = read(&file)?;
        Ok(if current == CLOCK_SOURCE {
            SOURCE.good(CLOCK_SOURCE)
        } else if tsc::is_offered(files)? {
            let found = format!("{current}, although there is {CLOCK_SOURCE}");
            let choose = format!("echo {CLOCK_SOURCE} > /sys/{FOLDER}/current_clocksource");
            SOURCE.warning(found, fix(choose))
        } else {
            let remedy = if Flags::read(files)?.is_virtual() {
                format!("it can't be chosen from inside: the host must offer an invariant {COUNTER}")
            } else {
                format!(
                    "`dmesg | grep -i -e {CLOCK_SOURCE} -e clocksource` says why the kernel gave up \
                     the {COUNTER}"
                )
            };
            SOURCE.warning(
                format!("{current}; the kernel offers no {CLOCK_SOURCE}"),
                advice(remedy),
            )
        })
    })
}

/// Whether the clock is kept in step with UTC, and how near the kernel says it is.
pub(super) fn sync(files: &KernelFiles, clock: &Result<KernelClock, String>) -> Check {
    SYNC.by_files(|| {
        let clock = match clock {
            Ok(clock) => clock,
            Err(error) => {
                return Ok(SYNC.warning(format!("not known: {error}"), advice(NO_ADJTIMEX)));
            }
        };
        let error = format!(
            "within ±{} ms of UTC",
            clock.max_error_ns.div_ceil(1_000_000)
        );
        if clock.synchronised && clock.max_error_ns <= LARGEST_ERROR_NS {
            return Ok(SYNC.good(format!("synchronised, {error} as the kernel says")));
        }
        let state = if clock.synchronised {
            format!("synchronised, but only {error}")
        } else {
            "unsynchronised: no bound to UTC".into()
        };
        let names = DAEMONS.map(|(name, _)| name);
        let running = process::running(files, &names)?;
        if let Some((_, name)) = running {
            let look = DAEMONS.iter().find(|(daemon, _)| *daemon == name);
            let look = look.map_or("", |(_, look)| look);
            return Ok(SYNC.warning(format!("{state}; {name} runs"), fix(look)));
        }
        let remedy = if process::has_systemd(files)? {
            fix("timedatectl set-ntp true")
        } else {
            advice("start a time daemon, chronyd for instance")
        };
        Ok(SYNC.warning(format!("{state}; no time daemon runs"), remedy))
    })
}

/// Whether a time daemon has given the kernel TAI − UTC.
pub(super) fn tai(clock: &Result<KernelClock, String>) -> Check {
    match clock.as_ref().map(|clock| i64::from(clock.tai_offset_s)) {
        Ok(offset_s) if offset_s >= LEAST_TAI_OFFSET_S => TAI.good(format!("{offset_s} s")),
        Ok(offset_s) => TAI.warning(
            format!("{offset_s} s: no time daemon has set it"),
            advice(
                "chronyd sets it with `leapsectz right/UTC` in chrony.conf; until then `tscap \
                 convert --time-base tai` goes by the leap-second table of tzdata",
            ),
        ),
        Err(error) => TAI.warning(format!("not known: {error}"), advice(NO_ADJTIMEX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict::{Good, Warning};
    use tscap_arch::FEATURES_FIELD;
    use tscap_base::recorded::Recorded;
    use tscap_time::timex::Leap;

    fn machine(flags: &str, current: &str, available: &str) -> Recorded {
        let machine = Recorded::veth();
        machine.put("proc/cpuinfo", &format!("{FEATURES_FIELD}\t: fpu {flags}"));
        machine.put(&format!("sys/{FOLDER}/current_clocksource"), current);
        machine.put(&format!("sys/{FOLDER}/available_clocksource"), available);
        machine
    }

    #[test]
    fn a_counter_must_be_constant_nonstop_and_trusted() {
        let needed = ["constant_tsc", "nonstop_tsc"];
        let check =
            |flags, available| counter(&machine(flags, CLOCK_SOURCE, available).files, &needed);
        let offered = format!("{CLOCK_SOURCE} hpet");
        check("constant_tsc nonstop_tsc", &offered).is(Good, "trusts it");
        let neither = "this CPU has no constant_tsc and no nonstop_tsc";
        check("tsc", &offered).is(Warning, neither).advises("ktime");
        check("constant_tsc hypervisor", &offered)
            .is(Warning, "this CPU has no nonstop_tsc")
            .advises("+invtsc");
        check("constant_tsc nonstop_tsc", "hpet acpi_pm")
            .is(Warning, "unstable")
            .advises("dmesg");
        tsc(&Recorded::veth().files).is(Warning, "cpuinfo");
    }

    #[test]
    fn the_clock_source_is_to_be_the_counter() {
        let check = |flags, current, available| source(&machine(flags, current, available).files);
        let offered = format!("kvm-clock {CLOCK_SOURCE}");
        check("", CLOCK_SOURCE, &offered).is(Good, CLOCK_SOURCE);
        let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        check("", "kvm-clock", &offered)
            .is(Warning, "kvm-clock, although")
            .fixed_by(&format!("echo {CLOCK_SOURCE} > {file}"));
        check("", "hpet", "hpet acpi_pm")
            .is(Warning, "hpet")
            .advises("dmesg");
        check("hypervisor", "hpet", "hpet")
            .is(Warning, "hpet")
            .advises("host");
        source(&Recorded::veth().files).is(Warning, "current_clocksource");
    }

    const CLOCK: KernelClock = KernelClock {
        synchronised: true,
        max_error_ns: 0,
        est_error_ns: 0,
        tai_offset_s: 37,
        frequency_ppb: 0,
        tick_ppb: 0,
        leap: Leap::None,
    };

    #[test]
    fn the_kernel_is_to_have_the_offset_of_tai() {
        tai(&Ok(CLOCK)).is(Good, "37 s");
        // A leap second since boot, with no daemon.
        for tai_offset_s in [0, 1] {
            let clock = KernelClock {
                tai_offset_s,
                ..CLOCK
            };
            tai(&Ok(clock))
                .is(Warning, "no time daemon has set it")
                .advises("leapsectz");
        }
        tai(&Err("EPERM".into())).is(Warning, "not known: EPERM");
    }

    #[test]
    fn the_clock_is_to_be_synchronised() {
        let clock = |synchronised, max_error_ns| {
            Ok(KernelClock {
                synchronised,
                max_error_ns,
                ..CLOCK
            })
        };
        let machine = Recorded::veth();
        let check = |clock| sync(&machine.files, &clock);
        check(clock(true, 12_100_000)).is(Good, "within ±13 ms of UTC");
        check(clock(true, 100_000_001)).is(Warning, "only within ±101 ms");
        check(clock(false, 0))
            .is(Warning, "no bound to UTC; no time daemon runs")
            .advises("chronyd");
        machine.put("proc/1/comm", "systemd");
        check(clock(false, 0)).fixed_by("timedatectl set-ntp true");
        machine.put("proc/9/comm", "chronyd");
        check(clock(false, 16_000_000_000))
            .is(Warning, "chronyd runs")
            .fixed_by("chronyc waitsync 30");
        check(Err("cannot read".into()))
            .is(Warning, "cannot read")
            .advises("seccomp");
    }
}
