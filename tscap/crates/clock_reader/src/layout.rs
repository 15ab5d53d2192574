//! The page: what is where. docs/shared-clock.md has the same as a table.
//!
//! All fields are little-endian words of 8 bytes, but for two of 4 bytes in the header. The header
//! does not change while the page is there. Behind it stand the sequence and two copies of the
//! state. The writer changes one copy after the other, and counts the sequence up before each: while
//! it is odd the first copy is being changed, so that readers take the second one. A writer that is
//! stopped at any instruction leaves one copy whole.

/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"TSCAPCLK";
/// The version of this layout.
pub const VERSION: u32 = 1;
/// The counter is the TSC of x86-64.
pub const COUNTER_TSC: u64 = 1;
/// The counter is the virtual count of an ARM generic timer, CNTVCT_EL0.
pub const COUNTER_CNTVCT: u64 = 2;

/// Byte offset of the sequence: a cache line of its own.
pub const SEQUENCE_AT: usize = 64;
/// Byte offset of the first copy of the state.
pub const COPIES_AT: usize = 128;
/// Words of the header.
pub const HEADER_WORDS: usize = 8;
/// Words of [`Latest`].
pub const LATEST_WORDS: usize = 24;
/// Pieces of the past that are kept.
pub const PIECES: usize = 64;
/// Words of a [`Piece`].
pub const PIECE_WORDS: usize = 8;
/// Words of a copy of the state.
pub const COPY_WORDS: usize = LATEST_WORDS + PIECES * PIECE_WORDS;
/// Length of a page, bytes.
pub const SIZE: usize = COPIES_AT + 2 * 8 * COPY_WORDS;

/// A bound that nobody states.
pub const UNKNOWN: u64 = u64::MAX;
/// Binary digits behind the point of rates, ns a count.
pub const RATE_FRACTION: u32 = 57;
/// Binary digits behind the point of the growth of bounds, ns a ns.
pub const GROWTH_FRACTION: u32 = 32;

/// Values of [`Latest::state`].
pub mod state {
    /// No bound to UTC is known.
    pub const UNSYNCHRONISED: u64 = 1;
    /// The bound to UTC is that of a source that is followed.
    pub const SYNCHRONISED: u64 = 2;
    /// The source is lost: its time is continued, and the bound grows.
    pub const HOLDOVER: u64 = 3;
    /// The clock was set or the counter jumped, and what holds since is not known yet.
    pub const UNRESOLVED: u64 = 4;
    /// The writer has ended.
    pub const CLOSED: u64 = 5;
}

/// What does not change while a page is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// `/proc/sys/kernel/random/boot_id`, as bytes in the order in which they are written.
    pub boot_id: [u8; 16],
    /// CLOCK_BOOTTIME when the page was made, ns: another one after each start of the writer.
    pub generation: u64,
    /// Which counter raw stamps are of.
    pub counter: u64,
}

impl Header {
    /// As words; `to_le_bytes` of each is what is in the file.
    pub fn to_words(&self) -> [u64; HEADER_WORDS] {
        let half = |from: usize| {
            let bytes: [u8; 8] = self.boot_id[from..from + 8].try_into().expect("8 bytes");
            u64::from_le_bytes(bytes)
        };
        let version_and_size = u64::from(VERSION) | (SIZE as u64) << 32;
        [
            u64::from_le_bytes(MAGIC),
            version_and_size,
            half(0),
            half(8),
            self.generation,
            self.counter,
            0,
            0,
        ]
    }

    /// Of a page of this version; `None` of anything else.
    pub fn from_words(words: &[u64; HEADER_WORDS]) -> Option<Self> {
        let [
            magic,
            version_and_size,
            first,
            second,
            generation,
            counter,
            ..,
        ] = *words;
        let version_of_this = u64::from(VERSION) | (SIZE as u64) << 32;
        let is_page = magic == u64::from_le_bytes(MAGIC) && version_and_size == version_of_this;
        is_page.then(|| {
            let mut boot_id = [0; 16];
            boot_id[..8].copy_from_slice(&first.to_le_bytes());
            boot_id[8..].copy_from_slice(&second.to_le_bytes());
            Self {
                boot_id,
                generation,
                counter,
            }
        })
    }
}

/// The clock at its latest reading, and how it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latest {
    /// The counter at the reading.
    pub raw: u64,
    /// CLOCK_REALTIME there, ns since 1970.
    pub real_ns: u64,
    /// The rate of CLOCK_REALTIME from there, 2^-57 ns a count.
    pub rate: u64,
    /// Greatest error of `real_ns`, ns.
    pub host_bound_ns: u64,
    /// Growth of the error against CLOCK_REALTIME, 2^-32 ns a ns.
    pub host_growth: u64,
    /// UTC less CLOCK_REALTIME, ns.
    pub utc_offset_ns: i64,
    /// Greatest error of CLOCK_REALTIME plus that offset against UTC, ns; [`UNKNOWN`].
    pub utc_bound_ns: u64,
    /// Growth of the error against UTC, 2^-32 ns a ns.
    pub utc_growth: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, ns: another one after each time that the clock is set.
    pub mono_to_real_ns: i64,
    /// The rate of CLOCK_MONOTONIC_RAW, 2^-57 ns a count: the difference clock.
    pub difference_rate: u64,
    /// Greatest relative error of that, parts per billion.
    pub difference_bound_ppb: u64,
    /// One of [`state`].
    pub state: u64,
    /// The counter from which on the page is stale: nobody has looked at the clock since.
    pub stale_raw: u64,
    /// The counter from which on the page is void.
    pub void_raw: u64,
    /// The counter at the first reading after its latest jump, or at the first one.
    pub epoch_raw: u64,
    /// Jumps of the counter.
    pub jumps: u64,
    /// Times that the clock was set.
    pub steps: u64,
    /// How many pieces of the past there are, [`PIECES`] at most.
    pub pieces: u64,
}

impl Latest {
    /// As words.
    pub fn to_words(&self) -> [u64; LATEST_WORDS] {
        let mut words = [0; LATEST_WORDS];
        words[..18].copy_from_slice(&[
            self.raw,
            self.real_ns,
            self.rate,
            self.host_bound_ns,
            self.host_growth,
            self.utc_offset_ns.cast_unsigned(),
            self.utc_bound_ns,
            self.utc_growth,
            self.mono_to_real_ns.cast_unsigned(),
            self.difference_rate,
            self.difference_bound_ppb,
            self.state,
            self.stale_raw,
            self.void_raw,
            self.epoch_raw,
            self.jumps,
            self.steps,
            self.pieces,
        ]);
        words
    }

    /// Of any words.
    #[inline]
    pub fn from_words(words: &[u64; LATEST_WORDS]) -> Self {
        Self {
            raw: words[0],
            real_ns: words[1],
            rate: words[2],
            host_bound_ns: words[3],
            host_growth: words[4],
            utc_offset_ns: words[5].cast_signed(),
            utc_bound_ns: words[6],
            utc_growth: words[7],
            mono_to_real_ns: words[8].cast_signed(),
            difference_rate: words[9],
            difference_bound_ppb: words[10],
            state: words[11],
            stale_raw: words[12],
            void_raw: words[13],
            epoch_raw: words[14],
            jumps: words[15],
            steps: words[16],
            pieces: words[17],
        }
    }
}

/// A straight piece of the past. Between two pieces that do not meet, nobody knows on which side
/// of an event a stamp is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The counter where it begins.
    pub from: u64,
    /// The counter where it ends.
    pub until: u64,
    /// CLOCK_REALTIME where it begins, ns since 1970.
    pub real_ns: u64,
    /// The rate of CLOCK_REALTIME, 2^-57 ns a count.
    pub rate: u64,
    /// Greatest error of the line against CLOCK_REALTIME, ns.
    pub host_bound_ns: u64,
    /// UTC less CLOCK_REALTIME, ns.
    pub utc_offset_ns: i64,
    /// Greatest error of CLOCK_REALTIME plus that offset against UTC, ns; [`UNKNOWN`].
    pub utc_bound_ns: u64,
}

impl Piece {
    /// As words.
    pub fn to_words(&self) -> [u64; PIECE_WORDS] {
        [
            self.from,
            self.until,
            self.real_ns,
            self.rate,
            self.host_bound_ns,
            self.utc_offset_ns.cast_unsigned(),
            self.utc_bound_ns,
            0,
        ]
    }

    /// Of any words.
    pub fn from_words(words: &[u64; PIECE_WORDS]) -> Self {
        let [
            from,
            until,
            real_ns,
            rate,
            host_bound_ns,
            offset,
            utc_bound_ns,
            _,
        ] = *words;
        Self {
            from,
            until,
            real_ns,
            rate,
            host_bound_ns,
            utc_offset_ns: offset.cast_signed(),
            utc_bound_ns,
        }
    }
}

/// A whole copy of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The clock at its latest reading.
    pub latest: Latest,
    /// The past, oldest first; the latest [`PIECES`] are kept.
    pub past: Vec<Piece>,
}

impl Page {
    /// As words.
    pub fn to_words(&self) -> [u64; COPY_WORDS] {
        let mut words = [0; COPY_WORDS];
        let skipped = self.past.len().saturating_sub(PIECES);
        let past = &self.past[skipped..];
        let latest = Latest {
            pieces: past.len() as u64,
            ..self.latest
        };
        words[..LATEST_WORDS].copy_from_slice(&latest.to_words());
        let (places, _) = words[LATEST_WORDS..].as_chunks_mut::<PIECE_WORDS>();
        for (place, piece) in places.iter_mut().zip(past) {
            *place = piece.to_words();
        }
        words
    }

    /// Of any words.
    pub fn from_words(words: &[u64; COPY_WORDS]) -> Self {
        let (latest, pieces) = words.split_first_chunk().expect("a copy is longer");
        let latest = Latest::from_words(latest);
        let (pieces, _) = pieces.as_chunks::<PIECE_WORDS>();
        let kept = usize::try_from(latest.pieces).unwrap_or(PIECES);
        let past = pieces.iter().take(kept).map(Piece::from_words);
        Self {
            latest,
            past: past.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_as_long_as_its_document_says() {
        assert_eq!(SIZE, 8_704);
    }

    #[test]
    fn a_header_comes_back_from_its_words() {
        let header = Header {
            boot_id: std::array::from_fn(|at| at as u8 + 1),
            generation: 77,
            counter: COUNTER_TSC,
        };
        let words = header.to_words();
        assert_eq!(Header::from_words(&words), Some(header));
        assert_eq!(words[0].to_le_bytes(), MAGIC);
        for broken in 0..2 {
            let mut words = words;
            words[broken] ^= 1 << 32;
            assert_eq!(Header::from_words(&words), None, "{broken}");
        }
    }

    #[test]
    fn the_latest_pieces_come_back_in_their_order() {
        let piece = |at: u64| Piece {
            from: at,
            until: at + 1,
            real_ns: at + 2,
            rate: at + 3,
            host_bound_ns: at + 4,
            utc_offset_ns: -5,
            utc_bound_ns: UNKNOWN,
        };
        for pieces in [0, 1, 64] {
            let latest = Latest {
                raw: 1,
                utc_offset_ns: -2,
                mono_to_real_ns: -3,
                pieces,
                ..Latest::default()
            };
            let past = (0..pieces).map(piece).collect();
            let page = Page { latest, past };
            assert_eq!(Page::from_words(&page.to_words()), page, "{pieces}");
        }
        let page = Page {
            latest: Latest::default(),
            past: (0..70).map(piece).collect(),
        };
        let kept = Page::from_words(&page.to_words());
        assert_eq!(kept.latest.pieces, 64);
        assert_eq!(kept.past, page.past[6..]);
    }
}
