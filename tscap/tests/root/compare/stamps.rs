//! What is measured: every stamp, on frames of its own and on those that come.

use std::os::fd::AsRawFd as _;

use tscap_lab::compare::schema::{Metric, Outcome};
use tscap_lab::compare::{Programs, Settings};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::generate_on;
use tscap_testkit::command::{finish, tscap_path};
use tscap_testkit::old_kernel;
use tscap_testkit::root::{alone, root, two_cpus};
use tscap_testkit::terminal::{ctrl_c, in_a_group, wait_for_text};
use tscap_testkit::wait;

use super::{LIMIT, MEASURES, compare, comparison, first_round, median, whole};

#[test]
fn every_stamp_takes_its_turns() {
    let Some(_lock) = alone(MEASURES) else { return };
    let (done, comparison) = whole();
    assert!(!comparison.about.partial);
    assert_eq!(comparison.method.rounds, 40);
    done.estimated("1 of 42 done: about ", " left\n", comparison.about.seconds);
    let names: Vec<_> = comparison.subjects.iter().map(|it| it.source).collect();
    let tsc = tscap_clock::StampSource::Tsc;
    assert!(names.len() >= 3 && names[0].is_none(), "{names:?}");
    for subject in &comparison.subjects {
        assert_eq!(subject.program_ns.len(), 40);
        assert!((5.0..5_000.0).contains(&median(&subject.program_ns)));
        let Some(source) = subject.source else {
            assert_eq!((&subject.read_ns, &subject.frame), (&None, &None));
            continue;
        };
        let frame = subject.frame.as_ref().expect("a cost on frames");
        assert_eq!(frame.all.n, 40_000, "every frame's value is kept");
        assert_eq!((frame.rounds.len(), frame.autocorrelation.len()), (40, 20));
        assert!((1.0..5_000.0).contains(&median(&frame.rounds)), "{frame:?}");
        let read = subject.read_ns.as_ref().expect("a cost of one read");
        assert!((1.0..1_000.0).contains(&median(read)), "{read:?}");
        for pattern in &subject.precision {
            assert_eq!(
                (pattern.lost, pattern.sent),
                (0, pattern.received),
                "{pattern:?}"
            );
            let delay = pattern.delay_ns.as_ref().expect("a delay");
            // The stamp comes after the sending, on the same host.
            assert!(delay.min > 0 && delay.max < 1_000_000_000, "{delay:?}");
            let raw = source == tsc;
            assert_eq!(pattern.intervals_from == "raw stamps", raw);
            assert!(pattern.interval_error_ns.is_some());
        }
        assert_eq!(subject.precision.len(), 2);
        let points = subject.loss_by_size.iter().chain(&subject.loss_by_gap);
        for point in points {
            assert_eq!(point.sent, point.received + point.lost, "{point:?}");
            // The paper's 20,000 frames in each round.
            assert_eq!((point.sent, point.rounds.len()), (2 * 20_000, 2));
            assert!(point.before <= point.lost, "{point:?}");
        }
        for pattern in &subject.precision {
            assert!(!pattern.cost_histogram.is_empty(), "{pattern:?}");
        }
        let none = format!("{}: no rate without loss", source.name());
        let is_reported = comparison
            .warnings
            .iter()
            .any(|reported| reported.starts_with(&none));
        assert_eq!(
            subject.lossless_rate.is_empty(),
            is_reported,
            "{:?}",
            comparison.warnings
        );
    }
    let kernel = comparison
        .kernel_stamp
        .as_ref()
        .expect("the kernel's stamp");
    assert_eq!(kernel.precision.len(), 2);
    for pattern in &kernel.precision {
        assert_eq!(
            (pattern.lost, pattern.sent),
            (0, pattern.received),
            "{pattern:?}"
        );
        let delay = pattern.delay_ns.as_ref().expect("a delay");
        assert!(delay.min > 0 && delay.max < 1_000_000_000, "{delay:?}");
    }
    // No stamp at all is cheaper than any, whatever the machine.
    let floor = comparison
        .verdicts
        .iter()
        .find(|it| it.metric == Metric::Program && it.source.is_none());
    let floor = floor.expect("a verdict on the floor");
    assert!(
        matches!(
            floor.over_ktime.outcome,
            Outcome::Cheaper | Outcome::Undecided
        ),
        "{floor:?}"
    );
}

#[test]
fn live_traffic_is_measured_as_it_comes() {
    let Some(_lock) = alone(MEASURES) else { return };
    let bench = Bench::new("cmplive");
    let mut command = bench.rx.netns.command(tscap_path());
    command.args(["compare", "--quick", "--json", "-i", "rx0", "--cpu", "0"]);
    let mut child = in_a_group(&mut command);
    wait::until("tscap to attach", LIMIT, || bench.rx.xdp_program());
    let arguments = ["--rate", "50k", "--cpu", "0", "-q"];
    let sending = generate_on(&bench.tx).with(arguments).ready();
    // Which rounds there are does not depend on where frames come from.
    let stderr = wait_for_text(&mut child, "\"rounds\":10,", LIMIT);
    ctrl_c(&child);
    let done = finish(child, "tscap compare", LIMIT);
    sending.stop();
    let stderr = stderr.join().expect("reader");
    assert!(done.status.success(), "{stderr}");
    let comparison = comparison(&done);
    assert_eq!(comparison.method.frame_bytes, None);
    for subject in comparison.subjects.iter().filter(|it| it.source.is_some()) {
        let frame = subject.frame.as_ref().expect("a cost on frames");
        assert!(frame.all.n >= 10_000, "{frame:?}");
        assert!(subject.precision.is_empty() && subject.lossless_rate.is_empty());
    }
    assert_eq!(bench.rx.xdp_program(), None);
}

#[test]
fn without_a_way_to_the_tsc_the_others_are_compared() {
    let Some(_lock) = alone(MEASURES) else { return };
    let mut command = compare(&["--json"]);
    old_kernel::lacking(&mut command, old_kernel::perf);
    let comparison = first_round(&mut command);
    let names: Vec<_> = comparison.subjects.iter().map(|it| it.source).collect();
    assert!(
        !names.contains(&Some(tscap_clock::StampSource::Tsc)),
        "{names:?}"
    );
    let reported = comparison
        .warnings
        .iter()
        .any(|it| it.starts_with("no tsc-perf here: "));
    assert!(reported, "{:?}", comparison.warnings);
}

/// A stamp that takes longer loses frames only where it does not slow the sender down.
#[test]
fn loss_is_measured_on_a_cpu_that_only_receives() {
    let (Some(_lock), Some((first, second))) = (alone(MEASURES), two_cpus()) else {
        return;
    };
    let (_, comparison) = whole();
    let method = comparison.method.loss.as_ref().expect("loss was measured");
    let cpus = [method.sender_cpu, method.receive_cpu].map(|cpu| cpu as usize);
    assert_eq!(cpus[0], first);
    assert_ne!(cpus[0], cpus[1], "{second}");
    assert_eq!((method.frames, method.rounds), (20_000, 2));
    // Flat out a sender of 64 bytes is faster than any receiver.
    for subject in comparison.subjects.iter().filter(|it| it.source.is_some()) {
        assert!(
            subject.loss_by_size[0].before > 0,
            "{:?}",
            subject.loss_by_size
        );
    }
}

/// Where a program lies in memory must not pass for a difference between stamps.
#[test]
fn a_turn_has_its_program_to_itself() {
    let Some(_lock) = root() else { return };
    let settings = Settings {
        cpu: 0,
        action: 1,
        more_reads: 0,
        more_work: 0,
    };
    let mut programs = Programs::load(settings, &[], None, None).unwrap();
    let id = |programs: &Programs| {
        let fd = programs.cost_program(None).unwrap().as_raw_fd();
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap();
        let id = info.lines().find_map(|line| line.strip_prefix("prog_id:"));
        id.expect("a program has an id").trim().to_owned()
    };
    let first = id(&programs);
    assert_eq!(id(&programs), first);
    programs.reload(None).unwrap();
    assert_ne!(id(&programs), first);
}
