//! Other programs as peers: stamp-suite as session-sender, scapy's codec in both roles, tshark as a
//! reader of what goes over the cable.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tscap_common::hook::Direction;
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::LIMIT;
use tscap_testkit::command::{finish, run};
use tscap_testkit::root::root_with;
use tscap_testkit::tcpdump::Tcpdump;
use tscap_testkit::wait;

use super::{PORT, bed, outcome, serve, served, session, to};

/// Packets of a session.
const MANY: u64 = 100;
/// Addresses of the reflector and of the sender.
const ENDS: [[&str; 2]; 2] = [["10.9.0.2", "10.9.0.1"], ["fd09::2", "fd09::1"]];
const SSID: u64 = 4_711;
const PYTHON: &str = "/usr/bin/python3";

/// stamp-suite as session-sender, and what it says at its end.
fn stamp_suite(bench: &Bench, [reflector, sender]: [&str; 2], options: &[&str]) -> Value {
    let mut command = bench.tx.netns.command("stamp-suite");
    let (port, count, ssid) = (PORT.to_string(), MANY.to_string(), SSID.to_string());
    command.args(["--remote-addr", reflector, "--local-addr", sender]);
    command.args(["--remote-port", &port, "--ssid", &ssid]);
    command.args([
        "-c",
        &count,
        "-d",
        "2",
        "-L",
        "5",
        "--output-format",
        "json",
    ]);
    let done = run(command.args(options), LIMIT);
    let line = done.stdout.lines().last().unwrap_or_default();
    let said = serde_json::from_str(line);
    said.unwrap_or_else(|error| panic!("{error}: {} {}", done.stdout, done.stderr))
}

/// Each of its packets is answered, with its extensions, and it believes each reply.
#[test]
fn stamp_suite_asks_a_reflector() {
    let programs = ["ip", "ethtool", "stamp-suite"];
    let Some(_lock) = root_with(&programs) else {
        return;
    };
    let bench = bed("peers-suite");
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    fs::write(&key, "5a".repeat(32)).expect("a key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("its mode");
    let key = key.to_str().expect("a name");
    let extended = [
        "--timestamp-info",
        "--follow-up-telemetry",
        "--extra-padding",
        "40",
    ];
    let signed = ["-A", "A", "--hmac-key-file", key];
    for (options, asked) in [
        (&[][..], &[][..]),
        (&[], &extended),
        (&["--stateless"], &extended),
        (&["--key-file", key], &signed),
    ] {
        let reflector = serve(&bench, options);
        for ends in ENDS {
            let said = stamp_suite(&bench, ends, asked);
            let about = format!("{options:?} {ends:?}: {said}");
            let measured = &said["measurements"];
            assert_eq!(said["packets_sent"], MANY, "{about}");
            assert_eq!(measured["unique_replies"], MANY, "{about}");
            assert_eq!(measured["unknown_replies"], 0, "{about}");
            let checked = &measured["tlv_validation"];
            assert_eq!(checked["rejected_replies"], 0, "{about}");
            for wrong in ["unrecognized", "malformed", "integrity_failed"] {
                assert_eq!(checked["flags"][wrong], 0, "{about}");
            }
            if asked.contains(&"--timestamp-info") {
                assert_eq!(checked["observed_tlvs"], 3 * MANY, "{about}");
            }
            // By its own clock, which is the reflector's, no packet arrives before it is sent. Its
            // T4 is the kernel's or later.
            let least = said["owd"]["forward_min_ms"].as_f64().expect("a delay");
            assert!((0.0..1_000.0).contains(&least), "{about}");
            let said_of_its_clock = &said["owd"]["clock_quality"]["last_reflector"];
            assert_eq!(said_of_its_clock["format"], "NTP", "{about}");
        }
        let said = served(&reflector.stop());
        assert_eq!(outcome(&said, "answered"), 2 * MANY, "{said}");
    }
}

/// A session-sender made of scapy's codec: prints each reply.
const SCAPY_SENDER: &str = r#"
import json, socket, sys
from scapy.contrib.stamp import STAMPSessionSenderTestUnauthenticated as Request
from scapy.contrib.stamp import STAMPSessionReflectorTestUnauthenticated as Reply
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
peer = socket.socket(family, socket.SOCK_DGRAM)
peer.settimeout(10)
peer.connect((sys.argv[1], int(sys.argv[2])))
for number in range(20):
    request = bytearray(bytes(Request(seq=number, ssid=4711)))
    request[4:12] = bytes([0xee, 1, 2, 3, 4, 5, 6, number])
    peer.send(bytes(request))
    octets = peer.recv(2000)
    reply = Reply(octets)
    print(json.dumps({
        "length": len(octets), "same": bytes(reply) == octets, "seq": reply.seq, "ssid": reply.ssid,
        "seq_sender": reply.seq_sender, "ttl": reply.ttl_sender,
        "given_back": octets[28:36] == bytes(request[4:12]),
        "z": reply.err_estimate.Z, "multiplier": reply.err_estimate.multiplier,
        "times": octets[4:12] >= octets[16:24],
    }))
"#;

/// A session-reflector made of scapy's codec.
const SCAPY_REFLECTOR: &str = r#"
import socket, sys, time
from scapy.contrib.stamp import ErrorEstimate
from scapy.contrib.stamp import STAMPSessionSenderTestUnauthenticated as Request
from scapy.contrib.stamp import STAMPSessionReflectorTestUnauthenticated as Reply
def now():
    seconds, ns = divmod(time.clock_gettime_ns(time.CLOCK_REALTIME), 1000000000)
    return (seconds + 2208988800).to_bytes(4, "big") + ((ns << 32) // 1000000000).to_bytes(4, "big")
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
own = socket.socket(family, socket.SOCK_DGRAM)
own.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
number = 0
while True:
    octets, peer = own.recvfrom(2000)
    arrived = now()
    request = Request(octets[:44])
    reply = bytearray(bytes(Reply(seq=number, ssid=request.ssid, seq_sender=request.seq, ttl_sender=64,
                                  err_estimate=ErrorEstimate(scale=10, multiplier=200),
                                  err_estimate_sender=request.err_estimate)))
    number += 1
    reply[16:24] = arrived
    reply[28:36] = octets[4:12]
    reply[4:12] = now()
    own.sendto(bytes(reply) + octets[44:], peer)
"#;

#[test]
fn scapys_codec_asks_a_reflector() {
    let Some(_lock) = root_with(&["ip", "ethtool", PYTHON]) else {
        return;
    };
    let bench = bed("peers-scapy");
    let reflector = serve(&bench, &[]);
    for [address, _] in ENDS {
        let mut python = bench.tx.netns.command(PYTHON);
        let port = PORT.to_string();
        let done = run(python.args(["-c", SCAPY_SENDER, address, &port]), LIMIT);
        let lines: Vec<&str> = done.stdout.lines().collect();
        assert_eq!(lines.len(), 20, "{} {}", done.stdout, done.stderr);
        for (number, line) in lines.iter().enumerate() {
            let reply: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!(
                (&reply["seq"], &reply["seq_sender"]),
                (&number.into(), &number.into())
            );
            for (name, value) in [("length", 44), ("ssid", SSID), ("z", 0)] {
                assert_eq!(reply[name], value, "{line}");
            }
            for name in ["same", "given_back", "times"] {
                assert_eq!(reply[name], true, "{name}: {line}");
            }
            assert!(reply["multiplier"].as_u64() > Some(0), "{line}");
            assert!(reply["ttl"].as_u64() > Some(0), "{line}");
        }
    }
    served(&reflector.stop());
}

/// Killed when it is dropped.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn scapys_codec_answers_a_sender() {
    let Some(_lock) = root_with(&["ip", "ethtool", "ss", PYTHON]) else {
        return;
    };
    let bench = bed("peers-reply");
    for [address, _] in ENDS {
        let mut python = bench.rx.netns.command(PYTHON);
        let port = PORT.to_string();
        python.args(["-c", SCAPY_REFLECTOR, address, &port]);
        python.stdout(Stdio::null()).stderr(Stdio::null());
        let _peer = Peer(python.spawn().expect("start python"));
        wait::until("scapy to listen", LIMIT, || {
            let listens = ["-Hln", "--udp", "sport", "=", &port];
            let listens = bench.rx.netns.must("ss", &listens);
            (!listens.is_empty()).then_some(())
        });
        let name = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        let session = session(&to(&bench, &name, &["-c", "50", "--rate", "100"]).run());
        assert_eq!(session.account.answered, 50, "{:?}", session.account);
        let clock = session.peer_clock.expect("its clock");
        assert!(!clock.synchronised && !clock.is_ptp, "{clock:?}");
        // 200 · 2^(10 − 32) s.
        assert_eq!(clock.error_estimate_ns, 47_684);
        let [there, back] = [session.forward, session.back].map(|it| it.expect("delays"));
        for way in [there, back] {
            assert!(
                way.summary.min >= -(way.bound_ns.expect("a bound") as i64),
                "{way:?}"
            );
        }
    }
}

/// tshark's dissector of TWAMP reads each field, and each checksum is right.
#[test]
fn tshark_reads_each_field() {
    let Some(_lock) = root_with(&["ip", "ethtool", "tcpdump", "tshark"]) else {
        return;
    };
    let bench = bed("peers-tshark");
    // Checksums stand in the packets, and are not the device's to make.
    for port in [&bench.tx, &bench.rx] {
        let mut ethtool = port.netns.command("ethtool");
        run(ethtool.args(["-K", &port.name, "tx", "off"]), LIMIT);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let reflector = serve(&bench, &["--ssid", "4711"]);
    for [address, _] in ENDS {
        let path = folder.path().join("seen.pcap");
        let seen = Tcpdump::watch(&bench.tx, &path, Direction::In);
        let name = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.to_owned()
        };
        let options = [
            "-c", "50", "--rate", "500", "--ssid", "4711", "--size", "44",
        ];
        let session = session(&to(&bench, &name, &options).run());
        assert_eq!(session.account.answered, 50, "{:?}", session.account);
        seen.stop_after(50);
        let fields = [
            "udp.checksum.status",
            "twamp.test.seq_number",
            "twamp.test.sender_seq_number",
            "twamp.test.error_estimate.multiplier",
            "twamp.test.error_estimate.z",
            "twamp.test.sender_ttl",
            "twamp.test.receive_timestamp",
            "twamp.test.timestamp",
        ];
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path);
        tshark.args(["-d", &format!("udp.port=={PORT},twamp.test")]);
        tshark.args([
            "-o",
            "udp.check_checksum:TRUE",
            "-Y",
            "twamp.test",
            "-T",
            "fields",
        ]);
        for field in fields {
            tshark.args(["-e", field]);
        }
        tshark.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = tshark.spawn().expect("start tshark");
        let done = finish(child, "tshark", LIMIT);
        let rows: Vec<Vec<&str>> = done
            .stdout
            .lines()
            .map(|it| it.split('\t').collect())
            .collect();
        assert!(rows.len() > 40, "{} {}", done.stdout, done.stderr);
        for row in &rows {
            assert_eq!(row.len(), fields.len(), "{row:?}");
            // 1 is a good checksum.
            assert_eq!(row[0], "1", "{row:?}");
            assert_eq!(row[1], row[2], "{row:?}");
            assert_ne!(row[3], "0", "{row:?}");
            assert!(row.iter().all(|it| !it.is_empty()), "{row:?}");
        }
    }
    served(&reflector.stop());
}
