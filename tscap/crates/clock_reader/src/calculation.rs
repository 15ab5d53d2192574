//! What follows from a page, a counter value and the kernel's clocks. Pure; no value makes it
//! panic.

use std::fmt;

use crate::layout::{GROWTH_FRACTION, Latest, Page, Piece, RATE_FRACTION, UNKNOWN, state};

/// A time that is somewhere between two, both inclusive, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Not before that.
    pub earliest_ns: u64,
    /// Not after that.
    pub latest_ns: u64,
}

impl Interval {
    fn around(middle_ns: u64, bound_ns: u64) -> Self {
        Self {
            earliest_ns: middle_ns.saturating_sub(bound_ns),
            latest_ns: middle_ns.saturating_add(bound_ns),
        }
    }
}

/// What the bound to UTC rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No bound to UTC is known.
    Unsynchronised,
    /// A source of UTC is followed.
    Synchronised,
    /// The source is lost: its time is continued, and the bound grows.
    Holdover,
    /// Nobody has looked at the clock for a second: `tscap clock --serve` has died or is stopped.
    /// The bound to UTC grows; that to the host's clock is not given.
    Stale,
}

/// A counter value as times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The counter.
    pub raw: u64,
    /// What the bound to UTC rests on.
    pub state: State,
    /// The host's CLOCK_REALTIME; `None` if the page is stale.
    pub host: Option<Interval>,
    /// UTC; `None` while no bound is known.
    pub utc: Option<Interval>,
}

/// The time between two counter values, by CLOCK_MONOTONIC_RAW, which nobody slews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// From the first to the second, ns.
    pub ns: i64,
    /// Greatest error of that, ns.
    pub bound_ns: u64,
}

/// Why there is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The page was changed during each try to read it.
    Busy,
    /// The writer of the page has ended.
    Closed,
    /// Nobody has looked at the clock for so long that the page says nothing any more.
    Void,
    /// The clock was set or the counter jumped, and what holds since is not known yet.
    Unresolved,
    /// The kernel's clock was set since the page was written.
    Set,
    /// The counter has jumped since the page was written.
    Jumped,
    /// The stamp is older than what the page knows, or of before a jump of the counter.
    TooOld,
    /// The stamp is later than the present.
    Future,
    /// Nobody can tell on which side of an event the stamp is.
    Ambiguous,
    /// The page has values that no clock has.
    Garbage,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Busy => "the page was changed during each try to read it",
            Self::Closed => "tscap clock --serve has ended",
            Self::Void => "nobody has looked at the clock for too long",
            Self::Unresolved => "the clock was set or the counter jumped a moment ago",
            Self::Set => "the clock was set since the page was written",
            Self::Jumped => "the counter jumped since the page was written",
            Self::TooOld => "the stamp is older than the page's past",
            Self::Future => "the stamp is later than the present",
            Self::Ambiguous => "the stamp may be of either side of an event",
            Self::Garbage => "the page has values that no clock has",
        })
    }
}

impl std::error::Error for Refused {}

/// The counter with the kernel's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The counter.
    pub raw: u64,
    /// CLOCK_REALTIME, ns.
    pub real_ns: u64,
    /// CLOCK_MONOTONIC not after that and not before that, ns. The counter was read between the
    /// two, to within `lag_ns`.
    pub mono_ns: [u64; 2],
    /// How far the kernel's clocks may lag the counter, or the program was interrupted between its
    /// reads, ns.
    pub lag_ns: u64,
}

/// Twice the time: no bound grows faster.
const FASTEST_GROWTH: u64 = 1 << GROWTH_FRACTION;

/// `cycles` as ns, to the nearest.
#[inline]
fn span(cycles: u64, rate: u64) -> u64 {
    let product = u128::from(cycles) * u128::from(rate) + (1 << (RATE_FRACTION - 1));
    u64::try_from(product >> RATE_FRACTION).unwrap_or(u64::MAX)
}

/// What grows by `growth` in `ns`, rounded up.
#[inline]
fn grown(ns: u64, growth: u64) -> u64 {
    let product = u128::from(ns) * u128::from(growth);
    u64::try_from(product >> GROWTH_FRACTION)
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

/// The page's line, carried to a counter value at or behind its latest reading.
#[derive(Clone, Copy)]
struct Carried {
    age_ns: u64,
    real_ns: u64,
}

impl Carried {
    #[inline]
    fn to(latest: &Latest, raw: u64) -> Result<Self, Refused> {
        let cycles = raw.checked_sub(latest.raw).ok_or(Refused::Jumped)?;
        let age_ns = span(cycles, latest.rate);
        let real_ns = latest.real_ns.wrapping_add(age_ns);
        Ok(Self { age_ns, real_ns })
    }
}

/// Whether a page can be used at a counter value: it is neither closed, void nor nonsense.
#[inline]
fn check(latest: &Latest, raw: u64) -> Result<State, Refused> {
    let state = match latest.state {
        state::UNSYNCHRONISED => State::Unsynchronised,
        state::SYNCHRONISED => State::Synchronised,
        state::HOLDOVER => State::Holdover,
        state::UNRESOLVED => return Err(Refused::Unresolved),
        state::CLOSED => return Err(Refused::Closed),
        _ => return Err(Refused::Garbage),
    };
    let is_clock = latest.rate > 0
        && latest.difference_rate > 0
        && latest.host_growth <= FASTEST_GROWTH
        && latest.utc_growth <= FASTEST_GROWTH;
    if !is_clock {
        return Err(Refused::Garbage);
    }
    if raw >= latest.void_raw {
        return Err(Refused::Void);
    }
    Ok(if raw >= latest.stale_raw {
        State::Stale
    } else {
        state
    })
}

/// Whether the page can be used, and the kernel's clocks say that nobody set them since it was
/// written, and that the counter went on as they did.
#[inline]
pub fn confirm(latest: &Latest, witness: &Witness) -> Result<(), Refused> {
    let Witness {
        raw,
        real_ns,
        mono_ns,
        lag_ns,
    } = *witness;
    check(latest, raw)?;
    let offset = |mono: u64| real_ns.wrapping_sub(mono).cast_signed();
    let is_same = offset(mono_ns[1]) <= latest.mono_to_real_ns
        && latest.mono_to_real_ns <= offset(mono_ns[0]);
    if !is_same {
        return Err(Refused::Set);
    }
    let carried = Carried::to(latest, raw)?;
    let expected = carried
        .real_ns
        .wrapping_sub(latest.mono_to_real_ns.cast_unsigned());
    let bound = latest
        .host_bound_ns
        .saturating_add(grown(carried.age_ns, latest.host_growth))
        .saturating_add(lag_ns);
    let is_near = expected >= mono_ns[0].saturating_sub(bound)
        && expected <= mono_ns[1].saturating_add(bound);
    if is_near {
        Ok(())
    } else {
        Err(Refused::Jumped)
    }
}

/// A counter value that was read a moment ago, or a stamp since the latest reading.
#[inline]
pub fn at_or_behind(latest: &Latest, raw: u64) -> Result<Times, Refused> {
    let state = check(latest, raw)?;
    let Carried { age_ns, real_ns } = Carried::to(latest, raw)?;
    let host = (state != State::Stale).then(|| {
        let growth = grown(age_ns, latest.host_growth);
        Interval::around(real_ns, latest.host_bound_ns.saturating_add(growth))
    });
    let utc = (latest.utc_bound_ns != UNKNOWN).then(|| {
        let bound = latest
            .utc_bound_ns
            .saturating_add(latest.host_bound_ns)
            .saturating_add(grown(age_ns, latest.utc_growth));
        Interval::around(shifted(real_ns, latest.utc_offset_ns), bound)
    });
    Ok(Times {
        raw,
        state,
        host,
        utc,
    })
}

fn shifted(ns: u64, by: i64) -> u64 {
    ns.saturating_add_signed(by)
}

impl Piece {
    fn real_at(&self, raw: u64) -> u64 {
        let cycles = raw.saturating_sub(self.from);
        self.real_ns.saturating_add(span(cycles, self.rate))
    }

    /// Of a time that is `bound_ns` off CLOCK_REALTIME at most.
    fn utc(&self, real_ns: u64, bound_ns: u64) -> Option<Interval> {
        (self.utc_bound_ns != UNKNOWN).then(|| {
            let bound = self.utc_bound_ns.saturating_add(bound_ns);
            Interval::around(shifted(real_ns, self.utc_offset_ns), bound)
        })
    }
}

/// The times of a counter stamp from the past, when the counter is at `now`.
pub fn of_raw(page: &Page, now: u64, raw: u64) -> Result<Times, Refused> {
    let latest = &page.latest;
    let state = check(latest, now)?;
    if raw > now {
        return Err(Refused::Future);
    }
    if raw >= latest.raw {
        let times = at_or_behind(latest, raw)?;
        // What happened since is known as well as now.
        let host = times.host.filter(|_| state != State::Stale);
        return Ok(Times {
            state,
            host,
            ..times
        });
    }
    if raw < latest.epoch_raw {
        return Err(Refused::TooOld);
    }
    let is_of = |piece: &&Piece| (piece.from..=piece.until).contains(&raw);
    let Some(piece) = page.past.iter().rev().find(is_of) else {
        let is_known = page.past.first().is_some_and(|oldest| raw > oldest.from);
        return Err(if is_known {
            Refused::Ambiguous
        } else {
            Refused::TooOld
        });
    };
    let real_ns = piece.real_at(raw);
    Ok(Times {
        raw,
        state,
        host: Some(Interval::around(real_ns, piece.host_bound_ns)),
        utc: piece.utc(real_ns, piece.host_bound_ns),
    })
}

/// The times of a stamp of CLOCK_REALTIME from the past, such as SO_TIMESTAMPING gives, when the
/// counter is at `now`. `raw` of the result is the counter then, to within the host's bound.
///
/// The clock's time is the stamp itself, so that `host` has no width.
pub fn of_real(page: &Page, now: u64, real_ns: u64) -> Result<Times, Refused> {
    let latest = &page.latest;
    let state = check(latest, now)?;
    let at_present = at_or_behind(latest, now)?;
    let Some(present) = at_present.host else {
        // The clock may have been set since.
        return Err(Refused::Void);
    };
    if real_ns > present.latest_ns {
        return Err(Refused::Future);
    }
    let host = Some(Interval::around(real_ns, 0));
    if is_in_a_gap(page, real_ns) {
        return Err(Refused::Ambiguous);
    }
    let mut found: Option<(usize, &Piece)> = None;
    for (index, piece) in page.past.iter().enumerate() {
        let from = piece.real_ns.saturating_sub(piece.host_bound_ns);
        let until = piece
            .real_at(piece.until)
            .saturating_add(piece.host_bound_ns);
        if !(from..=until).contains(&real_ns) {
            continue;
        }
        match found {
            // Where two pieces meet, either may have it.
            Some((before, earlier)) if before + 1 == index && earlier.until == piece.from => {
                let wider = earlier.utc_bound_ns > piece.utc_bound_ns;
                found = Some((index, if wider { earlier } else { piece }));
            }
            Some(_) => return Err(Refused::Ambiguous),
            None => found = Some((index, piece)),
        }
    }
    let is_behind = real_ns >= latest.real_ns;
    match found {
        Some((_, piece)) if !is_behind => {
            let cycles = cycles_in(real_ns.saturating_sub(piece.real_ns), piece.rate);
            Ok(Times {
                raw: piece.from.saturating_add(cycles),
                state,
                host,
                utc: piece.utc(real_ns, 0),
            })
        }
        Some((index, _)) if index + 1 < page.past.len() => Err(Refused::Ambiguous),
        None if !is_behind => {
            let oldest = page.past.first();
            let is_known = oldest.is_some_and(|oldest| real_ns > oldest.real_ns);
            Err(if is_known {
                Refused::Ambiguous
            } else {
                Refused::TooOld
            })
        }
        _ => {
            let age_ns = real_ns - latest.real_ns;
            let cycles = cycles_in(age_ns, latest.rate);
            let growth = latest.host_growth.saturating_add(latest.utc_growth);
            let utc = (latest.utc_bound_ns != UNKNOWN).then(|| {
                let bound = latest.utc_bound_ns.saturating_add(grown(age_ns, growth));
                Interval::around(shifted(real_ns, latest.utc_offset_ns), bound)
            });
            Ok(Times {
                raw: latest.raw.saturating_add(cycles),
                state,
                host,
                utc,
            })
        }
    }
}

fn cycles_in(ns: u64, rate: u64) -> u64 {
    let cycles = (u128::from(ns) << RATE_FRACTION).checked_div(u128::from(rate));
    cycles
        .and_then(|it| u64::try_from(it).ok())
        .unwrap_or(u64::MAX)
}

/// Whether the clock may have shown a time between two pieces that do not meet, before the event
/// or after it. It runs a tenth faster than its line at most.
fn is_in_a_gap(page: &Page, real_ns: u64) -> bool {
    page.past.windows(2).any(|pair| {
        let [earlier, later] = pair else { return false };
        if earlier.until == later.from {
            return false;
        }
        let cycles = later.from.saturating_sub(earlier.until);
        let length = span(cycles, earlier.rate.max(later.rate));
        let reach = length.saturating_add(length / 10);
        let end = earlier.real_at(earlier.until);
        let before = end.saturating_sub(earlier.host_bound_ns)
            ..=end
                .saturating_add(reach)
                .saturating_add(earlier.host_bound_ns);
        let start = later.real_ns;
        let after = start
            .saturating_sub(reach)
            .saturating_sub(later.host_bound_ns)
            ..=start.saturating_add(later.host_bound_ns);
        before.contains(&real_ns) || after.contains(&real_ns)
    })
}

/// The time from one counter value to another, when the counter is at `now`.
pub fn between(latest: &Latest, now: u64, from: u64, until: u64) -> Result<Difference, Refused> {
    check(latest, now)?;
    if from.max(until) > now {
        return Err(Refused::Future);
    }
    if from.min(until) < latest.epoch_raw {
        return Err(Refused::TooOld);
    }
    let ns = span(from.abs_diff(until), latest.difference_rate);
    // Rounding, and at either end half of a value of a counter slower than 1 GHz.
    let count = latest.difference_rate.div_ceil(1 << RATE_FRACTION);
    let relative = u128::from(ns) * u128::from(latest.difference_bound_ppb);
    let relative = u64::try_from(relative.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
    let signed = i64::try_from(ns).map_err(|_| Refused::Garbage)?;
    Ok(Difference {
        ns: if from <= until { signed } else { -signed },
        bound_ns: relative.saturating_add(count),
    })
}

#[cfg(test)]
mod tests;
