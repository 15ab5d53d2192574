//! `--clock` of what stamps frames: a clock, and of the TSC also the only way to it.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use tscap_capture::ClockChoice;
use tscap_clock::TscPath;

/// A clock to stamp frames with, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StampClock {
    pub clock: ClockChoice,
    /// Without one the first that works.
    pub path: Option<TscPath>,
}

impl StampClock {
    const fn any(clock: ClockChoice) -> Self {
        Self { clock, path: None }
    }

    const fn by(path: TscPath) -> Self {
        Self {
            clock: ClockChoice::Tsc,
            path: Some(path),
        }
    }
}

impl ValueEnum for StampClock {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [StampClock; 8] = [
            StampClock::any(ClockChoice::Auto),
            StampClock::any(ClockChoice::Ktime),
            StampClock::any(ClockChoice::Tai),
            StampClock::any(ClockChoice::Tsc),
            StampClock::by(TscPath::Kernel),
            StampClock::by(TscPath::Module),
            StampClock::by(TscPath::ModuleOrdered),
            StampClock::by(TscPath::Perf),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let Some(path) = self.path else {
            return self.clock.to_possible_value();
        };
        let (value, help) = match path {
            TscPath::Kernel => (
                "tsc:kernel",
                "The kernel's own kfunc, bpf_get_cpu_time_counter; in no released kernel known",
            ),
            TscPath::Module => (
                "tsc:module",
                "The kfunc of tscap's kernel module (tscap-ebpf/kmod)",
            ),
            TscPath::ModuleOrdered => ("tsc:module-ordered", "The same module's ordered read"),
            TscPath::Perf => ("tsc:perf", "A perf event (kernel 6.16)"),
        };
        Some(PossibleValue::new(value).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_the_tsc_can_be_asked_for() {
        for path in TscPath::ALL {
            let asked = format!("tsc:{}", path.name());
            let read = StampClock::from_str(&asked, false);
            assert_eq!(read, Ok(StampClock::by(path)));
        }
        for clock in ClockChoice::value_variants() {
            let name = clock.to_possible_value().expect("a name");
            let read = StampClock::from_str(name.get_name(), false);
            assert_eq!(read, Ok(StampClock::any(*clock)));
        }
        assert!(StampClock::from_str("ktime:perf", false).is_err());
    }
}
