//! The stamp that the kernel's stack makes, on the frames of the patterns: what a packet
//! socket is told of them.

use std::io;
use std::time::{Duration, Instant};

use tscap_common::compare::Sample;
use tscap_common::generator::PAYLOADS_AT;
use tscap_common::stream::StreamHeader;

use super::programs::Measured;
use super::stamp_samples::PatternSamples;
use tscap_clock::RealNs;
use tscap_network::stamped_receiver::StampedReceiver;
use tscap_time::timex::KernelClock;
use tscap_traffic::load::{Burst, Pair, Traffic};

/// Memory for the frames of a burst: each takes a page or two.
const BUFFER_BYTES: usize = 64 << 20;
/// Longest part of a frame that is looked at, bytes.
const LOOKED_AT: usize = 128;
/// Where the payload of a plain IPv4 frame of the generator begins.
const PAYLOAD_AT: usize = PAYLOADS_AT[0];
/// Longest wait for frames that are still on their way.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
/// How often it is looked whether they have come.
const LOOK_EACH: Duration = Duration::from_millis(1);

/// A socket at the receiving end, and what it was told.
pub(super) struct KernelStamps {
    socket: StampedReceiver,
    pub patterns: [PatternSamples; 2],
}

impl KernelStamps {
    /// At the receiving end of a pair. The kernel stamps from now on, not at once.
    pub fn open(pair: &Pair) -> io::Result<Self> {
        let rx = pair.rx.index;
        let open = || StampedReceiver::open(rx, BUFFER_BYTES);
        Ok(Self {
            socket: pair.rx_netns.within(open)?,
            patterns: Default::default(),
        })
    }

    /// Sends a burst, which must come up to the stack, and takes what the socket was told.
    pub fn measure(&mut self, traffic: &mut Traffic, burst: Burst) -> io::Result<Measured> {
        // What came before is no part of it.
        while self.receive()?.is_some() {}
        let (run, sent) = traffic.send(burst)?;
        let clock = KernelClock::read().map_err(io::Error::other)?;
        let sent_frames = sent.sent + sent.refused;
        let mut samples: Vec<Sample> = Vec::new();
        let deadline = Instant::now() + LONGEST_WAIT;
        while (samples.len() as u64) < sent_frames {
            match self.receive()? {
                Some(Frame { header, real }) => {
                    let stamps = header.zip(real);
                    let sample =
                        stamps.and_then(|(header, real)| sample(&header, real, clock.tai_offset_s));
                    samples.extend(sample.filter(|it| it.frame >> 48 == u64::from(run)));
                }
                None if Instant::now() < deadline => std::thread::sleep(LOOK_EACH),
                None => break,
            }
        }
        Ok(Measured {
            run,
            sent: sent_frames,
            samples,
            tsc_moved_ns: 0,
        })
    }

    /// The next frame; `None` if none is there.
    fn receive(&self) -> io::Result<Option<Frame>> {
        let mut frame = [0; LOOKED_AT];
        let received = self.socket.receive(&mut frame)?;
        Ok(received.map(|(length, real)| Frame {
            header: frame.get(PAYLOAD_AT..length).and_then(StreamHeader::of),
            real,
        }))
    }
}

/// What a frame has in it, and its stamp.
struct Frame {
    header: Option<StreamHeader>,
    real: Option<RealNs>,
}

/// With the stamp as CLOCK_TAI, as the frame was sent by.
fn sample(header: &StreamHeader, real: RealNs, tai_offset_s: i32) -> Option<Sample> {
    let StreamHeader {
        run,
        flow,
        seq,
        tsc,
        tai,
    } = *header;
    let offset_ns = i64::from(tai_offset_s) * 1_000_000_000;
    Some(Sample {
        stamp: real.0.checked_add_signed(offset_ns)?,
        frame: u64::from(run) << 48 | u64::from(flow) << 32 | u64::from(seq),
        sent_tai: tai,
        sent_tsc: tsc,
        ..Sample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program of a stamp leaves it: 37 s between both clocks.
    #[test]
    fn a_frame_is_a_sample_on_the_clock_of_its_sending() {
        let header = StreamHeader {
            run: 7,
            flow: 0,
            seq: 258,
            tsc: 11,
            tai: 37_000_000_400,
        };
        let sample = sample(&header, RealNs(1_000), 37).unwrap();
        assert_eq!(sample.frame, 7 << 48 | 258);
        assert_eq!(sample.stamp - sample.sent_tai, 600);
        assert_eq!((sample.sent_tsc, sample.cost_ns), (11, 0));
    }
}
