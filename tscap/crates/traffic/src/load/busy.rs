//! How busy each CPU is, and with what.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tscap_base::kernel_files::{KernelFiles, read};

/// Ticks that the kernel tells apart: user, nice, system, idle, waiting, interrupts,
/// softirqs, stolen (proc_stat(5)). Guests' time, from the ninth on, is part of user's.
const KINDS: usize = 8;

/// Shares of a time in which a CPU did something, 0 to 1, by the kernel's ticks; the rest it
/// was idle. A kernel thread that receives frames (threaded NAPI) counts as system, not
/// softirq.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuLoad {
    /// Programs, also those of low priority.
    pub user: f64,
    /// The kernel for programs, and its threads.
    pub system: f64,
    /// Handlers of interrupts.
    pub irq: f64,
    /// Softirqs: receiving frames among them.
    pub softirq: f64,
    /// Another virtual machine ran.
    pub steal: f64,
}

impl CpuLoad {
    /// Share of the time in which the CPU was not idle, 0 to 1.
    pub fn busy(&self) -> f64 {
        (self.user + self.system + self.irq + self.softirq + self.steal).min(1.0)
    }
}

/// Ticks of each CPU so far, by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticks(BTreeMap<usize, [u64; KINDS]>);

impl Ticks {
    /// Now; of no CPU if they can't be read.
    pub fn read(files: &KernelFiles) -> Self {
        Self::parse(&read(&files.proc("stat")).unwrap_or_default())
    }

    fn parse(stat: &str) -> Self {
        let of_cpu = |line: &str| {
            let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            let mut kinds = [0; KINDS];
            let ticks = ticks.split_whitespace().flat_map(str::parse);
            kinds
                .iter_mut()
                .zip(ticks)
                .for_each(|(kind, ticks)| *kind = ticks);
            Some((cpu.parse().ok()?, kinds))
        };
        Self(stat.lines().filter_map(of_cpu).collect())
    }

    /// What each CPU did since `before`, by its number; nothing if it was offline.
    pub fn load_since(&self, before: &Self) -> Vec<CpuLoad> {
        let cpus = self.0.last_key_value().map_or(0, |(last, _)| last + 1);
        let load = |cpu| {
            let (now, before) = (self.0.get(&cpu)?, before.0.get(&cpu)?);
            let since: [u64; KINDS] =
                std::array::from_fn(|kind| now[kind].saturating_sub(before[kind]));
            let all = since.iter().sum::<u64>().max(1) as f64;
            let share = |ticks: u64| ticks as f64 / all;
            let [user, nice, system, _, _, irq, softirq, steal] = since;
            Some(CpuLoad {
                user: share(user + nice),
                system: share(system),
                irq: share(irq),
                softirq: share(softirq),
                steal: share(steal),
            })
        };
        (0..cpus).map(|cpu| load(cpu).unwrap_or_default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(loads: &[CpuLoad]) -> Vec<f64> {
        loads.iter().map(CpuLoad::busy).collect()
    }

    #[test]
    fn busy_is_what_is_not_idle() {
        let before = "cpu  9 9 9 9\ncpu0 100 0 50 800 10 0 0 40 5 0\ncpu1 0 0 0 0 0 0 0 0 0 0";
        let after = "cpu  9 9 9 9\ncpu0 150 0 50 840 20 0 0 40 5 0\ncpu1 0 0 7 0 0 0 3 0 0 0\n\
                     intr 1";
        let load = Ticks::parse(after).load_since(&Ticks::parse(before));
        assert_eq!(busy(&load), [0.5, 1.0]);
        // CPU 1 is offline.
        let [before, after] = [before, after].map(|text| text.replace("cpu1", "cpu2"));
        let load = Ticks::parse(&after).load_since(&Ticks::parse(&before));
        assert_eq!(busy(&load), [0.5, 0.0, 1.0]);
        assert!(
            Ticks::parse("")
                .load_since(&Ticks::parse(&before))
                .is_empty()
        );
        assert!(!Ticks::read(&KernelFiles::live()).0.is_empty());
    }

    /// What mpstat shows: programs, the kernel, interrupts and softirqs by themselves.
    #[test]
    fn what_a_cpu_did_is_told_apart() {
        let before = "cpu0 0 0 0 0 0 0 0 0 0 0";
        let after = "cpu0 10 5 20 25 0 5 30 5 0 0";
        let load = Ticks::parse(after).load_since(&Ticks::parse(before));
        let expected = CpuLoad {
            user: 0.15,
            system: 0.2,
            irq: 0.05,
            softirq: 0.3,
            steal: 0.05,
        };
        assert_eq!(load, [expected]);
    }
}
