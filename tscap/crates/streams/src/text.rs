//! What came through, in sentences.

use std::fmt;

use super::receive_clock::DelayBasis;
use super::report::{Counts, StreamSummary};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped};

/// What became of the frames of a stream, as a sentence.
pub struct Arrivals<'a>(pub &'a StreamSummary);

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} = {} of streams + {} + {} malformed",
            counted(self.frames, "frame"),
            grouped(self.streams),
            counted(self.others, "other"),
            grouped(self.malformed)
        )?;
        let details = [
            (self.cut, "cut before the stream header"),
            (self.length_wrong, "with wrong lengths"),
            (self.checksum_wrong, "with a wrong UDP checksum"),
            (self.port_wrong, "from the port of another flow"),
            (self.checksum_absent, "of streams without a UDP checksum"),
            (
                self.checksum_unknown,
                "of streams too short to check the UDP checksum",
            ),
        ];
        let details: Vec<String> = details
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        if details.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", details.join(", "))
        }
    }
}

impl fmt::Display for Arrivals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(StreamSummary {
            id,
            loss,
            reordering,
            ..
        }) = self;
        write!(f, "run {} flow {}: ", id.run, id.flow)?;
        if let Some(sent) = loss.sent {
            write!(f, "{} sent, ", grouped(sent))?;
        }
        write!(
            f,
            "{} received, {} distinct, {} lost",
            grouped(loss.received),
            grouped(loss.distinct),
            grouped(loss.lost)
        )?;
        if loss.lost > 0 {
            let of = (loss.lost + loss.distinct - loss.beyond_sent) as f64;
            let percent = 100.0 * loss.lost as f64 / of;
            write!(
                f,
                " ({percent:.3} %; loss periods: {}, longest: {})",
                grouped(loss.loss_periods),
                grouped(loss.longest_loss)
            )?;
        }
        write!(f, ", {} reordered", grouped(reordering.reordered))?;
        if let Some(extent) = &reordering.extent {
            let at_least = if reordering.extents_cut > 0 {
                "at least "
            } else {
                ""
            };
            write!(
                f,
                " (extent up to {at_least}{})",
                grouped(extent.max.unsigned_abs())
            )?;
        }
        match loss.beyond_sent {
            0 => Ok(()),
            beyond => write!(f, "; beyond the numbers sent: {}", counted(beyond, "frame")),
        }
    }
}

impl fmt::Display for DelayBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host_bound_ns, utc_bound_ns, reference) = match self {
            Self::Clocks {
                host_bound_ns,
                utc_bound_ns,
                reference,
                ..
            } => (host_bound_ns, utc_bound_ns, reference),
            Self::Unavailable { why } => return write!(f, "path delay: not available ({why})"),
        };
        write!(
            f,
            "path delay: from the sender's reading of CLOCK_TAI, before the frame leaves, to the \
             stamp in XDP; the clocks' part "
        )?;
        match reference {
            None => write!(
                f,
                "±{host_bound_ns} ns on one host; from another host also the difference of the \
                 hosts' clocks"
            )?,
            Some(reference) => write!(
                f,
                "has no bound, on one host either: arrivals are by {}, and no sender reads that \
                 (a capture without --reference goes by its host's clock); ±{host_bound_ns} ns, and \
                 the difference of both clocks",
                escaped(reference)
            )?,
        }
        match utc_bound_ns {
            Some(bound) => write!(f, " (this one's to UTC: ±{bound} ns)"),
            None => write!(f, " (this one's is unsynchronised: no bound)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_is_no_frames() {
        let counts = Counts {
            frames: 1,
            others: 1,
            ..Counts::default()
        };
        assert_eq!(
            counts.to_string(),
            "1 frame = 0 of streams + 1 other + 0 malformed"
        );
    }
}
