//! Counters that the machine of the tests lacks: what they show is right, how long reading them
//! takes means nothing here.

use tscap_lab::counters::schema::Subject;
use tscap_lab::counters::{Characteristics, Counter};
use tscap_report::saved::Saved;

use crate::agent::{MODULE, SETPRIV, TSCAP};
use crate::guest::Guest;
use crate::machine::{Processor, Rig};

use super::directions::is_at_least;

/// The machine's own oscillator is that of all of them: QEMU makes them of one clock.
const MOST_PPM: f64 = 20_000.0;

fn characteristics(guest: &Guest, line: &[&str]) -> Characteristics {
    let json = guest.must(line);
    match Saved::from_json(&json) {
        Ok(Saved::Counters(characteristics)) => *characteristics,
        other => panic!("{other:?}: {json}"),
    }
}

fn of(all: &Characteristics, counter: Counter) -> &Subject {
    let found = all.counters.iter().find(|it| it.counter == counter);
    found.unwrap_or_else(|| panic!("{counter:?}: {:?}", all.absent))
}

fn source(guest: &Guest) -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    guest.must(&["cat", path])
}

/// HPET and ACPI's timer, of the frequencies that they state, and the module's kfuncs; the clock
/// source stays what it was. Another user is told why it reads less.
pub fn of_the_chipset(rig: &Rig) {
    let machine = rig.boot_on(Processor::ConstantTsc, &[]);
    let guest = &machine.guest;
    guest.must(&["insmod", MODULE]);
    let before = source(guest);
    let all = characteristics(guest, &[TSCAP, "counters", "--cycle", "6", "--json"]);
    assert_eq!(source(guest), before);
    for (counter, hertz, bits) in [
        (Counter::Hpet, 100e6, 32),
        (Counter::AcpiPm, 3_579_545.0, 24),
        (Counter::AcpiPmSafe, 3_579_545.0, 24),
    ] {
        let subject = of(&all, counter);
        assert_eq!((subject.hertz, subject.bits), (hertz, bits), "{counter:?}");
        assert!(subject.step_ticks > 0 && subject.failed == 0, "{subject:?}");
        assert!(subject.latency[0].expect("it was read").n > 100);
    }
    // ACPI's wraps every 4.7 s, and is counted on.
    for counter in [Counter::Hpet, Counter::AcpiPm, Counter::RawVdso] {
        let subject = of(&all, counter);
        let rate = subject.rate[0].expect("a rate");
        let ppm = (rate.hertz / subject.hertz - 1.0) * 1e6;
        assert!(ppm.abs() < MOST_PPM, "{counter:?}: {ppm}");
        assert!(subject.scales.is_empty(), "one oscillator is no reference");
    }
    for counter in [
        Counter::Ktime,
        Counter::Tai,
        Counter::TscModule,
        Counter::TscModuleOrdered,
    ] {
        assert!(of(&all, counter).latency[0].is_some(), "{counter:?}");
    }
    let reads_perf = is_at_least(guest, (6, 16));
    let has_perf = all.counters.iter().any(|it| it.counter == Counter::TscPerf);
    assert!(reads_perf || !has_perf, "{all:?}");

    let user = [
        SETPRIV,
        "--reuid",
        "1000",
        "--clear-groups",
        TSCAP,
        "counters",
    ];
    let all = characteristics(
        guest,
        &[&user[..], &["--cycle", "500ms", "--json"]].concat(),
    );
    for counter in [Counter::Hpet, Counter::AcpiPm, Counter::Ktime] {
        let why = all.absent.iter().find(|it| it.counter == counter);
        let why = &why.expect("it takes root").why;
        assert!(
            why.contains("ermi") || why.contains("EPERM"),
            "{counter:?}: {why}"
        );
    }
    assert!(of(&all, Counter::Tsc).latency[0].is_some());
}
