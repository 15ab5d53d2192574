use super::*;

/// 2026-03-29 01:59:58 in Paris, two seconds before summer time.
const TIME: RealNs = RealNs(1_774_745_998_000_000_000);
const SECOND: u64 = 1_000_000_000;

fn names(template: &str, naming: Naming) -> Names {
    Names::new(Path::new(template), naming, TimeZone::UTC)
}

fn tcpdump(has_time: bool, has_number: bool, ring: Option<u64>) -> Naming {
    Naming::Tcpdump {
        has_time,
        has_number,
        ring,
    }
}

/// The first names, each of a file that begins no period.
fn first(count: usize, mut names: Names) -> Vec<String> {
    let first = names.first(TIME).unwrap();
    let rest = (1..count).map(|_| names.next(TIME, false).unwrap());
    let all = std::iter::once(first).chain(rest.collect::<Vec<_>>());
    all.map(|path| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn sizes_number_from_the_second_file_on() {
    let names = names("a/out.pcapng%Y", tcpdump(false, true, None));
    assert_eq!(
        first(3, names),
        ["a/out.pcapng%Y", "a/out.pcapng%Y1", "a/out.pcapng%Y2"],
        "and the name is no format"
    );
}

/// As tcpdump 4.99.3 was seen to do it.
#[test]
fn a_ring_has_leading_zeros_and_begins_again() {
    for (ring, expected) in [
        (1, ["f", "f", "f", "f"]),
        (2, ["f0", "f1", "f0", "f1"]),
        (3, ["f0", "f1", "f2", "f0"]),
        (10, ["f0", "f1", "f2", "f3"]),
        (11, ["f00", "f01", "f02", "f03"]),
        (100, ["f00", "f01", "f02", "f03"]),
        (101, ["f000", "f001", "f002", "f003"]),
    ] {
        let names = names("f", tcpdump(false, true, Some(ring)));
        assert_eq!(first(4, names), expected, "-W {ring}");
    }
}

#[test]
fn periods_are_named_by_their_start() {
    let mut names = Names::new(
        Path::new("/x/%F_%H%M%S%%.pcapng"),
        tcpdump(true, false, None),
        TimeZone::get("Europe/Paris").unwrap(),
    );
    names.check().unwrap();
    let mut at = |second: u64, begins_period| {
        let start = RealNs(TIME.0 + second * SECOND);
        names.next(start, begins_period).unwrap()
    };
    let path = |name: &str| Path::new("/x").join(name);
    assert_eq!(at(0, true), path("2026-03-29_015958%.pcapng"));
    assert_eq!(at(1, true), path("2026-03-29_015959%.pcapng"));
    assert_eq!(at(2, true), path("2026-03-29_030000%.pcapng"), "local time");
}

#[test]
fn sizes_in_periods_are_numbered_in_each() {
    let mut names = names("%S-", tcpdump(true, true, None));
    let at = |second: u64| RealNs(TIME.0 + second * SECOND);
    assert_eq!(names.first(at(0)).unwrap(), Path::new("58-"));
    assert_eq!(names.next(at(1), false).unwrap(), Path::new("58-1"));
    assert_eq!(names.next(at(2), false).unwrap(), Path::new("58-2"));
    assert_eq!(names.next(at(3), true).unwrap(), Path::new("01-"));
    assert_eq!(names.next(at(4), false).unwrap(), Path::new("01-1"));
}

#[test]
fn a_ring_in_periods_is_one_in_each() {
    let mut names = names("%S-", tcpdump(true, true, Some(2)));
    let next = RealNs(TIME.0 + SECOND);
    assert_eq!(names.first(TIME).unwrap(), Path::new("58-0"));
    assert_eq!(names.next(next, false).unwrap(), Path::new("58-1"));
    assert_eq!(names.next(next, false).unwrap(), Path::new("58-0"));
    assert_eq!(names.next(next, true).unwrap(), Path::new("59-0"));
}

#[test]
fn dumpcap_puts_number_and_time_before_the_suffix() {
    for (template, expected) in [
        ("out.pcapng", "out_00001_20260329005958.pcapng"),
        ("a.b/out.x.pcapng", "a.b/out.x_00001_20260329005958.pcapng"),
        ("a.b/out", "a.b/out_00001_20260329005958"),
        ("/a/.out", "/a/_00001_20260329005958.out"),
    ] {
        let names = names(template, Naming::Dumpcap { ring: Some(2) });
        assert_eq!(first(1, names), [expected]);
    }
    let mut names = names("o.p", Naming::Dumpcap { ring: Some(2) });
    names.first(TIME).unwrap();
    let next = names.next(RealNs(TIME.0 + SECOND), true).unwrap();
    assert_eq!(next, Path::new("o_00002_20260329005959.p"));
    names.number = 99_999;
    let next = names.next(TIME, false).unwrap();
    assert_eq!(next, Path::new("o_100001_20260329005958.p"), "it goes on");
}

#[test]
fn names_that_never_change_are_known() {
    for (template, naming, expected) in [
        ("f", tcpdump(true, false, None), true),
        ("f%S", tcpdump(true, false, None), false),
        ("f", tcpdump(true, true, None), false),
        ("f%S", tcpdump(false, true, Some(1)), true),
        ("f", tcpdump(false, true, Some(2)), false),
        ("f", Naming::Dumpcap { ring: Some(1) }, false),
    ] {
        assert_eq!(
            names(template, naming).are_all_one(),
            expected,
            "{template} {naming:?}"
        );
    }
}

#[test]
fn a_name_that_is_no_format_is_refused() {
    let check = |template: &str| {
        let names = names(template, tcpdump(true, false, None));
        names.check().map_err(|error| error.to_string())
    };
    assert_eq!(check("no time.pcapng"), Ok(()));
    assert_eq!(check("%c %x %X %r %s"), Ok(()));
    assert_eq!(check("50%!"), Err("50%! is no time format".into()));
    assert_eq!(
        check("trailing%"),
        Err("trailing% is no time format".into())
    );
    use std::os::unix::ffi::OsStrExt as _;
    let template = Path::new(OsStr::from_bytes(b"\xff%S"));
    let names = Names::new(template, tcpdump(true, false, None), TimeZone::UTC);
    assert!(matches!(names.check(), Err(NameError::NotText(_))));
}

/// What somebody asks for has a name of its own wherever names can differ at that moment.
#[test]
fn a_file_that_is_asked_for_has_another_name() {
    let asked = |template: &str, naming, seconds: u64| {
        let mut names = names(template, naming);
        let first = names.first(TIME).unwrap();
        let asked = names.asked(RealNs(TIME.0 + seconds * SECOND)).unwrap();
        (first != asked).then(|| asked.to_str().unwrap().to_owned())
    };
    let name = |name: &str| Some(name.to_owned());
    // -C, -C with -W, -G, -G with -C, dumpcap's.
    assert_eq!(asked("f", tcpdump(false, true, None), 0), name("f1"));
    assert_eq!(asked("f", tcpdump(false, true, Some(3)), 0), name("f1"));
    let by_time = tcpdump(true, false, None);
    assert_eq!(asked("f%H%M%S", by_time, 7), name("f010005"));
    assert_eq!(asked("f%H%M%S", by_time, 0), None, "in the same second");
    assert_eq!(asked("f%H", by_time, 7), name("f01"));
    assert_eq!(asked("f%d", by_time, 7), None, "on the same day");
    assert_eq!(asked("f", by_time, 7), None, "no format");
    let both = tcpdump(true, true, None);
    assert_eq!(asked("f%H%M%S", both, 7), name("f0059581"));
    let dumpcap = Naming::Dumpcap { ring: None };
    assert_eq!(asked("f", dumpcap, 0), name("f_00002_20260329005958"));
}
