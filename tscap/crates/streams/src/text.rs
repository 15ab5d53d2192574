//! What came through, as text.

use std::fmt;

use super::delay::IntervalSources;
use super::receive_clock::DelayBasis;
use super::report::{Counts, InterfaceReport, StreamReport, StreamSummary};
use tscap_base::text::escaped::escaped;
use tscap_base::text::numbers::{counted, grouped};
use tscap_base::text::table::{self, Side};
use tscap_statistics::Summary;

/// So many streams of an interface are printed; JSON has all.
const MOST_STREAMS: usize = 16;
/// Figures of a distribution.
const COLUMNS: [&str; 9] = [
    "n", "min", "p50", "p90", "p99", "p99.9", "max", "mean", "sd",
];

impl fmt::Display for StreamReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for interface in &self.interfaces {
            write!(f, "{interface}")?;
        }
        self.warnings
            .iter()
            .try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}

impl fmt::Display for InterfaceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref();
        let name = name.map_or("(unnamed interface)".into(), escaped);
        writeln!(f, "{name}: {}", self.counts)?;
        for stream in self.streams.iter().take(MOST_STREAMS) {
            write!(f, "{stream}")?;
        }
        if self.streams.len() > MOST_STREAMS {
            let more = self.streams.len() - MOST_STREAMS;
            let lost: u64 = self.streams.iter().map(|stream| stream.loss.lost).sum();
            writeln!(
                f,
                "and {} (--json has all); lost in all of them: {}",
                counted(more as u64, "more stream"),
                grouped(lost)
            )?;
        }
        if self.streams.is_empty() {
            return Ok(());
        }
        writeln!(f, "{}", self.delay_basis)?;
        if self.stamp_resolution_ns > 1 {
            writeln!(
                f,
                "the file's stamps have steps of {} ns",
                grouped(self.stamp_resolution_ns)
            )?;
        }
        Ok(())
    }
}

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
        match details.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", details.join(", ")),
        }
    }
}

impl fmt::Display for StreamSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (loss, reordering) = (&self.loss, &self.reordering);
        write!(f, "run {} flow {}: ", self.id.run, self.id.flow)?;
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
        writeln!(f)?;
        if loss.beyond_sent > 0 {
            writeln!(
                f,
                "  beyond the numbers sent: {}",
                counted(loss.beyond_sent, "frame")
            )?;
        }
        let rows = [
            ("path delay", &self.delay.path_ns),
            ("delay variation", &self.delay.variation_ns),
            (
                "|inter-arrival − inter-send|",
                &self.delay.interval_error_ns,
            ),
        ];
        if rows.iter().all(|(_, summary)| summary.is_none()) {
            return Ok(());
        }
        writeln!(f, "{}", row("ns", COLUMNS.map(str::to_owned)))?;
        for (name, summary) in rows {
            if let Some(summary) = summary {
                writeln!(f, "{}", row(name, figures(summary)))?;
            }
        }
        if let Some(path) = self.delay.path_ns.as_ref().filter(|path| path.negative > 0) {
            writeln!(
                f,
                "  negative: {}; the clocks of sender and receiver disagree",
                counted(path.negative, "path delay")
            )?;
        }
        if let Some(bound) = self.delay.clocks_ns {
            writeln!(
                f,
                "  path delay ±{bound} ns by the clocks: sender and receiver read the same ones"
            )?;
        }
        match self.delay.intervals {
            IntervalSources {
                tsc_pairs: 0,
                stamp_pairs: 0,
            } => Ok(()),
            IntervalSources { tsc_pairs: 0, .. } => {
                writeln!(
                    f,
                    "  intervals: from the file's stamps and the sender's CLOCK_TAI"
                )
            }
            IntervalSources { stamp_pairs: 0, .. } => {
                writeln!(f, "  intervals: p̂·ΔN of the TSC on both sides")
            }
            IntervalSources {
                tsc_pairs,
                stamp_pairs,
            } => writeln!(
                f,
                "  intervals: {} p̂·ΔN of the TSC on both sides, {} from the file's stamps and the \
                 sender's CLOCK_TAI",
                grouped(tsc_pairs),
                grouped(stamp_pairs)
            ),
        }
    }
}

/// A name and its figures, in columns that are as wide for every stream.
fn row(name: &str, figures: [String; COLUMNS.len()]) -> String {
    let figures = figures.each_ref();
    let figures = figures.map(|figure| (figure.as_str(), 9, Side::Right));
    let cells = [("", 1, Side::Left), (name, 28, Side::Left)];
    table::row(cells.into_iter().chain(figures), " ")
}

fn figures(summary: &Summary) -> [String; COLUMNS.len()] {
    let quantile = |value: Option<i64>| value.map_or("-".to_owned(), |value| value.to_string());
    [
        summary.n.to_string(),
        summary.min.to_string(),
        quantile(summary.p50),
        quantile(summary.p90),
        quantile(summary.p99),
        quantile(summary.p99_9),
        summary.max.to_string(),
        format!("{:.1}", summary.mean),
        format!("{:.1}", summary.sd),
    ]
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
             stamp in XDP;\n  the clocks' part "
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
