use clap::Parser as _;

use super::*;

fn plan(args: &str) -> Result<GenPlan, String> {
    let words = ["tscap", "gen"].into_iter().chain(args.split_whitespace());
    let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
    match plan.map_err(|error| error.to_string())? {
        Plan::Generate(plan) => Ok(*plan),
        other => Err(format!("{other:?}")),
    }
}

/// Sizes and periods in ns; 0 flat out.
fn steps(args: &str) -> Vec<(u32, u64)> {
    let plan = plan(args).unwrap();
    let step = |step: &Step| match step.pacing {
        Pacing::Paced(period) => (step.size, period.ns()),
        Pacing::FlatOut => (step.size, 0),
    };
    plan.steps.iter().map(step).collect()
}

#[test]
fn every_way_to_pace() {
    for (args, expected) in [
        ("-i a --pattern voip", vec![(140, 20_000_000)]),
        ("-i a --pattern hd", vec![(1368, 1_367_992)]),
        ("-i a --flat-out", vec![(64, 0)]),
        ("-i a --flat-out --vlan 1 --ipv6", vec![(88, 0)]),
        ("-i a --rate 100k --size 1500", vec![(1500, 10_000)]),
        ("-i a --rate 8Mbit --size 1000", vec![(1000, 1_000_000)]),
        ("-i a --gap 12", vec![(64, 608)]),
        ("-i a --gap 12 --line-rate 10G", vec![(64, 60)]),
        ("-i a --gap 1ms --size 125", vec![(125, 1_001_000)]),
        (
            "-i a --rate 1M --size 64-68/2 -c 1",
            vec![(64, 1000), (66, 1000), (68, 1000)],
        ),
        ("-i a --gap 100,1us -c 1", vec![(64, 1312), (64, 1512)]),
    ] {
        assert_eq!(steps(args), expected, "{args}");
    }
}

#[test]
fn bulks_are_of_native_frames() {
    for sender in ["auto", "native"] {
        let plan = plan(&format!("-i a --rate 1M --bulks --sender {sender}")).unwrap();
        assert_eq!((plan.in_bulks, plan.sender), (true, SenderChoice::Native));
    }
    for args in ["--rate 1M --sender packet", "--flat-out"] {
        assert!(plan(&format!("-i a {args} --bulks")).is_err(), "{args}");
    }
    assert!(!plan("-i a --rate 1M").unwrap().in_bulks);
}

#[test]
fn every_option_reaches_the_plan() {
    let plan = plan(
        "-i a --rate 1k -c 7 --duration 1m --flows 16384 --vlan 4094 --src 2001:db8::1 --dst-port 5 \
         --src-mac 2:0:0:0:0:1 --dst-mac 2:0:0:0:0:9 --sender packet --cpu 1 --yes-send-here -q \
         --json",
    )
    .unwrap();
    assert_eq!((plan.interface.as_str(), plan.count), ("a", Some(7)));
    assert_eq!(plan.duration, Some(Duration::from_secs(60)));
    assert_eq!(
        (plan.flows, plan.layout.vlan, plan.layout.port),
        (16_384, Some(4094), 5)
    );
    assert!(matches!(plan.layout.network, Network::V6(..)));
    assert_eq!(plan.source_mac, Some([2, 0, 0, 0, 0, 1]));
    assert_eq!(plan.destination_mac, [2, 0, 0, 0, 0, 9]);
    assert_eq!((plan.sender, plan.cpu), (SenderChoice::Packet, Some(1)));
    assert!(plan.anywhere && plan.json);
    assert_eq!(plan.verbosity, Verbosity::Quiet);
}

#[test]
fn nothing_but_a_pace_must_be_given() {
    let plan = plan("-i a --flat-out").unwrap();
    assert_eq!((plan.count, plan.duration, plan.flows), (None, None, 1));
    assert_eq!(plan.layout.network, Network::BENCHMARK_V4);
    assert_eq!(plan.source_mac, None);
    assert!(!plan.anywhere);
    assert_eq!(plan.sender, SenderChoice::Auto);
}

#[test]
fn bad_arguments_are_named() {
    for (args, named) in [
        ("--flat-out", "--interface"),
        ("-i a", "--pattern"),
        ("-i a --flat-out --rate 1k", "--rate"),
        ("-i a --pattern voip --size 100", "--size"),
        ("-i a --pattern voip --line-rate 10G", "--line-rate"),
        ("-i a --flat-out -c 0", "--count"),
        ("-i a --flat-out --duration 0", "greater than 0"),
        ("-i a --flat-out --flows 0", "--flows"),
        ("-i a --flat-out --flows 16385", "--flows"),
        ("-i a --flat-out --vlan 0", "--vlan"),
        ("-i a --flat-out --vlan 4095", "--vlan"),
        ("-i a --flat-out --size 63", "has at least 64"),
        ("-i a --flat-out --size 67 --vlan 1", "has at least 68"),
        ("-i a --flat-out --size 83 --ipv6", "has at least 84"),
        (
            "-i a --flat-out --size 64,87 --ipv6 --vlan 1 -c 1",
            "has at least 88",
        ),
        (
            "-i a --flat-out --src 10.0.0.1 --dst ::1",
            "all be IPv4, or all IPv6",
        ),
        (
            "-i a --flat-out --ipv6 --src 10.0.0.1",
            "all be IPv4, or all IPv6",
        ),
        ("-i a --gap 11", "12 byte times"),
        ("-i a --gap 95ns", "need 608 ns"),
        (
            "-i a --rate 1.7M --line-rate 1G",
            "too close for a line of 1000000000 bit/s",
        ),
        ("-i a --rate 2G", "over one frame a nanosecond"),
        ("-i a --rate 0", "no frame is ever sent"),
        ("-i a --gap 1000years", "too long"),
        ("-i a --gap 500years", "292 years apart"),
        (
            "-i a --flat-out --size 64,128",
            "a sweep needs --count or --duration",
        ),
        (
            "-i a --gap 12,13 --size 64,65 -c 1",
            "either --size or --gap",
        ),
        (
            "-i a --gap 12 --size 64-20000/1 -c 1",
            "more than 10000 steps",
        ),
        (
            "-i a --gap 12 --line-rate 1000G",
            "more than one a nanosecond",
        ),
    ] {
        let error = plan(args).expect_err(args);
        assert!(error.contains(named), "{args}: {error}");
    }
}

fn echo_plan(args: &str) -> Result<EchoPlan, String> {
    let words = ["tscap", "gen"].into_iter().chain(args.split_whitespace());
    let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
    match plan.map_err(|error| error.to_string())? {
        Plan::Echo(plan) => Ok(plan),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn an_echo_has_an_address_and_an_end() {
    let plan = echo_plan("--echo").unwrap();
    assert_eq!(plan.address.to_string(), "0.0.0.0:9");
    assert_eq!((plan.count, plan.duration, plan.cpu), (None, None, None));
    let plan = echo_plan("--echo --ipv6 --port 7 -c 5 --duration 2 --cpu 1 -q --json").unwrap();
    assert_eq!(plan.address.to_string(), "[::]:7");
    assert_eq!((plan.count, plan.cpu, plan.json), (Some(5), Some(1), true));
    assert_eq!(plan.duration, Some(Duration::from_secs(2)));
    let plan = echo_plan("--echo --address 192.0.2.1").unwrap();
    assert_eq!(plan.address.to_string(), "192.0.2.1:9");
    for (args, named) in [
        ("--echo -i a", "--interface"),
        ("--echo --rate 1k", "--rate"),
        ("--echo --size 100", "--size"),
        ("--echo --flows 2", "--flows"),
        ("--echo --port 0", "from 1 to 65535"),
        ("--echo --ipv6 --address ::1", "--ipv6"),
        ("-i a --rate 1k --port 9", "--echo"),
    ] {
        let error = echo_plan(args).expect_err(args);
        assert!(error.contains(named), "{args}: {error}");
    }
}
