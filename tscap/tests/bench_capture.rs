//! What `cargo xtask bench capture` makes of its runs.

#[path = "../benches/capture/amount.rs"]
#[allow(dead_code, reason = "how much is sent is the bench's own")]
mod amount;
#[path = "../benches/capture/cells.rs"]
#[allow(dead_code, reason = "tables are the bench's own")]
mod cells;
#[path = "../benches/common/mod.rs"]
mod common;
#[path = "../benches/capture/sent_report.rs"]
#[allow(dead_code, reason = "tables are the bench's own")]
mod sent_report;
#[path = "../benches/capture/targets.rs"]
mod targets;

use tscap::measuring::load::{Lost, Point, Tool};

use amount::SHORT;
use cells::{Bare, KindReport, ToolRuns};
use common::report::Section as _;
use common::target::{Target, missed};
use sent_report::{KindCosts, Run as SentRun, SentReport};

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
        busy: Vec::new(),
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
fn sent(kind: amount::Kind, more: [[f64; ROUNDS]; 3]) -> Vec<Target> {
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
