//! A PTP hardware clock that is read by `PTP_SYS_OFFSET_PRECISE` or `_EXTENDED`.

use fastrand::Rng;
use tscap_clock::{PhcNs, PhcReading, RealNs, Reference, Tracker, TscCycles};
use tscap_references::{PhcBase, PhcClock};
use tscap_time::ptp::PtpError;

use super::host::Host;
use super::noise::exponential;
use super::reader::Reader;
use super::steering::Steering;

/// The device, which counts TAI, and its clock as tscap knows it.
#[derive(Debug)]
pub struct Device<'a> {
    host: &'a Host,
    /// At the start, ns.
    start: u64,
    steering: Steering,
    is_precise: bool,
    random: Rng,
    clock: PhcClock,
}

/// What was said of it, and the truth.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub at_ns: u64,
    pub base: PhcBase,
    pub ahead_ns: i64,
    pub bound_ns: u64,
    pub truth_ns: i64,
    /// It may be taken for a device that counts something else.
    pub may_be_far: bool,
}

impl<'a> Device<'a> {
    /// One that runs at its own rate, or is steered until the end; it is `set` from when until when.
    pub fn new(
        host: &'a Host,
        random: &mut Rng,
        steered_until: Option<u64>,
        set: Option<(u64, u64)>,
    ) -> Self {
        let ppb = random.i64(-80_000..80_000);
        let steering = match steered_until {
            Some(end_ns) => Steering::by_ptp4l(ppb, end_ns, random),
            None => Steering::none(ppb),
        };
        let steering = match set {
            Some((from, until)) => steering.with_sets(from, until, random),
            None => steering,
        };
        Self {
            steering,
            host,
            start: host
                .at(0)
                .tai()
                .wrapping_add_signed(random.i64(-20_000..20_000)),
            is_precise: random.u8(0..3) > 0,
            random: random.fork(),
            clock: PhcClock::default(),
        }
    }

    /// Looks at it, and says what is known then.
    pub fn look(&mut self, reader: &mut Reader<'_>, tracker: &Tracker) -> Option<Look> {
        let mut call = Call {
            start: self.start,
            steering: &self.steering,
            is_precise: self.is_precise,
            host: self.host,
            random: &mut self.random,
            reader,
        };
        self.clock.look(&mut call, tracker);
        let at_ns = reader.now_ns;
        let now = self.host.at(self.host.cycles(at_ns));
        let status = self.clock.status(TscCycles(now.tsc()), tracker)?;
        let device = time(self.start, &self.steering, at_ns);
        Some(Look {
            at_ns,
            base: status.base,
            ahead_ns: status.host_ahead_ns,
            bound_ns: status.bound_ns,
            truth_ns: match status.base {
                PhcBase::Tai => now.tai(),
                _ => now.real(),
            }
            .wrapping_sub(device)
            .cast_signed(),
            may_be_far: self.steering.is_set(),
        })
    }
}

fn time(start: u64, steering: &Steering, at_ns: u64) -> u64 {
    (start + at_ns).saturating_add_signed(steering.ahead_ns(at_ns))
}

struct Call<'a, 'b, 'c> {
    start: u64,
    steering: &'a Steering,
    is_precise: bool,
    host: &'a Host,
    random: &'a mut Rng,
    reader: &'b mut Reader<'c>,
}

impl Call<'_, '_, '_> {
    fn wait(&mut self, least: u64, mean: f64) -> u64 {
        self.reader.now_ns += least + exponential(self.random, mean);
        self.reader.now_ns
    }

    fn real(&self) -> RealNs {
        let cycles = self.host.cycles(self.reader.now_ns);
        RealNs(self.host.at(cycles).real())
    }
}

impl Reference<Result<PhcReading, PtpError>> for Call<'_, '_, '_> {
    fn read(&mut self) -> Result<PhcReading, PtpError> {
        let before = self.reader.next(1).tsc();
        self.wait(800, 300.0);
        let first = self.real();
        if !self.is_precise {
            self.wait(250, 100.0);
        }
        let phc = PhcNs(time(self.start, self.steering, self.reader.now_ns));
        if !self.is_precise {
            self.wait(350, 100.0);
        }
        let last = self.real();
        self.wait(2_000, 500.0);
        let after = self.reader.next(3).tsc();
        Ok(PhcReading {
            tsc: [TscCycles(before), TscCycles(after)],
            real: [first, last],
            phc,
        })
    }
}
