use clap::Parser;

use super::*;
use tscap_capture::DirectionChoice;
use tscap_capture::{ClockChoice, Offloads, Target};
use tscap_clock::TscPath;
use tscap_programs::hook::{EgressPoint, HookChoice};

fn plan(args: &str) -> Result<CapturePlan, String> {
    let words = ["tscap", "capture"]
        .into_iter()
        .chain(args.split_whitespace());
    let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
    match plan.map_err(|error| error.to_string())? {
        Plan::Capture(plan) => Ok(*plan),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn defaults_are_tcpdumps() {
    let plan = plan("-i eth0 -w out.pcapng").unwrap();
    assert_eq!(plan.capture.interfaces, ["eth0"]);
    assert_eq!(plan.capture.target, Target::Path("out.pcapng".into()));
    assert_eq!(plan.capture.snaplen, 65_428);
    assert!(plan.capture.promiscuous);
    assert_eq!(plan.capture.count, None);
    assert_eq!(
        (plan.capture.clock, plan.capture.tsc_path),
        (ClockChoice::Auto, None)
    );
    assert_eq!(plan.capture.hook, HookChoice::Auto);
    assert_eq!(plan.capture.egress_point, EgressPoint::Qdisc);
    assert_eq!(plan.capture.direction, DirectionChoice::Inout);
    assert_eq!(plan.verbosity, Verbosity::Normal);
    assert_eq!(plan.capture.rx_cpus, None);
}

#[test]
fn every_option_reaches_the_plan() {
    let plan = plan(
        "-i a -i b -w - -s 96 -c 5 --duration 1m30s -p -q --json --clock tai --hook generic -Q out \
         --egress-point driver --offloads off --packet-meta --ring-size 16M --converter-cpu 1 --rx-cpu 0,2-3",
    )
    .unwrap();
    assert_eq!(plan.capture.interfaces, ["a", "b"]);
    assert_eq!(plan.capture.target, Target::Stdout);
    assert_eq!((plan.capture.snaplen, plan.capture.count), (96, Some(5)));
    assert_eq!(
        plan.capture.duration,
        Some(std::time::Duration::from_secs(90))
    );
    assert!(!plan.capture.promiscuous && plan.json && plan.capture.packet_meta);
    assert_eq!(plan.verbosity, Verbosity::Quiet);
    assert_eq!(plan.capture.clock, ClockChoice::Tai);
    assert_eq!(plan.capture.hook, HookChoice::Generic);
    assert_eq!(plan.capture.egress_point, EgressPoint::Driver);
    assert_eq!(plan.capture.direction, DirectionChoice::Out);
    assert_eq!(plan.capture.offloads, Offloads::Off);
    assert_eq!(plan.capture.ring_bytes, Some(16 << 20));
    assert_eq!(plan.capture.converter_cpus, Some(vec![1]));
    assert_eq!(plan.capture.rx_cpus, Some(vec![0, 2, 3]));
    assert_eq!(plan.capture.writers, 1);
}

#[test]
fn several_writers_take_a_cpu_each() {
    let plan = plan("-i a -w f --writers 2 --converter-cpu 2-3 -b packets:5").unwrap();
    assert_eq!(plan.capture.writers, 2);
    assert_eq!(plan.capture.converter_cpus, Some(vec![2, 3]));
}

#[test]
fn real_time_is_asked_for() {
    let priority = |words: &str| {
        plan(&format!("-i a -w f {words}"))
            .unwrap()
            .capture
            .priority
    };
    assert_eq!(priority(""), None);
    assert_eq!(priority("--priority tcp"), Some(1), "an expression follows");
    assert_eq!(priority("--priority=99"), Some(99));
}

#[test]
fn the_point_of_sent_frames_is_for_sent_frames() {
    for point in ["qdisc", "driver"] {
        assert!(plan(&format!("-i a -w f -Q out --egress-point {point}")).is_ok());
    }
    let error = plan("-i a -w f -Q in --egress-point driver").unwrap_err();
    assert!(error.to_string().contains("for sent frames"), "{error}");
}

#[test]
fn a_path_to_the_tsc_is_for_the_tsc() {
    for (word, path) in [
        ("kernel", TscPath::Kernel),
        ("module", TscPath::Module),
        ("module-ordered", TscPath::ModuleOrdered),
        ("perf", TscPath::Perf),
    ] {
        let asked = format!("-i a -w f --clock tsc:{word}");
        assert_eq!(plan(&asked).unwrap().capture.tsc_path, Some(path));
    }
    let error = plan("-i a -w f --clock tai:perf").unwrap_err();
    assert!(error.contains("tsc:perf"), "{error}");
}

#[test]
fn zero_is_the_default_snaplen() {
    assert_eq!(plan("-i a -w f -s 0").unwrap().capture.snaplen, 65_428);
}

#[test]
fn bad_arguments_are_named() {
    for (args, named) in [
        ("-w f", "--interface"),
        ("-i a --json", "--write"),
        ("-i a -q", "--write"),
        ("-i a -G 10", "--write"),
        ("-i a -w f -s -1", "-1"),
        ("-i a -w f -s 262145", "262145"),
        ("-i a -w f -c 0", "--count"),
        ("-i a -i a -w f", "interface a is given twice"),
        ("-i a -w f --writers 0", "--writers"),
        ("-i a -w f --priority=0", "--priority"),
        ("-i a -w f --priority=100", "--priority"),
        ("-i a -w f --writers 65", "--writers"),
        ("-i a -w - --writers 2", "several writers write a file each"),
        ("-i a -w f -c 5 --writers 2", "leave out -c"),
        ("-i a --writers 2", "--write"),
        (
            "-i a -w f --writers 2 --converter-cpu 1",
            "one CPU for each writer",
        ),
        ("-i a -w f --converter-cpu 0-1", "one CPU for each writer"),
        ("-i a -w f --ring-size 3M", "power of two"),
        ("-i a -w f --ring-size 64K", "power of two"),
        ("-i a -w f --ring-size 512M", "power of two"),
        ("-i a -w f --duration 0", "--duration"),
        ("-i a -w f --clock sundial", "sundial"),
        ("-i a -w f -q -v", "--verbose"),
        ("-i a -w f --rx-cpu 3-2", "backwards"),
        ("-i a -w f --rx-cpu 1,1", "--rx-cpu"),
    ] {
        let error = plan(args).unwrap_err();
        assert!(error.contains(named), "{args}: {error}");
    }
}

/// Every option of every command with a value that is none.
#[test]
fn every_bad_value_is_refused_in_tscaps_own_words() {
    use clap::CommandFactory;
    // How clap and the standard library speak of a value.
    const OTHERS_WORDS: [&str; 7] = [
        " is not in ",
        "invalid digit",
        "invalid IP",
        "invalid float",
        "number too",
        "empty string",
        "out of range",
    ];
    let mut refused = 0;
    let whole = Cli::command();
    for command in whole.get_subcommands() {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        for option in options.map(|long| format!("--{long}")) {
            for value in ["@", "-1", "1.5", "99999999999999999999"] {
                let word = format!("{option}={value}");
                let words = ["tscap", command.get_name(), &word];
                let Err(error) = Cli::try_parse_from(words) else {
                    continue;
                };
                let error = error.to_string();
                let others = OTHERS_WORDS.iter().find(|words| error.contains(*words));
                assert_eq!(others, None, "{words:?}: {error}");
                refused += usize::from(error.contains("invalid value"));
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn restore_takes_nothing() {
    let plan = |words: &[&str]| Cli::try_parse_from(words).and_then(Cli::into_plan);
    assert_eq!(plan(&["tscap", "restore"]).unwrap(), Plan::Restore);
    assert!(plan(&["tscap", "restore", "eth0"]).is_err());
}

#[test]
fn the_doctor_takes_an_interface() {
    let plan = |words: &[&str]| Cli::try_parse_from(words).and_then(Cli::into_plan);
    let doctor = |interface: Option<&str>, json| {
        let interface = interface.map(str::to_owned);
        Plan::Doctor(DoctorPlan {
            interface,
            verbose: false,
            json,
            fix: None,
        })
    };
    assert_eq!(plan(&["tscap", "doctor"]).unwrap(), doctor(None, false));
    let asked = plan(&["tscap", "doctor", "-i", "eth0", "--json"]).unwrap();
    assert_eq!(asked, doctor(Some("eth0"), true));
    assert!(plan(&["tscap", "doctor", "-i", "a", "-i", "b"]).is_err());
}

#[test]
fn the_command_line_is_consistent() {
    use clap::CommandFactory;
    Cli::command().debug_assert();
}

#[test]
fn a_ring_is_a_power_of_two_within_limits() {
    for (size, expected) in [
        ("64K", None),
        ("128K", Some(128 << 10)),
        ("129K", None),
        ("256M", Some(256 << 20)),
        ("512M", None),
    ] {
        assert_eq!(capture::ring_bytes(size).ok(), expected, "{size}");
    }
}

/// Where privileges are asked about: what is beyond a capture, and what needs none at all.
#[test]
fn each_plan_says_what_it_takes_beyond_a_capture() {
    let of = |line: &str| {
        let words = ["tscap"].into_iter().chain(line.split_whitespace());
        let plan =
            Cli::plan(words.map(Into::into)).unwrap_or_else(|error| panic!("{line}: {error}"));
        (plan.acts(), plan.is_of_files())
    };
    let capture = "-i eth0 -w out.pcapng";
    for (line, acts, is_of_files) in [
        (capture, vec![], false),
        ("-i eth0 -w f -Q in --tap", vec![], false),
        ("-i eth0 -w f --hw-stamps", vec![], false),
        (
            "-i eth0 -w f -Q in --tap=force",
            vec![PrivilegedTask::TakeInterface],
            false,
        ),
        (
            "-i eth0 -w f --offloads off",
            vec![PrivilegedTask::ChangeSettings],
            false,
        ),
        (
            "-i eth0 -w f --hw-stamps=set",
            vec![PrivilegedTask::ChangeSettings],
            false,
        ),
        ("stamp -i eth0", vec![PrivilegedTask::Stamp], false),
        ("gen -i eth0 --rate 1k --dst 10.0.0.1", vec![], false),
        (
            "gen -i eth0 --rate 1k --src 10.0.0.1",
            vec![PrivilegedTask::Send],
            false,
        ),
        (
            "gen -i eth0 --rate 1k --src-mac 02:00:00:00:00:01",
            vec![PrivilegedTask::Send],
            false,
        ),
        (
            "gen -i eth0 --rate 1k --vlan 7",
            vec![PrivilegedTask::Send],
            false,
        ),
        (
            "gen -i eth0 --rate 1k --yes-send-here",
            vec![PrivilegedTask::Send],
            false,
        ),
        ("gen --echo", vec![], false),
        ("merge a b -w f", vec![], true),
        ("report f", vec![], true),
        ("convert f -w g icmp", vec![], true),
        ("qos -r f", vec![], true),
        ("qos -i eth0", vec![], false),
        ("clock", vec![], false),
        ("doctor", vec![], false),
    ] {
        assert_eq!(of(line), (acts, is_of_files), "{line}");
    }
}
