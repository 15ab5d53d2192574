//! Pairs of captures of two hosts whose true time is known. Each host's clock is scripted.

use std::borrow::Cow;
use std::io::Cursor;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::custom::CustomBinaryOption;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use tscap_clock::{CounterReport, NsPerCycle, RawRate, StampPath, TscPath};
use tscap_delay::schema::Account;
use tscap_file::accounting::{Outcomes, StampOrder};
use tscap_file::pcapng::{ClockOption, Hooks, InterfaceOption, PEN, StampOption, StatisticsOption};
use tscap_streams::fixtures::capture::{Capture, NOW, json};

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const TSC: StampPath = StampPath::Tsc(TscPath::Module);

/// A clock: from each true time on, ns, by how far it is ahead and how much faster it runs, parts
/// per billion.
#[derive(Clone, Debug)]
struct Script(Vec<(u64, i64, i64)>);

impl Script {
    fn new(ahead_ns: i64, ppb: i64) -> Self {
        Self(vec![(0, ahead_ns, ppb)])
    }

    fn read(&self, at: u64) -> u64 {
        let knot = self.0.iter().rev().find(|it| it.0 <= at).unwrap();
        let since = i128::from(at - knot.0);
        let ahead = i128::from(knot.1) + since * i128::from(knot.2) / 1_000_000_000;
        (i128::from(NOW + at) + ahead) as u64
    }

    fn step(mut self, at: u64, by_ns: i64) -> Self {
        let ahead_ns = self.read(at).wrapping_sub(NOW + at).cast_signed();
        let ppb = self.0.last().unwrap().2;
        self.0.push((at, ahead_ns + by_ns, ppb));
        self
    }
}

/// A host, and how it captures.
#[derive(Clone, Debug)]
struct Sim {
    boot: Option<&'static str>,
    clock: Script,
    /// Raw stamps of a counter of half nanoseconds, which nobody sets: how much faster it runs.
    raw_ppb: Option<i64>,
    utc_bound_ns: Option<u64>,
    has_directions: bool,
    resolution_ns: u64,
    /// From and until when it captures.
    captures: [u64; 2],
}

impl Sim {
    fn ours(boot: &'static str, clock: Script) -> Self {
        Self {
            boot: Some(boot),
            clock,
            raw_ppb: None,
            utc_bound_ns: None,
            has_directions: true,
            resolution_ns: 1,
            captures: [0, u64::MAX],
        }
    }

    fn foreign(clock: Script) -> Self {
        Self {
            boot: None,
            resolution_ns: US,
            ..Self::ours("", clock)
        }
    }

    fn raw(self, ppb: i64) -> Self {
        Self {
            raw_ppb: Some(ppb),
            ..self
        }
    }

    fn synchronised(self, utc_bound_ns: u64) -> Self {
        Self {
            utc_bound_ns: Some(utc_bound_ns),
            ..self
        }
    }
}

/// A packet of the truth.
#[derive(Clone, Debug)]
struct Sent {
    is_back: bool,
    left: u64,
    arrived: Option<u64>,
    hops: u8,
    number: u32,
}

fn frame(sent: &Sent, hops: u8) -> Vec<u8> {
    let (source, destination) = if sent.is_back {
        ([10, 0, 0, 2], [10, 0, 0, 1])
    } else {
        ([10, 0, 0, 1], [10, 0, 0, 2])
    };
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, destination, hops);
    let mut frame = Vec::new();
    let payload = sent.number.to_be_bytes();
    builder.udp(7, 8).write(&mut frame, &payload).unwrap();
    frame
}

/// Packets each way, one a millisecond there and fewer back.
fn traffic(random: &mut fastrand::Rng, seconds: u64, least: [u64; 2], noise: u64) -> Vec<Sent> {
    let mut all = Vec::new();
    let mut number = 0;
    for (is_back, every) in [(false, MS), (true, 7 * MS)] {
        let mut at = 10 * MS;
        while at < seconds * S {
            let more = -(1.0 - random.f64()).ln() * noise as f64;
            let delay = least[usize::from(is_back)] + more as u64;
            let is_lost = random.u8(..200) == 0;
            all.push(Sent {
                is_back,
                left: at,
                arrived: (!is_lost).then_some(at + delay),
                hops: 64,
                number,
            });
            number += 1;
            at += every / 2 + random.u64(..every);
        }
    }
    all
}

/// The capture of a host, the first one (which sends there) or the second one.
fn capture(sim: &Sim, all: &[Sent], is_second: bool) -> Vec<u8> {
    let mut file = Capture::empty();
    interface(&mut file, sim);
    let mut seen: Vec<(u64, bool, Vec<u8>)> = Vec::new();
    for sent in all {
        let (at, is_sent) = if sent.is_back == is_second {
            (Some(sent.left), true)
        } else {
            (sent.arrived, false)
        };
        let hops = if is_sent { sent.hops } else { sent.hops - 1 };
        seen.extend(at.map(|at| (at, is_sent, frame(sent, hops))));
    }
    seen.retain(|it| it.0 >= sim.captures[0] && it.0 <= sim.captures[1]);
    seen.sort();
    for (at, is_sent, bytes) in &seen {
        packet(&mut file, 0, sim, *at, *is_sent, bytes);
    }
    statistics(&mut file, 0, sim);
    file.bytes()
}

fn interface(file: &mut Capture, sim: &Sim) {
    let resolution = match sim.resolution_ns {
        1 => InterfaceTsResolution::NANO,
        _ => InterfaceTsResolution::MICRO,
    };
    let mut options = vec![
        InterfaceDescriptionOption::IfName("eth0".into()),
        InterfaceDescriptionOption::IfTsResol(resolution),
    ];
    if let Some(boot) = sim.boot {
        let hooks = Hooks {
            received: Some("native XDP".into()),
            sent: Some("tcx egress".into()),
        };
        let mut option = InterfaceOption::new(hooks, StampOption::new(TSC), Default::default());
        option.boot_id = Some(boot.into());
        options.push(InterfaceDescriptionOption::Common(json(&option)));
    }
    file.interface(DataLink::ETHERNET, options);
}

fn packet(file: &mut Capture, interface_id: u32, sim: &Sim, at: u64, is_sent: bool, bytes: &[u8]) {
    let mut options = Vec::new();
    if sim.has_directions {
        options.push(EnhancedPacketOption::Flags(if is_sent { 2 } else { 1 }));
    }
    if let Some(ppb) = sim.raw_ppb {
        // Since a boot that was long before.
        let ns = i128::from(1_000 * S + at);
        let cycles = 2 * (ns + ns * i128::from(ppb) / 1_000_000_000) as u64;
        let value = Cow::Owned(cycles.to_ne_bytes().to_vec());
        let raw = CustomBinaryOption { pen: PEN, value };
        options.push(EnhancedPacketOption::Common(
            CommonOption::CustomBinaryCopiable(raw),
        ));
    }
    let time = sim.clock.read(at) / sim.resolution_ns * sim.resolution_ns;
    let block = EnhancedPacketBlock {
        interface_id,
        timestamp: RealNs(time).since_epoch(),
        original_len: bytes.len() as u32,
        data: Cow::Borrowed(bytes),
        options,
    };
    file.0.write_pcapng_block(block).unwrap();
}

fn statistics(file: &mut Capture, interface_id: u32, sim: &Sim) {
    if sim.boot.is_none() {
        return;
    }
    let rate = NsPerCycle(NsPerCycle::ONE.0 / 2);
    let clock = ClockOption {
        stamp: StampOption::new(TSC),
        counter: Some(CounterReport {
            ns_per_cycle_2_58: rate,
            rate_bound_ppb: 100,
            raw: Some(RawRate {
                ns_per_cycle_2_58: rate,
                bound_ppb: 10,
            }),
        }),
        host_bound_ns: 20,
        stamp_error_ns: 3,
        utc_bound_ns: sim.utc_bound_ns,
        utc: None,
        reference: None,
        references: Vec::new(),
        order: StampOrder::default(),
        segments_left_out: 0,
        segments: Vec::new(),
        samples: Vec::new(),
    };
    let option = StatisticsOption::new(Outcomes::default(), clock, None);
    let block = InterfaceStatisticsBlock {
        interface_id,
        timestamp: RealNs(NOW).since_epoch(),
        options: vec![InterfaceStatisticsOption::Common(json(&option))],
    };
    file.0.write_pcapng_block(block).unwrap();
}

fn plan() -> FilesPlan {
    let place = |file: &str, direction| FilePlace {
        file: file.into(),
        interface: None,
        direction,
    };
    FilesPlan {
        places: [place("a", Direction::Out), place("b", Direction::In)],
        is_both: true,
        matched_by: Match::Route,
        window: Duration::from_secs(1),
        capacity: 1 << 16,
        align: None,
        max_drift_ppb: None,
        max_asymmetry_ns: None,
    }
}

fn measured(hosts: &[Sim; 2], all: &[Sent], plan: &FilesPlan) -> Result<FilesResult, FilesError> {
    let [first, second] = [
        capture(&hosts[0], all, false),
        capture(&hosts[1], all, true),
    ];
    measure_files([&mut Cursor::new(first), &mut Cursor::new(second)], plan)
}

/// What is said of the delays is within its bound of the truth, each way. Gives the bounds.
fn holds(found: &FilesResult, all: &[Sent], what: &str) -> Vec<u64> {
    let passages = found.passages.iter().zip([false, true]);
    let bounds = passages.map(|(passage, is_back)| {
        let exit = &passage.exits[0];
        let truth = all.iter().filter(|it| it.is_back == is_back);
        let mut truth: Vec<u64> = truth.filter_map(|it| Some(it.arrived? - it.left)).collect();
        truth.sort_unstable();
        let delays = exit
            .delays
            .as_ref()
            .unwrap_or_else(|| panic!("{what}: {found:?}"));
        let bound = delays.bound_ns.unwrap();
        let n = delays.summary.n;
        assert_eq!(n, exit.account.matched - skipped(found), "{what}");
        if n == truth.len() as u64 {
            let (least, greatest) = (truth[0], truth[truth.len() - 1]);
            for (said, is) in [(delays.summary.min, least), (delays.summary.max, greatest)] {
                assert!(
                    said.abs_diff(is as i64) <= bound,
                    "{what}: {said} for {is}, ±{bound}"
                );
            }
            let mean = truth.iter().sum::<u64>() as f64 / truth.len() as f64;
            assert!(
                (delays.summary.mean - mean).abs() <= bound as f64 + 1.0,
                "{what}"
            );
        } else {
            let (least, greatest) = (truth[0] as i64, truth[truth.len() - 1] as i64);
            assert!(
                delays.summary.min >= least - bound as i64,
                "{what}: {delays:?}"
            );
            assert!(
                delays.summary.max <= greatest + bound as i64,
                "{what}: {delays:?}"
            );
        }
        bound
    });
    bounds.collect()
}

fn skipped(found: &FilesResult) -> u64 {
    found.alignment.as_ref().map_or(0, |it| it.unaligned)
}

/// Each sighting has one outcome.
fn adds_up(account: &Account) {
    let Account {
        entered,
        left,
        matched,
        lost_inside,
        pending,
        ambiguous_in,
        untracked_in,
        originated,
        early,
        ambiguous_out,
        untracked_out,
    } = *account;
    assert_eq!(
        entered,
        matched + lost_inside + pending + ambiguous_in + untracked_in,
        "{account:?}"
    );
    assert_eq!(
        left,
        matched + originated + early + ambiguous_out + untracked_out,
        "{account:?}"
    );
}

const SECONDS_APART: i64 = 3_700_000_000;

/// Hosts whose clocks have nothing to do with each other.
fn strangers() -> [Sim; 2] {
    [
        Sim::ours("here", Script::new(0, -40_000)),
        Sim::ours("there", Script::new(SECONDS_APART, 50_000)),
    ]
}

#[test]
fn clocks_that_are_seconds_apart_align_each_other() {
    let mut random = fastrand::Rng::with_seed(39);
    let [a, b] = strangers();
    let pairs = [
        ("times", [a.clone(), b.clone()], 300 * US),
        (
            "raw",
            [a.clone().raw(40_000), b.clone().raw(-50_000)],
            300 * US,
        ),
        ("one raw", [a.clone().raw(0), b.clone()], 300 * US),
        (
            "foreign",
            [Sim::foreign(a.clock.clone()), Sim::foreign(b.clock.clone())],
            900 * US,
        ),
        (
            "both",
            [a.synchronised(100 * MS), b.synchronised(4 * S)],
            900 * US,
        ),
    ];
    for (what, hosts, at_most) in pairs {
        for turn in 0..4 {
            let all = traffic(&mut random, 6, [60 * US, 340 * US], 30 * US);
            let found = measured(&hosts, &all, &plan()).unwrap();
            let bounds = holds(&found, &all, &format!("{what} {turn}"));
            for bound in bounds {
                assert!(bound <= at_most, "{what}: ±{bound}");
            }
            for (passage, is_back) in found.passages.iter().zip([false, true]) {
                let account = passage.exits[0].account;
                adds_up(&account);
                let sent = || all.iter().filter(|it| it.is_back == is_back);
                let lost = sent().filter(|it| it.arrived.is_none()).count() as u64;
                let seen = passage.entry.seen;
                assert_eq!(seen, sent().count() as u64, "{what}");
                assert_eq!(passage.exits[0].spot.seen + lost, seen, "{what}");
                if what == "foreign" {
                    // Outside of all exchanges a clock may have been set.
                    assert!(account.matched > seen * 9 / 10, "{what}: {account:?}");
                    continue;
                }
                assert_eq!(
                    (account.entered, account.matched),
                    (seen, account.left),
                    "{what}"
                );
                let unanswered = account.lost_inside + account.pending;
                assert_eq!(unanswered, lost, "{what}: {account:?}");
            }
            let report = found.alignment.unwrap();
            assert_eq!((report.contradictions, report.changes), (0, 0), "{what}");
            assert!(
                report.packets.unwrap().iter().all(|it| *it > 100),
                "{report:?}"
            );
        }
    }
}

/// What needs no alignment does not have it in its bound.
#[test]
fn variation_has_no_alignment_in_its_bound() {
    let mut random = fastrand::Rng::with_seed(1);
    let all = traffic(&mut random, 3, [60 * US, 9 * MS], 30 * US);
    let found = measured(&strangers(), &all, &plan()).unwrap();
    let exit = &found.passages[0].exits[0];
    let varies = exit.variation.as_ref().unwrap();
    assert!(varies.bound_ns < 2 * US, "{varies:?}");
    assert!(exit.delays.as_ref().unwrap().bound_ns.unwrap() > 4 * MS);
}

/// `tscap capture --keep-raw` has stamps that nobody sets; times show that they jump.
#[test]
fn clocks_that_are_set_meanwhile() {
    let mut random = fastrand::Rng::with_seed(7);
    for by_ns in [
        -2 * SECONDS_APART,
        -30_000_000,
        30_000_000,
        2 * SECONDS_APART,
    ] {
        let all = traffic(&mut random, 6, [200 * US, 200 * US], 30 * US);
        let [a, b] = strangers();
        let set = |sim: &Sim| Sim {
            clock: sim.clock.clone().step(3 * S, by_ns),
            ..sim.clone()
        };
        let raw = [set(&a).raw(10_000), set(&b).raw(-30_000)];
        let found = measured(&raw, &all, &plan()).unwrap();
        holds(&found, &all, "raw");
        assert_eq!(found.alignment.unwrap().changes, 0);
        for hosts in [
            [Sim::foreign(a.clock.clone()), Sim::foreign(set(&b).clock)],
            [Sim::foreign(set(&a).clock), Sim::foreign(b.clock.clone())],
        ] {
            let found = measured(&hosts, &all, &plan()).unwrap();
            holds(&found, &all, &format!("set by {by_ns}"));
            for passage in &found.passages {
                let account = passage.exits[0].account;
                adds_up(&account);
                assert!(
                    account.matched > account.entered / 2,
                    "{by_ns}: {account:?}"
                );
            }
            assert!(found.alignment.as_ref().unwrap().changes > 0, "{by_ns}");
            assert!(
                found
                    .warnings
                    .iter()
                    .any(|it| it.contains("a clock was set"))
            );
        }
    }
}

#[test]
fn frames_without_directions_are_told_by_their_round_trip() {
    let mut random = fastrand::Rng::with_seed(11);
    let hosts = [(1_000_000, 20_000), (-SECONDS_APART, -20_000)].map(|(ahead, ppb)| Sim {
        has_directions: false,
        ..Sim::foreign(Script::new(ahead, ppb))
    });
    let mut all = traffic(&mut random, 3, [60 * US, 340 * US], 30 * US);
    // Both hosts are on one link.
    all.iter_mut().for_each(|it| it.hops = 64);
    let found = measured(&hosts, &all, &plan()).unwrap();
    holds(&found, &all, "forward");
    assert!(
        found.warnings.iter().any(|it| it.contains("no direction")),
        "{:?}",
        found.warnings
    );
    let account = found.passages[0].exits[0].account;
    adds_up(&account);
    let there = all.iter().filter(|it| !it.is_back).count() as u64;
    assert_eq!(found.passages[0].entry.seen, there);
    // The files the other way round.
    let [a, b] = hosts;
    let [first, second] = [capture(&b, &all, true), capture(&a, &all, false)];
    let files = [&mut Cursor::new(first), &mut Cursor::new(second)];
    let turned = measure_files(files, &plan()).unwrap();
    assert_eq!(turned.passages[1].entry.seen, there);
}

/// Without an alignment there is no delay, or one that UTC bounds.
#[test]
fn what_nothing_aligns_is_refused() {
    let mut random = fastrand::Rng::with_seed(3);
    let all = traffic(&mut random, 1, [60 * US, 340 * US], 30 * US);
    let only_there: Vec<_> = all.iter().filter(|it| !it.is_back).cloned().collect();
    let error = measured(&strangers(), &only_there, &plan())
        .unwrap_err()
        .to_string();
    for part in [
        "boot here",
        "boot there",
        "0 packets back",
        "from UTC",
        "--direction inout",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let truth = |it: Sim, ahead_ns| Sim {
        clock: Script::new(ahead_ns, 0),
        ..it
    };
    let [a, b] = strangers();
    let both = [
        truth(a, 0).synchronised(2 * MS),
        truth(b, 1_500_000).synchronised(3 * MS),
    ];
    let there = FilesPlan {
        is_both: false,
        ..plan()
    };
    let found = measured(&both, &only_there, &there).unwrap();
    let bound = holds(&found, &only_there, "utc")[0];
    assert!((5 * MS..6 * MS).contains(&bound), "{bound}");
    assert_eq!(found.alignment.unwrap().by, "utc");
    assert!(
        found.warnings.iter().any(|it| it.contains("off UTC")),
        "{:?}",
        found.warnings
    );
    let by_exchange = FilesPlan {
        align: Some(AlignBy::Exchange),
        ..there.clone()
    };
    assert!(measured(&both, &only_there, &by_exchange).is_err());
    // Its times can't be believed, and nobody knows which of them.
    let by_utc = FilesPlan {
        align: Some(AlignBy::Utc),
        ..there
    };
    let error = measured(&strangers(), &all, &by_utc)
        .unwrap_err()
        .to_string();
    assert!(error.contains("from UTC"), "{error}");
}

/// A clock that says that it is near to UTC and is not.
#[test]
fn a_clock_that_lies_is_named() {
    let mut random = fastrand::Rng::with_seed(5);
    let all = traffic(&mut random, 2, [60 * US, 60 * US], 10 * US);
    let both = strangers().map(|it| it.synchronised(MS));
    let found = measured(&both, &all, &plan()).unwrap();
    let report = found.alignment.unwrap();
    assert!(report.contradictions > 1_000, "{report:?}");
    assert!(
        found
            .warnings
            .iter()
            .any(|it| it.contains("not where it says"))
    );
    assert!(found.passages[0].exits[0].delays.is_none());
}

/// Captures that do not begin and end together: what is outside of one of them is not lost.
#[test]
fn what_one_capture_did_not_cover_is_not_lost() {
    let mut random = fastrand::Rng::with_seed(17);
    let mut all = traffic(&mut random, 6, [60 * US, 340 * US], 30 * US);
    all.retain(|it| it.arrived.is_some());
    let [mut a, mut b] = strangers();
    a.captures = [S, u64::MAX];
    b.captures = [2 * S, 4 * S];
    let found = measured(&[a, b], &all, &plan()).unwrap();
    for passage in &found.passages {
        let account = passage.exits[0].account;
        adds_up(&account);
        assert_eq!(
            (account.lost_inside, account.originated),
            (0, 0),
            "{account:?}"
        );
        assert!(account.matched > 100, "{account:?}");
    }
    assert!(found.passages[0].exits[0].account.pending > 2_000);
    assert!(found.passages[1].exits[0].account.early > 200);
}

#[test]
fn torn_files_tell_what_they_have() {
    let mut random = fastrand::Rng::with_seed(23);
    let all = traffic(&mut random, 4, [60 * US, 340 * US], 30 * US);
    let hosts = strangers();
    let files = [
        capture(&hosts[0], &all, false),
        capture(&hosts[1], &all, true),
    ];
    for torn in 0..2 {
        let mut files = files.clone();
        let length = files[torn].len();
        files[torn].truncate(length * 2 / 3 + 1);
        let [first, second] = files.map(Cursor::new);
        let found = measure_files([&mut { first }, &mut { second }], &plan()).unwrap();
        assert!(!found.is_whole);
        holds(&found, &all, "torn");
        for passage in &found.passages {
            let account = passage.exits[0].account;
            adds_up(&account);
            let lost = all.iter().filter(|it| it.arrived.is_none()).count() as u64;
            assert!(account.lost_inside <= lost, "{account:?}");
        }
        let said = format!("{}: the file ends in the middle", ["a", "b"][torn]);
        assert!(
            found.warnings.iter().any(|it| it.starts_with(&said)),
            "{:?}",
            found.warnings
        );
    }
}

/// One file that has both, in the order of two clocks that are seconds apart.
#[test]
fn a_merged_file_is_read_as_both() {
    let mut random = fastrand::Rng::with_seed(29);
    let all = traffic(&mut random, 4, [60 * US, 340 * US], 30 * US);
    let hosts = strangers();
    let mut file = Capture::empty();
    hosts.iter().for_each(|it| interface(&mut file, it));
    let mut frames = Vec::new();
    for sent in &all {
        let sides = [usize::from(sent.is_back), usize::from(!sent.is_back)];
        frames.push((sent.left, sides[0], true, frame(sent, 64)));
        frames.extend(
            sent.arrived
                .map(|at| (at, sides[1], false, frame(sent, 64))),
        );
    }
    frames.sort_by_key(|it| hosts[it.1].clock.read(it.0));
    for (at, side, is_sent, bytes) in &frames {
        packet(&mut file, *side as u32, &hosts[*side], *at, *is_sent, bytes);
    }
    (0..)
        .zip(&hosts)
        .for_each(|(index, it)| statistics(&mut file, index, it));
    let bytes = file.bytes();
    let mut plan = plan();
    plan.places[0].interface = Some("0".into());
    plan.places[1].interface = Some("1".into());
    let files = [
        &mut Cursor::new(bytes.clone()),
        &mut Cursor::new(bytes.clone()),
    ];
    let found = measure_files(files, &plan).unwrap();
    holds(&found, &all, "merged");
    plan.places[0].interface = None;
    let files = [&mut Cursor::new(bytes.clone()), &mut Cursor::new(bytes)];
    let error = measure_files(files, &plan).unwrap_err().to_string();
    assert!(error.contains("not one interface"), "{error}");
}

/// What one host receives and the other one sends, and so on.
#[test]
fn places_are_of_either_direction() {
    let mut random = fastrand::Rng::with_seed(31);
    let all = traffic(&mut random, 3, [60 * US, 340 * US], 30 * US);
    let hosts = strangers();
    // From what A received to what B sent: the way back, from its end to its beginning.
    let mut turned = plan();
    turned.places[0].direction = Direction::In;
    turned.places[1].direction = Direction::Out;
    let found = measured(&hosts, &all, &turned).unwrap();
    let exit = &found.passages[0].exits[0];
    assert!(
        exit.delays.as_ref().is_none_or(|it| it.summary.min < 0),
        "{exit:?}"
    );
    assert!(
        found.warnings.iter().any(|it| it.contains("wrong way")),
        "{:?}",
        found.warnings
    );
    // B and A in the other order.
    let files = [
        capture(&hosts[1], &all, true),
        capture(&hosts[0], &all, false),
    ];
    let [first, second] = files.map(Cursor::new);
    let found = measure_files([&mut { first }, &mut { second }], &plan()).unwrap();
    let mirrored: Vec<_> = all
        .iter()
        .map(|it| Sent {
            is_back: !it.is_back,
            ..it.clone()
        })
        .collect();
    holds(&found, &mirrored, "turned");
}

/// Two captures of one host need no alignment.
#[test]
fn two_captures_of_one_host_have_one_clock() {
    let mut random = fastrand::Rng::with_seed(37);
    let all = traffic(&mut random, 2, [60 * US, 340 * US], 30 * US);
    let clock = Script::new(5, 0);
    let one = Sim::ours("here", clock);
    for (hosts, at_most) in [
        ([one.clone(), one.clone()], 200),
        ([one.clone().raw(0), one.clone().raw(0)], 200),
    ] {
        let found = measured(&hosts, &all, &plan()).unwrap();
        assert_eq!(found.alignment, None);
        let bounds = holds(&found, &all, "one clock");
        assert!(bounds.iter().all(|it| *it <= at_most), "{bounds:?}");
    }
}

const BOOTS: [&str; 2] = [
    "3f6c1ad2-0001-4b6a-9c3e-1d2f3a4b5c6d",
    "a1b2c3d4-0002-4b6a-9c3e-1d2f3a4b5c6d",
];

fn other_host(hosts: &[Sim; 2], all: &[Sent]) -> Result<OtherHost, FilesError> {
    // The second host has the clock.
    let files = [
        capture(&hosts[1], all, true),
        capture(&hosts[0], all, false),
    ];
    let [first, second] = files.map(Cursor::new);
    let plan = OtherHostPlan {
        files: ["b".into(), "a".into()],
        max_drift_ppb: None,
    };
    OtherHost::find([&mut { first }, &mut { second }], &plan)
}

/// Each packet has the time that the other host's clock showed, within the bound.
#[test]
fn packets_have_the_times_of_another_host() {
    let mut random = fastrand::Rng::with_seed(41);
    let all = traffic(&mut random, 6, [60 * US, 340 * US], 30 * US);
    let [mut a, mut b] = strangers();
    (a.boot, b.boot) = (Some(BOOTS[0]), Some(BOOTS[1]));
    b.utc_bound_ns = Some(5 * MS);
    for a in [a.clone(), a.clone().raw(-20_000)] {
        let hosts = [a, b.clone()];
        let other = other_host(&hosts, &all).unwrap();
        assert_eq!(other.boot.to_string(), BOOTS[1]);
        assert!((200 * US..300 * US).contains(&other.bound_ns), "{other:?}");
        let utc_ns = other.utc_bound_ns.unwrap();
        assert!((5_200 * US..5_400 * US).contains(&utc_ns), "{utc_ns}");
        let bytes = capture(&hosts[0], &all, false);
        let mut times = other.times();
        let mut truth: Vec<_> = all
            .iter()
            .filter_map(|it| {
                if it.is_back {
                    it.arrived
                } else {
                    Some(it.left)
                }
            })
            .collect();
        truth.sort_unstable();
        let mut truth = truth.into_iter();
        for record in tscap_file::pcapng::records(&bytes[..]).unwrap() {
            if let Record::Packet(packet) = record.unwrap() {
                let is = hosts[1].clock.read(truth.next().unwrap());
                let said = times.next(&packet).unwrap();
                assert!(said.abs_diff(is) <= other.bound_ns, "{said} for {is}");
            }
        }
        assert_eq!(truth.next(), None);
    }
}

#[test]
fn times_of_no_other_host_are_refused() {
    let mut random = fastrand::Rng::with_seed(43);
    let all = traffic(&mut random, 1, [60 * US, 340 * US], 30 * US);
    let [mut a, mut b] = strangers();
    let error = |hosts: &[Sim; 2], all: &[Sent]| other_host(hosts, all).unwrap_err().to_string();
    let said = error(&[a.clone(), b.clone()], &all);
    assert!(said.contains("b does not name its host"), "{said}");
    (a.boot, b.boot) = (Some(BOOTS[0]), Some(BOOTS[0]));
    let said = error(&[a.clone(), a.clone()], &all);
    assert!(said.contains("one clock already"), "{said}");
    b.boot = Some(BOOTS[1]);
    let only_there: Vec<_> = all.iter().filter(|it| !it.is_back).cloned().collect();
    let said = error(&[a, b], &only_there);
    assert!(
        said.contains("nothing tells how far both are apart"),
        "{said}"
    );
}
