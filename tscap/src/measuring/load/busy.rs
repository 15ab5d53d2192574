//! How busy each CPU is.

use std::collections::BTreeMap;

use crate::capturing::host::kernel_files::{KernelFiles, read};

/// Ticks of each CPU so far by its number, all of them and the idle ones
/// (proc_stat(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks(BTreeMap<usize, [u64; 2]>);

impl Ticks {
    /// Now; of no CPU if they can't be read.
    pub fn read(files: &KernelFiles) -> Self {
        Self::parse(&read(&files.proc("stat")).unwrap_or_default())
    }

    fn parse(stat: &str) -> Self {
        let of_cpu = |line: &str| {
            let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
            let ticks: Vec<u64> = ticks.split_whitespace().flat_map(str::parse).collect();
            // Guests' time, from the ninth on, is part of user's; idle and waiting.
            let idle = ticks.iter().skip(3).take(2).sum();
            Some((cpu.parse().ok()?, [ticks.iter().take(8).sum(), idle]))
        };
        Self(stat.lines().filter_map(of_cpu).collect())
    }

    /// Share of the time since `before` that each CPU was busy, 0 to 1, by its number;
    /// 0 for one that was offline.
    pub fn busy_since(&self, before: &Self) -> Vec<f64> {
        let cpus = self.0.last_key_value().map_or(0, |(last, _)| last + 1);
        let share = |cpu| {
            let ([all, idle], [all_before, idle_before]) = (self.0.get(&cpu)?, before.0.get(&cpu)?);
            let all = all.saturating_sub(*all_before).max(1) as f64;
            Some(1.0 - idle.saturating_sub(*idle_before) as f64 / all)
        };
        (0..cpus).map(|cpu| share(cpu).unwrap_or(0.0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_not_idle() {
        let before = "cpu  9 9 9 9\ncpu0 100 0 50 800 10 0 0 40 5 0\ncpu1 0 0 0 0 0 0 0 0 0 0";
        let after = "cpu  9 9 9 9\ncpu0 150 0 50 840 20 0 0 40 5 0\ncpu1 0 0 7 0 0 0 3 0 0 0\n\
                     intr 1";
        let busy = Ticks::parse(after).busy_since(&Ticks::parse(before));
        assert_eq!(busy, [0.5, 1.0]);
        // CPU 1 is offline.
        let [before, after] = [before, after].map(|text| text.replace("cpu1", "cpu2"));
        let busy = Ticks::parse(&after).busy_since(&Ticks::parse(&before));
        assert_eq!(busy, [0.5, 0.0, 1.0]);
        assert!(
            Ticks::parse("")
                .busy_since(&Ticks::parse(&before))
                .is_empty()
        );
        assert!(!Ticks::read(&KernelFiles::live()).0.is_empty());
    }
}
