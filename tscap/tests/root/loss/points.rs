//! What is measured: every frame accounted for, at each point.

use tscap_lab::loss::model::Receiving;
use tscap_lab::loss::schema::Point;
use tscap_lab::loss::{Arrival, Sweep};
use tscap_testkit::command::run;
use tscap_testkit::root::{alone, alone_with, two_cpus};
use tscap_traffic::load::Tool;

use super::{LIMIT, MEASURES, loss, quick, sweep};

/// Sums, and figures that can be.
#[track_caller]
fn adds_up(sweep: &Sweep) {
    for point in &sweep.points {
        let run = &point.run;
        assert_eq!(run.sent, run.written + run.lost.total(), "{point:?}");
        assert_eq!(run.seen, run.sent - run.lost.before, "{point:?}");
        assert!(run.sent > 0 && run.seconds > 0.0, "{point:?}");
        assert!(run.busy.iter().all(|share| (0.0..=1.0).contains(share)));
        let predicted = point.predicted.map(|it| it.lost());
        assert_eq!(predicted.is_some(), point.tool == Tool::Tscap);
        assert!(predicted.is_none_or(|lost| (0.0..=1.0).contains(&lost)));
    }
}

#[test]
fn a_quick_sweep_accounts_for_every_frame() {
    let Some(_lock) = alone(MEASURES) else { return };
    let (done, sweep) = quick();
    assert!(!sweep.about.partial);
    // Rounded up to whole seconds: a quick one takes few.
    done.estimated(", about ", "\n", sweep.about.seconds.max(1.0));
    let sizes: Vec<_> = sweep.points.iter().map(|point| point.size).collect();
    assert_eq!(sizes, [64, 256, 1024]);
    adds_up(sweep);
    for point in &sweep.points {
        // Received on the sender's CPU: nothing can be lost between them.
        assert_eq!(point.run.lost.before, 0, "{point:?}");
        assert_eq!((point.snaplen, point.ring_bytes), (96, 1 << 20));
    }
    let costs = &sweep.calibrations[0].costs;
    assert_eq!(costs.receiving, Receiving::OnSender);
    for ns in [
        costs.receive.of(64),
        costs.convert.of(64),
        costs.turned_away_ns,
    ] {
        assert!((1.0..100_000.0).contains(&ns), "{costs:?}");
    }
    let accuracy = sweep.accuracy.as_ref().expect("points that were predicted");
    assert_eq!(accuracy.points, 3);
}

/// More than a CPU can receive, into more than a ring can hold.
#[test]
fn losses_before_the_program_and_in_the_ring_are_told_apart() {
    let (Some(_lock), Some((_, second))) = (alone(MEASURES), two_cpus()) else {
        return;
    };
    let receiver = second.to_string();
    let arguments = [
        "--quick",
        "--json",
        "--size",
        "64,1500",
        "--snaplen",
        "whole",
    ];
    let mut command = loss(&arguments);
    command.args(["--ring-size", "128K", "--receive-cpu", &receiver]);
    let done = run(&mut command, LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    assert_eq!(sweep.calibrations[0].costs.receiving, Receiving::Apart);
    assert_eq!(u32::try_from(second), Ok(sweep.method.receive_cpu));
    // A sender that only sends is always faster than one that receives.
    for point in &sweep.points {
        assert!(point.run.lost.before > 0, "{point:?}");
        let full = point.run.losses.iter().filter(|it| it.name == "ring_full");
        let full: u64 = full.map(|it| it.frames).sum();
        assert_eq!(point.run.lost.ring, full, "{point:?}");
    }
    let in_ring = |point: &Point| point.run.lost.ring > 0;
    assert!(sweep.points.iter().any(in_ring), "{:?}", sweep.points);
}

/// What a slow file does not take is lost in the ring, and predicted.
#[test]
fn a_slow_file_loses_frames() {
    let Some(_lock) = alone(MEASURES) else { return };
    const BYTES_PER_S: f64 = 20e6;
    let arguments = ["--quick", "--json", "--size", "1024", "--snaplen", "whole"];
    let mut command = loss(&arguments);
    command.args(["--ring-size", "256K", "--duration", "0.5"]);
    let done = run(command.args(["--file-rate", "20M"]), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    assert_eq!(sweep.method.file_bytes_per_s, Some(20_000_000));
    let writer = sweep.calibrations[0].costs.writer.expect("a slow file");
    // On a busy machine it takes less.
    assert!(writer.bytes_per_s < 1.2 * BYTES_PER_S, "{writer:?}");
    let [point] = &sweep.points[..] else {
        panic!("one point: {:?}", sweep.points);
    };
    // What a ring and the pipe hold is written besides, when nothing comes any more.
    let most = 1.2 * BYTES_PER_S * point.run.seconds + 256e3 * 1.1 + 1.1e6;
    assert!(point.run.written as f64 * 1056.0 < most, "{point:?}");
    assert!(point.run.lost.ring > 0, "{point:?}");
    assert!(point.predicted.is_some_and(|it| it.ring > 0.0), "{point:?}");
}

#[test]
fn a_capture_that_is_held_loses_what_its_ring_cannot_hold() {
    let Some(_lock) = alone(MEASURES) else { return };
    let (_, sweep) = quick();
    let held = &sweep.calibrations[0].probes.held;
    // 128 KiB of blocks of 96 bytes; some may go before it is held.
    let fit = (128 << 10) / 96;
    assert!((fit..2 * fit).contains(&held.run.written), "{held:?}");
    assert_eq!(held.run.sent, held.run.written + held.run.lost.ring);
}

#[test]
#[ignore = "long: by night"]
fn other_programs_are_measured_beside_it() {
    let programs = ["ip", "ethtool", "tcpdump", "dumpcap"];
    let Some(_lock) = alone_with(MEASURES, &programs) else {
        return;
    };
    let arguments = [
        "--quick",
        "--json",
        "--size",
        "64,512",
        "--peer",
        "tcpdump,dumpcap",
    ];
    let done = run(&mut loss(&arguments), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    let tools: Vec<_> = sweep.points.iter().map(|point| point.tool).collect();
    let each = [Tool::Tscap, Tool::Tcpdump, Tool::Dumpcap];
    assert_eq!(tools, [each, each].concat(), "{:?}", sweep.warnings);
    assert_eq!(sweep.method.peers.len(), 2);
    assert!(
        sweep.method.peers[0].contains("tcpdump"),
        "{:?}",
        sweep.method
    );
    // tcpdump had as much memory as all of tscap's rings, and its own word is right.
    for point in &sweep.points {
        assert_eq!(point.clock.is_some(), point.tool == Tool::Tscap);
        assert_eq!(point.run.written, point.run.said_written, "{point:?}");
    }
}

#[test]
#[ignore = "long: by night"]
fn every_stamp_and_pace_is_a_point() {
    let Some(_lock) = alone(MEASURES) else { return };
    let mut command = loss(&[
        "--quick",
        "--json",
        "--size",
        "128",
        "--snaplen",
        "96",
        "--duration",
        "0.05",
    ]);
    command.args([
        "--flat-out",
        "--gap",
        "12",
        "--rate",
        "100k",
        "--ring-size",
        "1M",
    ]);
    let done = run(command.args(["--clock", "ktime,tai"]), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    assert_eq!((sweep.calibrations.len(), sweep.points.len()), (4, 6));
    let gap = &sweep.points[2];
    assert_eq!((gap.gap, gap.line), (Some(12), Some(1_000_000_000)));
    // 140 byte times of 8 ns: more than single frames can be.
    assert_eq!(gap.rate_asked.map(f64::round), Some(892_857.0));
    assert_eq!(gap.arrival, Some(Arrival::InBursts));
    let slow = &sweep.points[4];
    assert_eq!(slow.rate_asked, Some(100_000.0));
    assert_eq!(slow.run.sent, 5_000);
    assert_eq!(slow.arrival, Some(Arrival::Singly));
}

/// At line rate on 1 Gbit/s, as in the paper; or the point says that it is not.
#[test]
#[ignore = "long: by night"]
fn line_rate_is_reached_or_told() {
    let Some(_lock) = alone(MEASURES) else { return };
    let mut command = loss(&["--quick", "--json", "--size", "72,1000"]);
    let done = run(command.args(["--gap", "12", "--duration", "0.2"]), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    let unreached = sweep.points.iter().filter(|it| !it.is_reached()).count();
    let reported = sweep
        .warnings
        .iter()
        .any(|it| it.contains("the sender did not reach 99 %"));
    assert_eq!(reported, unreached > 0, "{:?}", sweep.warnings);
    // What no rate can be: more than one frame a nanosecond apart is refused, 20 ns are not.
    let mut command = loss(&["--quick", "--json", "--size", "64"]);
    let done = run(
        command.args(["--rate", "50Mpps", "--duration", "0.05"]),
        LIMIT,
    );
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = super::sweep(&done);
    assert!(!sweep.points[0].is_reached(), "{:?}", sweep.points);
    assert!(
        sweep.warnings.iter().any(|it| it.contains("at 64 B")),
        "{:?}",
        sweep.warnings
    );
}

/// Every program that takes part is measured, and what the CPUs did is told.
#[test]
fn netsniff_ng_and_xdpdump_take_part() {
    let programs = ["ip", "ethtool", "netsniff-ng", "xdpdump"];
    let Some(_lock) = alone_with(MEASURES, &programs) else {
        return;
    };
    let mut command = loss(&["--quick", "--json", "--size", "256"]);
    let done = run(command.args(["--peer", "netsniff-ng,xdpdump"]), LIMIT);
    assert!(done.status.success(), "{}", done.stderr);
    let sweep = sweep(&done);
    adds_up(&sweep);
    let tools: Vec<_> = sweep.points.iter().map(|point| point.tool).collect();
    let each = [Tool::Tscap, Tool::NetsniffNg, Tool::Xdpdump];
    assert_eq!(tools, each, "{:?}", sweep.warnings);
    for point in &sweep.points {
        assert_eq!(point.run.load.len(), point.run.busy.len(), "{point:?}");
        let kernel = 1.0 - point.run.kernel_loss();
        let through = kernel * (1.0 - point.run.application_loss());
        assert!((1.0 - through - point.run.loss()).abs() < 1e-9, "{point:?}");
    }
}
