//! One way through what is measured, as the matcher's thread has it.

use crate::schema::{Account, Delays};
use crate::{
    DelayRecorder, Latest, MOST_EXITS, Matched, Matcher, Packet, Passed, SeenAt, Sighting, Worst,
};
use tscap_clock::{RawStamp, RealNs};
use tscap_session::Times;

/// Records of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub keyed: u64,
    pub unkeyed: u64,
}

/// A way, with what was seen on it so far.
pub(super) struct WayState {
    matcher: Matcher,
    figures: Figures,
    /// At the entry, then at each exit.
    seen: [Seen; 1 + MOST_EXITS],
}

/// What is made of matched packets.
struct Figures {
    start: RawStamp,
    exits: Vec<DelayRecorder>,
    /// From the second exit to the first.
    queueing: DelayRecorder,
    /// The slowest to the first exit, where packets are kept.
    worst: Option<Worst>,
}

/// What is left of a way at its end.
pub(super) struct Ended {
    pub seen: [Seen; 1 + MOST_EXITS],
    pub accounts: Vec<Account>,
    pub delays: Vec<Option<Delays>>,
    pub queueing: Option<Delays>,
    pub worst: Vec<Packet>,
}

impl WayState {
    pub fn new(matcher: Matcher, exits: usize, start: RawStamp, worst: Option<Worst>) -> Self {
        let recorders = (0..exits).map(|_| DelayRecorder::new());
        Self {
            matcher,
            figures: Figures {
                start,
                exits: recorders.collect(),
                queueing: DelayRecorder::new(),
                worst,
            },
            seen: Default::default(),
        }
    }

    /// Takes in a record; without a sighting it has no key.
    #[inline]
    pub fn see(&mut self, at: SeenAt, sighting: Option<&Sighting>, kept: &[u8], times: &Times) {
        let place = match at {
            SeenAt::Entry => 0,
            SeenAt::Exit(exit) => 1 + exit,
        };
        let seen = &mut self.seen[place];
        let Some(sighting) = sighting else {
            seen.unkeyed += 1;
            return;
        };
        seen.keyed += 1;
        let figures = &mut self.figures;
        let passed = &mut |passed: &Passed<'_>| figures.take(passed, times);
        self.matcher.see(sighting, kept, passed);
    }

    /// Judges the packets whose window was over at `settled`.
    pub fn close_until(&mut self, settled: RawStamp, times: &Times) {
        let figures = &mut self.figures;
        let passed = &mut |passed: &Passed<'_>| figures.take(passed, times);
        self.matcher.close_until(settled, passed);
    }

    /// Stamps of packets that are inside don't compare with those to come.
    pub fn distrust(&mut self) {
        self.matcher.distrust();
    }

    /// Packets matched at the first exit so far.
    pub fn matched(&self) -> u64 {
        self.matcher.accounts()[0].matched
    }

    /// Packets that are remembered.
    pub fn open(&self) -> u64 {
        self.matcher.open() as u64
    }

    /// Of each exit, the figures since the last call.
    pub fn take_latest(&mut self) -> Vec<Option<Latest>> {
        let exits = self.figures.exits.iter_mut();
        exits.map(DelayRecorder::take_latest).collect()
    }

    /// Judges what is left at `end`. Delays are off by at most what `bound_ns` says of the
    /// longest.
    pub fn end(self, end: RawStamp, times: &Times, bound_ns: impl Fn(i64) -> u64) -> Ended {
        let mut figures = self.figures;
        let accounts = self
            .matcher
            .finish(end, &mut |passed: &Passed<'_>| figures.take(passed, times));
        let finish = |recorder: DelayRecorder| {
            let longest = recorder.longest_ns();
            recorder.finish(Some(bound_ns(longest)))
        };
        Ended {
            seen: self.seen,
            accounts,
            delays: figures.exits.into_iter().map(finish).collect(),
            queueing: finish(figures.queueing),
            worst: figures.worst.map(Worst::into_packets).unwrap_or_default(),
        }
    }
}

impl Figures {
    #[inline]
    fn take(&mut self, passed: &Passed<'_>, times: &Times) {
        let entered: RealNs = times.real(passed.entered);
        let at_ns = times
            .between(self.start, passed.entered)
            .max(0)
            .unsigned_abs();
        let matched = |delay_ns: i64, exit: usize| Matched {
            at_ns,
            delay_ns,
            entered,
            cpu_in: Some(passed.cpu_in),
            cpu_out: Some(passed.cpu_out[exit]),
            length: passed.length,
            key: passed.key,
            bytes: passed.bytes_in,
        };
        for (exit, recorder) in self.exits.iter_mut().enumerate() {
            if let Some(left) = passed.left[exit] {
                let delay_ns = times.between(passed.entered, left);
                recorder.add(&matched(delay_ns, exit));
                if exit == 0
                    && let Some(worst) = &mut self.worst
                {
                    worst.take(delay_ns, entered, times.real(left), passed);
                }
            }
        }
        if let [Some(behind), Some(before)] = passed.left {
            self.queueing
                .add(&matched(times.between(before, behind), 0));
        }
    }
}
