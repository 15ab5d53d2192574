//! The clocks of a capture whose times are those of a reference instead of the host's.
//!
//! Who follows the reference publishes what is [`Known`] of it. The converter makes a clock of its
//! own of that, straight lines in the counter, which is what CLOCK_REALTIME is elsewhere: a new
//! line begins at a reading of the converter, where the one before ends, and is steered towards
//! the reference by [`STEERED_PPB`] at most. So the times never jump when more becomes known. They
//! do where the reference itself was set.

use std::sync::{Arc, Mutex};

use nix::time::ClockId;

use crate::ReferenceMember;
use crate::peer::share_up;
use tscap_base::kernel_files::KernelFiles;
use tscap_clock::{
    Bracket, CrossTimestamp, FollowedBounds, MonoNs, NsPerCycle, OffsetNs, RealNs, Reference,
    ReferenceBounds, TaiNs, TscCycles,
};
use tscap_host::process;
use tscap_time::NS_PER_S;
use tscap_time::now;
use tscap_time::tsc;

/// How much faster or slower than the reference the clock goes at most to come near it: so that
/// what bends between two readings, 10 ms apart, is below a microsecond.
const STEERED_PPB: i64 = 50_000;
/// It comes near as if it were to be there after this, ns.
const NEAR_AFTER_NS: i64 = 20 * NS_PER_S;
/// The counter jumped if it and CLOCK_BOOTTIME have gone on by so much more one than the
/// other, ns, and an eighth of the time: a clock is slewed by a tenth at most (`__do_adjtimex`,
/// kernel/time/ntp.c).
const JUMP_NS: u64 = 1_000_000;
/// How well CLOCK_BOOTTIME tells the time over such a jump, ns: a suspended machine goes by a
/// clock of whole seconds.
const OVER_JUMP_NS: u64 = 2_000_000_000;
/// How far off the rate is then, parts per billion.
const ADRIFT_PPB: u64 = 1_000_000;

/// What is known of a reference at a counter value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The counter.
    pub at: TscCycles,
    /// Time of the reference, as UTC.
    pub real: RealNs,
    /// How it goes on.
    pub rate: NsPerCycle,
    /// Greatest error against the reference, ns...
    pub bound_ns: u64,
    /// ...and what that grows by, parts per billion.
    pub growth_ppb: u64,
    /// Greatest error of the reference against UTC, ns, by its own account; `None` where it
    /// gives none...
    pub own_bound_ns: Option<u64>,
    /// ...and what that grows by, parts per billion.
    pub own_growth_ppb: u64,
    /// The counter at the latest reading of it that was used.
    pub used_at: TscCycles,
    /// How far the host's CLOCK_REALTIME is ahead, ns.
    pub host_ahead_ns: i64,
    /// How often the reference was set, or the counter jumped: times are steered from one known
    /// value to another only while this is the same.
    pub turn: u64,
    /// Where this turn began because the reference was set: the counter at the latest reading
    /// before that.
    pub set_after: Option<TscCycles>,
    /// How much farther off the reference is, ns, if it was set and is not believed yet: it has
    /// been read so since, and what is known is of before.
    pub doubt_ns: u64,
}

/// A reference that is followed, as its follower and all converters of a capture share it.
#[derive(Clone, Debug)]
pub struct Followed {
    name: Arc<str>,
    id: Option<Arc<str>>,
    known: Arc<Mutex<Known>>,
    members: Arc<Mutex<Vec<ReferenceMember>>>,
}

impl Followed {
    /// By this name, once something is known.
    pub fn new(name: &str, known: Known) -> Self {
        Self {
            name: name.into(),
            id: process::new_id(&KernelFiles::live()).ok().map(Into::into),
            known: Arc::new(Mutex::new(known)),
            members: Arc::default(),
        }
    }

    /// What it is called: "ntp:" and a server, or the path of a device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name that nothing else has; `None` where the kernel gives none.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Says what is known now.
    pub fn publish(&self, known: Known) {
        let mut shared = self.known.lock().unwrap_or_else(|it| it.into_inner());
        *shared = known;
    }

    /// Says what each reference is now.
    pub fn publish_members(&self, members: Vec<ReferenceMember>) {
        let mut shared = self.members.lock().unwrap_or_else(|it| it.into_inner());
        *shared = members;
    }

    /// What each reference was last.
    pub fn members(&self) -> Vec<ReferenceMember> {
        let shared = self.members.lock().unwrap_or_else(|it| it.into_inner());
        shared.clone()
    }

    /// What was known last.
    pub fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(|it| it.into_inner())
    }
}

/// The same if it is the same follower's.
impl PartialEq for Followed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.known, &other.known)
    }
}

impl Eq for Followed {}

impl Known {
    /// The reference's time at a counter value.
    pub fn real_at(&self, at: TscCycles) -> RealNs {
        let ns = self.rate.duration_ns(at.0.abs_diff(self.at.0));
        RealNs(if at >= self.at {
            self.real.0.saturating_add(ns)
        } else {
            self.real.0.saturating_sub(ns)
        })
    }

    /// Greatest errors when that was known.
    pub fn bounds(&self) -> ReferenceBounds {
        self.bounds_at(self.at)
    }

    /// Greatest errors there.
    pub fn bounds_at(&self, at: TscCycles) -> ReferenceBounds {
        let ns = self.rate.duration_ns(at.0.abs_diff(self.at.0));
        let grown = |bound_ns: u64, ppb| bound_ns.saturating_add(share_up(ns, ppb));
        ReferenceBounds {
            // Rounded twice.
            bound_ns: grown(self.bound_ns, self.growth_ppb).saturating_add(1),
            own_bound_ns: self.own_bound_ns.map(|it| grown(it, self.own_growth_ppb)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: TscCycles,
    real: RealNs,
    rate: NsPerCycle,
}

impl Piece {
    fn at(&self, at: TscCycles) -> RealNs {
        let ns = self.rate.duration_ns(at.0.abs_diff(self.from.0));
        RealNs(if at >= self.from {
            self.real.0.saturating_add(ns)
        } else {
            self.real.0.saturating_sub(ns)
        })
    }
}

/// The clock that follows, without the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Steered {
    piece: Piece,
    /// What it goes by.
    known: Known,
    /// Its time less that of the clock beside it that is never set.
    offset_ns: i64,
}

impl Steered {
    pub(crate) fn new(known: Known, at: TscCycles, mono: MonoNs) -> Self {
        let real = known.real_at(at);
        Self {
            piece: Piece {
                from: at,
                real,
                rate: known.rate,
            },
            known,
            offset_ns: real.0.wrapping_sub(mono.0).cast_signed(),
        }
    }

    /// Goes by what is known now, from a reading on. Gives how far the clock was off until then,
    /// where that shows only now.
    pub(crate) fn steer(&mut self, known: Known, at: TscCycles) -> Option<ReferenceBounds> {
        let is_doubt_alone = Known {
            doubt_ns: self.known.doubt_ns,
            ..known
        } == self.known;
        if is_doubt_alone {
            self.known = known;
            return None;
        }
        let set_after = known.set_after.filter(|_| known.turn != self.known.turn);
        let missed = set_after.map(|after| self.missed(&known, after, at));
        let (here, there) = (self.piece.at(at), known.real_at(at));
        let ahead_ns = there.0.wrapping_sub(here.0).cast_signed();
        self.piece = if known.turn == self.known.turn {
            let share = i128::from(ahead_ns) * 1_000_000_000 / i128::from(NEAR_AFTER_NS);
            let most = i128::from(STEERED_PPB);
            let ppb = share.clamp(-most, most);
            let rate = i128::from(known.rate.0) * (1_000_000_000 + ppb) / 1_000_000_000;
            let rate = u64::try_from(rate).map(NsPerCycle).unwrap_or(known.rate);
            Piece {
                from: at,
                real: here,
                rate,
            }
        } else {
            self.offset_ns = self.offset_ns.wrapping_add(ahead_ns);
            Piece {
                from: at,
                real: there,
                rate: known.rate,
            }
        };
        self.known = known;
        missed
    }

    /// The reference was set after a reading, and is what is known now: how far the clock was off
    /// since then at most. Both are straight, so that it was at one of both ends; before the latest
    /// piece began, the clock was steered in another way.
    fn missed(&self, known: &Known, after: TscCycles, at: TscCycles) -> ReferenceBounds {
        let off = |at: TscCycles| {
            let off_ns = known.real_at(at).0.abs_diff(self.piece.at(at).0);
            let bounds = known.bounds_at(at);
            ReferenceBounds {
                bound_ns: bounds.bound_ns.saturating_add(off_ns),
                ..bounds
            }
        };
        let before = self.piece.from.0.saturating_sub(after.0);
        let steered_ns = share_up(
            self.piece.rate.duration_ns(before),
            2 * STEERED_PPB.unsigned_abs(),
        );
        let greatest = off(after).or_greater(off(at));
        ReferenceBounds {
            bound_ns: greatest.bound_ns.saturating_add(steered_ns),
            ..greatest
        }
    }

    /// The counter jumped: another clock tells that `ns` have gone by since the time `before`.
    fn jump(&mut self, before: RealNs, ns: u64, at: TscCycles) {
        let real = RealNs(before.0.saturating_add(ns));
        let bounds = self.known.bounds_at(self.piece.from);
        self.piece = Piece {
            from: at,
            real,
            ..self.piece
        };
        // Until the follower has noticed too.
        self.known = Known {
            at,
            real,
            bound_ns: bounds.bound_ns.saturating_add(OVER_JUMP_NS),
            growth_ppb: ADRIFT_PPB,
            ..self.known
        };
    }

    /// What it shows.
    pub(crate) fn real_at(&self, at: TscCycles) -> RealNs {
        self.piece.at(at)
    }

    fn mono_at(&self, at: TscCycles) -> MonoNs {
        MonoNs(self.piece.at(at).0.wrapping_add_signed(-self.offset_ns))
    }

    /// What it shows between two readings of the counter; TAI is so far ahead of UTC.
    fn cross(&self, tsc: [TscCycles; 2], tai_ns: u64) -> CrossTimestamp {
        let middle = TscCycles(tsc[0].0 + tsc[1].0.saturating_sub(tsc[0].0) / 2);
        let real = self.piece.at(middle);
        CrossTimestamp {
            mono: tsc.map(|at| self.mono_at(at)),
            tsc: Some(tsc),
            real: [real; 2],
            tai: TaiNs(real.0.saturating_add(tai_ns)),
            boot: None,
            offset: Some(OffsetNs(self.offset_ns)),
        }
    }

    pub(crate) fn bounds_at(&self, at: TscCycles) -> ReferenceBounds {
        let bounds = self.known.bounds_at(at);
        let off_ns = self.known.real_at(at).0.abs_diff(self.piece.at(at).0);
        ReferenceBounds {
            bound_ns: bounds.bound_ns.saturating_add(off_ns),
            ..bounds
        }
    }
}

/// The clocks that stamps of the counter are held against where a reference is followed:
/// CLOCK_REALTIME is the reference's time, and CLOCK_MONOTONIC the same as if that had never been
/// set. The host's own are not in it, so that it makes no difference who sets or slews them.
#[derive(Clone, Debug)]
pub struct FollowedClocks {
    followed: Followed,
    steered: Steered,
    /// TAI − UTC as the kernel knows it, ns.
    tai_ns: u64,
    /// The latest reading: the counter, and CLOCK_BOOTTIME.
    latest: (TscCycles, u64),
    /// Of a jump that the follower has not noticed yet: what it had published then.
    adrift: Option<u64>,
    /// The greatest since they were asked for last.
    bounds: Option<ReferenceBounds>,
}

impl FollowedClocks {
    /// Begins where the reference is now.
    pub fn new(followed: &Followed) -> Self {
        let at = tsc::read();
        let steered = Steered::new(followed.known(), at, MonoNs::now());
        let tai = now(ClockId::CLOCK_TAI).saturating_sub(now(ClockId::CLOCK_REALTIME));
        Self {
            followed: followed.clone(),
            bounds: None,
            steered,
            tai_ns: whole_seconds_ns(tai),
            latest: (at, now(ClockId::CLOCK_BOOTTIME)),
            adrift: None,
        }
    }

    /// Takes in what is known now, and whether the counter has jumped. Gives how far the clock
    /// was off before: stamps since the reading before are of then.
    fn look(&mut self) -> ReferenceBounds {
        let (at, boot) = (tsc::read(), now(ClockId::CLOCK_BOOTTIME));
        let (before, boot_before) = std::mem::replace(&mut self.latest, (at, boot));
        let gone_ns = boot.saturating_sub(boot_before);
        let rate = self.steered.piece.rate;
        let counted_ns = at.0.checked_sub(before.0).map(|it| rate.duration_ns(it));
        let is_off = |ns: u64| ns.abs_diff(gone_ns) > JUMP_NS + gone_ns / 8;
        if counted_ns.is_none_or(is_off) {
            let real = self.steered.real_at(before);
            self.steered.jump(real, gone_ns, at);
            self.adrift = Some(self.steered.known.turn);
        }
        let mut before = self.steered.bounds_at(at);
        // Whoever publishes may have been stopped in the middle of it: nobody waits for that.
        let known = self.followed.known.try_lock().map(|known| *known);
        if let Ok(known) = known
            && self.adrift != Some(known.turn)
        {
            self.adrift = None;
            let missed = self.steered.steer(known, at);
            before = missed.map_or(before, |missed| missed.or_greater(before));
        }
        before
    }
}

/// The nearest whole number of seconds, ns.
fn whole_seconds_ns(ns: u64) -> u64 {
    const SECOND: u64 = NS_PER_S.unsigned_abs();
    (ns + SECOND / 2) / SECOND * SECOND
}

impl Reference for FollowedClocks {
    fn read(&mut self) -> CrossTimestamp {
        let before = self.look();
        let tsc = [tsc::read(), tsc::read()];
        let bounds = self.steered.bounds_at(tsc[1]).or_greater(before);
        self.bounds = self.bounds.map(|it| it.or_greater(bounds)).or(Some(bounds));
        self.steered.cross(tsc, self.tai_ns)
    }

    fn raw(&mut self) -> Option<Bracket> {
        Some(Bracket::of_raw())
    }

    fn followed(&mut self) -> Option<FollowedBounds> {
        Some(FollowedBounds {
            bounds: self.bounds.take()?,
            doubt_ns: self.steered.known.doubt_ns,
        })
    }
}

impl Reference<MonoNs> for FollowedClocks {
    fn read(&mut self) -> MonoNs {
        self.steered.mono_at(tsc::read())
    }
}

#[cfg(test)]
mod tests;
