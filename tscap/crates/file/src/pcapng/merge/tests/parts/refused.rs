//! Files that can not be joined.

use super::*;

#[test]
fn files_with_times_of_two_clocks_are_refused() {
    let of_tai = Script {
        time_base: TimeBase::Tai,
        writers: 1,
        ..SCRIPT
    };
    let files = [alone().concat(), written(&of_tai, true)];
    let refused = joined(&files).unwrap_err();
    let MergeError::Clocks { of, is, .. } = refused else {
        panic!("{refused}");
    };
    assert_eq!((of, is), (TimeBase::Realtime, TimeBase::Tai));
}

#[test]
fn files_with_times_by_two_references_are_refused() {
    let by = |reference| Script {
        reference,
        writers: 1,
        ..SCRIPT
    };
    let [host, one, other] = [None, Some("ntp:a"), Some("ntp:b")].map(|it| written(&by(it), true));
    assert!(joined(&[one.clone(), one.clone()]).is_ok());
    for (first, second, reported) in [
        (&one, &other, "its times are by ntp:b, not by ntp:a"),
        (
            &host,
            &one,
            "its times are by ntp:a, not by the host's clock",
        ),
    ] {
        let refused = joined(&[first.clone(), second.clone()]).unwrap_err();
        assert!(refused.to_string().ends_with(reported), "{refused}");
    }
}

/// No statistics have a bound for these.
#[test]
fn a_file_with_times_of_a_server_is_refused() {
    let of_server = Script {
        time_base: TimeBase::Ntp,
        writers: 1,
        ..SCRIPT
    };
    let files = [written(&of_server, true), written(&of_server, true)];
    let refused = joined(&files).unwrap_err();
    assert!(matches!(refused, MergeError::OfServer(_)), "{refused}");
}

#[test]
fn parts_that_are_of_no_one_capture_are_refused() {
    let error = |files: &[Vec<u8>]| joined(files).unwrap_err().to_string();
    let twice = [written(&of(0), true), written(&of(0), true)];
    assert!(error(&twice).contains("both are of writer 0"));
    let other_boot = Script {
        boot: "other",
        ..of(1)
    };
    let contradict = [written(&of(0), true), written(&other_boot, true)];
    assert!(error(&contradict).contains("describe an interface in different ways"));
}
