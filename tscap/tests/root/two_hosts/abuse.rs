//! What strangers send to a reflector: counted, and answered only where it has to be.

use tscap_protocol::{Key, Mode, Reply, sign};
use tscap_testkit::root::root;

use super::{PORT, asked, bed, client, outcome, packet, serve, served};

const MODE: Mode = Mode::Unauthenticated;

/// A request of a session that is answered once, which shows that what was sent before was seen.
#[track_caller]
fn is_alive(socket: &std::net::UdpSocket, sequence: u32) {
    let reply = asked(socket, &packet(sequence, 7, MODE, 44));
    let reply = Reply::parse(&reply, MODE).expect("a reply");
    assert_eq!(reply.sender_sequence, sequence);
}

#[test]
fn what_is_no_request_is_counted_and_not_answered() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-odd");
    let reflector = serve(&bench, &["--ssid", "7"]);
    let peer = format!("10.9.0.2:{PORT}");
    let socket = client(&bench, "10.9.0.1:0", &peer);
    is_alive(&socket, 0);
    let mut corrupt = packet(1, 7, MODE, 44);
    corrupt[13] = 0;
    for odd in [
        packet(1, 7, MODE, 43),
        packet(1, 7, MODE, 14),
        Vec::new(),
        corrupt,
        packet(1, 8, MODE, 44),
        // Answered before.
        packet(0, 7, MODE, 44),
    ] {
        socket.send(&odd).expect("send");
    }
    is_alive(&socket, 2);
    // From the port of a reflector, this one's and the usual one: a loop would begin.
    for port in [PORT, 862] {
        let other = client(&bench, &format!("10.9.0.1:{port}"), &peer);
        other.send(&packet(0, 7, MODE, 44)).expect("send");
    }
    is_alive(&socket, 3);
    // To everybody of the network, and to a group.
    let other = client(&bench, "10.9.0.1:0", &peer);
    other.set_broadcast(true).expect("an option");
    for to in ["10.9.0.255:8620", "255.255.255.255:8620", "224.0.0.1:8620"] {
        // Some have no way there.
        let _ = other.send_to(&packet(0, 7, MODE, 44), to);
    }
    is_alive(&socket, 4);
    let said = served(&reflector.stop());
    assert_eq!(outcome(&said, "answered"), 4, "{said}");
    assert_eq!(outcome(&said, "short"), 3, "{said}");
    assert_eq!(outcome(&said, "corrupt"), 1, "{said}");
    assert_eq!(outcome(&said, "unknown_session"), 1, "{said}");
    assert_eq!(outcome(&said, "replayed"), 1, "{said}");
    assert_eq!(outcome(&said, "from_reflector"), 2, "{said}");
}

#[test]
fn a_stranger_gets_nothing() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-stranger");
    let reflector = serve(&bench, &["--allow", "10.9.0.7"]);
    let peer = format!("10.9.0.2:{PORT}");
    let stranger = client(&bench, "10.9.0.1:0", &peer);
    for sequence in 0..5 {
        stranger.send(&packet(sequence, 7, MODE, 44)).expect("send");
    }
    bench
        .tx
        .netns
        .ip(&["address", "add", "10.9.0.7/24", "dev", &bench.tx.name]);
    bench.rx.knows("10.9.0.7", &bench.tx);
    is_alive(&client(&bench, "10.9.0.7:0", &peer), 0);
    let said = served(&reflector.stop());
    assert_eq!(outcome(&said, "not_allowed"), 5, "{said}");
    assert_eq!(outcome(&said, "answered"), 1, "{said}");
}

/// Of whoever asks too often no more are answered than was allowed; all are counted.
#[test]
fn a_flood_is_answered_by_its_budget() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-flood");
    let reflector = serve(&bench, &["--max-rate", "100"]);
    let socket = client(&bench, "10.9.0.1:0", &format!("10.9.0.2:{PORT}"));
    for sequence in 0..500 {
        socket.send(&packet(sequence, 7, MODE, 44)).expect("send");
    }
    let total = tscap_testkit::wait::until("all are counted", super::LIMIT, || {
        let event = reflector.wait_event("progress");
        let counts = event["requests"].as_object().expect("counts").values();
        let total: u64 = counts.filter_map(serde_json::Value::as_u64).sum();
        (total >= 500).then_some(total)
    });
    assert_eq!(total, 500);
    let said = served(&reflector.stop());
    let answered = outcome(&said, "answered");
    // A burst of a tenth of a second, and what flows in meanwhile.
    assert!((10..450).contains(&answered), "{said}");
    assert_eq!(outcome(&said, "too_many"), 500 - answered, "{said}");
}

#[test]
fn no_reply_has_more_octets_than_its_request_but_on_demand() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-length");
    let peer = format!("10.9.0.2:{PORT}");
    let reflector = serve(&bench, &[]);
    let socket = client(&bench, "10.9.0.1:0", &peer);
    for (sequence, length) in [44, 45, 64, 100, 1_400].into_iter().enumerate() {
        let request = packet(sequence as u32, 7, MODE, length);
        assert_eq!(asked(&socket, &request).len(), length);
    }
    served(&reflector.stop());
    let reflector = serve(&bench, &["--twamp-light"]);
    // A packet of TWAMP light by hand (RFC 5357, appendix I): sequence number, timestamp, error
    // estimate.
    let light = [&[0, 0, 0, 9][..], &[0xee; 8], &[0x05, 0x87]].concat();
    let reply = asked(&client(&bench, "10.9.0.1:0", &peer), &light);
    let reply = Reply::parse(&reply, MODE).expect("a reply");
    assert_eq!((reply.sender_sequence, reply.sender_ttl), (9, 64));
    served(&reflector.stop());
}

/// Two reflectors at different ports: what one has said, the other does not answer.
#[test]
fn two_reflectors_never_answer_each_other() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-loop");
    let one = serve(&bench, &[]);
    let other = tscap_testkit::capture::delay(&bench.tx.netns)
        .with(["--serve", &bench.tx.name, "--port", "8621"])
        .start();
    other.wait_event("ready");
    // A packet to the first one whose source port is the second one's: its reply goes there.
    let forged = {
        let socket = bench.tx.netns.enter(|| {
            let socket = std::net::UdpSocket::bind("10.9.0.1:0").expect("a socket");
            socket.connect(format!("10.9.0.2:{PORT}")).expect("connect");
            socket
        });
        socket.send(&packet(0, 7, MODE, 44)).expect("send");
        let mut reply = [0; 100];
        socket
            .set_read_timeout(Some(super::LIMIT))
            .expect("a time limit");
        let length = socket.recv(&mut reply).expect("a reply");
        reply[..length].to_vec()
    };
    // What the first one says is sent to the second one from the first one's port.
    let from_first = bench.rx.netns.enter(|| {
        let socket = std::net::UdpSocket::bind("10.9.0.2:0").expect("a socket");
        socket.connect("10.9.0.1:8621").expect("connect");
        socket
    });
    from_first.send(&forged).expect("send");
    other.wait_event_with("progress", |it| outcome(it, "from_reflector") == 1);
    let said = [one, other].map(|it| served(&it.stop()));
    let answered = said.each_ref().map(|it| outcome(it, "answered"));
    assert_eq!(answered, [1, 0], "{said:?}");
}

#[test]
fn what_is_signed_by_nobody_is_dropped() {
    let Some(_lock) = root() else { return };
    let bench = bed("abuse-key");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("key");
    std::fs::write(&path, "07".repeat(16)).expect("a key");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&path, mode).expect("its mode");
    let reflector = serve(&bench, &["--key-file", path.to_str().expect("a name")]);
    let socket = client(&bench, "10.9.0.1:0", &format!("10.9.0.2:{PORT}"));
    let key = Key::new(&[7; 16]).expect("a key");
    let authenticated = Mode::Authenticated;
    let mut signed = packet(0, 7, authenticated, 112);
    socket.send(&signed).expect("send");
    socket.send(&packet(0, 7, MODE, 44)).expect("send");
    sign(&mut signed, &Key::new(&[8; 16]).expect("a key"));
    socket.send(&signed).expect("send");
    sign(&mut signed, &key);
    let reply = asked(&socket, &signed);
    assert!(tscap_protocol::authenticates(&reply, &key));
    // Once more: replayed.
    socket.send(&signed).expect("send");
    let mut next = packet(1, 7, authenticated, 112);
    sign(&mut next, &key);
    asked(&socket, &next);
    let said = served(&reflector.stop());
    assert_eq!(outcome(&said, "not_authentic"), 3, "{said}");
    assert_eq!(outcome(&said, "replayed"), 1, "{said}");
    assert_eq!(outcome(&said, "answered"), 2, "{said}");
}
