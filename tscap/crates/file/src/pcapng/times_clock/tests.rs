use super::*;
use crate::accounting::{Outcomes, StampOrder, Totals};
use crate::pcapng::{ClockOption, Hooks, StampOption};
use tscap_clock::{Bounds, MonoNs, NtpBase, ReferenceBounds, StampPath, TscPath};

const TSC: StampPath = StampPath::Tsc(TscPath::Module);

/// What a file says of an interface and of its clock.
struct Said {
    option: InterfaceOption,
    statistics: Vec<StatisticsOption>,
}

fn said(boot: Option<&str>, host_bound_ns: u64, utc_bound_ns: Option<u64>) -> Said {
    let stamp = StampOption::new(TSC);
    let mut option = InterfaceOption::new(Hooks::default(), stamp.clone(), Default::default());
    option.boot_id = boot.map(str::to_owned);
    let clock = ClockOption {
        stamp,
        counter: None,
        host_bound_ns,
        stamp_error_ns: 0,
        utc_bound_ns,
        utc: None,
        reference: None,
        references: Vec::new(),
        order: StampOrder::default(),
        segments_left_out: 0,
        segments: Vec::new(),
        samples: Vec::new(),
    };
    Said {
        option,
        statistics: vec![StatisticsOption::new(Outcomes::default(), clock, None)],
    }
}

impl Said {
    /// Its times are those of a reference.
    fn follows(
        mut self,
        name: &str,
        bounds: ReferenceBounds,
        follower: Option<(&str, u32)>,
    ) -> Self {
        self.option.reference = Some(name.into());
        self.option.follower = follower.map(|(id, clocks)| FollowerOption {
            id: id.into(),
            clocks,
        });
        for it in &mut self.statistics {
            it.clock.reference = Some(bounds);
            it.clock.utc_bound_ns = bounds.utc_ns();
        }
        self
    }

    /// From one CLOCK_MONOTONIC to another CLOCK_REALTIME was so far ahead of it.
    fn ahead(mut self, [from, until]: [u64; 2], ns: i64) -> Self {
        self.statistics[0].clock.segments.push(Segment {
            after: None,
            from: MonoNs(from),
            until: MonoNs(until),
            mono_to_real: Bounds { low: ns, high: ns },
            tai_offset_s: 37,
            step_ns: 0,
            cause: None,
            counter_jump_ns: None,
            samples: 2,
        });
        self
    }

    fn clock(&self, interface: usize) -> TimesClock {
        let mut clock = TimesClock::new(interface, Some(&self.option));
        self.statistics.iter().for_each(|it| clock.take(it));
        clock
    }
}

/// What two interfaces of a file have in common, and how far their times are off each other.
fn of(one: &Said, other: &Said) -> (ClockRelation, Option<u64>) {
    let (one, other) = (one.clock(0), other.clock(1));
    let found = (one.kinship(&other), one.apart_ns(&other));
    assert_eq!(found, (other.kinship(&one), other.apart_ns(&one)));
    found
}

const NTP: ReferenceBounds = ReferenceBounds {
    bound_ns: 20_000,
    own_bound_ns: Some(300_000),
};
const PTP: ReferenceBounds = ReferenceBounds {
    bound_ns: 900,
    own_bound_ns: None,
};

#[test]
fn one_boot_has_one_clock_and_two_have_utc() {
    let here = said(Some("here"), 20, Some(5_000_000));
    let later = said(Some("here"), 30, None);
    assert_eq!(of(&here, &later), (ClockRelation::Same, Some(50)));
    let there = said(Some("there"), 30, Some(16_000_000));
    assert_eq!(of(&here, &there), (ClockRelation::Utc, Some(21_000_050)));
    let adrift = said(Some("there"), 30, None);
    assert_eq!(of(&here, &adrift), (ClockRelation::Utc, None));
}

#[test]
fn who_does_not_name_its_boot_is_of_no_others_clock() {
    let unnamed = said(None, 20, Some(1_000));
    assert_eq!(of(&unnamed, &unnamed), (ClockRelation::Utc, Some(2_040)));
    let clock = unnamed.clock(0);
    assert_eq!(clock.kinship(&clock), ClockRelation::Same);
    let foreign = [0, 1].map(|it| TimesClock::new(it, None));
    assert_eq!(foreign[0].kinship(&foreign[1]), ClockRelation::Utc);
    assert_eq!(foreign[0].apart_ns(&foreign[1]), None);
    assert_eq!(foreign[0].apart_ns(&foreign[0]), None);
}

#[test]
fn a_reference_is_not_the_hosts_clock() {
    let host = said(Some("here"), 20, Some(5_000_000));
    let by_server = || said(Some("here"), 30, None).follows("ntp:time", NTP, Some(("a", 1)));
    assert_eq!(
        of(&host, &by_server()),
        (ClockRelation::Utc, Some(5_320_050))
    );
    // Nothing says how far a PTP clock is off UTC.
    let by_device = || said(Some("here"), 30, None).follows("/dev/ptp0", PTP, Some(("b", 1)));
    assert_eq!(of(&host, &by_device()), (ClockRelation::Utc, None));
    assert_eq!(of(&by_server(), &by_device()), (ClockRelation::Utc, None));
}

#[test]
fn what_follows_one_reference_is_off_it_by_itself() {
    let of_capture = |name, bounds, id, clocks| {
        said(Some("here"), 30, None).follows(name, bounds, Some((id, clocks)))
    };
    let server = of_capture("ntp:time", NTP, "a", 1);
    assert_eq!(of(&server, &server), (ClockRelation::Same, Some(60)));
    // Each of two writers has a clock.
    let by_two = of_capture("ntp:time", NTP, "a", 2);
    assert_eq!(
        of(&by_two, &by_two),
        (ClockRelation::SameReference, Some(40_060))
    );
    // A name may stand for several servers.
    let again = of_capture("ntp:time", NTP, "b", 1);
    assert_eq!(of(&server, &again), (ClockRelation::Utc, Some(640_060)));
    // A device of one machine is one.
    let devices = ["a", "b"].map(|id| of_capture("/dev/ptp0", PTP, id, 1));
    let [one, other] = &devices;
    assert_eq!(of(one, other), (ClockRelation::SameReference, Some(1_860)));
    let other_device = of_capture("/dev/ptp1", PTP, "b", 1);
    assert_eq!(of(one, &other_device), (ClockRelation::Utc, None));
    let elsewhere = said(Some("there"), 30, None).follows("/dev/ptp0", PTP, Some(("c", 1)));
    assert_eq!(of(one, &elsewhere), (ClockRelation::Utc, None));
    // Early versions did not say how many writers there were.
    let early = said(Some("here"), 30, None).follows("ntp:time", NTP, None);
    let clock = early.clock(0);
    assert_eq!(clock.kinship(&clock), ClockRelation::SameReference);
    assert_eq!(clock.apart_ns(&clock), Some(40_060));
    assert_eq!(of(&early, &early).0, ClockRelation::Utc);
}

#[test]
fn the_worst_of_all_statistics_counts() {
    let mut said = said(Some("here"), 20, Some(900));
    let mut later = said.statistics[0].clone();
    later.clock.utc_bound_ns = Some(400);
    said.statistics.push(later.clone());
    assert_eq!(said.clock(0).utc_bound_ns(), Some(920));
    later.clock.utc_bound_ns = None;
    said.statistics.insert(1, later);
    assert_eq!(said.clock(0).utc_bound_ns(), None);
    assert_eq!(said.clock(0).bound_ns(), Some(20));
}

/// Two virtual machines of one snapshot have one boot_id.
#[test]
fn clocks_of_one_boot_that_contradict_each_other_are_two() {
    let one = said(Some("here"), 20, Some(1_000)).ahead([0, 100], 5_000);
    for (until, ahead, kinship) in [
        (150, 5_000, ClockRelation::Same),
        (150, 5_040, ClockRelation::Same),
        (150, 5_041, ClockRelation::Utc),
        (150, 4_959, ClockRelation::Utc),
    ] {
        let other = said(Some("here"), 20, Some(1_000)).ahead([50, until], ahead);
        assert_eq!(of(&one, &other).0, kinship, "{ahead}");
        let has_raw = one.clock(0).has_raw_stamps_of(&other.clock(1));
        assert_eq!(has_raw, kinship == ClockRelation::Same, "{ahead}");
    }
    // The clock may have been set between both.
    let later = said(Some("here"), 20, Some(1_000)).ahead([101, 200], 9_000);
    assert_eq!(of(&one, &later).0, ClockRelation::Same);
}

/// As other programs join captures.
#[test]
fn an_interface_of_several_captures_has_no_clock() {
    let mut joined = said(Some("here"), 20, Some(1_000));
    joined.statistics[0].totals = Some(Totals::default());
    let clock = joined.clock(0);
    assert_eq!(
        (clock.kinship(&clock), clock.apart_ns(&clock)),
        (ClockRelation::Same, Some(40))
    );
    assert!(clock.has_raw_stamps_of(&clock));
    let last = joined.statistics[0].clone();
    joined.statistics.push(last);
    let clock = joined.clock(0);
    assert_eq!(
        (clock.kinship(&clock), clock.apart_ns(&clock)),
        (ClockRelation::Utc, Some(2_040))
    );
    assert!(!clock.has_raw_stamps_of(&clock));
}

#[test]
fn times_that_were_taken_from_a_server_have_its_bound() {
    let mut said = said(Some("here"), 20, Some(1_000));
    said.option.ntp = Some(NtpBase {
        server: "192.0.2.1:123".parse().unwrap(),
        bound_ns: 7_000,
        root_distance_ns: 50_000,
    });
    let clock = said.clock(0);
    assert_eq!(clock.bound_ns(), Some(7_000));
    assert_eq!(clock.utc_bound_ns(), Some(57_000));
    assert_eq!(clock.kinship(&clock), ClockRelation::SameReference);
    assert_eq!(clock.apart_ns(&clock), Some(14_000));
}

#[test]
fn raw_stamps_compare_within_one_boot_and_one_source() {
    let tsc = said(Some("here"), 20, None);
    let mut ktime = said(Some("here"), 20, None);
    ktime.option.stamp.source = StampSource::Ktime;
    let there = said(Some("there"), 20, None);
    let by_reference = said(Some("here"), 20, None).follows("ntp:time", NTP, None);
    let unnamed = said(None, 20, None);
    for (other, are_one) in [
        (&tsc, true),
        (&ktime, false),
        (&there, false),
        (&by_reference, true),
        (&unnamed, false),
    ] {
        assert_eq!(tsc.clock(0).has_raw_stamps_of(&other.clock(1)), are_one);
    }
    assert!(unnamed.clock(3).has_raw_stamps_of(&unnamed.clock(3)));
    assert!(!TimesClock::new(0, None).has_raw_stamps_of(&TimesClock::new(0, None)));
}
