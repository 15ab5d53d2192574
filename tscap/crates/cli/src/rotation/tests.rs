use clap::Parser as _;

use super::*;
use crate::Plan;

fn plan(args: &str) -> Result<Option<RotationPlan>, String> {
    let words = ["tscap", "capture", "-i", "eth0"].into_iter();
    let words = words.chain(args.split_whitespace());
    let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
    match plan.map_err(|error| error.to_string())? {
        Plan::Capture(plan) => Ok(plan.capture.rotation),
        other => Err(format!("{other:?}")),
    }
}

fn some(args: &str) -> RotationPlan {
    plan(args).unwrap().expect("a rotation")
}

#[test]
fn one_file_is_the_default() {
    assert_eq!(plan("-w f"), Ok(None));
}

#[test]
fn tcpdumps_options_mean_what_tcpdump_means() {
    let second = Period::Every(Duration::from_secs(1));
    let sizes = some("-w f -C 2");
    assert_eq!(sizes.limits.bytes, Some(2_000_001), "larger than");
    assert_eq!((sizes.limits.period, sizes.periods), (None, None));
    for (args, has_time, has_number, ring, periods) in [
        ("-w f -C 2", false, true, None, None),
        ("-w f -C 2 -W 3", false, true, Some(3), None),
        ("-w f%S -G 1", true, false, None, None),
        ("-w f%S -G 1 -W 3", true, false, None, Some(3)),
        ("-w f%S -G 1 -C 2", true, true, None, None),
        ("-w f%S -G 1 -C 2 -W 3", true, true, Some(3), None),
    ] {
        let plan = some(args);
        let naming = Naming::Tcpdump {
            has_time,
            has_number,
            ring,
        };
        assert_eq!((plan.naming, plan.periods), (naming, periods), "{args}");
        assert_eq!(plan.limits.period, has_time.then_some(second), "{args}");
    }
    assert_eq!(some("-w f -C 64k").limits.bytes, Some(65_537));
    assert_eq!(some("-w f -C 1G").limits.bytes, Some((1 << 30) + 1));
    let command = some("-w f -C 1 -z gzip").command;
    assert_eq!(command, Some("gzip".into()));
}

#[test]
fn dumpcaps_criteria_add_up() {
    let plan = some("-w f -b filesize:3 -b files:4 -b duration:0.5 -b packets:5");
    let limits = Limits {
        bytes: Some(3000),
        frames: Some(5),
        period: Some(Period::Every(Duration::from_millis(500))),
    };
    assert_eq!(plan.limits, limits);
    assert_eq!(plan.naming, Naming::Dumpcap { ring: Some(4) });
    let hour = Period::MultipleOf(Duration::from_secs(3600));
    assert_eq!(some("-w f -b interval:3600").limits.period, Some(hour));
}

#[test]
fn bad_values_and_combinations_are_named() {
    for (args, named) in [
        ("-w f -C 0", "--file-size"),
        ("-w f -C 1T", "--file-size"),
        ("-w f -C -1", "-1"),
        ("-w f -C 1.5", "--file-size"),
        ("-w f -C 99999999999999999999", "--file-size"),
        ("-w f -G 0", "--rotate-seconds"),
        ("-w f -G 1.5", "--rotate-seconds"),
        ("-w f -C 1 -W 0", "--file-count"),
        ("-w f -W 3", "-W needs -C or -G"),
        ("-w f -z gzip", "-z needs -C, -G or -b"),
        ("-w - -C 1", "-w - is one stream"),
        ("-w - -G 1", "-w - is one stream"),
        ("-w - -b packets:1", "-w - is one stream"),
        ("-w f -C 1 -b packets:1", "cannot be used with"),
        ("-w f -G 1 -b packets:1", "cannot be used with"),
        ("-w f -W 1 -b packets:1", "cannot be used with"),
        ("-w f%! -G 1", "f%! is no time format"),
        ("-w f -b packets", "KEY:VALUE"),
        ("-w f -b size:1", "the keys are filesize"),
        ("-w f -b printname:x", "dumpcap's alone"),
        ("-w f -b packets:0", "packets is a number, 1 or more"),
        ("-w f -b packets:-1", "packets is a number, 1 or more"),
        ("-w f -b filesize:x", "filesize is a number, 1 or more"),
        (
            "-w f -b filesize:18446744073709551615",
            "no file is as large",
        ),
        ("-w f -b duration:0", "greater than 0"),
        ("-w f -b duration:1m", "duration is a number of seconds"),
        ("-w f -b duration:nan", "duration:nan"),
        ("-w f -b interval:0.5", "interval is a number, 1 or more"),
        (
            "-w f -b packets:1 -b files:100000",
            "files is at most 99999",
        ),
        ("-w f -b files:2", "needs another -b"),
        ("-w f -b packets:1 -b packets:2", "only once"),
        ("-w f -b interval:1 -b duration:2", "not both"),
    ] {
        let error = plan(args).unwrap_err();
        assert!(error.contains(named), "{args}: {error}");
    }
    // Without -G a name is no format.
    assert!(plan("-w f%! -C 1").is_ok());
}
