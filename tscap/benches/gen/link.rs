//! The veth pair, the senders on it, and the account of their frames.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tscap_clock::{NsPerCycle, measure_tsc_rate};
use tscap_testkit::bench::Bench;
use tscap_testkit::port::Port;
use tscap_testkit::probes::Attached;
use tscap_testkit::process::pin;
use tscap_time::tsc;
use tscap_traffic::generator::{
    Addresses, DISCARD, Layout, NativeSender, Network, Orders, PacketSender, Sender, Sent, Step,
    Template,
};

/// Frames that have been sent are dropped at the other end within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const LAYOUT: Layout = Layout {
    vlan: None,
    network: Network::BENCHMARK_V4,
    port: DISCARD,
};

/// Two ends: one sends from `cpu`, the other drops.
pub struct Link {
    /// The CPU of all that is measured.
    pub cpu: usize,
    /// Rate of the TSC.
    pub rate: NsPerCycle,
    bench: Bench,
    _dropping: Attached,
}

impl Link {
    /// Makes the pair.
    pub fn open(cpu: usize) -> Result<Self> {
        tsc::check().context("the TSC is no clock here")?;
        let rate = measure_tsc_rate().context("cannot measure the rate of the TSC")?;
        let bench = Bench::new("gen");
        let dropping = Attached::dropping(&bench.rx);
        Ok(Self {
            cpu,
            rate,
            bench,
            _dropping: dropping,
        })
    }

    /// The sending end.
    pub fn tx(&self) -> &Port {
        &self.bench.tx
    }

    /// A sender of live frames of up to `longest` bytes.
    pub fn native(&self, longest: u32) -> Result<Sender> {
        Ok(Sender::Native(Box::new(self.native_sender(longest)?)))
    }

    /// The same, whose frames carry the TSC.
    pub fn native_with_tsc(&self, longest: u32) -> Result<Sender> {
        let mut sender = self.native_sender(longest)?;
        sender.read_tsc(u32::try_from(self.cpu)?, self.rate)?;
        Ok(Sender::Native(Box::new(sender)))
    }

    fn native_sender(&self, longest: u32) -> Result<NativeSender> {
        let Port {
            netns, name, index, ..
        } = self.tx();
        let open = || NativeSender::open(name, *index, LAYOUT.payload_at(), longest as usize);
        Ok(netns.enter(open)?)
    }

    /// A sender through a packet socket.
    pub fn packet(&self) -> Result<Sender> {
        let Port {
            netns, name, index, ..
        } = self.tx();
        let sender = netns.enter(|| PacketSender::open(name, *index, self.rate))?;
        Ok(Sender::Packet(sender))
    }

    /// A frame of `size` bytes without its payload.
    pub fn template(&self, size: u32) -> Result<Template> {
        let addresses = Addresses {
            source: self.bench.tx.mac,
            destination: self.bench.rx.mac,
        };
        Ok(Template::new(&LAYOUT, addresses, size)?)
    }

    /// Sends `frames` of them; tells also for how long the sending thread waited
    /// for its CPU meanwhile.
    pub fn send(&self, sender: &mut Sender, step: Step, frames: u64) -> Result<(Sent, Duration)> {
        let template = self.template(step.size)?;
        let orders = Orders {
            in_bulks: false,
            template: &template,
            pacing: step.pacing,
            flows: 1,
            run: 1,
            frames: Some(frames),
        };
        sender.control().release()?;
        self.account_for(frames, || {
            let send = || {
                pin(self.cpu);
                let before = waited_for_cpu();
                let (sent, result) = sender.send(&orders);
                result?;
                Ok((sent, waited_for_cpu()?.saturating_sub(before?)))
            };
            self.tx().netns.enter(send)
        })
    }

    /// Fails unless exactly `frames` frames are dropped at the other end.
    pub fn account_for<T>(&self, frames: u64, send: impl FnOnce() -> Result<T>) -> Result<T> {
        let dropped = || self.bench.rx.driver_counters()["rx_xdp_drops"];
        let before = dropped();
        let sent = send()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match dropped() - before {
                came if came == frames => return Ok(sent),
                came if came > frames || Instant::now() > deadline => {
                    bail!("{came} of {frames} frames came in at the other end");
                }
                _ => {}
            }
        }
    }
}

/// How long this thread has been ready to run while its CPU ran others
/// (Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`).
fn waited_for_cpu() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).context(path)?;
    let waited = text.split_whitespace().nth(1).context(path)?;
    Ok(Duration::from_nanos(waited.parse()?))
}
