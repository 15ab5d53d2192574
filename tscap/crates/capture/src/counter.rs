//! TSC stamps: the perf event of each CPU and its offset to the TSC.

use aya::Ebpf;

use super::event::Reporter;
use tscap_base::failure::Failure;
use tscap_base::text::causes::chain;
use tscap_clock::{Bounds, NsPerCycle, OffsetBracket, Tracker};
use tscap_engine::Recalibration;
use tscap_host::perf::{EventPriority, PerfError};
use tscap_programs::hook::{TscError, TscEvents, TscOffset, calibrate};

/// The events, one for each CPU that has a ring.
#[derive(Debug)]
pub struct Counter {
    _events: TscEvents,
    rate: NsPerCycle,
    cpus: Vec<Cpu>,
    /// Farthest that an offset has moved, ns.
    moved_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Cpu {
    number: u32,
    offset: TscOffset,
    /// Could not be looked at the last time: offline, or not ours any more.
    is_away: bool,
    /// The offset is all that was seen of an unstable counter.
    is_unstable: bool,
}

impl Counter {
    /// Opens the events for the programs of `object` and finds their offsets.
    pub fn open(
        ring_cpus: &[u32],
        priority: EventPriority,
        object: &mut Ebpf,
        tracker: &mut Tracker,
    ) -> Result<Self, Failure> {
        let rate = tracker.counter().expect("settled").rate();
        let events = TscEvents::open(object, ring_cpus, priority).map_err(refusal)?;
        let mut cpus = Vec::new();
        for number in ring_cpus.iter().copied() {
            let offset = calibrate(object, number, rate).map_err(refusal)?;
            cpus.push(Cpu {
                number,
                offset,
                is_away: false,
                is_unstable: false,
            });
        }
        let counter = Self {
            _events: events,
            rate,
            cpus,
            moved_ns: 0,
        };
        tracker.set_stamp_error_ns(counter.error_ns());
        Ok(counter)
    }

    /// Says how well each offset is known.
    pub fn say(&self, reporter: &mut Reporter<'_>) {
        for cpu in &self.cpus {
            reporter.detail(&format!(
                "CPU {}: TSC event's offset known to ±{} ns (a bracket of {} ns: event to \
                 CLOCK_MONOTONIC on this CPU {} ns, from there to the TSC {} ns)",
                cpu.number,
                error_ns(self.rate, cpu.offset.cycles),
                cpu.offset.bracket.whole_ns,
                cpu.offset.bracket.cpu_ns,
                cpu.offset.bracket.common_ns
            ));
        }
    }

    /// TSC less stamp of each ring, cycles, in the order of the rings.
    pub fn offsets(&self) -> Vec<i64> {
        self.cpus
            .iter()
            .map(|cpu| cpu.offset.cycles.middle().0)
            .collect()
    }

    /// How closely they were known at the start, the worst of them.
    pub fn bracket(&self) -> Option<OffsetBracket> {
        let brackets = self.cpus.iter().map(|cpu| cpu.offset.bracket);
        brackets.reduce(OffsetBracket::max)
    }

    /// Greatest error of a stamp by these offsets, unless an event pauses, ns.
    pub fn offset_error_ns(&self) -> u64 {
        let cpus = self.cpus.iter();
        let errors = cpus.map(|cpu| error_ns(self.rate, cpu.offset.cycles));
        errors.max().unwrap_or(0)
    }

    /// Greatest error of all stamps so far, ns.
    fn error_ns(&self) -> u64 {
        self.offset_error_ns() + self.moved_ns
    }

    /// Looks at each CPU again. An event's count can pause, when others open
    /// events there, and with it its offset moves: gives by how much at most, ns;
    /// 0 if all are as they were. Stamps since the look before are off by as much. A
    /// CPU that is offline now is passed over: it takes in no frames, and is looked at
    /// again when it is back.
    pub fn look(&mut self, object: &mut Ebpf, reporter: &mut Reporter<'_>) -> u64 {
        let mut farthest_ns = 0;
        for cpu in &mut self.cpus {
            let found = calibrate(object, cpu.number, self.rate);
            let PhcOutcome { moved_ns, warning } = cpu.take(found, self.rate);
            farthest_ns = farthest_ns.max(moved_ns);
            if let Some(warning) = warning {
                reporter.warning(&format!("CPU {}: {warning}", cpu.number));
            }
        }
        farthest_ns
    }

    /// The same for a converter, which is given the new offsets: the bound of all its stamps
    /// grows by as much.
    pub fn recheck(
        &mut self,
        object: &mut Ebpf,
        reporter: &mut Reporter<'_>,
    ) -> Option<Recalibration> {
        let moved_ns = self.look(object, reporter);
        self.moved_ns = self.moved_ns.max(moved_ns);
        (moved_ns > 0).then(|| Recalibration {
            offsets: self.offsets(),
            stamp_error_ns: self.error_ns(),
        })
    }
}

/// What another look at a CPU gave.
#[derive(Debug, PartialEq, Eq)]
struct PhcOutcome {
    /// How far off stamps may be that were converted by the offset before, ns.
    moved_ns: u64,
    warning: Option<String>,
}

impl Cpu {
    fn take(&mut self, found: Result<TscOffset, TscError>, rate: NsPerCycle) -> PhcOutcome {
        let before = self.offset.cycles;
        let was_unstable = self.is_unstable;
        let (now, why) = match found {
            Ok(now) => {
                (self.is_away, self.is_unstable) = (false, false);
                let both = before.intersect(now.cycles);
                if let Some(both) = both.filter(|_| !was_unstable) {
                    self.offset.cycles = both;
                    return PhcOutcome {
                        moved_ns: 0,
                        warning: None,
                    };
                }
                let why = if was_unstable {
                    "its TSC event has a constant offset to the TSC again"
                } else {
                    "its TSC event has paused, as when somebody else opens one"
                };
                (now, why.into())
            }
            Err(error @ TscError::Unstable { seen, .. }) => {
                self.is_unstable = true;
                (seen, error.to_string())
            }
            Err(error) => {
                let is_news = !std::mem::replace(&mut self.is_away, true);
                return PhcOutcome {
                    moved_ns: 0,
                    warning: is_news.then(|| chain(&error)),
                };
            }
        };
        self.offset = now;
        let from = before.middle().0;
        let farthest = [now.cycles.low, now.cycles.high].map(|to| to.abs_diff(from));
        let moved_ns = rate.duration_ns(farthest[0].max(farthest[1])) + 1;
        PhcOutcome {
            moved_ns,
            warning: Some(format!(
                "{why}: stamps taken there in the last seconds are off by up to {moved_ns} ns, \
                 which the bound now allows for"
            )),
        }
    }
}

fn error_ns(rate: NsPerCycle, offset: Bounds) -> u64 {
    rate.duration_ns(offset.half_width()) + 1
}

fn refusal(error: TscError) -> Failure {
    let hint = match &error {
        TscError::Perf(PerfError::NoPmu { .. }) => {
            "this kernel has no perf PMU for the TSC: --clock ktime works everywhere"
        }
        TscError::Perf(PerfError::Open { source, .. })
            if matches!(source.raw_os_error(), Some(libc::EACCES | libc::EPERM)) =>
        {
            "it needs CAP_PERFMON, and kernel.perf_event_paranoid at 2 or less"
        }
        TscError::Unstable { .. } => "take --clock ktime: the kernel looks after its own clock",
        _ => "--clock ktime works everywhere",
    };
    Failure::from_error(error, "cannot stamp with the TSC").hint(hint)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const BRACKET: OffsetBracket = OffsetBracket {
        cpu_ns: 80,
        common_ns: 30,
        whole_ns: 110,
    };

    fn offset(low: i64, high: i64) -> TscOffset {
        TscOffset {
            cycles: Bounds { low, high },
            bracket: BRACKET,
        }
    }

    fn cpu() -> Cpu {
        Cpu {
            number: 1,
            offset: offset(1_000, 1_100),
            is_away: false,
            is_unstable: false,
        }
    }

    /// Two cycles a nanosecond.
    fn rate() -> NsPerCycle {
        NsPerCycle::of(500, 1_000).expect("a rate")
    }

    #[test]
    fn an_offset_that_stays_is_narrowed() {
        let mut cpu = cpu();
        let looked = cpu.take(Ok(offset(1_060, 1_200)), rate());
        assert_eq!((looked.moved_ns, looked.warning), (0, None));
        assert_eq!(cpu.offset, offset(1_060, 1_100));
    }

    #[test]
    fn an_offset_that_moved_is_taken_over_and_bounds_what_was_stamped_before() {
        let mut cpu = cpu();
        let looked = cpu.take(Ok(offset(5_000, 5_100)), rate());
        // From 1,050 to 5,100 cycles.
        assert_eq!(looked.moved_ns, 2_026);
        assert!(looked.warning.expect("it").contains("has paused"));
        assert_eq!(cpu.offset, offset(5_000, 5_100));
    }

    #[test]
    fn a_counter_that_became_unstable_is_bounded_by_all_that_was_seen() {
        let mut cpu = cpu();
        let unstable = |low, high| {
            let seen = offset(low, high);
            Err(TscError::Unstable { cpu: 1, seen })
        };
        for (low, high, moved_ns) in [(1_000, 9_050, 4_001), (1_025, 9_050, 2_014)] {
            let looked = cpu.take(unstable(low, high), rate());
            assert_eq!(looked.moved_ns, moved_ns);
            let warning = looked.warning.expect("each time");
            assert!(warning.contains("the counter is unstable"), "{warning}");
            assert_eq!(cpu.offset, offset(low, high));
        }
        // Once it is stable again stamps go by what it is then: from 5,037 cycles.
        let looked = cpu.take(Ok(offset(9_000, 9_100)), rate());
        assert_eq!((looked.moved_ns, cpu.offset), (2_033, offset(9_000, 9_100)));
        assert_eq!(cpu.take(Ok(offset(9_050, 9_150)), rate()).moved_ns, 0);
        assert_eq!(cpu.offset.cycles, offset(9_050, 9_100).cycles);
    }

    #[test]
    fn a_cpu_that_is_away_is_told_of_once() {
        let mut cpu = cpu();
        let dead = || {
            let source = io::Error::from_raw_os_error(libc::ENOENT);
            Err(TscError::Dead { cpu: 1, source })
        };
        let warning = cpu.take(dead(), rate()).warning.expect("the first time");
        assert!(warning.contains("can't be read any more"), "{warning}");
        assert!(warning.contains("No such file"), "{warning}");
        assert_eq!(cpu.take(dead(), rate()).warning, None);
        assert_eq!(cpu.take(Ok(cpu.offset), rate()).warning, None);
        assert!(cpu.take(dead(), rate()).warning.is_some());
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        let no_pmu = PerfError::NoPmu {
            path: "/sys/bus/event_source/devices/msr/type".into(),
            source: io::ErrorKind::NotFound.into(),
        };
        let forbidden = PerfError::Open {
            cpu: 3,
            source: io::Error::from_raw_os_error(libc::EACCES),
        };
        for (error, says) in [
            (no_pmu.into(), ["no perf PMU `msr`", "--clock ktime"]),
            (forbidden.into(), ["on CPU 3", "CAP_PERFMON"]),
            (
                TscError::Unstable {
                    cpu: 1,
                    seen: offset(0, 9_000),
                },
                ["CPU 1 has no constant offset", "--clock ktime"],
            ),
        ] {
            let text = refusal(error).to_string();
            assert!(text.starts_with("cannot stamp with the TSC: "), "{text}");
            assert!(says.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
