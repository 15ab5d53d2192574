//! Of captures whose places have two clocks, or may have.

use super::*;
use tscap_clock::ReferenceBounds;
use tscap_file::accounting::Totals;
use tscap_file::pcapng::FollowerOption;
use tscap_network::netns::NetnsId;

const MS: u64 = 1_000_000;
const TSC: StampPath = StampPath::Tsc(TscPath::Module);

/// An interface of a file, and what is said of its clock.
struct Said {
    name: &'static str,
    option: InterfaceOption,
    statistics: StatisticsOption,
}

fn said(name: &'static str, boot: Option<&str>, utc_bound_ns: Option<u64>) -> Said {
    let mut option = option(TSC, true);
    option.boot_id = boot.map(str::to_owned);
    let mut statistics = statistics(TSC, Outcomes::default());
    statistics.clock.utc_bound_ns = utc_bound_ns;
    Said {
        name,
        option,
        statistics,
    }
}

impl Said {
    fn follows(mut self, bound_ns: u64, own_bound_ns: Option<u64>, id: Option<&str>) -> Self {
        let bounds = ReferenceBounds {
            bound_ns,
            own_bound_ns,
        };
        self.option.reference = Some("ntp:time".into());
        self.option.follower = id.map(|id| FollowerOption {
            id: id.into(),
            clocks: 1,
        });
        self.statistics.clock.reference = Some(bounds);
        self.statistics.clock.utc_bound_ns = bounds.utc_ns();
        self
    }

    fn in_netns(mut self, netns: u64) -> Self {
        self.option.netns = Some(NetnsId {
            inode: netns,
            cookie: Some(netns),
        });
        self
    }
}

/// A hundred packets in at the first one and out at the second one, whose clock is ahead.
fn measured(
    both: &[Said; 2],
    raw: Option<u64>,
    ahead_ns: i64,
    plan: &FilePlan,
) -> Result<FileResult, FileError> {
    let mut file = File::new();
    for it in both {
        file.interface(it.name, DataLink::ETHERNET, Some(&it.option));
    }
    let mut frames = Vec::new();
    for number in 0..100u64 {
        let entered = (10 + number) * MS;
        let left = (entered + 1_700).checked_add_signed(ahead_ns).unwrap();
        frames.push((entered, 0, Direction::In, number));
        frames.push((left, 1, Direction::Out, number));
    }
    frames.sort_unstable_by_key(|frame| frame.0);
    for (at_ns, interface, direction, number) in frames {
        file.packet(&Frame {
            interface,
            direction: Some(direction),
            at_ns,
            raw: raw.map(|cycles| cycles * at_ns),
            bytes: &bytes(number),
            ..Frame::default()
        });
    }
    for (index, it) in (0..).zip(both) {
        file.statistics(index, &it.statistics);
    }
    file.measure(plan)
}

fn plan() -> FilePlan {
    super::plan(How::Hooks, "a", "b")
}

/// The bound of each figure has the truth in it, and each packet is matched.
fn is_bounded(result: &FileResult, bound_ns: u64) {
    let exit = &result.passage.exits[0];
    assert_eq!((exit.account.matched, exit.account.entered), (100, 100));
    let delays = exit.delays.as_ref().unwrap();
    assert_eq!(delays.bound_ns, Some(bound_ns));
    for delay_ns in [delays.summary.min, delays.summary.max] {
        assert!(delay_ns.abs_diff(1_700) <= bound_ns, "{delay_ns}");
    }
    match &delays.certificate {
        Certificate::Holds { bound_ns: of, .. } => assert_eq!(*of, bound_ns),
        Certificate::None { why } => assert!(!why.contains("bounds"), "{why}"),
    }
}

#[test]
fn the_bound_of_two_hosts_has_their_bounds_to_utc() {
    let both = [
        said("a", Some("here"), Some(3 * MS)),
        said("b", Some("there"), Some(4 * MS)),
    ];
    for ahead_ns in [5_000_000, 0, -1_690, -5_000_000, -7_000_000] {
        for (raw, moved_ns) in [(None, 0), (Some(2), 40)] {
            let result = measured(&both, raw, ahead_ns, &plan()).unwrap();
            is_bounded(&result, 7 * MS + 41 + moved_ns);
            let said = result.warnings.iter().find(|it| it.contains("off UTC"));
            let said = said.unwrap_or_else(|| panic!("{:?}", result.warnings));
            assert!(
                said.contains("boot here") && said.contains("boot there"),
                "{said}"
            );
        }
    }
}

#[test]
fn hosts_of_which_one_is_not_synchronised_are_refused() {
    let refused = |both: &[Said; 2]| measured(both, None, 0, &plan()).unwrap_err().to_string();
    let adrift = said("b", Some("there"), None);
    let error = refused(&[said("a", Some("here"), Some(MS)), adrift]);
    assert!(
        error.contains("boot here") && error.contains("boot there"),
        "{error}"
    );
    assert!(
        error.contains("not synchronised") && error.contains("one `tscap capture`"),
        "{error}"
    );
    // No two captures without a boot are known to be of one.
    let error = refused(&[said("a", None, None), said("b", None, None)]);
    assert!(error.contains("an unnamed host"), "{error}");
}

#[test]
fn a_host_and_its_reference_are_two_clocks() {
    let by_reference = || said("b", Some("here"), None).follows(20_000, Some(300_000), Some("x"));
    let both = [said("a", Some("here"), Some(9 * MS)), by_reference()];
    is_bounded(
        &measured(&both, None, 8_995_119, &plan()).unwrap(),
        9 * MS + 320_000 + 41,
    );
    let both = [said("a", Some("here"), None), by_reference()];
    let error = measured(&both, None, 0, &plan()).unwrap_err().to_string();
    assert!(
        error.contains("ntp:time on the host of boot here"),
        "{error}"
    );
    // Their raw stamps are of one counter.
    let result = measured(&both, Some(2), 0, &plan()).unwrap();
    is_bounded(&result, 7 + 2);
    let together =
        ["a", "b"].map(|name| said(name, Some("here"), None).follows(20_000, None, Some("x")));
    is_bounded(&measured(&together, None, 0, &plan()).unwrap(), 41);
    let apart = [("a", "x"), ("b", "y")]
        .map(|(name, id)| said(name, Some("here"), None).follows(20_000, Some(300_000), Some(id)));
    is_bounded(
        &measured(&apart, None, 0, &plan()).unwrap(),
        2 * 320_000 + 41,
    );
}

/// Two captures of one host: its clock is one, in whatever namespaces.
#[test]
fn one_boot_has_one_clock() {
    let both = [
        said("a", Some("here"), None).in_netns(1),
        said("b", Some("here"), None).in_netns(2),
    ];
    for ahead_ns in [0, 40, -40] {
        is_bounded(&measured(&both, None, ahead_ns, &plan()).unwrap(), 41);
    }
    is_bounded(&measured(&both, Some(2), 0, &plan()).unwrap(), 7 + 2);
}

/// As mergecap joins captures with interfaces that look alike.
#[test]
fn an_interface_of_two_captures_is_of_no_one_clock() {
    let mut file = File::new();
    let mut it = said("a", Some("here"), None);
    file.interface(it.name, DataLink::ETHERNET, Some(&it.option));
    for (direction, at_ns) in [(Direction::In, 0), (Direction::Out, 300)] {
        file.packet(&Frame {
            direction: Some(direction),
            at_ns,
            raw: Some(2 * at_ns),
            ..Frame::default()
        });
    }
    it.statistics.totals = Some(Totals::default());
    file.statistics(0, &it.statistics);
    file.statistics(0, &it.statistics);
    let error = file
        .measure(&super::plan(How::Reflect, "a", "a"))
        .unwrap_err();
    assert!(
        error.to_string().contains("nothing in the file bounds"),
        "{error}"
    );
}

#[test]
fn a_clock_that_was_set_gives_no_bound() {
    let mut both = ["a", "b"].map(|name| said(name, Some("here"), None));
    let segment = |step_ns| tscap_clock::Segment {
        after: None,
        from: tscap_clock::MonoNs(5),
        until: tscap_clock::MonoNs(5),
        mono_to_real: tscap_clock::Bounds { low: 0, high: 0 },
        tai_offset_s: 0,
        step_ns,
        cause: None,
        counter_jump_ns: None,
        samples: 1,
    };
    both[1].statistics.clock.segments.push(segment(-7));
    let result = measured(&both, None, 0, &plan()).unwrap();
    assert_eq!(
        result.passage.exits[0].delays.as_ref().unwrap().bound_ns,
        None
    );
    let said = result.warnings.last().unwrap();
    assert!(
        said.contains("clock was set") && said.contains("no bound"),
        "{said}"
    );
}

#[test]
fn interfaces_of_one_name_are_told_apart() {
    let both = |one: Said, other: Said| [one, other];
    let asked = |entry: &str, exit: &str| super::plan(How::Hooks, entry, exit);
    let hosts = || {
        both(
            said("eth0", Some("here"), Some(MS)).in_netns(1),
            said("eth0", Some("there"), Some(MS)).in_netns(1),
        )
    };
    let error = measured(&hosts(), None, 0, &asked("eth0", "eth0"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("0 (the host of boot here); 1 (the host of boot there)"),
        "{error}"
    );
    let result = measured(&hosts(), None, 0, &asked("0", "1")).unwrap();
    is_bounded(&result, 2 * MS + 41);
    assert_eq!(
        result.passage.name,
        "eth0 (interface 0) → eth0 (interface 1)"
    );

    let mut named = said("eth0", Some("here"), None).in_netns(2);
    named.option.namespace = Some("web".into());
    let namespaces = both(said("eth0", Some("here"), None).in_netns(1), named);
    let error = measured(&namespaces, None, 0, &asked("eth0", "eth0"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("1 (the host of boot here, namespace web)"),
        "{error}"
    );
    is_bounded(
        &measured(&namespaces, None, 0, &asked("0", "1")).unwrap(),
        41,
    );
    // Of early versions: both were captured at one time.
    let early = both(
        said("eth0", Some("here"), None),
        said("eth0", Some("here"), None),
    );
    let error = measured(&early, None, 0, &asked("eth0", "eth0"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("several interfaces eth0"), "{error}");
    let error = File::foreign(&["eth0", "eth0"])
        .measure(&asked("eth0", "eth0"))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("0 (by another program); 1 (by another"),
        "{error}"
    );
}

/// The files that a rotation wrote, one behind the other.
#[test]
fn an_interface_of_several_files_of_a_capture_is_one() {
    for netns in [None, Some(7)] {
        let it = said("eth0", Some("here"), None);
        let it = netns.into_iter().fold(it, Said::in_netns);
        let mut file = File::new();
        for (index, base_ns) in [(0, 0), (1, 5 * MS)] {
            file.interface("eth0", DataLink::ETHERNET, Some(&it.option));
            for (direction, at_ns) in [(Direction::In, 0), (Direction::Out, 300)] {
                file.packet(&Frame {
                    interface: index,
                    direction: Some(direction),
                    at_ns: base_ns + at_ns,
                    bytes: &bytes(index.into()),
                    ..Frame::default()
                });
            }
            file.statistics(index, &it.statistics);
        }
        for asked in ["eth0", "0", "1"] {
            let bytes = file.0.get_ref().clone();
            let plan = super::plan(How::Reflect, asked, asked);
            let result = measure_file(&mut Cursor::new(bytes), &plan).unwrap();
            assert_eq!(result.passage.exits[0].account.matched, 2, "{asked}");
        }
    }
}
