//! Programs that stamp, and the clock that they go by.

use std::time::Duration;

use serde::Serialize;
use tscap_common::stamping::{Count, Line, Published};

use super::{Account, SendAccount};
use tscap_base::failure::{Context as _, Failure};
use tscap_capture::going_on::drop_other_privileges;
use tscap_capture::{Clocks, Counter, Event, Reporter};
use tscap_clock::{
    CrossTimestamp, FollowedBounds, Observation, RawStamp, RealNs, Reference, StampPath, Tracker,
};
use tscap_network::bpf::wait_for_running_programs;
use tscap_network::netdev::Link;
use tscap_programs::hook::{AttachError, Stamper, StamperLinks};
use tscap_protocol::{ErrorEstimate, TimeFormat};
use tscap_references::{Followed, ReferenceSummary};
use tscap_time::timex::KernelClock;
use tscap_time::tsc;
use tscap_utc::{Roots, UtcReader, Watched};

/// How far a reference's times may seem behind the host's clock until the line is published again,
/// µs: the host's clock is slewed by 500 ppm, and is read a moment after the counter.
const SLACK_US: u16 = 100;
/// Frames after which a driver that has had room for no stamp has none.
const ENOUGH_FRAMES: u64 = 100;

/// Programs that stamp what an interface receives. When it is dropped, nothing stays attached.
#[derive(Debug)]
pub struct Running {
    path: StampPath,
    stamper: Stamper,
    links: Option<StamperLinks>,
    reference: Option<Followed>,
    clocks: Watched<Clocks>,
    /// What bounds the host's against UTC.
    utc: UtcReader,
    tracker: Tracker,
    counter: Option<Counter>,
    /// Those that `counter` has offsets of, in its order.
    cpus: Vec<u32>,
    /// Of the send times that are written now.
    error_estimate: ErrorEstimate,
    has_told_of_room: bool,
}

/// What the programs have done so far.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Progress {
    /// What the programs for received packets have counted.
    #[serde(flatten)]
    pub account: Account,
    /// Greatest error of a receive time against this host's clock so far, ns
    /// ([`Running::host_bound_ns`]).
    pub host_bound_ns: u64,
    /// Of the program that writes send times, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_times: Option<SendSummary>,
    /// Whether the programs are where they were attached.
    #[serde(skip)]
    pub are_there: bool,
}

/// What became of send times.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SendSummary {
    /// What the program has counted.
    #[serde(flatten)]
    pub account: SendAccount,
    /// The latest Error Estimate, as the packets have it, ns.
    pub error_estimate_ns: u64,
    /// Its S bit: it holds against UTC, as a source bounds the clock. Else
    /// against this host's clock only.
    pub synchronised: bool,
}

/// What is left of it.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// What the programs have counted.
    #[serde(flatten)]
    pub account: Account,
    /// Of the program that writes send times, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_times: Option<SendSummary>,
    /// Whether every frame and every packet has an outcome.
    pub adds_up: bool,
    /// Greatest error of a stamp against this host's clock, ns, as far as the clock was read
    /// after it.
    pub host_bound_ns: u64,
    /// How often the clock was set.
    pub steps: u64,
    /// The reference of the times, if they are not the host's: `host_bound_ns` is against the clock
    /// that follows it then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

impl Running {
    /// Between two calls of [`Self::look_at_clocks`]: as often as an idle capture reads them.
    pub const LOOK_EVERY: Duration = Duration::from_millis(10);
    /// Between two calls of [`Self::supervise`].
    pub const SUPERVISE_EVERY: Duration = Duration::from_secs(1);
    /// Between two calls of [`Self::recheck_counter`].
    pub const RECHECK_EVERY: Duration = Duration::from_secs(10);

    pub(super) fn new(
        (path, stamper): (StampPath, Stamper),
        (reference, clocks, tracker): (Option<Followed>, Clocks, Tracker),
        counter: Option<Counter>,
        cpus: Vec<u32>,
    ) -> Self {
        let utc = UtcReader::open(Roots::live());
        let running = Self {
            path,
            stamper,
            links: None,
            reference,
            clocks: Watched::new(clocks, utc.disruptions()),
            utc,
            tracker,
            counter,
            cpus,
            // Until a line is published no packet gets one.
            error_estimate: ErrorEstimate::covering(u64::MAX, false, TimeFormat::Ntp),
            has_told_of_room: false,
        };
        let offsets = running.counter.as_ref().map(Counter::offsets);
        running.set_offsets(&offsets.unwrap_or_default());
        running
    }

    pub(super) fn attach(&mut self, interface: &Link) -> Result<(), AttachError> {
        self.links = Some(self.stamper.attach(interface)?);
        Ok(())
    }

    fn set_offsets(&self, offsets: &[i64]) {
        for (cpu, offset) in self.cpus.iter().zip(offsets) {
            self.stamper.set_offset(*cpu, *offset);
        }
    }

    /// What stamps.
    pub fn path(&self) -> StampPath {
        self.path
    }

    /// Greatest error of a stamp against this host's clock so far, ns: what the clock did since
    /// it was read last, at most [`Self::LOOK_EVERY`] ago while this process runs, is not in it
    /// yet. Both ends of the line are rounded.
    pub fn host_bound_ns(&self) -> u64 {
        self.tracker.host_bound_ns() + 1
    }

    /// Gives up, for good and for the whole process, what is not needed any more: all that
    /// takes any privilege is done. Threads that run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(&self, on_event: &mut dyn FnMut(Event)) -> Result<(), Failure> {
        let reads = || self.account().is_ok();
        drop_other_privileges((None, false), false, &reads, &mut Reporter::new(on_event))
    }

    /// Reads the clocks, and has the programs go by what follows from that.
    pub fn look_at_clocks(&mut self, on_event: &mut dyn FnMut(Event)) {
        let reporter = &mut Reporter::new(on_event);
        let seen = self.publish();
        if let Observation::Stepped { step_ns, cause, .. } = seen {
            reporter.tell(Event::Stepped { step_ns, cause });
        }
        if let Some(jump_ns) = seen.counter_jump_ns() {
            reporter.tell(Event::CounterJumped { jump_ns });
        }
    }

    /// A reading after which nobody knows yet how the clock goes on says nothing: the line before
    /// grows stale.
    pub(super) fn publish(&mut self) -> Observation {
        let (cross, seen) = self.tracker.look(&mut self.clocks);
        let followed = Reference::<CrossTimestamp>::followed(&mut self.clocks);
        if let Some(bounds) = followed {
            self.tracker.observe_reference(bounds);
        }
        if self.tracker.is_resolved() {
            let now = self.tracker.stamp_at(&cross, cross.mono[1]);
            let line = self.tracker.convert().line(now);
            let kernel = KernelClock::read().ok();
            let utc_bound_ns = match &self.reference {
                Some(_) => followed.and_then(FollowedBounds::utc_ns),
                None => self.utc.read().bound_ns,
            };
            let ahead_ns = self.ahead_ns(&line, now);
            self.error_estimate = estimate(self.host_bound_ns(), utc_bound_ns);
            self.stamper.publish(&Published {
                line,
                tai_offset_s: kernel.map_or(0, |clock| clock.tai_offset_s),
                error_estimate: self.error_estimate.to_bits(),
                ahead_ns,
                slack_us: self.reference.as_ref().map_or(0, |_| SLACK_US),
            });
        }
        seen
    }

    /// How far the times are ahead of the host's clock, ns: 0 if they are its own.
    fn ahead_ns(&self, line: &Line, near: RawStamp) -> i64 {
        if self.reference.is_none() {
            return 0;
        }
        let (stamp, host) = (tsc::read(), RealNs::now());
        let real = line.real_at(stamp.0).or_else(|| line.real_at(near.0));
        real.map_or(0, |real| real.wrapping_sub(host.0).cast_signed())
    }

    /// The reference of the times as it is now; `None` if they are the host's.
    fn reference(&self) -> Option<ReferenceSummary> {
        let bounds = self.reference.as_ref().zip(self.tracker.reference());
        bounds.map(|(of, bounds)| ReferenceSummary::of(of, bounds, self.host_bound_ns()))
    }

    /// The Error Estimate that packets get now.
    pub fn error_estimate(&self) -> ErrorEstimate {
        self.error_estimate
    }

    /// Looks after the programs.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn supervise(&mut self, on_event: &mut dyn FnMut(Event)) -> Result<Progress, Failure> {
        // They are for files.
        self.tracker.take_samples();
        let account = self.account()?;
        let has_no_room =
            account.get(Count::NoRoom) >= ENOUGH_FRAMES && account.get(Count::Marked) == 0;
        if has_no_room && !std::mem::replace(&mut self.has_told_of_room, true) {
            Reporter::new(on_event).warning(
                "the driver leaves no room for XDP metadata: no packet is stamped, and all keep \
                 the kernel's own receive times",
            );
        }
        Ok(Progress {
            account,
            host_bound_ns: self.host_bound_ns(),
            send_times: self.send_times()?,
            are_there: self.links.as_ref().is_some_and(StamperLinks::are_there),
        })
    }

    /// Looks at the counter of each CPU again, where stamps are by its perf event.
    pub fn recheck_counter(&mut self, on_event: &mut dyn FnMut(Event)) {
        let reporter = &mut Reporter::new(on_event);
        if let Some(counter) = &mut self.counter
            && let Some(found) = counter.recheck(self.stamper.object(), reporter)
        {
            self.tracker.set_stamp_error_ns(found.stamp_error_ns);
            self.set_offsets(&found.offsets);
        }
    }

    fn account(&self) -> Result<Account, Failure> {
        let counts = self.stamper.counts();
        let counts = counts.context("cannot read the programs' counters")?;
        Ok(Account::of(&counts))
    }

    fn send_times(&self) -> Result<Option<SendSummary>, Failure> {
        let counts = self.stamper.send_counts();
        let counts = counts.context("cannot read the counters of the program for send times")?;
        Ok(counts.map(|cpus| SendSummary {
            account: SendAccount::of(&cpus),
            error_estimate_ns: self.error_estimate.bound_ns(),
            synchronised: self.error_estimate.synchronised,
        }))
    }

    /// Detaches, and counts up.
    ///
    /// # Errors
    /// If the counters can't be read.
    pub fn finish(mut self) -> Result<Summary, Failure> {
        self.links = None;
        // One that is running may still count.
        wait_for_running_programs().context("cannot wait for the programs to end")?;
        // Stamps since the last reading are in the bound then.
        self.publish();
        let (account, send_times) = (self.account()?, self.send_times()?);
        let sent_add_up = send_times.is_none_or(|it| it.account.adds_up());
        Ok(Summary {
            account,
            send_times,
            adds_up: account.adds_up() && sent_add_up,
            host_bound_ns: self.host_bound_ns(),
            steps: self.tracker.steps(),
            reference: self.reference(),
        })
    }
}

/// The Error Estimate of times that are off from this host's clock by `host_bound_ns` at most:
/// with what bounds this clock against UTC, where anything does.
fn estimate(host_bound_ns: u64, utc_bound_ns: Option<u64>) -> ErrorEstimate {
    // The time in a packet is rounded, too.
    let bound_ns = (host_bound_ns + 1).saturating_add(utc_bound_ns.unwrap_or(0));
    ErrorEstimate::covering(bound_ns, utc_bound_ns.is_some(), TimeFormat::Ntp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_estimate_is_the_sum_of_what_is_known() {
        for (utc_bound_ns, least_ns) in [(None, 71), (Some(1_000_000), 1_000_071)] {
            let estimate = estimate(70, utc_bound_ns);
            let said_ns = estimate.bound_ns();
            let most_ns = least_ns + least_ns / 100 + 2;
            assert!((least_ns..=most_ns).contains(&said_ns), "{estimate:?}");
            assert_eq!(estimate.synchronised, utc_bound_ns.is_some());
            assert_eq!(estimate.format, TimeFormat::Ntp);
        }
    }
}
