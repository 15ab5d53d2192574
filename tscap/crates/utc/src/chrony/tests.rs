use std::os::unix::fs::FileTypeExt as _;
use std::thread;

use super::*;
use proptest::prop_assert;

/// As chronyd rounds a number (`UTI_FloatHostToNetwork`).
pub(crate) fn encoded(value: f64) -> u32 {
    if value == 0.0 {
        return 0;
    }
    let mut exponent = value.abs().log2().floor() as i32 + 2;
    let mut fraction = (value * 2_f64.powi(25 - exponent)).round();
    if fraction.abs() >= f64::from(1 << 24) {
        exponent += 1;
        fraction = (value * 2_f64.powi(25 - exponent)).round();
    }
    (exponent << 25) as u32 | fraction as i32 as u32 & 0x1ff_ffff
}

/// Ends of a reply: `correction`, root delay, root dispersion (s), skew (ppm).
fn reply(sequence: u32, [correction, delay, dispersion, skew]: [f64; 4]) -> Vec<u8> {
    let mut octets = vec![0; LENGTH];
    octets[..2].copy_from_slice(&[VERSION, REPLY]);
    octets[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    octets[6..8].copy_from_slice(&OF_TRACKING.to_be_bytes());
    octets[16..20].copy_from_slice(&sequence.to_be_bytes());
    octets[28..32].copy_from_slice(&[10, 9, 0, 1]);
    // An address of IPv4.
    octets[49] = 1;
    octets[53] = 2;
    octets[60..64].copy_from_slice(&1_700_000_000_u32.to_be_bytes());
    octets[67] = 5;
    let floats = [
        correction, 0.0, 0.0, 1.5, -0.25, skew, delay, dispersion, 64.0,
    ];
    for (index, value) in floats.into_iter().enumerate() {
        octets[68 + 4 * index..][..4].copy_from_slice(&encoded(value).to_be_bytes());
    }
    octets
}

const HONEST: [f64; 4] = [-2e-6, 1e-3, 3e-4, 0.5];

fn tracking() -> Tracking {
    parse(&reply(7, HONEST)).unwrap().1
}

fn bound(tracking: Tracking) -> UtcBound {
    let asked = MonoNs(1_000);
    let answer = Answer { tracking, asked };
    answer.bound(MonoNs(2_000_001_000), RealNs(1_700_000_003_000_000_005), 0)
}

#[test]
fn the_root_distance_is_the_bound() {
    let said = bound(tracking());
    // 2 µs, 0.5 ms, 0.3 ms, and 2 s of 0.5 + 0.25 + 1 ppm; rounded up from numbers of 25 bits.
    let least = 2_000 + 500_000 + 300_000 + 3_500;
    let bound_ns = said.bound_ns.unwrap();
    assert!((least..least + 10).contains(&bound_ns), "{bound_ns}");
    // UTC is behind the host's clock, or with it once all is slewed.
    let UtcInterval([earliest, latest]) = said.utc_less_host_ns.unwrap();
    assert_eq!(earliest.unsigned_abs(), bound_ns);
    assert!(latest > 803_000 && latest < 803_600, "{latest}");
    let Parts::Chrony {
        stratum,
        reference,
        updated_ago_ns,
        age_ns,
        leap,
        correction_ns,
        ..
    } = said.parts
    else {
        panic!("{said:?}");
    };
    assert_eq!(
        (stratum, reference.as_str(), leap),
        (2, "10.9.0.1", Leap::None)
    );
    assert_eq!((updated_ago_ns, age_ns), (3_000_000_000, 2_000_000_000));
    assert!(
        (-2_001..=-2_000).contains(&correction_ns),
        "{correction_ns}"
    );
}

#[test]
fn the_error_of_a_device_that_chronyd_follows_is_added() {
    let mut of = tracking();
    (of.reference, of.is_server, of.stratum) = (*b"PHC0", false, 1);
    assert!(of.is_of_device());
    let answer = Answer {
        tracking: of,
        asked: MonoNs(0),
    };
    let with = |error_ns| {
        answer
            .bound(MonoNs(0), RealNs(0), error_ns)
            .bound_ns
            .unwrap()
    };
    assert_eq!(with(22_000) - with(0), 22_000);
    assert!(bound(of).sentence().contains("by PHC0 at stratum 1"));
    // A server's error is in its root distance.
    let answer = Answer {
        tracking: tracking(),
        ..answer
    };
    let with = |error_ns| {
        answer
            .bound(MonoNs(0), RealNs(0), error_ns)
            .bound_ns
            .unwrap()
    };
    assert_eq!(with(22_000), with(0));
}

#[test]
fn what_is_no_clock_of_utc_bounds_nothing() {
    type Change = fn(&mut Tracking);
    let changes: [(Change, &str); 5] = [
        (|it| it.leap = 3, "not synchronised"),
        (|it| it.root_dispersion_s = -1.0, "impossible"),
        (|it| it.skew_ppm = f64::NAN, "impossible"),
        (
            |it| (it.is_server, it.reference) = (false, LOCAL.to_be_bytes()),
            "its own clock",
        ),
        (
            |it| (it.is_server, it.reference) = (false, MANUAL),
            "typed in",
        ),
    ];
    for (change, why) in changes {
        let mut of = tracking();
        change(&mut of);
        let said = bound(of);
        assert_eq!(said.bound_ns, None);
        assert!(
            said.unknown.as_ref().is_some_and(|it| it.contains(why)),
            "{said:?}"
        );
    }
}

#[test]
fn only_a_whole_reply_is_one() {
    let whole = reply(7, HONEST);
    assert_eq!(parse(&whole).map(|(sequence, _)| sequence), Some(7));
    for length in 0..LENGTH {
        assert_eq!(parse(&whole[..length]), None, "{length}");
    }
    // Version, type, command, reply, status.
    for at in [0, 1, 5, 7, 9] {
        let mut other = whole.clone();
        other[at] ^= 0x40;
        assert_eq!(parse(&other), None, "{at}");
    }
    // No answer is longer than its request, so that nobody is flooded through chronyd.
    assert!(request(1).len() >= whole.len());
    assert_eq!(request(0x0102_0304)[8..12], [1, 2, 3, 4]);
}

proptest::proptest! {
    #[test]
    fn numbers_are_read_as_chronyd_writes_them(fraction in -1.0..1.0_f64, exponent in -38..30) {
        let value = fraction * 2_f64.powi(exponent);
        let read = float(encoded(value));
        prop_assert!((read - value).abs() <= value.abs() * (ROUNDED - 1.0) + 1e-19, "{value} {read}");
        prop_assert!(up(value) as f64 >= value.abs() * 1e9);
    }

    #[test]
    fn nothing_that_comes_is_harmful(octets in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let mut octets = octets;
        let _ = parse(&octets);
        let real = reply(3, HONEST);
        let length = octets.len().min(DATA);
        octets[..length].copy_from_slice(&real[..length]);
        if let Some((_, tracking)) = parse(&octets) {
            let _ = bound(tracking).sentence();
        }
    }
}

/// Nobody is at this port.
fn closed_port() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.local_addr().unwrap()
}

const LONG: Duration = Duration::from_secs(10);

#[test]
fn it_is_asked_at_its_port() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = server.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = KernelFiles::below(folder.path());
    let serving = thread::spawn(move || {
        let mut octets = [0; 200];
        for turn in 0..2 {
            let (length, from) = server.recv_from(&mut octets).unwrap();
            assert_eq!(length, LENGTH);
            let sequence = Fields(&octets).be32(8).unwrap();
            // What answers another request is not taken.
            for wrong in [sequence.wrapping_add(9), sequence] {
                let mut said = HONEST;
                said[2] = f64::from(wrong.wrapping_sub(sequence)) + f64::from(turn);
                server.send_to(&reply(wrong, said), from).unwrap();
            }
        }
    });
    let mut client = Client::open(port, Path::new("/none/chronyd.sock"), &files, LONG);
    assert_eq!(client.latest().unwrap().tracking.root_dispersion_s, 0.0);
    client.ask(LONG);
    let latest = client.latest().unwrap().clone();
    assert_eq!(latest.tracking.root_dispersion_s, 1.0);
    serving.join().unwrap();
    // It has ended: what it said is not used for long.
    client.ask(LONG);
    client.ask(LONG);
    assert_eq!(client.latest(), None);
}

#[test]
fn without_the_port_its_socket_is_asked_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let files = KernelFiles::below(folder.path());
    let at = |name: &str| folder.path().join(name);
    // Of a process that has ended, and of one that runs.
    fs::create_dir_all(at("proc/41")).unwrap();
    fs::create_dir_all(at("run")).unwrap();
    for number in [40, 41] {
        fs::write(at(&format!("run/tscap.{number}.sock")), "").unwrap();
    }
    let server = UnixDatagram::bind(at("run/chronyd.sock")).unwrap();
    let serving = thread::spawn(move || {
        let mut octets = [0; 200];
        let (_, from) = server.recv_from(&mut octets).unwrap();
        let path = from.as_pathname().unwrap();
        let kind = fs::metadata(path).unwrap();
        assert!(kind.file_type().is_socket());
        // chronyd is another user.
        assert_eq!(kind.permissions().mode() & 0o777, 0o666);
        let sequence = Fields(&octets).be32(8).unwrap();
        server.send_to(&reply(sequence, HONEST), path).unwrap();
    });
    let client = Client::open(closed_port(), &at("run/chronyd.sock"), &files, LONG);
    serving.join().unwrap();
    assert_eq!(client.latest().map(|it| it.tracking), Some(tracking()));
    drop(client);
    let mut left = names(&at("run")).unwrap();
    left.sort();
    assert_eq!(left, ["chronyd.sock", "tscap.41.sock"]);
}

#[test]
fn nothing_is_sent_to_a_port_at_which_nobody_listens() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = KernelFiles::below(folder.path());
    let list = files.proc("net/udp");
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    let of =
        |port: u16| format!("  sl  local_address\n   1: 0100007F:{port:04X} 00000000:0000 07\n");
    let none = Path::new("/none/chronyd.sock");
    let mut octets = [0; 256];
    for (listed, is_asked) in [(address.port() ^ 1, false), (address.port(), true)] {
        fs::write(&list, of(listed)).unwrap();
        let _client = Client::open(address, none, &files, Duration::from_millis(1));
        assert_eq!(server.recv(&mut octets).is_ok(), is_asked, "{listed}");
    }
}
