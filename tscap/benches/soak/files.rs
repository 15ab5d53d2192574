//! The files of a capture with rotation: each one read whole when it is complete,
//! and removed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tscap_testkit::capture::Capture;
use tscap_testkit::flow::Flow;
use tscap_testkit::packets;

use crate::common::stamps::difference;

/// Longest silence of a capture: it tells its progress each second.
const SILENCE: Duration = Duration::from_secs(30);

/// What stood in the files.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// Files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The frames: every number once, in order, over all files.
    pub flow: Flow,
    /// Frames stamped before the one in front of them.
    pub steps_back: u64,
    /// The farthest of these, ns.
    pub farthest_back_ns: u64,
    /// Least time from the sender's own stamp in a frame to its stamp in the file,
    /// ns; none of no frame.
    pub least_delay_ns: Option<i64>,
    youngest_ns: u64,
}

/// Reads and removes each file that `capture` says it has closed, until its
/// summary. `tai_offset_s` is TAI less UTC, s.
pub fn read_all(capture: &Capture, tai_offset_s: i32) -> Result<Read> {
    let mut read = Read::default();
    for number in 0.. {
        let event = capture.event(number, SILENCE);
        let event = event.context("the capture ended without a summary, or hangs")?;
        match event["event"].as_str() {
            Some("file") => {
                let path = event["file"].as_str().context("a file without a name")?;
                read.take(Path::new(path), tai_offset_s)
                    .context(path.to_owned())?;
                fs::remove_file(path)?;
            }
            Some("summary") => break,
            _ => {}
        }
    }
    Ok(read)
}

impl Read {
    fn take(&mut self, path: &Path, tai_offset_s: i32) -> Result<()> {
        let tai_offset_ns = i64::from(tai_offset_s) * 1_000_000_000;
        let mut error = None;
        packets::each(path, |packet| {
            let header = match self.flow.take(&packet) {
                Ok(header) => header,
                Err(found) => {
                    error.get_or_insert(found);
                    return;
                }
            };
            if packet.nanos < self.youngest_ns {
                self.steps_back += 1;
                let back = self.youngest_ns - packet.nanos;
                self.farthest_back_ns = self.farthest_back_ns.max(back);
            }
            self.youngest_ns = packet.nanos;
            let tai = packet.nanos.wrapping_add_signed(tai_offset_ns);
            let delay = difference(tai, header.tai);
            let least = self.least_delay_ns.get_or_insert(delay);
            *least = delay.min(*least);
        })?;
        self.files += 1;
        self.bytes += fs::metadata(path)?.len();
        error.map_or(Ok(()), |error| Err(anyhow!(error)))
    }
}
