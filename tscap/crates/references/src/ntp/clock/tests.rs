use proptest::prelude::*;

use super::*;
use crate::ntp::fixtures::reply_to;
use crate::ntp::{NtpTime, Packet};
use tscap_clock::StampSource;
use tscap_clock::scripted::{EPOCH, Host};

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;
const AWAY: u64 = 20 * US;

/// A host whose clock is slewed, and the clock that follows a server with the true time.
struct Run {
    host: Host,
    tracker: Tracker,
    clock: NtpClock,
    t: u64,
}

impl Run {
    fn new(slew_ppb: i64) -> Self {
        let host = Host {
            hertz: 2_596_130_000,
            slews: vec![(0, slew_ppb)],
        };
        let tracker = Tracker::new(StampSource::Tsc, &host.cross(0, [20, 40, 20])).unwrap();
        let mut run = Self {
            host,
            tracker,
            clock: NtpClock::default(),
            t: 0,
        };
        run.pass(100 * MS);
        run
    }

    /// So much time, in which the host's clock is read.
    fn pass(&mut self, ns: u64) {
        let end = self.t + ns;
        while self.t < end {
            self.t = end.min(self.t + 10 * MS);
            let cross = self.host.cross(self.t, [20, 40, 20]);
            self.tracker.observe(&cross);
        }
    }

    /// An exchange over ways of these lengths, with a server that is off by `lie_ns`.
    fn exchange(&mut self, ways: [u64; 2], lie_ns: i64) -> NtpPoint {
        self.held_for(AWAY, ways, lie_ns)
    }

    /// The same, with a server that takes so long to answer.
    fn held_for(&mut self, held: u64, ways: [u64; 2], lie_ns: i64) -> NtpPoint {
        let arrived = self.t + ways[0];
        let left = arrived + held;
        let returned = left + ways[1];
        let server = |t: u64| RealNs((EPOCH + t).wrapping_add_signed(lie_ns));
        let real = [arrived, left].map(server);
        let exchange = Exchange {
            server: "10.9.0.2:123".parse().unwrap(),
            tsc: [self.t, returned].map(|t| self.host.cycles(t)),
            stamp_error_ns: 0,
            real,
            packet: Packet::parse(&reply_to(NtpTime(1), real)).unwrap(),
        };
        self.pass(returned - self.t);
        self.clock.take(&exchange, &self.tracker).unwrap()
    }

    /// The same by stamps of the counter that are off by so much at most.
    fn stamped_to(&mut self, stamp_error_ns: u64) -> NtpPoint {
        let real = [self.t, self.t + AWAY].map(|t| RealNs(EPOCH + t));
        let exchange = Exchange {
            server: "10.9.0.2:123".parse().unwrap(),
            tsc: [self.t, self.t + AWAY].map(|t| self.host.cycles(t)),
            stamp_error_ns,
            real,
            packet: Packet::parse(&reply_to(NtpTime(1), real)).unwrap(),
        };
        let point = self.clock.take(&exchange, &self.tracker);
        self.pass(S);
        point.unwrap()
    }

    /// How far the clock is from the true time now, ns, and its bound.
    fn error(&self) -> (u64, u64) {
        let found = self.clock.estimate(self.host.cycles(self.t)).unwrap();
        (found.real.0.abs_diff(EPOCH + self.t), found.bound_ns)
    }

    /// The same of what is known from the first exchange on.
    fn known_error(&self) -> (u64, NtpKnown) {
        let at = self.host.cycles(self.t);
        let known = self.clock.known(at, &self.tracker).unwrap();
        (known.real.0.abs_diff(EPOCH + self.t), known)
    }

    fn status(&self) -> NtpStatus {
        let at = self.host.cycles(self.t);
        self.clock.status(at, &self.tracker).unwrap()
    }

    fn settle(&mut self) {
        for _ in 0..10 {
            self.exchange([50 * US, 50 * US], 0);
            self.pass(16 * S);
        }
    }
}

#[test]
fn the_first_two_exchanges_make_a_clock() {
    let mut run = Run::new(30_000);
    let first = run.exchange([50 * US, 50 * US], 0);
    assert_eq!(first.verdict, PeerVerdict::First);
    assert!(run.clock.estimate(run.host.cycles(run.t)).is_none());
    // Too early for a rate.
    assert_eq!(run.exchange([50 * US; 2], 0).verdict, PeerVerdict::First);
    run.pass(S);
    assert_eq!(run.exchange([50 * US; 2], 0).verdict, PeerVerdict::Used);
    let (error, bound) = run.error();
    assert!(
        error <= 100 && error <= bound && bound < 60 * US,
        "{error} ± {bound}"
    );
    assert_eq!(run.status().rtt_ns / US, 100);
}

/// The host's rate is 0.05 % off, so that the round trip is not to be told from 0.
#[test]
fn a_reply_that_is_held_is_bounded_alone() {
    let mut run = Run::new(-500_000);
    let point = run.held_for(S, [100 * US, US], 0);
    assert_eq!((point.verdict, point.rtt_ns), (PeerVerdict::First, 0));
    let at = point.at.0 as i128 - i128::from(run.host.cycles(0).0);
    let true_ns = at * 1_000_000_000 / 2_596_130_000;
    let error = point.ntp.0.abs_diff(EPOCH + true_ns as u64);
    assert!((40 * US..60 * US).contains(&error), "{error}");
    assert!(
        error <= point.ntp_bound_ns && point.ntp_bound_ns < 2 * MS,
        "{point:?}"
    );
}

/// Half of the asymmetry is the error, and half of the round trip covers it.
#[test]
fn an_asymmetry_is_in_the_bound_and_not_in_the_clock() {
    let mut run = Run::new(0);
    for _ in 0..20 {
        run.exchange([110 * US, 50 * US], 0);
        run.pass(16 * S);
    }
    let (error, bound) = run.error();
    assert!((29 * US..31 * US).contains(&error), "{error}");
    assert!((80 * US..110 * US).contains(&bound), "{bound}");
    let status = run.status();
    assert!(status.utc_bound_ns >= bound + status.root_distance_ns);
    // 1/65536 s of delay and dispersion, and 15 ppm of 16 s.
    let reported = 7_630 + 15_259 + 240 * US;
    assert!(
        status.root_distance_ns.abs_diff(reported) < 5 * US,
        "{status:?}"
    );
}

#[test]
fn a_lie_is_not_believed_at_once() {
    let mut run = Run::new(-20_000);
    run.settle();
    for _ in 0..3 {
        let lie = run.exchange([50 * US; 2], 1_000_000_000);
        assert_eq!(lie.verdict, PeerVerdict::Implausible);
        assert!(lie.off_ns.unwrap().abs_diff(1_000_000_000) < 100 * US);
        let (error, bound) = run.error();
        assert!(error <= bound && bound < MS, "{error} ± {bound}");
        run.pass(16 * S);
    }
    // The truth is believed at once again.
    let truth = run.exchange([50 * US; 2], 0);
    assert_eq!(truth.verdict, PeerVerdict::Used);
    assert_eq!(run.status().readings.implausible, 3);
}

#[test]
fn what_all_say_is_believed_in_the_end() {
    let mut run = Run::new(0);
    run.settle();
    let mut verdicts = Vec::new();
    for _ in 0..4 {
        verdicts.push(run.exchange([50 * US; 2], 1_000_000_000).verdict);
        run.pass(16 * S);
    }
    use PeerVerdict::{Implausible, Jumped};
    assert_eq!(verdicts, [Implausible, Implausible, Implausible, Jumped]);
    let status = run.status();
    assert!(
        status.host_ahead_ns.abs_diff(-1_000_000_000) < MS,
        "{status:?}"
    );
}

#[test]
fn a_lie_at_the_start_is_outvoted() {
    let mut run = Run::new(0);
    run.exchange([50 * US; 2], 1_000_000_000);
    run.pass(16 * S);
    // A rate of 6 % too little: one of the two is wrong, and the later one is kept.
    assert_eq!(run.exchange([50 * US; 2], 0).verdict, PeerVerdict::First);
    run.pass(16 * S);
    assert_eq!(run.exchange([50 * US; 2], 0).verdict, PeerVerdict::Used);
    let (error, bound) = run.error();
    assert!(error <= bound && bound < MS, "{error} ± {bound}");
}

#[test]
fn while_the_server_is_away_the_bound_grows_and_holds() {
    let mut run = Run::new(5_000);
    run.settle();
    let before = run.status();
    run.pass(600 * S);
    let (error, bound) = run.error();
    assert!(
        error <= bound && bound > before.bound_ns,
        "{error} ± {bound}"
    );
    let status = run.status();
    assert!(status.age_ns > 600 * S);
    assert!(status.root_distance_ns > 600 * 15 * US, "{status:?}");
    // Back within one exchange.
    run.exchange([50 * US; 2], 0);
    let (error, bound) = run.error();
    assert!(error <= bound && bound <= 60 * US, "{error} ± {bound}");
}

#[test]
fn a_reply_that_took_longer_at_the_server_than_in_all_is_torn() {
    let mut run = Run::new(0);
    run.settle();
    let exchange = Exchange {
        server: "10.9.0.2:123".parse().unwrap(),
        tsc: [run.t, run.t + 50 * US].map(|t| run.host.cycles(t)),
        stamp_error_ns: 0,
        real: [EPOCH + run.t, EPOCH + run.t + MS].map(RealNs),
        packet: Packet::parse(&reply_to(NtpTime(1), [RealNs(EPOCH); 2])).unwrap(),
    };
    run.pass(MS);
    let point = run.clock.take(&exchange, &run.tracker).unwrap();
    assert_eq!((point.verdict, point.rtt_ns), (PeerVerdict::Torn, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    /// Ways of any lengths: the true time is inside of the bound at every moment.
    #[test]
    fn the_bound_holds_over_ways_of_any_lengths(
        ways in proptest::collection::vec(
            (1u64..2_000, 1u64..2_000, prop_oneof![1u64..1_000, 1_000u64..1_000_000], 1u64..80),
            3..12,
        ),
        slew_ppb in -500_000i64..500_000,
    ) {
        let mut run = Run::new(slew_ppb);
        for (there, back, held, tenths) in ways {
            run.held_for(held * US, [there * US, back * US], 0);
            if run.clock.estimate(run.host.cycles(run.t)).is_some() {
                let (error, bound) = run.error();
                prop_assert!(error <= bound, "{error} ± {bound}");
            }
            run.pass(tenths * 100 * MS);
            if run.clock.estimate(run.host.cycles(run.t)).is_some() {
                let (error, bound) = run.error();
                prop_assert!(error <= bound, "{error} ± {bound}");
            }
        }
    }
}

/// The host's clock is slewed by 300 ppm meanwhile.
#[test]
fn one_exchange_tells_the_time_and_two_tell_the_rate() {
    let mut run = Run::new(300_000);
    assert_eq!(run.clock.known(run.host.cycles(run.t), &run.tracker), None);
    run.exchange([200 * US, 100 * US], 0);
    let mut before = run.known_error().1;
    for _ in 0..16 {
        run.pass(S);
        let (off_ns, known) = run.known_error();
        assert!(off_ns <= known.bound_ns, "{off_ns} {known:?}");
        // 0.1 % of a second, and 15 ppm.
        assert!(
            known.bound_ns.abs_diff(before.bound_ns + MS) < 2 * US,
            "{known:?}"
        );
        assert!(
            known
                .root_distance_ns
                .abs_diff(before.root_distance_ns + 15 * US)
                < US
        );
        before = known;
    }
    run.exchange([200 * US, 100 * US], 0);
    run.pass(S);
    let (off_ns, known) = run.known_error();
    assert!(
        off_ns <= known.bound_ns && known.bound_ns < 300 * US,
        "{known:?}"
    );
    // A server that was set is another time from the fourth exchange on.
    for _ in 0..4 {
        run.exchange([200 * US, 100 * US], 7 * S as i64);
        run.pass(S);
    }
    let (off_ns, known) = run.known_error();
    assert!(
        off_ns.abs_diff(7 * S) <= known.bound_ns,
        "{off_ns} {known:?}"
    );
}

/// Ways of no length, so that nothing but the stamps' error is in the bound.
#[test]
fn the_error_of_stamps_is_in_every_bound() {
    let (mut exact, mut rough) = (Run::new(0), Run::new(0));
    const ERROR_NS: u64 = 5 * US;
    let alone = [exact.stamped_to(0), rough.stamped_to(ERROR_NS)].map(|it| it.ntp_bound_ns);
    assert!(alone[1] >= alone[0] + ERROR_NS, "{alone:?}");
    for _ in 0..10 {
        exact.stamped_to(0);
        rough.stamped_to(ERROR_NS);
    }
    let bounds = [exact.error().1, rough.error().1];
    assert!(
        bounds[1] >= ERROR_NS && bounds[1] < bounds[0] + 3 * ERROR_NS,
        "{bounds:?}"
    );
    let status = rough.status();
    let counter = rough.tracker.counter().unwrap();
    let model = rough.clock.peer.model().unwrap();
    let both = counter.rate_bound_ppb() + model.rate_bound_ppb();
    assert_eq!(status.rate_bound_ppb, both + 1);
}
