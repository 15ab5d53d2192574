//! Live frames with the time that they took.

use anyhow::{Context, Result, ensure};
use aya::Ebpf;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};
use tscap_testkit::port::Port;
use tscap_testkit::probes;
use tscap_testkit::process::pin;

/// Frames that the kernel makes and sends in one go: well under the 256 entries
/// of a veth queue.
const BATCH: u32 = 64;

/// Sends native XDP frames out of one end of a veth pair.
pub struct Generator {
    port: Port,
    ebpf: Ebpf,
    cpu: usize,
}

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Frames that the other end took.
    pub taken: u64,
    /// Mean over the frames without set-up and tear-down, ns.
    pub ns_per_frame: f64,
}

impl Generator {
    /// A generator on CPU `cpu` that sends out of `port`.
    pub fn open(port: &Port, cpu: usize) -> Result<Self> {
        let ebpf = probes::load("probe_redirect", port.index);
        Ok(Self {
            port: port.clone(),
            ebpf,
            cpu,
        })
    }

    /// Sends `count` copies of `frame`, flat out.
    pub fn send(&mut self, frame: &[u8], count: u32) -> Result<Sent> {
        let before = self.port.driver_counters();
        let program = probes::program(&mut self.ebpf, "probe_redirect");
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: count,
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::new()
        };
        let cpu = self.cpu;
        let result = self.port.netns.enter(|| {
            pin(cpu);
            program.test_run(options)
        });
        let result = result.context("cannot send live frames")?;
        let after = self.port.driver_counters();
        let grown = |name: &str| after[name] - before[name];
        let taken = grown("tx_xdp_xmit");
        let handed = taken + grown("tx_xdp_xmit_errors");
        ensure!(
            handed == u64::from(count),
            "{handed} of {count} frames sent"
        );
        Ok(Sent {
            taken,
            ns_per_frame: result.duration.as_nanos() as f64,
        })
    }
}
