//! What the programs of `tscap stamp` and user space share.
//!
//! The program at XDP puts a [`Mark`] in front of a frame. The one at tcx turns its stamp into
//! CLOCK_REALTIME by the [`Line`] that user space publishes in the [`Latch`]. The one at tcx egress
//! ([`crate::send_times`]) goes by the same line.

use crate::counts::counts;
use crate::hook::ClockDomain;

/// Array map of one [`Latch`], mapped into user space.
pub const LATCH: &str = "LATCH";
/// Array map by CPU, mapped into user space: what a stamp of that CPU is increased by to give
/// one of the scale that all CPUs share, cycles.
pub const OFFSETS: &str = "OFFSETS";
/// Per-CPU array map of one [`Counts`].
pub const COUNTS: &str = "COUNTS";
/// u64: the [`Mark::cookie`] of these programs.
pub const COOKIE: &str = "COOKIE";

/// Name of the program at tcx.
pub const PLACE_PROGRAM: &str = "tscap_place";

/// Name of the program at XDP that stamps by `clock`.
pub const fn mark_program(clock: ClockDomain) -> &'static str {
    match clock {
        ClockDomain::Monotonic => "tscap_mark_ktime",
        ClockDomain::Tai => "tscap_mark_tai",
        ClockDomain::Tsc => "tscap_mark_kfunc",
        ClockDomain::CpuTsc => "tscap_mark_perf",
    }
}

/// A stamp is not replaced by one that is more than this earlier, ns, nor by a later one: the
/// clock was set since the line was published, or the frame was held up.
pub const MOST_EARLIER_NS: u64 = 10_000_000;

/// XDP metadata in front of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// That of the programs: metadata of others has another one.
    pub cookie: u64,
    /// The stamp, in the unit of its clock, on the scale that all CPUs share.
    pub stamp: u64,
}

/// A straight line from stamps to CLOCK_REALTIME.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// A stamp,
    pub from: u64,
    /// and CLOCK_REALTIME then, ns since the epoch.
    pub real: u64,
    /// Duration of a unit of the stamps, in units of 2^-56 ns; 128 ns at most.
    pub rate: u64,
    /// Stamps farther from `from` than this have no time, units: the line is stale. At most
    /// [`Line::LONGEST_NS`] long.
    pub span: u64,
}

/// Binary digits behind the point of [`Line::rate`].
const FRACTION: u32 = 56;
/// Half of them: products of 64 bits hold either half of a rate.
const HALF: u32 = FRACTION / 2;

impl Line {
    /// Longest span, ns: products of [`Line::real_at`] have 64 bits.
    pub const LONGEST_NS: u64 = 1_000_000_000;

    /// CLOCK_REALTIME at a stamp, ns, to the nearest; `None` beyond the span. A ratio that lies
    /// within 2^-27 ns of half may go the other way: off by 1 ns at most, all in all.
    #[inline(always)]
    pub const fn real_at(&self, stamp: u64) -> Option<u64> {
        let ahead = stamp.wrapping_sub(self.from).cast_signed();
        let units = ahead.unsigned_abs();
        if units > self.span {
            return None;
        }
        // units · rate < 2^30 · 2^56: with the rate's upper half < 2^58, and the lower half
        // adds to that what is left of it at 2^-28 ns: units < 2^34, of a counter of 10 GHz.
        let upper = units.wrapping_mul(self.rate >> HALF);
        let lower = units.wrapping_mul(self.rate & ((1 << HALF) - 1)) >> HALF;
        let ns = (upper.wrapping_add(lower) + (1 << (HALF - 1))) >> HALF;
        Some(if ahead < 0 {
            self.real.wrapping_sub(ns)
        } else {
            self.real.wrapping_add(ns)
        })
    }
}

/// A line, and what the times that it gives are worth: both are of one moment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// From stamps to CLOCK_REALTIME, or to the time of a reference.
    pub line: Line,
    /// How far these times are ahead of CLOCK_REALTIME, ns; 0 unless they are a reference's. The
    /// kernel's own stamps are compared with them.
    pub ahead_ns: i64,
    /// TAI less UTC by the kernel, s; 0 if nobody has set it.
    pub tai_offset_s: i32,
    /// The Error Estimate of these times (RFC 4656, section 4.1.2), with Z of NTP's format: 0.
    pub error_estimate: u16,
    /// How far `ahead_ns` may be off, µs: a stamp may seem so much later than the kernel's own.
    pub slack_us: u16,
}

impl Published {
    /// Words of it.
    pub const WORDS: usize = size_of::<Self>() / 8;

    /// It as words, in the order of its fields.
    pub const fn words(&self) -> [u64; Self::WORDS] {
        let [a, b, c, d] = self.tai_offset_s.to_ne_bytes();
        let [e, f] = self.error_estimate.to_ne_bytes();
        let [g, h] = self.slack_us.to_ne_bytes();
        let Line {
            from,
            real,
            rate,
            span,
        } = self.line;
        let last = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        [from, real, rate, span, self.ahead_ns as u64, last]
    }
}

/// The line in force, and the one before it, which becomes the next one: readers never wait
/// for the writer, and one that was overtaken sees that [`Latch::sequence`] has moved on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latch {
    /// How many lines were published; the last bit tells which of `lines` is in force.
    pub sequence: u64,
    /// Before the first one both are stale for every stamp but 0.
    pub lines: [Published; 2],
}

impl Latch {
    /// Words of it.
    pub const WORDS: usize = size_of::<Self>() / 8;

    /// Index of the first word of the line number `sequence`.
    pub const fn word_of_line(sequence: u64) -> usize {
        1 + (sequence & 1) as usize * Published::WORDS
    }
}

/// Times that a program reads the latch before it leaves a frame alone.
pub const MOST_READS: u32 = 3;

counts! {
    /// What the programs for received packets count.
    Count
    Received      "received"        "Frames that the driver handed to the program at XDP."
    Marked        "marked"          "They carry their stamp."
    Tcp           "tcp"             "TCP, whose segments the kernel could not merge any more if each had a stamp."
    NoStamp       "no_stamp"        "Their CPU's clock could not be read."
    NoRoom        "no_room"         "The driver leaves no room for XDP metadata."
    Seen          "seen"            "Packets at tcx."
    Stamped       "stamped"         "Their receive time was replaced."
    Unasked       "unasked"         "The kernel has not stamped them either: no program asks for receive times."
    Paced         "paced"           "They have a time to be sent at in its place."
    Unmarked      "unmarked"        "They carry no stamp."
    Stale         "stale"           "There was no fresh conversion."
    Overtaken     "overtaken"       "The conversion changed each time while it was read."
    Apart         "apart"           "The kernel's stamp is earlier, or more than 10 ms later: the clock was set, or they were held up."
    EarlierNs     "earlier_ns"      "Sum over all that were replaced of how much earlier the stamp is than the kernel's, ns."
    MostEarlierNs "most_earlier_ns" "The greatest of these, ns."
}

impl Count {
    /// What becomes of a frame at XDP.
    pub const AT_XDP: [Self; 4] = [Self::Marked, Self::Tcp, Self::NoStamp, Self::NoRoom];
    /// What becomes of a packet at tcx.
    pub const AT_TCX: [Self; 7] = [
        Self::Stamped,
        Self::Unasked,
        Self::Paced,
        Self::Unmarked,
        Self::Stale,
        Self::Overtaken,
        Self::Apart,
    ];
}

/// What one CPU counted, by [`Count`].
pub type Counts = [u64; Count::ALL.len()];

// A multiple of 4, and no more than kernels before 6.3 take (`xdp_metalen_invalid`,
// include/net/xdp.h).
const _: () = assert!(size_of::<Mark>() == 16);
const _: () = assert!(size_of::<Line>() == 4 * 8);
const _: () = assert!(size_of::<Published>() == 6 * 8);
const _: () = assert!(size_of::<Latch>() == 13 * 8);
const _: () = assert!(FRACTION == 2 * HALF);
