//! The synthetic load of the paper on single-hop delay (Tab. 1).

use std::hint::spin_loop;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use tscap_host::{affinity, caps};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Idle before the duty.
    pub idle: Duration,
    /// For how long the CPU is busy after that.
    pub duty: Duration,
    /// Whether the thread waits for the end of its idle time in a loop, rather than asleep.
    /// The paper does not say what the flag means; this is what its name suggests.
    pub is_busy: bool,
}

/// The paper's profile. The table has three groups of five rows, each of which begins with
/// one whose idle time can't be read in the text that we have ("7 100 False", "s 100
/// False" and "T 100 False"): those three are left out.
pub const PROFILE: [Phase; 12] = [
    phase(3_000, 1_560, false),
    phase(1_000, 250, true),
    phase(123, 60, false),
    phase(18_000, 4_000, false),
    phase(1_000, 1_560, false),
    phase(6_000, 250, true),
    phase(1_200, 60, false),
    phase(11_000, 4_000, false),
    phase(5_000, 1_560, false),
    phase(4_000, 250, true),
    phase(1_234, 60, false),
    phase(17_000, 4_000, false),
];

/// Busy all the time.
pub const BUSY: [Phase; 1] = [phase(0, 10_000, false)];

const fn phase(idle_us: u64, duty_us: u64, is_busy: bool) -> Phase {
    Phase {
        idle: Duration::from_micros(idle_us),
        duty: Duration::from_micros(duty_us),
        is_busy,
    }
}

/// What a thread really used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// The CPU that it is pinned to.
    pub cpu: u32,
    /// Share of the CPU's time that it had, 0 to 1.
    pub share: f64,
    /// Whole turns of the profile.
    pub turns: u64,
}

/// Threads that repeat the profile, one on each CPU, until this is dropped.
#[derive(Debug)]
pub struct PaperLoad {
    shared: Arc<Shared>,
    threads: Vec<(u32, Arc<Progress>, JoinHandle<()>)>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
}

/// Of a thread, which alone writes it.
#[derive(Debug, Default)]
struct Progress {
    /// Time since it began, ns.
    elapsed_ns: AtomicU64,
    /// CPU time, ns.
    used_ns: AtomicU64,
    turns: AtomicU64,
}

impl PaperLoad {
    /// Starts a thread on each of `cpus` that repeats [`PROFILE`].
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn start(cpus: &[u32]) -> io::Result<Self> {
        Self::of(&PROFILE, cpus)
    }

    /// Starts a thread on each of `cpus` that repeats a profile.
    ///
    /// # Errors
    /// A thread can't be started, or not be pinned to its CPU; no thread is left then.
    pub fn of(profile: &'static [Phase], cpus: &[u32]) -> io::Result<Self> {
        let mut load = Self {
            shared: Arc::default(),
            threads: Vec::new(),
        };
        for &cpu in cpus {
            let progress = Arc::<Progress>::default();
            let (shared, theirs) = (Arc::clone(&load.shared), Arc::clone(&progress));
            let (pinned, is_pinned) = std::sync::mpsc::channel();
            let thread = thread::Builder::new().name("tscap-load".into());
            let thread = thread.spawn(move || {
                // Best effort: it only computes and sleeps.
                let _ = caps::keep_only(&[]);
                let result = affinity::pin_to(cpu);
                let is_good = result.is_ok();
                // The starter waits for it.
                let _ = pinned.send(result);
                if is_good {
                    repeat(profile, &shared.stop, &theirs);
                }
            })?;
            load.threads.push((cpu, progress, thread));
            is_pinned.recv().map_err(io::Error::other)??;
        }
        Ok(load)
    }

    /// What the threads used so far.
    pub fn used(&self) -> Vec<CpuUse> {
        let of = |(cpu, progress, _): &(u32, Arc<Progress>, _)| {
            let elapsed = progress.elapsed_ns.load(Ordering::Acquire);
            let used = progress.used_ns.load(Ordering::Acquire);
            CpuUse {
                cpu: *cpu,
                share: used as f64 / elapsed.max(1) as f64,
                turns: progress.turns.load(Ordering::Acquire),
            }
        };
        self.threads.iter().map(of).collect()
    }

    /// Stops, and says in words what it was and what it used: "paper on CPU 1 (33 % of it)".
    pub fn end(self) -> String {
        self.describe()
    }

    /// What it is and what it used, in words.
    pub fn describe(&self) -> String {
        let used = self.used();
        let cpus: Vec<_> = used.iter().map(|it| it.cpu.to_string()).collect();
        let shares: Vec<_> = used
            .iter()
            .map(|it| format!("{:.0} %", 100.0 * it.share))
            .collect();
        let (noun, them) = match used.len() {
            1 => ("CPU", "it"),
            _ => ("CPUs", "them"),
        };
        let (cpus, shares) = (cpus.join(", "), shares.join(", "));
        format!("paper on {noun} {cpus} ({shares} of {them})")
    }
}

impl Drop for PaperLoad {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for (_, _, thread) in self.threads.drain(..) {
            thread.thread().unpark();
            // A thread that panicked loads nothing any more.
            let _ = thread.join();
        }
    }
}

/// Repeats a profile until it is to stop.
fn repeat(profile: &[Phase], stop: &AtomicBool, progress: &Progress) {
    let start = Instant::now();
    let used_before = cpu_time_ns();
    'turns: loop {
        for phase in profile {
            wait(phase.idle, phase.is_busy, stop);
            wait(phase.duty, true, stop);
            let used = cpu_time_ns().saturating_sub(used_before);
            progress.used_ns.store(used, Ordering::Release);
            let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            progress.elapsed_ns.store(elapsed, Ordering::Release);
            if stop.load(Ordering::Relaxed) {
                break 'turns;
            }
        }
        progress.turns.fetch_add(1, Ordering::Release);
    }
}

/// Waits so long, busily or asleep, or until it is to stop.
fn wait(time: Duration, is_busy: bool, stop: &AtomicBool) {
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        if is_busy {
            spin_loop();
        } else {
            // Woken when it is to stop.
            thread::park_timeout(left);
        }
    }
}

/// CPU time of this thread, ns; 0 if the kernel does not say.
fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    let time = time.map_or(Duration::ZERO, Duration::from);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A third: 17.6 ms of duties and 11 ms of busy idling in 86.2 ms.
    #[test]
    fn the_profile_takes_a_third_of_a_cpu() {
        let busy = |phase: &Phase| {
            if phase.is_busy {
                phase.idle + phase.duty
            } else {
                phase.duty
            }
        };
        let all: Duration = PROFILE.iter().map(|phase| phase.idle + phase.duty).sum();
        let busy: Duration = PROFILE.iter().map(busy).sum();
        assert_eq!((all.as_micros(), busy.as_micros()), (86_167, 28_610));
    }

    #[test]
    fn it_runs_until_it_is_dropped_and_says_what_it_used() {
        let cpu = affinity::allowed_cpus().unwrap()[0];
        let load = PaperLoad::start(&[cpu]).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let used = loop {
            let used = load.used()[0];
            if used.turns > 0 {
                break used;
            }
            assert!(Instant::now() < deadline, "no turn in 30 s");
            thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(used.cpu, cpu);
        // Others may take the CPU meanwhile; sleeping takes longer than asked for.
        assert!((0.01..=0.6).contains(&used.share), "{used:?}");
        let reported = load.describe();
        assert!(
            reported.starts_with(&format!("paper on CPU {cpu} (")),
            "{reported}"
        );
        // Between two duties it sleeps for up to 18 ms: it is woken.
        let shared = Arc::clone(&load.shared);
        drop(load);
        assert_eq!(Arc::strong_count(&shared), 1, "no thread is left");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        assert!(PaperLoad::start(&[8_000]).is_err());
    }
}
