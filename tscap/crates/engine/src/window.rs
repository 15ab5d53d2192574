//! How far the blocks of several rings may go out: only so far that no block
//! still on its way precedes them.
//!
//! A stamp is the first thing that the program takes; its block is published
//! later, and on another CPU a block stamped earlier may be published later
//! still. So a drain takes blocks stamped up to a horizon, the time just before
//! it looked into the rings less [`WINDOW_NS`]: what was stamped before that is
//! in its ring by then. A block that is not, because its CPU was held up for
//! longer, is late.

use tscap_clock::{CrossTimestamp, MonoNs, RawStamp, Tracker};

/// Longest time from stamp to publication that order is kept for, ns.
///
/// Measured by polling a ring from the other CPU of a busy 2-CPU virtual machine
/// with kernel 6.18, 19 million frames (live frames of 64 and 1500 bytes, packet
/// sockets, flat out and paced): half were published within 0.1 to 0.5 µs, all
/// but 1 in 1000 within 3 µs, 1 in 100,000 after 5 to 130 µs (interrupts in
/// between), and 2 in a million after more than 100 µs. A CPU that the hypervisor
/// takes away is gone for milliseconds, which no window would wait for. One of
/// 200 µs, the least time between two drains of a small ring, would make every frame
/// wait for a second drain.
pub(super) const WINDOW_NS: u64 = 100_000;

/// The limits of one drain.
#[derive(Clone, Debug)]
pub struct Window {
    /// Blocks stamped later stay in their ring...
    horizon: RawStamp,
    /// ...unless they lie before this position of their ring: they have been
    /// there for a whole window, so nothing can precede them any more, whatever
    /// their stamps say. Stamps lie after the clock was set back.
    due: Vec<u64>,
    /// The rings' heads at `seen_at`: the next `due`.
    seen: Vec<u64>,
    seen_at: MonoNs,
}

impl Window {
    /// For `rings` rings, with nothing held back.
    pub fn new(rings: usize) -> Self {
        Self {
            horizon: RawStamp::NEVER,
            due: vec![0; rings],
            seen: vec![0; rings],
            seen_at: MonoNs(0),
        }
    }

    /// Moves on to a drain that read `heads` between the time `before` and the clock
    /// reading `cross`.
    pub fn move_on(
        &mut self,
        tracker: &Tracker,
        cross: &CrossTimestamp,
        heads: &[u64],
        before: MonoNs,
    ) {
        let until = MonoNs(before.0.saturating_sub(WINDOW_NS));
        self.horizon = tracker.stamp_at(cross, until);
        if before.0.saturating_sub(self.seen_at.0) >= WINDOW_NS {
            std::mem::swap(&mut self.due, &mut self.seen);
            self.seen.copy_from_slice(heads);
            self.seen_at = cross.mono[1];
        }
    }

    /// Holds nothing back in this drain.
    pub fn open(&mut self) {
        self.horizon = RawStamp::NEVER;
    }

    /// Up to which position and which stamp blocks of `ring` may go out, from
    /// `next` on; that may be less than all that may, and is never nothing of it.
    #[inline]
    pub fn reach(&self, ring: usize, next: u64, head: u64) -> (u64, RawStamp) {
        if next < self.due[ring] {
            (self.due[ring], RawStamp::NEVER)
        } else {
            (head, self.horizon)
        }
    }
}
