//! What became of the frames that were not written: each reason apart.

use serde::{Deserialize, Serialize};
use tscap_common::state::Losses;

/// Frames not written, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// The ring of the CPU had no room.
    pub ring_full: u64,
    /// The kernel refused to copy the frame out.
    pub copy_failed: u64,
    /// The part to be captured is longer than a ring record (65 kB).
    pub too_long: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// Came in on a CPU that has no ring: it came online after the start.
    pub no_ring: u64,
    /// Came in on a CPU whose clock could not be read.
    pub no_stamp: u64,
    /// Came in after the capture's end: past `-c`, or the reader gone.
    pub after_stop: u64,
    /// Could not be written to the output.
    pub write_failed: u64,
    /// Came from an interface that is not being captured.
    pub unknown_interface: u64,
}

impl Outcomes {
    /// Every outcome with its name and what it means.
    pub fn named(&self) -> [(&'static str, u64, &'static str); 9] {
        [
            (
                "ring_full",
                self.ring_full,
                "no room in the ring: raise --ring-size",
            ),
            (
                "copy_failed",
                self.copy_failed,
                "the kernel refused the copy",
            ),
            (
                "too_long",
                self.too_long,
                "longer than a ring record: lower --snapshot-length",
            ),
            (
                "too_short",
                self.too_short,
                "shorter than an Ethernet header",
            ),
            (
                "no_ring",
                self.no_ring,
                "on a CPU that came online after the start",
            ),
            (
                "no_stamp",
                self.no_stamp,
                "its CPU's clock could not be read",
            ),
            ("after_stop", self.after_stop, "after the capture's end"),
            ("write_failed", self.write_failed, "could not be written"),
            (
                "unknown_interface",
                self.unknown_interface,
                "from an interface that is not captured",
            ),
        ]
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count, _)| count).sum()
    }

    /// Lost by the operating system, as pcapng's `isb_osdrop` means it: before
    /// the frame reached user space.
    pub fn lost_in_kernel(&self) -> u64 {
        self.ring_full
            + self.copy_failed
            + self.too_long
            + self.too_short
            + self.no_ring
            + self.no_stamp
    }
}

impl From<Losses> for Outcomes {
    fn from(losses: Losses) -> Self {
        Self {
            ring_full: losses.ring_full,
            copy_failed: losses.copy_failed,
            too_long: losses.too_long,
            too_short: losses.too_short,
            no_ring: losses.no_ring,
            no_stamp: losses.no_stamp,
            ..Self::default()
        }
    }
}

impl std::ops::AddAssign for Outcomes {
    fn add_assign(&mut self, other: Self) {
        self.ring_full += other.ring_full;
        self.copy_failed += other.copy_failed;
        self.too_long += other.too_long;
        self.too_short += other.too_short;
        self.no_ring += other.no_ring;
        self.no_stamp += other.no_stamp;
        self.after_stop += other.after_stop;
        self.write_failed += other.write_failed;
        self.unknown_interface += other.unknown_interface;
    }
}

impl std::ops::SubAssign for Outcomes {
    fn sub_assign(&mut self, other: Self) {
        self.ring_full = self.ring_full.saturating_sub(other.ring_full);
        self.copy_failed = self.copy_failed.saturating_sub(other.copy_failed);
        self.too_long = self.too_long.saturating_sub(other.too_long);
        self.too_short = self.too_short.saturating_sub(other.too_short);
        self.no_ring = self.no_ring.saturating_sub(other.no_ring);
        self.no_stamp = self.no_stamp.saturating_sub(other.no_stamp);
        self.after_stop = self.after_stop.saturating_sub(other.after_stop);
        self.write_failed = self.write_failed.saturating_sub(other.write_failed);
        self.unknown_interface = self
            .unknown_interface
            .saturating_sub(other.unknown_interface);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_has_every_field() {
        let all: Outcomes = serde_json::from_str(
            r#"{"ring_full":1,"copy_failed":2,"too_long":4,"too_short":8,"no_ring":16,"no_stamp":256,
                "after_stop":32,"write_failed":64,"unknown_interface":128}"#,
        )
        .unwrap();
        assert_eq!(all.total(), 511);
        let mut twice = all;
        twice += all;
        assert_eq!(twice.total(), 1022);
        twice -= all;
        assert_eq!(twice, all);
        let fields = serde_json::to_value(all).unwrap();
        assert_eq!(fields.as_object().unwrap().len(), all.named().len());
    }
}
