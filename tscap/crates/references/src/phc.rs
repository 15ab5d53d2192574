//! A PTP hardware clock as a second reference: the same feed-forward clock, of the
//! same counter, beside the host's own.
//!
//! A device is read by the kernel between two readings of CLOCK_REALTIME, which the
//! host's clock turns into counter values: to the error of that clock, and strictly
//! inside of the system call. Where in between the device latched its time, nobody
//! knows, however asymmetric the way to it is: all of that is within the bound.

use serde::{Deserialize, Serialize};

use tscap_clock::model::Verdict;
use tscap_clock::{
    Bracket, CounterClock, Counts, Estimate, FeedForward, NsPerCycle, RealNs, Reference, Scale,
    Tracker, TscCycles,
};
use tscap_time::NS_PER_S;
use tscap_time::ptp::PtpError;
use tscap_time::{PhcNs, PhcReading};

/// What a device counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhcBase {
    /// TAI, as PTP does: leap seconds are none.
    Tai,
    /// UTC, as some virtual ones do: it is set at a leap second.
    Utc,
    /// Neither: it was never set, or one of the two clocks is wrong.
    Unknown,
}

/// What a look at the device came to.
#[derive(Debug)]
pub enum PhcOutcome {
    /// A reading of use.
    Used,
    /// It contradicts what is known, or the host's clock was set meanwhile: passed over.
    PassedOver,
    /// Its time is that of the reading before: it stands. Passed over.
    Stands,
    /// The device was set, or the counter jumped: its clock begins anew.
    Jumped {
        /// By how much it was ahead of what was expected, ns.
        by_ns: i64,
    },
    /// It can't be read: its clock is carried on.
    Failed(PtpError),
}

/// The clock of a device.
#[derive(Clone, Debug, Default)]
pub struct PhcClock {
    first: Option<Bracket>,
    model: Option<FeedForward>,
    latest: Option<PhcNs>,
    /// The latest reading that was used.
    used: Option<Bracket>,
    /// See [`Self::doubt_ns`].
    doubt_ns: u64,
    stood: u64,
    torn: u64,
    failed: u64,
}

/// The host's clock beside a device at one look, as it was read: nothing is smoothed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhcSighting {
    /// The counter in the middle of the look.
    pub at: TscCycles,
    /// How far CLOCK_REALTIME was ahead of the device, ns: by whole seconds too, where that
    /// counts another time.
    pub ahead_ns: i64,
    /// Greatest error of that, ns: half of the look, and that of the host's clock.
    pub bound_ns: u64,
}

/// What is known of a device at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhcStatus {
    /// Its time by its own feed-forward clock, ns.
    pub phc: PhcNs,
    /// What it counts, judged by how far it is from the host's clock.
    pub base: PhcBase,
    /// How far CLOCK_REALTIME is ahead of it, ns; CLOCK_TAI where it counts TAI.
    pub host_ahead_ns: i64,
    /// Greatest error of that, of both clocks; it grows while the device can't be
    /// read, and has the distance of a reading that is not believed yet.
    pub bound_ns: u64,
    /// How much faster than the device the host's clock runs, by p̂ of each, parts per
    /// billion.
    pub host_rate_ppb: i64,
    /// Greatest error of that.
    pub rate_bound_ppb: u64,
    /// Least width of a reading, ns.
    pub least_width_ns: u64,
    /// Age of the latest reading of use, ns: for so long it is carried on.
    pub age_ns: u64,
    /// What became of the readings.
    pub readings: Counts,
    /// Readings at which it stood.
    pub stood: u64,
    /// Readings during which the host's clock was set.
    pub torn: u64,
    /// Looks at which it could not be read.
    pub failed: u64,
}

/// The first p̂ needs at least this baseline: with readings of 1 µs it is good to 10
/// ppm then.
const SHORTEST_BASELINE_NS: u64 = 100_000_000;
/// Farther from the host's p̂ it was set in between, or stood: 0.1 %, more than any
/// oscillator is off.
const FARTHEST_RATE_PPB: u64 = 1_000_000;
/// Leap seconds ever since UTC had any (IERS Bulletin C): 10 to 37, and some to come.
const TAI_OFFSETS_S: std::ops::RangeInclusive<i64> = 10..=60;

impl PhcClock {
    /// Looks at the device. The host's clock must have settled.
    pub fn look(
        &mut self,
        device: &mut impl Reference<Result<PhcReading, PtpError>>,
        host: &Tracker,
    ) -> PhcOutcome {
        let reading = match device.read() {
            Ok(reading) => reading,
            Err(error) => {
                self.failed += 1;
                return PhcOutcome::Failed(error);
            }
        };
        if self.latest.replace(reading.phc) == Some(reading.phc) {
            self.stood += 1;
            if self.model.is_none() {
                // The first p̂ is not to be of a time in which it stood.
                self.first = None;
            }
            return PhcOutcome::Stands;
        }
        let host = host.counter();
        let bracket = host.and_then(|host| Some((bracket(&reading, host)?, host.rate())));
        let Some((bracket, host_rate)) = bracket else {
            self.torn += 1;
            return PhcOutcome::PassedOver;
        };
        let Some(model) = &mut self.model else {
            return self.begin(bracket, host_rate);
        };
        let expected = bracket.tsc.map(|at| model.estimate(at).real);
        let verdict = model.observe(&bracket);
        self.doubt_ns = match verdict {
            Verdict::Used | Verdict::Jumped { .. } => 0,
            Verdict::Torn => self.doubt_ns,
            Verdict::Implausible => {
                // When it was read between both counter values is not known.
                let off = expected.iter().zip(bracket.real);
                let off_ns = off.map(|(expected, real)| expected.0.abs_diff(real.0));
                self.doubt_ns.max(off_ns.max().unwrap_or(0))
            }
        };
        match verdict {
            Verdict::Used => {
                self.used = Some(bracket);
                PhcOutcome::Used
            }
            Verdict::Torn | Verdict::Implausible => PhcOutcome::PassedOver,
            Verdict::Jumped { by_ns } => {
                self.used = Some(bracket);
                PhcOutcome::Jumped { by_ns }
            }
        }
    }

    fn begin(&mut self, bracket: Bracket, host_rate: NsPerCycle) -> PhcOutcome {
        let first = self.first.get_or_insert(bracket);
        let span = bracket.real[0].0.checked_sub(first.real[0].0);
        match span {
            Some(0..SHORTEST_BASELINE_NS) => return PhcOutcome::PassedOver,
            Some(_) => {
                let model = FeedForward::new(Scale::PHC, first, &bracket);
                let off_ppb = |model: &FeedForward| model.rate().ppb_from(host_rate).unsigned_abs();
                self.model = model.filter(|model| off_ppb(model) <= FARTHEST_RATE_PPB);
            }
            None => {}
        }
        if self.model.is_none() {
            self.first = Some(bracket);
            return PhcOutcome::PassedOver;
        }
        PhcOutcome::Used
    }

    /// How far it is off what is expected, ns, if the latest readings are right that contradict
    /// that and are not believed yet; 0 if there are none.
    pub fn doubt_ns(&self) -> u64 {
        self.doubt_ns
    }

    /// The latest look that was used; `None` before there is one.
    pub fn sighting(&self, host: &Tracker) -> Option<PhcSighting> {
        let Bracket { tsc, real } = self.used?;
        let counter = host.counter()?;
        let cycles = tsc[1].0 - tsc[0].0;
        let at = TscCycles(tsc[0].0 + cycles / 2);
        let estimate = counter.model().estimate(at);
        let half_ns = counter.rate().duration_ns(cycles).div_ceil(2);
        Some(PhcSighting {
            at,
            ahead_ns: estimate.real.0.wrapping_sub(real[0].0).cast_signed(),
            bound_ns: half_ns + estimate.bound_ns.max(counter.bound_ns()),
        })
    }

    /// Its time at a counter value, with its bound against the device; `None` before there are
    /// two readings far enough apart.
    pub fn estimate(&self, at: TscCycles) -> Option<Estimate> {
        Some(self.model.as_ref()?.estimate(at))
    }

    /// At a counter value; `None` before there are two readings far enough apart.
    pub fn status(&self, at: TscCycles, host: &Tracker) -> Option<PhcStatus> {
        let model = self.model.as_ref()?;
        let counter = host.counter()?;
        let (here, there) = (counter.model().estimate(at), model.estimate(at));
        let ahead = here.real.0.wrapping_sub(there.real.0).cast_signed();
        let tai_offset_s = host.current().tai_offset_s;
        let (base, offset_s) = PhcBase::of(ahead, tai_offset_s);
        let age = at.0.saturating_sub(model.latest().0);
        Some(PhcStatus {
            phc: PhcNs(there.real.0),
            base,
            host_ahead_ns: ahead.saturating_add(offset_s * NS_PER_S),
            bound_ns: (here.bound_ns.max(counter.bound_ns()))
                .saturating_add(there.bound_ns)
                .saturating_add(self.doubt_ns),
            host_rate_ppb: counter.rate().ppb_from(model.rate()),
            rate_bound_ppb: counter.rate_bound_ppb() + model.rate_bound_ppb() + 1,
            least_width_ns: model.least_width_ns(),
            age_ns: model.rate().duration_ns(age),
            readings: model.counts(),
            stood: self.stood,
            torn: self.torn,
            failed: self.failed,
        })
    }
}

/// The device between two counter values: those of the readings of CLOCK_REALTIME
/// by the host's clock, to its bound, as far as they are inside of the system
/// call. `None` if they are not: that clock was set meanwhile, by more than the
/// call's length.
///
/// What all of the host's readings allow together is no bound here: its rate may have
/// changed by less than they show. That of its stamps holds all the same.
fn bracket(reading: &PhcReading, host: &CounterClock) -> Option<Bracket> {
    let start = reading.tsc[0];
    let estimate = host.model().estimate(start);
    let bound_ns = estimate.bound_ns.max(host.bound_ns());
    let at = |real: RealNs, slack: i64| {
        let ns = real.0.wrapping_sub(estimate.real.0).cast_signed();
        let cycles = host
            .model()
            .local_rate()
            .cycles_in(ns.saturating_add(slack));
        start.0.saturating_add_signed(cycles)
    };
    // Rounded outwards; and its readings are truncated to nanoseconds.
    let slack = i64::try_from(bound_ns + 2).ok()?;
    let first = at(reading.real[0], -slack).max(start.0);
    let last = at(reading.real[1], slack).min(reading.tsc[1].0);
    (reading.real[0] <= reading.real[1] && first <= last).then_some(Bracket {
        tsc: [TscCycles(first), TscCycles(last)],
        real: [RealNs(reading.phc.0); 2],
    })
}

impl PhcBase {
    /// By how far CLOCK_REALTIME is ahead of a device, ns, and what the kernel takes
    /// TAI to be ahead by, s: 0 if nobody has told it, so that any whole number of
    /// seconds that there can be will do. With the seconds that TAI is ahead.
    fn of(ahead_ns: i64, tai_offset_s: i64) -> (Self, i64) {
        let near = |s: i64, ns: i64| ahead_ns.saturating_add(s * NS_PER_S).abs() < ns;
        if tai_offset_s != 0 && near(tai_offset_s, NS_PER_S / 2) {
            return (Self::Tai, tai_offset_s);
        }
        if near(0, NS_PER_S / 2) {
            return (Self::Utc, 0);
        }
        let reported = tai_offset_s != 0;
        let seconds = TAI_OFFSETS_S
            .filter(|_| !reported)
            .find(|s| near(*s, NS_PER_S / 10));
        seconds.map_or((Self::Unknown, 0), |s| (Self::Tai, s))
    }
}

#[cfg(test)]
mod tests;
