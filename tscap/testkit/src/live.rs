//! Sends native XDP frames: `BPF_PROG_TEST_RUN` with live frames through a
//! program that redirects them to one end of a veth pair. They come in at the
//! other end, where an XDP program must be attached.

use aya::Ebpf;
use aya::programs::{TestRun as _, TestRunAttrs, TestRunOptions};

use crate::frame::Frame;
use crate::port::Port;
use crate::probes;
use crate::process::pin;

/// Frames that the kernel makes and sends in one go: well under the 256 entries
/// of a veth queue, which is emptied on the same CPU after each go.
const BATCH: u32 = 64;
/// Longest frame that live frames can have (the page holds more than it).
pub const LONGEST: usize = 3400;

/// A generator of live frames.
#[derive(Debug)]
pub struct LiveSender {
    port: Port,
    ebpf: Ebpf,
}

impl LiveSender {
    /// Sends out of `port`.
    pub fn open(port: &Port) -> Self {
        Self {
            port: port.clone(),
            ebpf: probes::load("probe_redirect", port.index),
        }
    }

    /// Sends `count` copies of frame 0 from CPU `cpu`, flat out. Returns how many
    /// the other end took, by the driver's own counters.
    #[track_caller]
    pub fn send(&mut self, frame: &Frame, count: u64, cpu: usize) -> u64 {
        let (handed, taken) = self.pour(frame, count, cpu);
        assert_eq!(handed, count, "the other end has no XDP program");
        taken
    }

    /// The same when the other end may lose its program meanwhile: returns how
    /// many were handed to the driver before that, and how many it took.
    pub fn pour(&mut self, frame: &Frame, count: u64, cpu: usize) -> (u64, u64) {
        assert!(frame.size() <= LONGEST, "live frames hold {LONGEST} bytes");
        let before = self.port.driver_counters();
        let bytes = frame.bytes(0);
        let xdp = probes::program(&mut self.ebpf, "probe_redirect");
        let options = TestRunOptions {
            data_in: Some(&bytes),
            repeat: u32::try_from(count).expect("a count of 32 bits"),
            attrs: TestRunAttrs::new().xdp_live_frames(BATCH),
            ..TestRunOptions::new()
        };
        self.port.netns.enter(|| {
            pin(cpu);
            xdp.test_run(options)
                .unwrap_or_else(|error| panic!("send live frames: {error:?}"));
        });
        let after = self.port.driver_counters();
        let grown = |name: &str| after[name] - before[name];
        let taken = grown("tx_xdp_xmit");
        (taken + grown("tx_xdp_xmit_errors"), taken)
    }
}
