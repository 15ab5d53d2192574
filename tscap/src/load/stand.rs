//! A test stand: a sender, a pair, and one capture after the other at its end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::arguments::Setup;
use super::capture::{Capture, LoadError};
use super::pair::Pair;
use super::point::Point;
use super::stop::Stop;
use super::tool::Program;
use super::traffic::{Burst, Traffic};
use crate::generator::Sent;
use crate::sys::ethtool;

/// Without an XDP program, redirected frames are taken by a veth that has GRO.
const GRO: &str = "rx-gro";
/// Longest that a capture may go on working when all has been sent.
const BACKLOG: Duration = Duration::from_secs(20);

/// The stand. Frames that a capture leaves to the system go up its stack, where
/// nobody has their address.
pub struct Stand {
    pair: Pair,
    traffic: Traffic,
    stop: Arc<Stop>,
}

impl Stand {
    /// For this thread, which stays on the CPU that it is pinned to, and is moved
    /// into the sending end's namespace.
    pub fn new(pair: Pair, stop: Arc<Stop>) -> io::Result<Self> {
        let with_gro = || ethtool::set_features(&pair.rx.name, &[(GRO, true)]);
        pair.rx_netns
            .within(|| with_gro().map_err(io::Error::other))?;
        pair.tx_netns.enter()?;
        // Without a rate of the TSC it does not matter on which CPU.
        let traffic = Traffic::new(&pair, 0, None)?;
        Ok(Self {
            pair,
            traffic,
            stop,
        })
    }

    /// Sends a burst that nothing captures.
    pub fn send(&mut self, burst: Burst) -> io::Result<Sent> {
        let (_, sent) = self.traffic.send(burst)?;
        Ok(sent)
    }

    /// Sends a burst into a capture, and accounts for each frame of it.
    pub fn capture(
        &mut self,
        program: &Program,
        setup: &Setup,
        burst: Burst,
    ) -> Result<Point, LoadError> {
        let capture = Capture::start(program, &self.pair, setup, &self.stop)?;
        let sent = self.send(burst)?;
        capture.settle(BACKLOG)?;
        let outcome = capture.finish()?;
        Ok(Point::new(&sent, burst.pacing, &outcome).map_err(io::Error::other)?)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_keep_away_from_the_sender() {
        assert_eq!(tool_cpus(0, &[0, 1, 3]), [1, 3]);
        assert_eq!(tool_cpus(5, &[5]), [5]);
    }
}
