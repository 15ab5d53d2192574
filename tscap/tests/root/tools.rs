//! Every program that `load` runs: ready, fed, ended and understood. Needs root.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::SigSet;
use tscap_clock::StampSource;
use tscap_file::accounting::Direction;
use tscap_network::ethtool;
use tscap_programs::hook::HookChoice;
use tscap_testkit::command::{must, tscap_path};
use tscap_testkit::files;
use tscap_testkit::process::{cpus, on_cpu};
use tscap_testkit::root::alone_with;
use tscap_traffic::load::{
    Burst, IMIX, Pair, Point, Program, Setup, Sizes, Stop, TestBed, Tool, tool_cpus,
};

const PROGRAMS: [&str; 4] = ["tcpdump", "dumpcap", "netsniff-ng", "xdpdump"];
/// Of frames of 1500 bytes at most.
const SNAPLEN: u32 = 128;

fn program(tool: Tool) -> Program {
    let found = tool.find(Path::new(tscap_path()));
    found.unwrap_or_else(|absent| panic!("{absent}"))
}

fn setup(output: &Path, snaplen: u32, cpus: Vec<u32>) -> Setup {
    Setup {
        snaplen,
        buffer_bytes: 8 << 20,
        direction: Direction::In,
        hook: HookChoice::Auto,
        tap: false,
        expression: None,
        clock: StampSource::Ktime,
        tsc_path: None,
        output: output.to_owned(),
        cpus,
        longest: Duration::from_secs(60),
    }
}

/// Does something on the first CPU, told the others, in a program that waits for its
/// signals as the benches do.
fn on_a_cpu(work: impl FnOnce(Vec<u32>) + Send) {
    let allowed: Vec<_> = cpus().iter().map(|cpu| *cpu as u32).collect();
    on_cpu(allowed[0] as usize, || {
        SigSet::all().thread_block().expect("block signals");
        work(tool_cpus(allowed[0], &allowed));
    });
}

/// The same with a stand there.
fn at_stand(work: impl FnOnce(&mut TestBed, Vec<u32>) + Send) {
    on_a_cpu(|cpus| {
        let pair = Pair::new().expect("a pair");
        let mut stand = TestBed::new(pair, Arc::new(Stop::default())).expect("a stand");
        work(&mut stand, cpus);
    });
}

#[track_caller]
fn adds_up(tool: Tool, point: &Point) {
    let sum = point.written + point.filtered + point.lost.total();
    assert_eq!(point.sent, sum, "{tool:?}: {point:?}");
}

#[test]
fn every_program_captures_all_of_a_slow_burst() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &PROGRAMS) else {
        return;
    };
    let folder = files::folder();
    at_stand(|stand, cpus| {
        for tool in Tool::ALL {
            let path = folder.path().join(tool.name());
            // xdpdump is woken after 128 frames.
            let (size, frames) = (1_500, 128 * 20);
            let burst = Burst::at_rate(size, 20_000.0, frames).expect("a rate");
            let setup = setup(&path, SNAPLEN, cpus.clone());
            let point = stand.capture(&program(tool), &setup, burst);
            let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));

            adds_up(tool, &point);
            assert_eq!((point.sent, point.written), (frames, frames), "{tool:?}");
            assert_eq!(point.said_written, frames, "{tool:?}");
            assert!(point.cpu_s > 0.0, "{tool:?}: {point:?}");
            // Of each frame the snaplen, and less than another 80 bytes beside it.
            let each = point.file_bytes / frames;
            let least = u64::from(SNAPLEN);
            assert!(
                (least..least + 80).contains(&each),
                "{tool:?}: {each} bytes"
            );
        }
    });
}

#[test]
fn filtered_frames_are_accounted_for() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &PROGRAMS) else {
        return;
    };
    let folder = files::folder();
    at_stand(|stand, cpus| {
        let frames = 1_000;
        let burst = Burst::at_rate(64, 20_000.0, frames).expect("a rate");
        for tool in [Tool::Tscap, Tool::Tcpdump, Tool::Dumpcap] {
            for (expression, filtered) in [("udp port 9", 0), ("udp port 443", frames)] {
                let setup = Setup {
                    expression: Some(expression.to_owned()),
                    ..setup(&folder.path().join(tool.name()), 0, cpus.clone())
                };
                let point = stand.capture(&program(tool), &setup, burst);
                let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
                adds_up(tool, &point);
                let got = (point.written, point.filtered);
                assert_eq!(got, (frames - filtered, filtered), "{tool:?}");
            }
        }
        let setup = Setup {
            expression: Some("udp".to_owned()),
            ..setup(&folder.path().join("none"), 0, cpus.clone())
        };
        let refused = stand.capture(&program(Tool::Xdpdump), &setup, burst);
        let refused = refused.unwrap_err().to_string();
        assert_eq!(
            refused,
            "xdpdump is not given filters here: ask for all frames"
        );
    });
}

#[test]
fn every_frame_sent_through_the_stack_is_accounted_for() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &PROGRAMS) else {
        return;
    };
    let folder = files::folder();
    let sent = |name: &str, cpus| Setup {
        direction: Direction::Out,
        ..setup(&folder.path().join(name), 0, cpus)
    };
    on_a_cpu(|allowed| {
        let pair = Pair::new().expect("a pair");
        let stop = Arc::new(Stop::default());
        let mut bed = TestBed::through_stack(pair, stop).expect("a test bed");
        let elsewhere = Pair::new().expect("another pair");
        let burst = Burst::flat_out(64, 1_000);
        for tool in [Tool::Tscap, Tool::Tcpdump] {
            let setup = sent(tool.name(), allowed.clone());
            let point = bed.capture_repeatedly(&program(tool), &setup, burst, 3);
            let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
            assert_eq!((point.sent, point.written), (3_000, 3_000), "{tool:?}");
            let nothing = bed.capture_elsewhere(&program(tool), &elsewhere, &setup, burst, 2);
            nothing.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
        }
        let refused = bed.capture(&program(Tool::Xdpdump), &sent("none", allowed), burst);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "xdpdump does not capture what is sent alone"
        );
    });
}

/// Has every program capture whole frames by a buffer of 1 MiB.
fn with_small_buffers(mut work: impl FnMut(&mut TestBed, &Program, Setup) + Send) {
    let Some(_lock) = alone_with("measures how fast frames are taken", &PROGRAMS) else {
        return;
    };
    let folder = files::folder();
    at_stand(|stand, cpus| {
        for tool in Tool::ALL {
            let path = folder.path().join(tool.name());
            let mut setup = setup(&path, 0, cpus.clone());
            setup.buffer_bytes = 1 << 20;
            work(stand, &program(tool), setup);
        }
    });
}

#[test]
fn what_a_program_can_not_take_is_accounted_for() {
    let sender = cpus()[0] as u32;
    let mut lost = None;
    with_small_buffers(|stand, program, mut setup| {
        let tool = program.tool;
        // On the sender's CPU they can hardly take as much.
        setup.cpus = vec![sender];
        let burst = Burst::flat_out(64, 128 * 1_000);
        let point = stand.capture(program, &setup, burst);
        let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
        adds_up(tool, &point);
        let tells_all = tool != Tool::Xdpdump;
        assert!(!tells_all || point.lost.before == 0, "{tool:?}: {point:?}");
        assert_eq!(point.written, point.said_written, "{tool:?}");
        let counted: u64 = point.losses.iter().map(|loss| loss.frames).sum();
        let reported = point.lost.total() - point.lost.before;
        assert_eq!(counted, reported, "{tool:?}: {point:?}");
        lost = Some(lost.unwrap_or(0) + reported);
    });
    assert_ne!(lost, Some(0), "none of them lost anything");
}

/// The perf ring tells a loss with the next frame that fits; here none does.
#[test]
fn only_xdpdump_is_not_told_what_it_lost_at_the_end() {
    with_small_buffers(|stand, program, setup| {
        let tool = program.tool;
        let burst = Burst::flat_out(64, 128 * 400);
        let point = stand.capture_held(program, &setup, burst);
        let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
        adds_up(tool, &point);
        let lost = point.sent - point.written;
        let (before, ring) = match tool {
            Tool::Xdpdump => (lost, 0),
            _ => (0, lost),
        };
        let found = (point.lost.before, point.lost.ring);
        assert_eq!(found, (before, ring), "{tool:?}: {point:?}");
        assert!(lost > 0, "{tool:?}: {point:?}");
    });
}

#[test]
fn nothing_captures_without_a_program() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &[]) else {
        return;
    };
    at_stand(|stand, _| {
        let sent = stand.send(Burst::flat_out(64, 1_000)).expect("send");
        assert_eq!((sent.sent, sent.refused), (1_000, 0), "GRO takes them");
    });
}

/// What ends frames that nothing is to take up the stack, by its own count.
#[test]
fn frames_end_right_behind_the_taps_or_before_all() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &["tc", "tcpdump"]) else {
        return;
    };
    let folder = files::folder();
    on_a_cpu(|cpus| {
        let pair = Pair::new().expect("a pair");
        let (netns, rx) = (
            pair.rx_netns.file().try_clone().expect("a namespace"),
            pair.rx.name.clone(),
        );
        let inside = |work: &(dyn Fn() -> u64 + Sync)| {
            let entered = || {
                setns(&netns, CloneFlags::CLONE_NEWNET).expect("enter the namespace");
                work()
            };
            thread::scope(|scope| scope.spawn(entered).join().expect("a count"))
        };
        // `Sent 0 bytes 0 pkt (dropped 7, overlimits 0 requeues 0)` of clsact.
        let at_tc = || {
            inside(&|| {
                let reported = must(Command::new("tc").args(["-s", "qdisc", "show", "dev", &rx]));
                let (_, from) = reported.rsplit_once("(dropped ").expect("clsact");
                let end = from.find(',').expect("a number");
                from[..end].parse().expect("a number")
            })
        };
        let at_xdp = || {
            inside(&|| {
                let counts = ethtool::statistics(&rx).expect("counters");
                let drops = counts
                    .iter()
                    .find(|(name, _)| name == "rx_queue_0_xdp_drops");
                drops.expect("a counter").1
            })
        };
        let stand = TestBed::new(pair, Arc::new(Stop::default())).expect("a stand");
        let mut stand = stand.dropping_behind_taps().expect("a filter");
        let frames = 1_000;
        let burst = Burst::at_rate(64, 20_000.0, frames).expect("a rate");

        for (tool, tap, passed) in [(Tool::Tcpdump, false, frames), (Tool::Tscap, true, 0)] {
            let setup = Setup {
                tap,
                ..setup(&folder.path().join(tool.name()), 0, cpus.clone())
            };
            let before = at_tc();
            let point = stand.capture(&program(tool), &setup, burst);
            let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
            assert_eq!((point.sent, point.written), (frames, frames), "{tool:?}");
            assert_eq!(at_tc() - before, passed, "{tool:?}");
        }
        let (tc, xdp) = (at_tc(), at_xdp());
        stand.send_dropped(burst).expect("send");
        assert_eq!((at_tc() - tc, at_xdp() - xdp), (0, frames));
        stand.send(burst).expect("send");
        assert_eq!(at_tc() - tc, frames, "the program is gone again");
    });
}

#[test]
fn a_mix_is_captured_to_the_last_frame() {
    let Some(_lock) = alone_with("measures how fast frames are taken", &["tcpdump"]) else {
        return;
    };
    let folder = files::folder();
    at_stand(|stand, cpus| {
        // One turn and a part of the next.
        let frames = 13_000;
        let burst = Burst::at_rate(64, 50_000.0, frames).expect("a rate");
        let burst = burst.of_sizes(Sizes::Imix).in_bulks();
        for tool in [Tool::Tscap, Tool::Tcpdump] {
            let path = folder.path().join(tool.name());
            let setup = setup(&path, 0, cpus.clone());
            let point = stand.capture(&program(tool), &setup, burst);
            let point = point.unwrap_or_else(|error| panic!("{tool:?}: {error}"));
            adds_up(tool, &point);
            assert_eq!((point.sent, point.written), (frames, frames), "{tool:?}");
            let reported = must(Command::new("tcpdump").args(["-n", "-q", "-r"]).arg(&path));
            // Ethernet, IPv4 and UDP have 42 bytes before the payload.
            for (size, weight) in IMIX {
                let words = format!("UDP, length {}", size - 42);
                let found = reported
                    .lines()
                    .filter(|line| line.ends_with(&words))
                    .count() as u64;
                let share = frames / 12 * weight;
                assert!((share..share + 12).contains(&found), "{size}: {found}");
            }
        }
    });
}
