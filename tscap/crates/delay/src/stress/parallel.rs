//! Traffic beside a measurement, on an interface of its own.

use std::fmt;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tscap_base::text::numbers::counted;
use tscap_clock::measure_tsc_rate;
use tscap_host::{caps, wake};
use tscap_network::netdev::{self, NetdevError};
use tscap_traffic::generator::{
    Addresses, Control, DISCARD, FrameError, Layout, Network, Orders, Pacing, PacketError,
    PacketSender, Rate, SendError, Sender, Sent, Template,
};

/// Length of the frames, without the check sequence: that of the paper's packets.
pub const BYTES: u32 = 192;
/// A sender that is to stop is woken so often until it has.
const WAKE_EACH: Duration = Duration::from_millis(5);
/// Nobody's, so that no card answers.
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 2];
const LAYOUT: Layout = Layout {
    vlan: None,
    network: Network::BENCHMARK_V4,
    port: DISCARD,
};

/// Why there is no parallel traffic.
#[derive(Debug, thiserror::Error)]
pub enum ParallelError {
    /// No clock could pace it.
    #[error("no such rate: it is 0, or over one frame a nanosecond")]
    Rate,
    /// Whether there is such an interface can't be found out.
    #[error(transparent)]
    Interface(#[from] NetdevError),
    /// There is none.
    #[error("there is no interface {0}")]
    Absent(String),
    /// The sender is paced by the TSC.
    #[error("the rate of the TSC can't be measured")]
    Tsc,
    /// The frames can't be made.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// No socket.
    #[error(transparent)]
    Socket(#[from] PacketError),
    /// No thread.
    #[error("cannot start the thread that sends")]
    Thread(#[source] io::Error),
}

/// Frames of [`BYTES`] bytes at a rate, from a thread of their own, until this is stopped
/// or dropped.
pub struct ParallelTraffic {
    interface: String,
    pacing: Pacing,
    control: Control,
    thread: Option<JoinHandle<Outcome>>,
}

type Outcome = (Sent, Result<(), SendError>);

/// What was really sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ParallelReport {
    /// The interface.
    pub interface: String,
    /// Bits a second that were asked for, of whole frames.
    pub asked: f64,
    /// Bits a second that were sent from the first frame to the last; `None` of fewer than
    /// two frames.
    pub reached: Option<f64>,
    /// Frames that the interface took.
    pub sent: u64,
    /// Frames that it did not take.
    pub refused: u64,
    /// Why sending ended early.
    pub error: Option<String>,
}

impl ParallelTraffic {
    /// Sends so many bits a second on an interface that is in this thread's network
    /// namespace. Who names an interface says that frames may be sent there; they are
    /// addressed to nobody.
    ///
    /// # Errors
    /// [`ParallelError`]: nothing was sent then.
    pub fn start(bits: u64, interface: &str) -> Result<Self, ParallelError> {
        let rate = Rate {
            digits: bits,
            exponent: 0,
            is_bits: true,
        };
        let period = rate.period(BYTES).ok_or(ParallelError::Rate)?;
        let pacing = Pacing::Paced(period);
        let link = netdev::by_name(interface)?;
        let link = link.ok_or_else(|| ParallelError::Absent(interface.to_owned()))?;
        let addresses = Addresses {
            source: link.mac.unwrap_or_default(),
            destination: NOBODY,
        };
        let template = Template::new(&LAYOUT, addresses, BYTES)?;
        let tsc = measure_tsc_rate().ok_or(ParallelError::Tsc)?;
        let sender = PacketSender::open(&link.name, link.index, tsc)?;
        let mut sender = Sender::Packet(sender);
        let control = sender.control();
        // Its handler makes a system call end that it sleeps in.
        wake::prepare().map_err(ParallelError::Thread)?;
        let thread = thread::Builder::new().name("tscap-parallel".into());
        let thread = thread.spawn(move || {
            // Best effort: its socket is open.
            let _ = caps::keep_only(&[]);
            sender.send(&Orders {
                template: &template,
                pacing,
                in_bulks: false,
                flows: 1,
                run: 0,
                frames: None,
            })
        });
        Ok(Self {
            interface: link.name.clone(),
            pacing,
            control,
            thread: Some(thread.map_err(ParallelError::Thread)?),
        })
    }

    /// Frames sent so far.
    pub fn sent(&self) -> u64 {
        self.control.sent()
    }

    /// Stops, and says in words what was sent: "25 Mbit/s of 192-byte frames on p0 (…)".
    pub fn end(self) -> String {
        self.stop().to_string()
    }

    /// Stops, and says what was sent.
    pub fn stop(mut self) -> ParallelReport {
        let (sent, error) = match self.join() {
            Some(Ok((sent, result))) => (Some(sent), result.err().map(|it| it.to_string())),
            _ => (None, Some("the thread that sends panicked".to_owned())),
        };
        let bits = f64::from(BYTES) * 8.0;
        let asked = match self.pacing {
            Pacing::Paced(period) => period.rate() * bits,
            Pacing::FlatOut => f64::INFINITY,
        };
        let rate = sent.as_ref().and_then(|sent| sent.rate(self.pacing));
        ParallelReport {
            interface: std::mem::take(&mut self.interface),
            asked,
            reached: rate.map(|rate| rate * bits),
            sent: sent.as_ref().map_or(0, |sent| sent.sent),
            refused: sent.as_ref().map_or(0, |sent| sent.refused),
            error,
        }
    }

    fn join(&mut self) -> Option<thread::Result<Outcome>> {
        let thread = self.thread.take()?;
        // Of a packet socket this can't fail.
        let _ = self.control.stop();
        while !thread.is_finished() {
            // It ends by itself at the next frame if it can't be woken.
            let _ = wake::wake(&thread);
            thread::sleep(WAKE_EACH);
        }
        Some(thread.join())
    }
}

impl Drop for ParallelTraffic {
    fn drop(&mut self) {
        // What it sent nobody wants to know.
        let _ = self.join();
    }
}

impl fmt::Display for ParallelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = |bits: f64| {
            let text = format!("{:.3}", bits / 1e6);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        write!(
            f,
            "{} Mbit/s of {BYTES}-byte frames on {} ({} sent",
            mbit(self.asked),
            self.interface,
            counted(self.sent, "frame")
        )?;
        if let Some(reached) = self.reached {
            write!(f, ", {} Mbit/s", mbit(reached))?;
        }
        if self.refused > 0 {
            write!(f, ", {} refused", counted(self.refused, "frame"))?;
        }
        if let Some(error) = &self.error {
            write!(f, "; {error}")?;
        }
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_sent_is_refused() {
        let refusal = |bits, interface| {
            let refused = ParallelTraffic::start(bits, interface).err();
            refused.expect("a refusal").to_string()
        };
        assert_eq!(
            refusal(25_000_000, "no-such-if"),
            "there is no interface no-such-if"
        );
        assert!(refusal(0, "lo").starts_with("no such rate"));
        assert!(refusal(u64::MAX, "lo").starts_with("no such rate"));
    }

    #[test]
    fn what_was_sent_is_told() {
        let mut report = ParallelReport {
            interface: "p0".into(),
            asked: 25e6,
            reached: Some(24_987_654.0),
            sent: 1_234,
            refused: 0,
            error: None,
        };
        assert_eq!(
            report.to_string(),
            "25 Mbit/s of 192-byte frames on p0 (1,234 frames sent, 24.988 Mbit/s)"
        );
        (report.refused, report.reached) = (1, None);
        report.error = Some("interface p0 is down".into());
        assert_eq!(
            report.to_string(),
            "25 Mbit/s of 192-byte frames on p0 (1,234 frames sent, 1 frame refused; interface \
             p0 is down)"
        );
    }
}
