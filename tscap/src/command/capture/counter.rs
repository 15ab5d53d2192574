//! TSC stamps: the perf event of each CPU and its offset to the TSC.

use crate::clock::{Bounds, NsPerCycle, OffsetBracket, Tracker};
use crate::command::console::Console;
use crate::command::{Failure, Hint};
use crate::engine::Recalibration;
use crate::sys::perf::{PerfError, Standing};
use crate::xdp::{Loaded, TscError, TscEvents, TscOffset};

/// The events, one for each CPU that has a ring.
#[derive(Debug)]
pub(super) struct Counter {
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
}

impl Counter {
    /// Opens the events and finds their offsets.
    pub fn open(
        ring_cpus: &[u32],
        standing: Standing,
        loaded: &mut Loaded,
        tracker: &mut Tracker,
    ) -> Result<Self, Failure> {
        let rate = tracker.counter().expect("settled").rate();
        let events = loaded
            .open_tsc_events(ring_cpus, standing)
            .map_err(refusal)?;
        let mut cpus = Vec::new();
        for number in ring_cpus.iter().copied() {
            let offset = loaded.tsc_offset(number, rate).map_err(refusal)?;
            cpus.push(Cpu {
                number,
                offset,
                is_away: false,
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
    pub fn say(&self, console: &mut Console) {
        for cpu in &self.cpus {
            console.detail(&format!(
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

    /// Greatest error of these, ns.
    fn error_ns(&self) -> u64 {
        let errors = self
            .cpus
            .iter()
            .map(|cpu| error_ns(self.rate, cpu.offset.cycles));
        errors.max().unwrap_or(0) + self.moved_ns
    }

    /// Looks at each CPU again. An event's count can pause, when others open
    /// events there, and with it its offset moves: the new one is given to the
    /// converter, and the bound grows by as much. A CPU that is offline now is
    /// passed over: it takes in no frames, and is looked at again when it is back.
    pub fn recheck(&mut self, loaded: &mut Loaded, console: &mut Console) -> Option<Recalibration> {
        let mut has_moved = false;
        for cpu in &mut self.cpus {
            match loaded.tsc_offset(cpu.number, self.rate) {
                Ok(now) => {
                    cpu.is_away = false;
                    if let Some(both) = cpu.offset.cycles.intersect(now.cycles) {
                        cpu.offset.cycles = both;
                        continue;
                    }
                    has_moved = true;
                    let moved = now
                        .cycles
                        .middle()
                        .0
                        .wrapping_sub(cpu.offset.cycles.middle().0);
                    let moved_ns = self.rate.duration_ns(moved.unsigned_abs());
                    self.moved_ns = self.moved_ns.max(moved_ns);
                    cpu.offset = now;
                    console.warning(&format!(
                        "CPU {}: its TSC event has paused for {moved} cycles, as when somebody \
                         else opens one: stamps taken there in the last seconds are off by up \
                         to {moved_ns} ns, which the bound now allows for",
                        cpu.number
                    ));
                }
                Err(_) if cpu.is_away => {}
                Err(error) => {
                    cpu.is_away = true;
                    console.warning(&format!("CPU {}: {error}", cpu.number));
                }
            }
        }
        has_moved.then(|| Recalibration {
            offsets: self.offsets(),
            stamp_error_ns: self.error_ns(),
        })
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
    Err::<(), _>(error)
        .trying("cannot stamp with the TSC")
        .expect_err("it is one")
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

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
                TscError::Unstable { cpu: 1 },
                ["CPU 1 has no constant offset", "--clock ktime"],
            ),
        ] {
            let text = refusal(error).to_string();
            assert!(text.starts_with("cannot stamp with the TSC: "), "{text}");
            assert!(says.iter().all(|part| text.contains(part)), "{text}");
        }
    }
}
