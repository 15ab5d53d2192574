//! Where the frames of one run went.

use serde::{Deserialize, Serialize};

use super::busy::CpuLoad;
use super::capture::Outcome;
use super::tool::Tool;
use super::tool_report::{Loss, Stage};
use crate::generator::{Pacing, Sent};

/// A run: a burst sent into one capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Frames that the sender handed to its interface.
    pub sent: u64,
    /// Of these, frames that reached the program or its buffer.
    pub seen: u64,
    /// Frames that its filter rejected. tscap counts them; of another program they are those
    /// that it neither took nor lost in its buffer.
    #[serde(default)]
    pub filtered: u64,
    /// Frames in its file, counted by us; where it wrote to no file, by its word.
    pub written: u64,
    /// Frames that it says it wrote.
    pub said_written: u64,
    /// The others, by where they were lost: `sent` is `written`, `filtered` and all of them.
    pub lost: Lost,
    /// Losses by the program's own names.
    pub losses: Vec<Loss>,
    /// Frames a second, from the first to the last.
    pub rate: f64,
    /// From the first to the last, s.
    pub seconds: f64,
    /// Frames that were sent too late by more than the gap to the next one.
    pub late: u64,
    /// CPU time of the program from its readiness to its end, s.
    pub cpu_s: f64,
    /// Length of the file, bytes.
    pub file_bytes: u64,
    /// Of these, bytes that the page cache held when the program had ended; `None` if it wrote
    /// to no file.
    #[serde(default)]
    pub cached_bytes: Option<u64>,
    /// Share of the time of sending that each CPU was busy, whatever with, 0 to 1, by
    /// its number (0 for one offline); a sender that waits for a frame to be due is.
    pub busy: Vec<f64>,
    /// What each CPU did in that time, by its number; empty from an earlier tscap.
    #[serde(default)]
    pub load: Vec<CpuLoad>,
}

/// Frames lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// Before the program saw them. Of xdpdump also those for which its ring had no
    /// room, after the last one that fit: it is told of a loss with the next frame
    /// (`__perf_output_begin`, kernel/events/ring_buffer.c).
    pub before: u64,
    /// Between kernel and program.
    pub ring: u64,
    /// On the way to the file.
    pub writer: u64,
}

impl Lost {
    /// Frames lost at all three places.
    pub fn total(&self) -> u64 {
        self.before + self.ring + self.writer
    }
}

/// An account that does not add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{sent} frames sent, {seen} seen, {filtered} filtered, {in_ring} lost in the ring, \
     {written} written, but {said_written} by the program's own word: this does not add up"
)]
pub struct Unaccounted {
    sent: u64,
    seen: u64,
    filtered: u64,
    in_ring: u64,
    written: u64,
    said_written: u64,
}

impl Point {
    /// Accounts for each frame.
    ///
    /// # Errors
    /// More was seen than sent, or more written than was left of that; or it is tscap,
    /// and its own account differs from ours.
    pub fn new(
        tool: Tool,
        sent: &Sent,
        pacing: Pacing,
        outcome: &Outcome,
    ) -> Result<Self, Unaccounted> {
        let said = &outcome.said;
        let given = sent.sent + sent.refused;
        let written = outcome.in_file.unwrap_or(said.written);
        let in_ring = said.lost(Stage::Ring);
        let unaccounted = Unaccounted {
            sent: given,
            seen: said.seen,
            filtered: said.filtered,
            in_ring,
            written,
            said_written: said.written,
        };
        // Others than tscap do not tell what was rejected from what never came.
        let (seen, filtered) = if tool != Tool::Tscap && outcome.filters {
            (given, given.checked_sub(said.written + in_ring))
        } else {
            (said.seen, Some(said.filtered))
        };
        let filtered = filtered.ok_or(unaccounted)?;
        let before = given.checked_sub(seen).ok_or(unaccounted)?;
        let taken = seen.checked_sub(in_ring + filtered).ok_or(unaccounted)?;
        let writer = taken.checked_sub(written).ok_or(unaccounted)?;
        let is_as_said = written == said.written && writer == said.lost(Stage::Writer);
        if tool == Tool::Tscap && !is_as_said {
            return Err(unaccounted);
        }
        let seconds = sent
            .between
            .map_or(0.0, |[first, last]| (last.0 - first.0) as f64 / 1e9);
        Ok(Self {
            sent: given,
            seen: said.seen,
            filtered,
            written,
            said_written: said.written,
            lost: Lost {
                before,
                ring: in_ring,
                writer,
            },
            losses: said.losses.clone(),
            rate: sent.rate(pacing).unwrap_or(0.0),
            seconds,
            late: sent.late,
            cpu_s: outcome.cpu.as_secs_f64(),
            file_bytes: outcome.file_bytes,
            cached_bytes: outcome.cached_bytes,
            busy: Vec::new(),
            load: Vec::new(),
        })
    }

    /// Part of the frames that were lost, 0 to 1; 0 of none.
    pub fn loss(&self) -> f64 {
        share(self.lost.total(), self.sent)
    }

    /// Part of the frames sent that were lost before the program saw them, 0 to 1; 0 of
    /// none. Skopkó's kernel loss: those that the kernel could not process in time,
    /// against those generated.
    pub fn kernel_loss(&self) -> f64 {
        share(self.lost.before, self.sent)
    }

    /// Part of the frames that the kernel processed that were lost after that, in the
    /// program's buffer or on the way to its file, 0 to 1; 0 of none. Skopkó's loss of the
    /// application.
    pub fn application_loss(&self) -> f64 {
        let processed = self.sent - self.lost.before;
        share(self.lost.ring + self.lost.writer, processed)
    }

    /// CPU time of the program for a million of the frames sent, s.
    pub fn cpu_s_per_million(&self) -> f64 {
        self.cpu_s * 1e6 / self.sent as f64
    }
}

fn share(lost: u64, of: u64) -> f64 {
    match of {
        0 => 0.0,
        of => lost as f64 / of as f64,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tscap_common::gaps::BUCKETS;

    use super::super::tool_report::ToolReport;
    use super::*;
    use tscap_clock::MonoNs;

    fn point(seen: u64, ring: u64, in_file: Option<u64>, said: u64) -> Result<Point, Unaccounted> {
        point_of(Tool::Tcpdump, seen, ring, in_file, said)
    }

    fn point_of(
        tool: Tool,
        seen: u64,
        ring: u64,
        in_file: Option<u64>,
        said: u64,
    ) -> Result<Point, Unaccounted> {
        filtered_point(tool, [seen, ring, 0], in_file, said)
    }

    /// With a filter if it rejected some by its own word, which is not believed of others
    /// than tscap.
    fn filtered_point(
        tool: Tool,
        [seen, ring, filtered]: [u64; 3],
        in_file: Option<u64>,
        said: u64,
    ) -> Result<Point, Unaccounted> {
        let sent = Sent {
            sent: 15,
            refused: 2,
            late: 0,
            between: Some([MonoNs(1_000), MonoNs(2_600)]),
            tsc_moved_ns: 0,
            gaps: Box::new([0; BUCKETS]),
        };
        let outcome = Outcome {
            in_file,
            said: ToolReport {
                seen,
                written: said,
                filtered,
                losses: vec![Loss {
                    name: "kernel".into(),
                    stage: Stage::Ring,
                    frames: ring,
                }],
            },
            filters: filtered > 0,
            file_bytes: 1,
            cached_bytes: None,
            cpu: Duration::from_micros(34),
        };
        Point::new(tool, &sent, Pacing::FlatOut, &outcome)
    }

    #[test]
    fn every_frame_is_accounted_for() {
        let got = point(16, 3, Some(11), 13).unwrap();
        let lost = Lost {
            before: 1,
            ring: 3,
            writer: 2,
        };
        assert_eq!((got.sent, got.written, got.lost), (17, 11, lost));
        assert_eq!(got.sent, got.written + got.lost.total());
        assert_eq!(got.loss(), 6.0 / 17.0);
        // Of 17 generated 16 were processed, of which 11 are in the file.
        assert_eq!(got.kernel_loss(), 1.0 / 17.0);
        assert_eq!(got.application_loss(), 5.0 / 16.0);
        let through = (1.0 - got.kernel_loss()) * (1.0 - got.application_loss());
        assert!((1.0 - through - got.loss()).abs() < 1e-12);
        assert_eq!(got.cpu_s_per_million(), 2.0);
        // A bulk of 16 in 1.6 µs; what was refused is no rate.
        assert!((got.rate - 1e7 * 15.0 / 17.0).abs() < 1.0, "{}", got.rate);
        // Without a file its word counts.
        assert_eq!(point(17, 0, None, 17).unwrap().lost.total(), 0);
    }

    /// Others than tscap don't tell what was rejected: in the kernel, or by themselves.
    #[test]
    fn filtered_frames_are_not_lost() {
        let of = |tool, seen, filtered| filtered_point(tool, [seen, 3, filtered], Some(10), 10);
        for (tool, seen, filtered) in [
            (Tool::Tscap, 17, 4),
            (Tool::Tcpdump, 13, 1),
            (Tool::Tcpdump, 17, 1),
        ] {
            let got = of(tool, seen, filtered).unwrap();
            assert_eq!((got.filtered, got.written, got.lost.total()), (4, 10, 3));
            assert_eq!(got.sent, got.written + got.filtered + got.lost.total());
        }
        assert!(of(Tool::Tscap, 17, 3).is_err(), "one has no reason");
        let too_many = filtered_point(Tool::Tcpdump, [17, 8, 1], Some(10), 10);
        assert!(too_many.is_err());
    }

    #[test]
    fn what_does_not_add_up_is_no_point() {
        assert!(point(18, 0, None, 17).is_err());
        assert!(point(17, 18, None, 0).is_err());
        let error = point(17, 3, Some(15), 14).unwrap_err().to_string();
        assert!(error.contains("15 written, but 14 by"), "{error}");
    }

    /// Of tscap the sum alone says nothing: what is missing would be the writer's.
    #[test]
    fn tscap_must_account_for_each_frame_itself() {
        let of_tscap = |ring, in_file, said| point_of(Tool::Tscap, 17, ring, Some(in_file), said);
        assert_eq!(of_tscap(3, 14, 14).unwrap().lost.total(), 3);
        assert!(of_tscap(3, 13, 14).is_err(), "one is not in the file");
        assert!(of_tscap(3, 13, 13).is_err(), "one has no reason");
        assert!(of_tscap(2, 14, 14).is_err(), "one has no reason");
    }
}
