use std::time::Duration;

use tscap_protocol::Key;

use super::*;

const T2: RealNs = RealNs(1_795_564_800_000_000_123);
const T3: RealNs = RealNs(1_795_564_800_000_050_000);
const SOURCE: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);

fn policy() -> Policy {
    let rate = Rate {
        per_second: 1_000,
        burst: 1_000,
    };
    Policy {
        port: 8_620,
        allowed: Vec::new(),
        ssids: Vec::new(),
        key: None,
        is_stateless: false,
        per_source: rate,
        whole: rate,
        most_sessions: 16,
        takes_twamp_light: false,
    }
}

fn request(sequence: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![0; length.max(44)];
    let request = Request {
        sequence,
        timestamp: Timestamp(77 + u64::from(sequence)),
        error: ErrorEstimate::covering(1_000, false, TimeFormat::Ntp),
        ssid: 4_711,
    };
    request.write(Mode::Unauthenticated, &mut packet);
    packet.truncate(length);
    packet
}

fn arrival(packet: &[u8]) -> Arrival<'_> {
    Arrival {
        packet,
        from: SOURCE.into(),
        to: [10, 0, 0, 2].into(),
        local: [10, 0, 0, 2].into(),
        at: T2,
        ttl: 61,
    }
}

fn clock() -> ClockState {
    ClockState {
        error: ErrorEstimate::covering(250, true, TimeFormat::Ntp),
        source: SyncSource::Ntp,
    }
}

fn answer(reflector: &mut Reflector, arrival: &Arrival<'_>) -> Result<Vec<u8>, Outcome> {
    let mut reply = vec![0xee; 1_500];
    let found = reflector.answer(arrival, clock(), Instant::now(), || T3, &mut reply)?;
    reply.truncate(found.length);
    Ok(reply)
}

#[test]
fn a_reply_says_what_the_rfc_wants() {
    let mut reflector = Reflector::new(policy());
    for (turn, sequence) in [5, 9].into_iter().enumerate() {
        let packet = request(sequence, 44);
        let reply = answer(&mut reflector, &arrival(&packet)).unwrap();
        let read = Reply::parse(&reply, Mode::Unauthenticated).unwrap();
        let time = |real| Timestamp::of(real, TimeFormat::Ntp, 0);
        assert_eq!(
            read,
            Reply {
                sequence: turn as u32,
                timestamp: time(T3),
                error: clock().error,
                ssid: 4_711,
                received: time(T2),
                sender_sequence: sequence,
                sender_timestamp: Timestamp(77 + u64::from(sequence)),
                sender_error: ErrorEstimate::covering(1_000, false, TimeFormat::Ntp).to_bits(),
                sender_ttl: 61,
            }
        );
    }
}

#[test]
fn without_a_state_it_copies_the_sequence_number() {
    let mut reflector = Reflector::new(Policy {
        is_stateless: true,
        ..policy()
    });
    for sequence in [9, 9, 5] {
        let packet = request(sequence, 44);
        let reply = answer(&mut reflector, &arrival(&packet)).unwrap();
        let read = Reply::parse(&reply, Mode::Unauthenticated).unwrap();
        assert_eq!(read.sequence, sequence);
    }
    assert_eq!(reflector.sessions(), 0);
}

#[test]
fn no_reply_is_longer_than_its_request() {
    let mut reflector = Reflector::new(policy());
    for (sequence, length) in [44, 45, 60, 64, 100, 1_400].into_iter().enumerate() {
        let packet = request(sequence as u32, length);
        let reply = answer(&mut reflector, &arrival(&packet)).unwrap();
        assert_eq!(reply.len(), length);
    }
    for length in [0, 13, 14, 43] {
        let packet = request(0, length);
        let refused = answer(&mut reflector, &arrival(&packet));
        assert_eq!(refused, Err(Outcome::Short), "{length}");
    }
    // But on demand.
    let mut light = Reflector::new(Policy {
        takes_twamp_light: true,
        ..policy()
    });
    assert_eq!(
        answer(&mut light, &arrival(&request(0, 13))),
        Err(Outcome::Short)
    );
    let reply = answer(&mut light, &arrival(&request(1, 14))).unwrap();
    let read = Reply::parse(&reply, Mode::Unauthenticated).unwrap();
    assert_eq!((reply.len(), read.sender_sequence), (44, 1));
}

#[test]
fn who_may_not_be_answered_is_not() {
    let packet = request(0, 44);
    let good = arrival(&packet);
    let mut reflector = Reflector::new(policy());
    let mut outcome = |arrival: Arrival<'_>| answer(&mut reflector, &arrival).map(drop);
    let from = |address: [u8; 4], port: u16| Arrival {
        from: (address, port).into(),
        ..good
    };
    assert_eq!(
        outcome(from([10, 0, 0, 1], 8_620)),
        Err(Outcome::FromReflector)
    );
    assert_eq!(
        outcome(from([10, 0, 0, 1], 862)),
        Err(Outcome::FromReflector)
    );
    assert_eq!(outcome(from([10, 0, 0, 1], 0)), Err(Outcome::FromReflector));
    assert_eq!(outcome(from([0, 0, 0, 0], 9)), Err(Outcome::NotFromOne));
    assert_eq!(
        outcome(from([255, 255, 255, 255], 9)),
        Err(Outcome::NotFromOne)
    );
    assert_eq!(outcome(from([224, 0, 0, 1], 9)), Err(Outcome::NotFromOne));
    assert_eq!(
        outcome(from([192, 0, 2, 1], 9)),
        Err(Outcome::NotAllowed),
        "not private"
    );
    let to = |to: [u8; 4]| Arrival {
        to: to.into(),
        ..good
    };
    assert_eq!(outcome(to([10, 0, 0, 255])), Err(Outcome::NotToOne));
    assert_eq!(outcome(to([224, 0, 0, 1])), Err(Outcome::NotToOne));
    assert_eq!(outcome(good), Ok(()));
    let mut reflector = Reflector::new(Policy {
        allowed: vec![
            "192.0.2.0/24".parse().unwrap(),
            "2001:db8::/32".parse().unwrap(),
        ],
        ..policy()
    });
    let mut outcome = |from: &str| {
        let arrival = Arrival {
            from: from.parse().unwrap(),
            ..good
        };
        answer(&mut reflector, &arrival).map(drop)
    };
    assert_eq!(outcome("192.0.2.1:9"), Ok(()));
    assert_eq!(outcome("[2001:db8::1]:9"), Ok(()));
    assert_eq!(outcome("10.0.0.1:9"), Err(Outcome::NotAllowed));
}

#[test]
fn what_is_no_request_of_a_session_is_not_answered() {
    let mut reflector = Reflector::new(Policy {
        ssids: vec![4_711],
        ..policy()
    });
    let mut packet = request(0, 44);
    assert!(answer(&mut reflector, &arrival(&packet)).is_ok());
    let again = answer(&mut reflector, &arrival(&packet));
    assert_eq!(again, Err(Outcome::Replayed));
    packet[15] ^= 1;
    let other = answer(&mut reflector, &arrival(&packet));
    assert_eq!(other, Err(Outcome::UnknownSession));
    packet[13] = 0;
    assert_eq!(
        answer(&mut reflector, &arrival(&packet)),
        Err(Outcome::Corrupt)
    );
}

#[test]
fn a_key_is_for_everything_that_is_answered() {
    let key = Key::new(b"a key of 16 octs").unwrap();
    let mut reflector = Reflector::new(Policy {
        key: Some(key.clone()),
        ..policy()
    });
    let plain = answer(&mut reflector, &arrival(&request(0, 44)));
    assert_eq!(plain, Err(Outcome::NotAuthentic));
    let mut packet = vec![0; 112];
    let request = Request {
        sequence: 3,
        timestamp: Timestamp(77),
        error: ErrorEstimate::covering(1_000, false, TimeFormat::Ntp),
        ssid: 1,
    };
    request.write(Mode::Authenticated, &mut packet);
    let unsigned = answer(&mut reflector, &arrival(&packet));
    assert_eq!(unsigned, Err(Outcome::NotAuthentic));
    sign(&mut packet, &key);
    let reply = answer(&mut reflector, &arrival(&packet)).unwrap();
    assert!(authenticates(&reply, &key) && reply.len() == 112);
    let read = Reply::parse(&reply, Mode::Authenticated).unwrap();
    assert_eq!((read.sender_sequence, read.sequence), (3, 0));
    let replayed = answer(&mut reflector, &arrival(&packet));
    assert_eq!(replayed, Err(Outcome::Replayed));
}

#[test]
fn more_than_the_budget_is_not_answered() {
    let mut reflector = Reflector::new(Policy {
        per_source: Rate {
            per_second: 1,
            burst: 3,
        },
        ..policy()
    });
    let at = Instant::now();
    let mut answered = 0;
    for sequence in 0..10 {
        let packet = request(sequence, 44);
        let mut reply = [0; 100];
        let arrival = arrival(&packet);
        match reflector.answer(&arrival, clock(), at, || T3, &mut reply) {
            Ok(_) => answered += 1,
            Err(outcome) => assert_eq!(outcome, Outcome::TooMany),
        }
    }
    assert_eq!(answered, 3);
    let later = at + Duration::from_secs(1);
    let packet = request(20, 44);
    let arrival = arrival(&packet);
    let again = reflector.answer(&arrival, clock(), later, || T3, &mut [0; 100]);
    assert!(again.is_ok());
}

/// A packet to one, whose source is forged to be the other: at their ports, and with and without
/// a state.
#[test]
fn two_reflectors_do_not_answer_each_other() {
    for is_stateless in [false, true] {
        let key = Key::new(&[7; 16]).unwrap();
        for key in [None, Some(key)] {
            let at_port = |port| {
                Reflector::new(Policy {
                    port,
                    is_stateless,
                    key: key.clone(),
                    ..policy()
                })
            };
            let (mut one, mut other) = (at_port(8_620), at_port(8_621));
            for sequence in [0, 5] {
                let mut packet = request(sequence, 44);
                if let Some(key) = &key {
                    packet.resize(112, 0);
                    let read = Request::parse(&packet, Mode::Unauthenticated).unwrap();
                    read.write(Mode::Authenticated, &mut packet);
                    sign(&mut packet, key);
                }
                let mut answered = 0;
                for turn in 0..1_000 {
                    let (reflector, from) = if turn % 2 == 0 {
                        (&mut one, 8_621)
                    } else {
                        (&mut other, 8_620)
                    };
                    let forged = Arrival {
                        from: (SOURCE.0, from).into(),
                        ..arrival(&packet)
                    };
                    match answer(reflector, &forged) {
                        Ok(reply) => packet = reply,
                        Err(outcome) => {
                            assert_eq!(outcome, Outcome::FromReflector);
                            break;
                        }
                    }
                    answered += 1;
                }
                assert_eq!(
                    answered, 1,
                    "the first, which nobody can tell from a good one"
                );
            }
        }
    }
}

#[test]
fn the_reply_before_is_followed_up() {
    let mut reflector = Reflector::new(policy());
    let asks = |sequence| {
        let mut packet = request(sequence, 64);
        tscap_protocol::request_tlvs(&mut packet[44..], &[1; 8]);
        packet
    };
    let mut reply = [0; 64];
    let first = asks(0);
    let found = reflector
        .answer(&arrival(&first), clock(), Instant::now(), || T3, &mut reply)
        .unwrap();
    assert!(found.asks_to_follow_up);
    assert_eq!(tscap_protocol::Tlvs::of(&reply[44..]).follow_up(), None);
    reflector.left(&found, RealNs(T3.0 + 900));
    let second = answer(&mut reflector, &arrival(&asks(1))).unwrap();
    let reported = tscap_protocol::Tlvs::of(&second[44..]).follow_up().unwrap();
    let expected = Timestamp::of(RealNs(T3.0 + 900), TimeFormat::Ntp, 0);
    assert_eq!((reported.sequence, reported.timestamp), (0, expected));
    // It was told.
    let third = answer(&mut reflector, &arrival(&asks(2))).unwrap();
    assert_eq!(tscap_protocol::Tlvs::of(&third[44..]).follow_up(), None);
}
