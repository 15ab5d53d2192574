//! A test bed: a sender, a pair, and one capture after the other at its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::sched::sched_getcpu;
use nix::unistd::Pid;

use super::arguments::Setup;
use super::busy::{CpuLoad, Ticks};
use super::capture::{Capture, LoadError};
use super::pair::Pair;
use super::point::Point;
use super::receive_cpu::poll_on;
use super::stack_end;
use super::stop::Stop;
use super::tool::Program;
use super::traffic::{Burst, Traffic};
use crate::generator::Sent;
use tscap_base::kernel_files::KernelFiles;
use tscap_host::process;
use tscap_network::clsact::Clsact;

/// Longest that a capture may go on working when all has been sent.
const BACKLOG: Duration = Duration::from_secs(20);
/// Between bursts of the same: a buffer of 64 MiB is written to memory in less.
const PAUSE: Duration = Duration::from_millis(100);

/// The test bed. Frames that a capture leaves to the system go up its stack, where
/// nobody has their address.
pub struct TestBed {
    /// Before the pair: it goes first.
    _behind_taps: Option<Clsact>,
    pair: Pair,
    traffic: Traffic,
    stop: Arc<Stop>,
    /// Receives too what does not fit behind the sender's system calls.
    ksoftirqd: Option<Pid>,
    burst_cpu: Duration,
    least_burst_cpu: Duration,
}

impl TestBed {
    /// For this thread, which stays on the CPU that it is pinned to, and is moved
    /// into the sending end's namespace.
    pub fn new(pair: Pair, stop: Arc<Stop>) -> io::Result<Self> {
        pair.take_redirected()?;
        pair.tx_netns.enter()?;
        // Without a rate of the TSC it does not matter on which CPU.
        let traffic = Traffic::new(&pair, 0, None)?;
        Self::with(pair, traffic, stop)
    }

    /// The same, where frames are sent through the network stack.
    pub fn through_stack(pair: Pair, stop: Arc<Stop>) -> io::Result<Self> {
        pair.tx_netns.enter()?;
        let traffic = Traffic::through_stack(&pair)?;
        Self::with(pair, traffic, stop)
    }

    fn with(pair: Pair, traffic: Traffic, stop: Arc<Stop>) -> io::Result<Self> {
        let name = format!("ksoftirqd/{}", sched_getcpu()?);
        let ksoftirqd = process::running(&KernelFiles::live(), &[&name]);
        let ksoftirqd = ksoftirqd.map_err(io::Error::other)?;
        Ok(Self {
            _behind_taps: None,
            pair,
            traffic,
            stop,
            ksoftirqd: ksoftirqd.map(|(pid, _)| Pid::from_raw(pid.cast_signed())),
            burst_cpu: Duration::ZERO,
            least_burst_cpu: Duration::ZERO,
        })
    }

    /// Drops what a capture leaves to the system right behind the taps of packet sockets, from
    /// now on: nothing can be cheaper for a program that captures there.
    ///
    /// # Errors
    /// If no filter of tc can be attached (Linux 4.5 can).
    pub fn dropping_behind_taps(self) -> io::Result<Self> {
        let behind_taps = stack_end::behind_taps(&self.pair)?;
        Ok(Self {
            _behind_taps: Some(behind_taps),
            ..self
        })
    }

    /// Receives on `cpu` from now on, or as usual on the sender's.
    ///
    /// # Errors
    /// ENOENT before Linux 5.12.
    pub fn receive_on(&mut self, cpu: Option<u32>) -> io::Result<()> {
        poll_on(&self.pair, cpu)
    }

    /// Sends a burst that nothing captures.
    pub fn send(&mut self, burst: Burst) -> io::Result<Sent> {
        let before = self.cpu_time()?;
        let (_, sent) = self.traffic.send(burst)?;
        self.burst_cpu = self.cpu_time()?.saturating_sub(before);
        Ok(sent)
    }

    /// The same while a native XDP program drops each frame and does nothing else: nothing can
    /// be received at a higher rate.
    pub fn send_dropped(&mut self, burst: Burst) -> io::Result<Sent> {
        let _before_all = stack_end::before_all(&self.pair)?;
        self.send(burst)
    }

    /// Sends the same burst several times, with pauses in which a capture empties its
    /// buffers. The CPU time of the last burst is that of all of them.
    pub fn send_repeatedly(&mut self, burst: Burst, times: u32) -> io::Result<Sent> {
        let mut sent = self.send(burst)?;
        let (mut cpu, mut least) = (self.burst_cpu, self.burst_cpu);
        for _ in 1..times {
            std::thread::sleep(PAUSE);
            sent.add(&self.send(burst)?);
            cpu += self.burst_cpu;
            least = least.min(self.burst_cpu);
        }
        (self.burst_cpu, self.least_burst_cpu) = (cpu, least);
        Ok(sent)
    }

    /// CPU time that sending the last burst took, set-up included, and receiving it
    /// where that is done on the sender's CPU. Whatever else ran there is not in it.
    pub fn burst_cpu(&self) -> Duration {
        self.burst_cpu
    }

    /// The least that one of the bursts took that were sent repeatedly.
    pub fn least_burst_cpu(&self) -> Duration {
        self.least_burst_cpu
    }

    /// Of this thread, to which the softirqs that it raises are counted (unless the
    /// kernel has CONFIG_IRQ_TIME_ACCOUNTING), and of the one for those left over.
    fn cpu_time(&self) -> io::Result<Duration> {
        // Not seen in a PID namespace.
        let left_over = self.ksoftirqd.map(process::cpu_time);
        Ok(process::thread_cpu_time()? + left_over.transpose()?.unwrap_or_default())
    }

    /// Sends a burst into a capture, and accounts for each frame of it.
    pub fn capture(
        &mut self,
        program: &Program,
        setup: &Setup,
        burst: Burst,
    ) -> Result<Point, LoadError> {
        self.capture_repeatedly(program, setup, burst, 1)
    }

    /// The same with a burst that is sent several times.
    pub fn capture_repeatedly(
        &mut self,
        program: &Program,
        setup: &Setup,
        burst: Burst,
        times: u32,
    ) -> Result<Point, LoadError> {
        let capture = Capture::start(program, &self.pair, setup, &self.stop)?;
        self.send_into(capture, burst, times)
    }

    /// Sends a burst several times while another pair is captured.
    ///
    /// # Errors
    /// If a frame of it is captured, too.
    pub fn capture_elsewhere(
        &mut self,
        program: &Program,
        elsewhere: &Pair,
        setup: &Setup,
        burst: Burst,
        times: u32,
    ) -> Result<(), LoadError> {
        let capture = Capture::start(program, elsewhere, setup, &self.stop)?;
        self.send_repeatedly(burst, times)?;
        let seen = capture.finish()?.said.seen;
        match seen {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("{seen} frames of another interface")).into()),
        }
    }

    /// Sends a burst into a capture that is held until all has been sent: it takes what
    /// its buffer holds.
    pub fn capture_held(
        &mut self,
        program: &Program,
        setup: &Setup,
        burst: Burst,
    ) -> Result<Point, LoadError> {
        let capture = Capture::start(program, &self.pair, setup, &self.stop)?;
        capture.hold()?;
        self.send_into(capture, burst, 1)
    }

    fn send_into(
        &mut self,
        capture: Capture,
        burst: Burst,
        times: u32,
    ) -> Result<Point, LoadError> {
        let files = KernelFiles::live();
        let before = Ticks::read(&files);
        let sent = self.send_repeatedly(burst, times)?;
        let load = Ticks::read(&files).load_since(&before);
        capture.go_on()?;
        capture.settle(BACKLOG)?;
        let tool = capture.tool();
        let outcome = capture.finish()?;
        let point = Point::new(tool, &sent, burst.pacing, &outcome).map_err(io::Error::other)?;
        Ok(Point {
            busy: load.iter().map(CpuLoad::busy).collect(),
            load,
            ..point
        })
    }
}

/// A CPU apart from the sender's: the last one allowed.
pub fn cpu_apart(sender: u32, allowed: &[u32]) -> Option<u32> {
    allowed.iter().copied().rfind(|cpu| *cpu != sender)
}

/// Of the CPUs allowed those on which captures are to run: not the sender's, unless
/// there is no other.
pub fn tool_cpus(sender: u32, allowed: &[u32]) -> Vec<u32> {
    let others: Vec<_> = allowed
        .iter()
        .copied()
        .filter(|cpu| *cpu != sender)
        .collect();
    match others[..] {
        [] => vec![sender],
        _ => others,
    }
}

/// The same where a CPU of its own receives: neither that one, nor the sender's unless there
/// is no third.
pub fn tool_cpus_apart(sender: u32, receiver: u32, allowed: &[u32]) -> Vec<u32> {
    let not_receiving = allowed.iter().copied().filter(|cpu| *cpu != receiver);
    tool_cpus(sender, &not_receiving.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_keep_away_from_a_cpu_that_only_receives() {
        assert_eq!(cpu_apart(0, &[0, 1, 2]), Some(2));
        assert_eq!(cpu_apart(2, &[0, 1, 2]), Some(1));
        assert_eq!(cpu_apart(0, &[0]), None);
        assert_eq!(tool_cpus_apart(0, 1, &[0, 1, 2]), [2]);
        assert_eq!(tool_cpus_apart(0, 1, &[0, 1]), [0]);
    }

    #[test]
    fn captures_keep_away_from_the_sender() {
        assert_eq!(tool_cpus(0, &[0, 1, 3]), [1, 3]);
        assert_eq!(tool_cpus(5, &[5]), [5]);
    }
}
