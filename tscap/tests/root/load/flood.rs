//! Frames flat out, each with a number.

use std::time::Duration;

use tscap_testkit::capture::{Capture, generate_on};
use tscap_testkit::port::Port;

/// A `tscap gen` at work.
pub struct Flood(Capture);

/// What it sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Names the run in each frame.
    pub run: u16,
    /// Frames that the interface took.
    pub taken: u64,
    /// Frames that it did not take: the other end had no room.
    pub refused: u64,
}

impl Flood {
    /// Sends frames of `size` bytes out of `port` from CPU `cpu`, for `length`.
    pub fn begin(port: &Port, size: u32, cpu: usize, length: Duration) -> Self {
        let (size, cpu) = (size.to_string(), cpu.to_string());
        let length = length.as_secs_f64().to_string();
        let plan = generate_on(port).with(["--flat-out", "--size", &size, "--cpu", &cpu]);
        Self(plan.with(["--duration", &length]).ready())
    }

    /// Waits until it has sent.
    pub fn end(self) -> Sent {
        let finished = self.0.wait();
        let steps = finished.events("sent");
        let count = |name: &str| steps[0][name].as_u64().expect("a count");
        Sent {
            run: count("run") as u16,
            taken: count("sent"),
            refused: count("refused"),
        }
    }
}
