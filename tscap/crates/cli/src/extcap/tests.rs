use super::*;
use tscap_capture::{ClockChoice, DirectionChoice, Target};

fn plan(line: &str) -> Result<ExtcapPlan, String> {
    let words = ["tscap"].into_iter().chain(line.split(' '));
    match Cli::plan(words.map(Into::into)) {
        Ok(Plan::Extcap(plan)) => Ok(*plan),
        Ok(other) => panic!("{line}: {other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn each_question_of_wireshark_is_understood() {
    let interface = || "eth0".to_owned();
    for (line, wanted) in [
        (
            "--extcap-interfaces --extcap-version=4.0",
            ExtcapPlan::Interfaces,
        ),
        ("--extcap-interfaces", ExtcapPlan::Interfaces),
        (
            "--extcap-config --extcap-interface tscap-eth0",
            ExtcapPlan::Config,
        ),
        (
            "--extcap-dlts --extcap-interface tscap-eth0",
            ExtcapPlan::LinkType {
                interface: interface(),
            },
        ),
        (
            "--extcap-capture-filter udp --extcap-interface tscap-eth0",
            ExtcapPlan::CheckFilter {
                interface: interface(),
                filter: FilterSource::Expression("udp".into()),
            },
        ),
        (
            "--extcap-cleanup-postkill --extcap-interface tscap-eth0",
            ExtcapPlan::Nothing,
        ),
    ] {
        assert_eq!(plan(line), Ok(wanted), "{line}");
    }
}

#[test]
fn a_capture_is_one_of_tscap_capture() {
    let line = "--capture --extcap-interface tscap-ve%7b --extcap-capture-filter icmp --fifo /f \
                --clock tai --keep-raw --snapshot-length 96 --direction in";
    let Ok(ExtcapPlan::Capture { plan, fifo }) = plan(line) else {
        panic!("{:?}", plan(line));
    };
    assert_eq!(fifo, PathBuf::from("/f"));
    assert_eq!(plan.capture.target, Target::Path(fifo));
    assert_eq!(plan.capture.interfaces, ["ve{"]);
    assert_eq!(plan.filter, Some(FilterSource::Expression("icmp".into())));
    assert_eq!(plan.capture.clock, ClockChoice::Tai);
    assert_eq!(plan.capture.direction, DirectionChoice::In);
    assert_eq!(plan.capture.snaplen, 96);
    assert!(plan.capture.keep_raw);
    assert_eq!(plan.verbosity, Verbosity::Errors);
}

#[test]
fn a_capture_with_wrong_options_says_so_to_its_reader() {
    let line = "--capture --extcap-interface tscap-a --fifo /f --snapshot-length 999999";
    let Ok(ExtcapPlan::Refused { fifo, error }) = plan(line) else {
        panic!("{:?}", plan(line));
    };
    assert_eq!(fifo, PathBuf::from("/f"));
    assert!(error.contains("--snaplen"), "{error}");
    assert!(
        !error.contains('\n') && !error.starts_with("error"),
        "{error}"
    );
}

#[test]
fn what_is_missing_is_named() {
    for (line, part) in [
        ("--capture --extcap-interface tscap-a", "--fifo"),
        ("--extcap-config", "--extcap-interface"),
        ("--extcap-dlts", "--extcap-interface"),
        ("--extcap-interface tscap-a", "--extcap-capture-filter"),
        (
            "--extcap-dlts --extcap-interface eth0",
            "--extcap-interfaces",
        ),
    ] {
        let error = plan(line).unwrap_err();
        assert!(error.contains(part), "{line}: {error}");
    }
}
