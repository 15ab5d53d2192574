use std::collections::HashSet;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::message::{Domain, Id, parse, request};
use super::*;
use tscap_base::kernel_files::KernelFiles;

const REAL: RealNs = RealNs(1_700_000_000_000_000_000);
const GPTP: Domain = Domain { number: 0, sdo: 1 };

/// Data of an answer, as linuxptp's structures have them.
fn data(id: Id) -> Vec<u8> {
    match id {
        Id::Time => {
            let mut data = (-250_i64).to_be_bytes().to_vec();
            data.extend((REAL.0 - 500_000_000).to_be_bytes());
            // Rates and changes of phase.
            data.extend([0; 22]);
            data.extend(1_u32.to_be_bytes());
            data.extend([1, 2, 3, 0xff, 0xfe, 4, 5, 6]);
            data
        }
        Id::Current => {
            let mut data = 1_u16.to_be_bytes().to_vec();
            data.extend((-250_i64 << 16).to_be_bytes());
            data.extend(((1_400_i64 << 16) + 1).to_be_bytes());
            data
        }
        Id::Parent => {
            let mut data = vec![0; 32];
            data[20] = 0x21;
            data[24..].copy_from_slice(&[1, 2, 3, 0xff, 0xfe, 4, 5, 6]);
            data
        }
        Id::TimeProperties => vec![0, 37, 0b11_1100, 0x20],
        Id::Port => {
            let mut data = vec![0; 10];
            data[9] = 1;
            data.extend([9, 0, 4]);
            data.extend(b"eth0");
            data
        }
    }
}

/// The answer to a request.
fn answer(request: &[u8], data: &[u8]) -> Vec<u8> {
    let mut octets = request.to_vec();
    octets[46] = 2;
    octets[50..52].copy_from_slice(&(data.len() as u16 + 2).to_be_bytes());
    octets.extend(data);
    let length = octets.len() as u16;
    octets[2..4].copy_from_slice(&length.to_be_bytes());
    octets
}

fn state() -> State {
    let mut state = State::default();
    for id in Id::ALL {
        let octets = answer(&request(id, GPTP, 5), &data(id));
        let (sequence, domain, data) = parse(&octets).expect("an answer");
        assert_eq!((sequence, domain), (5, GPTP));
        state.take(data, MonoNs(9));
    }
    state
}

#[test]
fn offset_path_and_grandmaster_are_the_bound() {
    let state = state();
    assert_eq!(state.port(), Some(("eth0", false)));
    let bound = state.bound(&Measured::Host, REAL, 50_000, 0, 37).unwrap();
    // 1,401 ns of path, 100 ns of the grandmaster, 50 ppm of half a second; UTC is up to 250 ns
    // ahead.
    let error = 1_401 + 100 + 25_000;
    let interval = bound.utc_less_host_ns.unwrap();
    assert_eq!(interval, UtcInterval([-error, 250 + error]));
    assert_eq!(bound.as_of, MonoNs(9));
    let sentence = bound.sentence();
    assert!(sentence.contains("010203.fffe.040506"), "{sentence}");
    // By a device that is 1 µs ahead of the host's clock and counts TAI.
    let reading = PhcReading {
        tsc: [tscap_time::TscCycles(0); 2],
        real: [REAL; 2],
        phc: tscap_time::PhcNs(REAL.0 + 37_000_001_000),
    };
    let device = |reading| Measured::Device {
        path: "/dev/ptp0".into(),
        reading,
    };
    let mut of_device = state.clone();
    of_device.time.as_mut().unwrap().ingress_ns += 37_000_000_000;
    let bound = of_device
        .bound(&device(Ok(reading)), REAL, 0, 0, 37)
        .unwrap();
    let error = 1_401 + 100;
    let interval = bound.utc_less_host_ns.unwrap();
    assert_eq!(interval, UtcInterval([1_000 - error, 1_250 + error]));
    let bound = state
        .bound(&device(Err("EACCES".into())), REAL, 0, 0, 37)
        .unwrap();
    assert!(bound.unknown.unwrap().contains("EACCES"));
}

#[test]
fn what_bounds_nothing_is_named() {
    type Change = fn(&mut State);
    let changes: [(Change, &str); 6] = [
        (
            |it| it.time.as_mut().unwrap().has_grandmaster = false,
            "no grandmaster",
        ),
        (|it| it.port.as_mut().unwrap().state = 6, "follows a master"),
        (
            |it| it.current.as_mut().unwrap().steps_removed = 3,
            "boundary clocks",
        ),
        (
            |it| it.properties.as_mut().unwrap().is_traceable = false,
            "not traceable",
        ),
        (
            |it| it.parent.as_mut().unwrap().accuracy = 0xfe,
            "how accurate",
        ),
        (
            |it| it.time.as_mut().unwrap().ingress_ns -= 10_000_000_000,
            "too old",
        ),
    ];
    for (change, why) in changes {
        let mut state = state();
        change(&mut state);
        let bound = state.bound(&Measured::Host, REAL, 0, 0, 37).unwrap();
        let unknown = bound.unknown.unwrap_or_default();
        assert!(
            bound.bound_ns.is_none() && unknown.contains(why),
            "{why}: {unknown}"
        );
    }
    let none = State::default().bound(&Measured::Host, REAL, 0, 0, 37);
    assert_eq!(none, None);
}

/// IEEE Std 1588-2019, table 5.
#[test]
fn each_accuracy_of_the_standard_is_known() {
    for (accuracy, ns) in [
        (0x17, 1),
        (0x1d, 1),
        (0x1e, 3),
        (0x1f, 10),
        (0x20, 25),
        (0x21, 100),
        (0x22, 250),
        (0x23, 1_000),
        (0x24, 2_500),
        (0x29, 1_000_000),
        (0x2c, 25_000_000),
        (0x2f, 1_000_000_000),
        (0x30, 10_000_000_000),
    ] {
        assert_eq!(message::accuracy_ns(accuracy), Some(ns), "{accuracy:#x}");
    }
    for none in [0, 0x16, 0x31, 0x80, 0xfe, 0xff] {
        assert_eq!(message::accuracy_ns(none), None, "{none:#x}");
    }
}

#[test]
fn only_a_whole_answer_is_one() {
    for id in Id::ALL {
        let whole = answer(&request(id, GPTP, 5), &data(id));
        assert!(parse(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{id:?} {length}");
        }
        // Kind of message, version, action, kind of TLV, what is answered.
        for (at, bit) in [(0, 1), (1, 1), (46, 1), (49, 2), (53, 0x80)] {
            let mut other = whole.clone();
            other[at] ^= bit;
            assert_eq!(parse(&other), None, "{id:?} {at}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn nothing_that_comes_is_harmful(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..100), which in 0..5_usize) {
        let octets = answer(&request(Id::ALL[which], GPTP, 5), &tail);
        let mut all = state();
        if let Some((_, _, data)) = parse(&octets) {
            all.take(data, MonoNs(9));
        }
        let _ = all.bound(&Measured::Host, REAL, 50_000, 0, 37).map(|it| it.sentence());
    }
}

const LONG: Duration = Duration::from_secs(10);

#[test]
fn it_is_asked_in_its_own_domain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ptp4lro");
    let server = UnixDatagram::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let mut octets = [0; 200];
        let (mut asked, mut left) = (HashSet::new(), 2 * Id::ALL.len());
        while left > 0 {
            let (length, from) = server.recv_from(&mut octets).unwrap();
            let request = &octets[..length];
            let domain = (request[4], request[0] >> 4);
            // As ptp4l does it.
            if domain != (GPTP.number, GPTP.sdo) {
                continue;
            }
            let id = u16::from_be_bytes([request[52], request[53]]);
            let id = Id::ALL.into_iter().find(|it| *it as u16 == id).unwrap();
            asked.insert(id as u16);
            server
                .send_to_addr(&answer(request, &data(id)), &from)
                .unwrap();
            left -= 1;
        }
        asked.len()
    });
    let files = KernelFiles::below(folder.path());
    let none = folder.path().join("ptp4l");
    let paths: [PathBuf; 2] = [none, path];
    let mut client = Client::open(&paths, &files, folder.path(), LONG);
    client.ask(LONG);
    assert_eq!(serving.join().unwrap(), Id::ALL.len());
    let (latest, measured) = client.latest().unwrap();
    assert_eq!(measured, Measured::Host);
    assert!(
        latest
            .bound(&measured, REAL, 0, 0, 37)
            .unwrap()
            .bound_ns
            .is_some()
    );
    // It has ended.
    client.ask(LONG);
    assert!(client.latest().is_none());
}
