//! What `cargo xtask bench capture` makes of its runs.

#[path = "../../benches/capture/amount.rs"]
#[allow(dead_code, reason = "how much is sent is the bench's own")]
mod amount;
#[path = "../../benches/capture/cells.rs"]
#[allow(dead_code, reason = "tables are the bench's own")]
mod cells;
#[path = "../../benches/common/mod.rs"]
mod common;
#[path = "../../benches/capture/ground.rs"]
#[allow(dead_code, reason = "what it opens is the bench's own")]
mod ground;
#[path = "../../benches/capture/ground_targets.rs"]
mod ground_targets;
#[path = "../../benches/capture/report.rs"]
#[allow(dead_code, reason = "conditions are the bench's own")]
mod report;
#[path = "../../benches/capture/sent_report.rs"]
#[allow(dead_code, reason = "tables are the bench's own")]
mod sent_report;
#[path = "../../benches/capture/targets.rs"]
mod targets;

use tscap_statistics::Spread;
use tscap_traffic::load::{Lost, Point, Sizes, Tool};

use self::amount::{Kind, LONG, SHORT};
use self::cells::{Bare, KindReport, ToolRuns};
use self::common::report::Section as _;
use self::common::target::{Target, missed};
use self::report::DiskAlone;
use self::sent_report::{KindCosts, Run as SentRun, SentReport};

const ROUNDS: usize = 3;
/// Frames of a run.
const FRAMES: u64 = 1_000_000;

/// A run that loses so much, per cent.
fn run(percent: u64) -> Point {
    let lost = percent * FRAMES / 100;
    Point {
        sent: FRAMES,
        seen: FRAMES,
        filtered: 0,
        written: FRAMES - lost,
        said_written: FRAMES - lost,
        lost: Lost {
            ring: lost,
            ..Lost::default()
        },
        losses: Vec::new(),
        rate: 1e6,
        seconds: 1.0,
        late: 0,
        cpu_s: 0.1,
        file_bytes: 0,
        cached_bytes: None,
        busy: Vec::new(),
        load: Vec::new(),
    }
}

/// The runs of one program on short frames, whose receiving takes so many ns; it loses
/// so much at 0.6 Mpps, per cent.
fn taken(tool: Tool, receive_ns: f64, lost: u64) -> ToolRuns {
    let mut taken = ToolRuns::new(tool, &[0.6e6], 1);
    taken.flat_out = vec![Some(run(0)); ROUNDS];
    taken.ns = vec![Some(100.0 + receive_ns); ROUNDS];
    taken.slower = vec![Vec::new(); ROUNDS];
    taken.paced = vec![vec![Some(run(lost)); ROUNDS]];
    taken
}

/// The same, one of whose runs failed.
fn failed(taken: ToolRuns) -> ToolRuns {
    let mut taken = taken;
    taken.flat_out[1] = None;
    taken.ns[1] = None;
    taken.failed = vec!["it hung".into()];
    taken
}

fn targets(taken: Vec<ToolRuns>) -> Vec<Target> {
    let bare = Bare {
        mpps: vec![2.0; ROUNDS],
        ns: vec![100.0; ROUNDS],
        dropped_mpps: Vec::new(),
    };
    targets::of(&[KindReport::new(SHORT, FRAMES, bare, taken)])
}

/// Those that every machine must reach.
fn asserted(targets: &[Target]) -> Vec<&str> {
    let asserted = targets.iter().filter(|target| target.asserted);
    asserted.map(|target| target.name.as_str()).collect()
}

const CHEAPEST: &str = "64 B: receive, cheapest other / ours";
/// What --assert holds to.
const ASSERTED: [&str; 2] = ["failed runs of tscap", "64 B: % lost at 0.6 Mpps"];

#[test]
fn all_is_held_to_that_can_be() {
    let targets = targets(vec![
        taken(Tool::Tscap, 50.0, 0),
        taken(Tool::Tcpdump, 200.0, 0),
        taken(Tool::Dumpcap, 180.0, 0),
    ]);
    assert_eq!(asserted(&targets), ASSERTED);
    assert!(missed(&targets).is_empty());
    let value = |name: &str| targets.iter().find(|it| it.name == name).unwrap().value;
    assert_eq!(value("64 B: receive ns more"), 50.0);
    assert_eq!(value(CHEAPEST), 3.6);
}

#[test]
fn another_program_that_failed_takes_no_target_along() {
    let targets = targets(vec![
        taken(Tool::Tscap, 170.0, 2),
        taken(Tool::Tcpdump, 200.0, 0),
        failed(taken(Tool::Dumpcap, 180.0, 0)),
    ]);
    let cheapest = format!("{CHEAPEST}, without dumpcap that failed");
    assert!(targets.iter().any(|it| it.name == cheapest));
    assert_eq!(asserted(&targets), ASSERTED);
    // 2 % lost.
    assert_eq!(missed(&targets).len(), 1, "{:?}", missed(&targets));
}

#[test]
fn without_another_program_ours_is_held_to_its_own() {
    for others in [vec![], vec![failed(taken(Tool::Tcpdump, 200.0, 0))]] {
        let ours = [taken(Tool::Tscap, 50.0, 2)];
        let targets = targets(ours.into_iter().chain(others).collect());
        assert_eq!(asserted(&targets), ASSERTED);
        assert_eq!(missed(&targets).len(), 1);
        assert!(targets.iter().any(|it| it.name == "64 B: receive ns more"));
    }
}

#[test]
fn a_run_of_ours_that_failed_is_missed_and_the_others_count() {
    let targets = targets(vec![failed(taken(Tool::Tscap, 50.0, 2))]);
    assert_eq!(missed(&targets).len(), 2, "{:?}", missed(&targets));
}

/// Runs without a capture take 1,000 ns a frame; what tscap, tcpdump and tscap on another
/// interface take more, by round.
fn sent(kind: Kind, more: [[f64; ROUNDS]; 3]) -> Vec<Target> {
    let runs = |more: [f64; ROUNDS]| {
        let run = |more| SentRun {
            ns: 1_000.0 + more,
            least_ns: 1_000.0 + more,
            lost_percent: 0.0,
        };
        more.map(run).to_vec()
    };
    let [ours, theirs, elsewhere] = more.map(runs);
    let none = || runs([0.0; ROUNDS]);
    let costs = KindCosts::new(kind, [none(), ours, theirs, elsewhere, none(), none()]);
    let report = SentReport {
        rounds: ROUNDS as u32,
        versions: Vec::new(),
        kinds: vec![costs],
    };
    report.targets()
}

#[test]
fn what_is_sent_is_held_to_tcpdump_round_by_round() {
    let theirs = [400.0, 500.0, 1_000.0];
    let targets = sent(SHORT, [[100.0, 150.0, 500.0], theirs, [7.0, 9.0, 30.0]]);
    let value = |name: &str| targets.iter().find(|it| it.name == name).unwrap().value;
    assert_eq!(value("64 B: sent, tscap / tcpdump"), 0.3);
    assert_eq!(
        value("64 B: sent by another interface, ns more, best bursts"),
        7.0
    );
    assert!(targets.iter().all(Target::is_met));
    let worse = sent(SHORT, [[420.0, 550.0, 1_100.0], theirs, [20.0; ROUNDS]]);
    assert_eq!(worse.iter().filter(|it| !it.is_met()).count(), 3);
    // In no round did it cost less: then it does on no machine.
    assert_eq!(missed(&worse).len(), 1, "{:?}", missed(&worse));
    // No ratio is wanted of the beginnings of long frames.
    let beginnings = sent(amount::BEGINNINGS, [theirs, theirs, [0.0; ROUNDS]]);
    assert_eq!(beginnings.len(), 1);
}

/// tscap loses nothing flat out at so many Mpps, others at 1 Mpps; each takes so many s of CPU
/// time for a file of 1.5 GB, of which so many bytes are in the page cache.
fn ground(kind: Kind, ours: (f64, f64, u64), others: &[(Tool, f64)]) -> KindReport {
    let of = |tool, mpps, cpu_s, cached_bytes| {
        let run = Point {
            rate: mpps * 1e6,
            cpu_s,
            file_bytes: 1_500_000_000,
            cached_bytes: Some(cached_bytes),
            ..run(0)
        };
        let mut taken = ToolRuns::new(tool, &[], 1);
        taken.flat_out = vec![Some(run); ROUNDS];
        taken.ns = vec![Some(100.0); ROUNDS];
        taken.slower = vec![Vec::new(); ROUNDS];
        taken
    };
    let (mpps, cpu_s, cached) = ours;
    let mut taken = vec![of(Tool::Tscap, mpps, cpu_s, cached)];
    let others = others.iter();
    taken.extend(others.map(|(tool, cpu_s)| of(*tool, 1.0, *cpu_s, 1 << 30)));
    let bare = Bare {
        mpps: vec![2.0; ROUNDS],
        ns: vec![100.0; ROUNDS],
        dropped_mpps: vec![5.0; ROUNDS],
    };
    KindReport::new(kind, FRAMES, bare, taken)
}

fn named<'a>(targets: &'a [Target], part: &str) -> &'a Target {
    let mut found = targets.iter().filter(|it| it.name.contains(part));
    let target = found.next().unwrap_or_else(|| panic!("no {part}"));
    assert!(found.all(|it| it.name.ends_with("the aim")), "{part}");
    target
}

#[test]
fn a_port_that_only_listens_is_held_to_the_best_other_and_to_dropping() {
    let report = |mpps| KindReport {
        part: Some("tap"),
        ..ground(SHORT, (mpps, 0.1, 0), &[(Tool::Tcpdump, 0.1)])
    };
    let good = ground_targets::of_tap(&[report(4.0)]);
    assert!(good.iter().all(Target::is_met), "{good:?}");
    let over = named(&good, "tap, 64 B: lossless / best other");
    assert_eq!(over.value, 4.0);
    assert_eq!(
        named(&good, "tap, 64 B: lossless / only dropping").value,
        0.8
    );
    let slow = ground_targets::of_tap(&[report(3.4)]);
    let unmet: Vec<_> = slow.iter().filter(|it| !it.is_met()).collect();
    assert_eq!(unmet.len(), 2, "the aim, and dropping: {unmet:?}");
    assert!(missed(&slow).is_empty(), "a busy machine may miss them");
}

#[test]
fn a_disk_is_held_to_the_less_of_the_others_and_of_itself() {
    let others = [(Tool::Tcpdump, 1.0), (Tool::NetsniffNg, 0.6)];
    let targets = |ours, disk_gb_s: f64| {
        let disk = DiskAlone {
            gb_s: Spread::of(vec![disk_gb_s; ROUNDS]),
            rates: Vec::new(),
        };
        ground_targets::of_disk(&[ground(LONG, ours, &others)], Some(&disk))
    };
    // 1,500 bytes a frame: 3 GB/s are 2 Mpps, of which 1.7 are asked for, and not 2.
    let by_disk = targets((1.7, 0.3, 1 << 20), 3.0);
    assert!((named(&by_disk, "lossless").value - 1.0).abs() < 1e-9);
    assert_eq!(named(&by_disk, "tcpdump's").value, 0.3);
    assert_eq!(named(&by_disk, "netsniff-ng's").value, 0.5);
    assert_eq!(named(&by_disk, "page cache").value, 1.0);
    let by_others = targets((1.7, 0.31, 65 << 20), 30.0);
    assert_eq!(named(&by_others, "lossless").value, 0.85);
    assert!(by_others.iter().skip(1).all(|target| !target.is_met()));
    assert!(missed(&by_others).is_empty());
}

/// A program whose runs at a set rate lose so much, per cent, by round.
fn with_pauses(lost: [u64; ROUNDS]) -> Vec<Target> {
    let mut taken = ToolRuns::new(Tool::Tscap, amount::PAUSES_FULL.rates, 1);
    taken.flat_out = vec![Some(run(50)); ROUNDS];
    taken.ns = vec![Some(100.0); ROUNDS];
    taken.slower = vec![Vec::new(); ROUNDS];
    taken.paced = vec![lost.map(|lost| Some(run(lost))).to_vec()];
    let bare = Bare {
        ns: vec![100.0; ROUNDS],
        ..Bare::default()
    };
    let report = KindReport {
        part: ground::Ground::Pauses("/".into()).part(),
        ..KindReport::new(LONG, FRAMES, bare, vec![taken])
    };
    ground_targets::of_pauses(&[report])
}

/// One round with loss is enough, but a busy machine may miss it.
#[test]
fn nothing_is_to_be_lost_in_pauses_of_a_disk() {
    assert!(with_pauses([0; ROUNDS]).iter().all(Target::is_met));
    let lossy = with_pauses([0, 3, 0]);
    let lost = named(&lossy, "disk-pauses, 1500 B at a set rate");
    assert!((lost.value - 3.0).abs() < 1e-9 && !lost.is_met());
    assert!(missed(&lossy).is_empty());
}

/// Rings hold less than what comes in a pause, and each run has one at least.
#[test]
fn a_pause_is_longer_than_buffers_last() {
    for amount in [amount::PAUSES_QUICK, amount::PAUSES_FULL] {
        let [rate] = amount.rates else {
            panic!("one rate: {:?}", amount.rates)
        };
        let in_a_pause = LONG.file_bytes((rate * amount::PAUSE_S) as u64);
        assert!(in_a_pause > amount.buffer_bytes, "{in_a_pause}");
        assert!(amount.paced_s > amount::BETWEEN_PAUSES_S + amount::PAUSE_S);
        let frames = amount.paced_frames(*rate);
        assert!(
            frames >= amount.slower_frames(LONG),
            "it counts as lossless"
        );
    }
}

/// The page cache is looked at where nothing is lost; only without such a run flat out.
#[test]
fn flat_out_counts_for_the_page_cache_only_without_a_lossless_run() {
    let mut taken = ToolRuns::new(Tool::Tscap, &[], 1);
    let run = |percent, mib: u64| Point {
        cached_bytes: Some(mib << 20),
        ..run(percent)
    };
    taken.flat_out = vec![Some(run(10, 500)); ROUNDS];
    taken.ns = vec![Some(100.0); ROUNDS];
    taken.slower = vec![
        vec![run(5, 300), run(0, 2)],
        vec![run(0, 3)],
        vec![run(1, 9)],
    ];
    let bare = Bare {
        ns: vec![100.0; ROUNDS],
        ..Bare::default()
    };
    let report = KindReport::new(LONG, FRAMES, bare, vec![taken]);
    let targets = ground_targets::of_disk(&[report], None);
    assert_eq!(named(&targets, "page cache").value, 3.0);
}

#[test]
fn files_have_rows_for_each_program() {
    let report = ground(LONG, (1.7, 0.3, 1 << 20), &[(Tool::Tcpdump, 1.0)]);
    let disk = DiskAlone {
        gb_s: Spread::of(vec![1.25; ROUNDS]),
        rates: Vec::new(),
    };
    let text = report.files(Some(&disk)).lines().join("\n");
    for words in [
        "tscap, flat out",
        "tcpdump, lossless",
        "1.25 (1.25–1.25) GB/s",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(report.name(), "1500 B");
    // No rate was set.
    let (flat_out, rates) = report.tables();
    assert!(rates.is_none());
    let note = "where a program only drops the frames 5.00 (5.00–5.00) Mpps";
    assert!(flat_out.notes.iter().any(|it| it == note));
}

#[test]
fn each_kind_has_its_share_of_a_disk() {
    assert_eq!(amount::MIX.name(), "IMIX");
    // (7 * 64 + 4 * 594 + 1514) / 12, rounded up.
    assert_eq!(amount::MIX.size, 362);
    let amount = amount::DISK_FULL;
    assert_eq!(amount.flat_out.len(), amount::WHOLE.len());
    for (kind, frames) in amount.flat_out {
        let bytes = kind.file_bytes(*frames);
        assert!((2_400_000_000..=2_500_000_000).contains(&bytes), "{kind:?}");
        assert_eq!(amount.slower_frames(*kind), *frames);
        let is_mixed = kind.sizes() == Sizes::Imix;
        assert_eq!(is_mixed, *kind == amount::MIX);
    }
    // The parts without a disk send each kind of these, too.
    let of = |amount: &amount::Amount| -> Vec<_> {
        let kinds = amount.flat_out.iter().map(|(kind, _)| *kind);
        kinds.filter(|kind| amount::WHOLE.contains(kind)).collect()
    };
    assert_eq!(of(&amount::FULL), amount::WHOLE);
    assert_eq!(of(&amount::QUICK), amount::WHOLE);
}

#[test]
fn a_disk_is_one_that_takes_direct_writes_and_has_room() {
    use std::path::Path;
    let refused = |folder: &str, bytes| {
        let error = ground::disk(Some(Path::new(folder)), bytes).unwrap_err();
        format!("{error:#}")
    };
    assert!(refused("/dev/shm", 1).contains("/dev/shm: its file system takes no direct"));
    assert!(refused("/nonexistent", 1).contains("/nonexistent: "));
    let here = env!("CARGO_MANIFEST_DIR");
    if ground::disk(Some(Path::new(here)), 1).is_ok() {
        let full = refused(here, 1 << 60);
        assert!(full.contains("MiB are free, and twice"), "{full}");
    }
}
