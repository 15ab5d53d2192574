//! Against libpcap's own compiler and interpreter.

use std::ffi::CString;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use tscap_filter::libpcap::{CompileError, Libpcap, LinkType};
use tscap_filter::{Filter, Frame, Instruction, Program, host_names};
use tscap_testkit::libpcap::libpcap;

use tscap_testkit::filters::{expressions, frames};

pub fn compiled(libpcap: &Libpcap, expression: &str, optimise: bool) -> Vec<Instruction> {
    let c_string = CString::new(expression).unwrap();
    match libpcap.compile(&c_string, LinkType::Ethernet, None, optimise) {
        Err(CompileError::RejectsAll) => Program::constant(0).instructions().to_vec(),
        compiled => compiled.unwrap_or_else(|error| panic!("{expression}: {error}")),
    }
}

#[test]
fn long_programs_get_libpcaps_verdicts() {
    let Some(libpcap) = libpcap() else { return };
    let frames = frames::frames(18, 50);
    for (name, expression) in expressions::long(200) {
        let code = compiled(&libpcap, &expression, true);
        let program = Program::new(code.clone()).unwrap();
        for frame in &frames {
            let theirs = libpcap.verdict(&code, frame, frame.len() as u32);
            assert_eq!(program.verdict(&Frame::received(frame)), theirs, "{name}");
        }
    }
}

/// Whether libpcap's verdict is one: at an authentication header its loop for `protochain`
/// goes on at a wrong place, and may never end.
pub fn is_comparable(program: &Program, frame: &[u8]) -> bool {
    program.loops().is_empty() || !frame[14..].contains(&51)
}

#[test]
fn the_interpreter_gives_libpcaps_verdicts() {
    let Some(libpcap) = libpcap() else { return };
    let expressions = expressions::all();
    assert!(expressions.len() >= 300, "{}", expressions.len());
    let frames = frames::frames(17, 1_000);
    let (mut accepted, mut never) = (0_u64, Vec::new());
    for expression in &expressions {
        let mut matches = 0;
        for optimise in [true, false] {
            let code = compiled(&libpcap, expression, optimise);
            let program = Program::new(code.clone()).unwrap();
            for frame in frames.iter().filter(|it| is_comparable(&program, it)) {
                // Longer on the wire than what is there, too.
                let length = frame.len() as u32 + u32::from(frame[0] & 1);
                let ours = program.verdict(&Frame {
                    length,
                    ..Frame::received(frame)
                });
                assert_eq!(
                    ours,
                    libpcap.verdict(&code, frame, length),
                    "{expression}: {frame:02x?}"
                );
                matches += u64::from(ours != 0);
            }
        }
        accepted += matches;
        if matches == 0 {
            never.push(expression.as_str());
        }
    }
    println!("{accepted} accepted; no frame for {never:?}");
    // Some of the combinations contradict themselves.
    assert!(never.len() < 40, "the frames meet too few expressions");
}

#[test]
fn expressions_become_filters() {
    let Some(libpcap) = libpcap() else { return };
    let filter = Filter::from_expression("tcp port 443").unwrap();
    assert!(filter.can_match);
    assert_eq!(filter.compiler, libpcap.version());
    assert!(
        filter.compiler.starts_with("libpcap version"),
        "{}",
        filter.compiler
    );
    // An empty expression is all frames.
    for all in ["", "  "] {
        let filter = Filter::from_expression(all).unwrap();
        assert_ne!(filter.program.verdict(&Frame::received(&[0; 60])), 0);
    }
    // What the optimiser finds out.
    let none = Filter::from_expression("ip and ip6").unwrap();
    assert!(!none.can_match);
    assert_eq!(none.program, Program::constant(0));
    // The packet type is not in the frame.
    let inbound = Filter::from_expression("inbound").unwrap();
    let received = Frame::received(&[0; 60]);
    let sent = Frame {
        packet_type: 4,
        ..received
    };
    assert_ne!(inbound.program.verdict(&received), 0);
    assert_eq!(inbound.program.verdict(&sent), 0);
    let ifindex = Filter::from_expression("ifindex 3").unwrap();
    assert_eq!(ifindex.program.verdict(&received), 0);
    let on_third = Frame {
        interface: 3,
        ..received
    };
    assert_ne!(ifindex.program.verdict(&on_third), 0);
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let Some(_) = libpcap() else { return };
    let check = |expression: &str, parts: &[&str]| {
        let error = Filter::from_expression(expression).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{expression}: {error}");
        }
    };
    check(
        "tcp and and udp",
        &["syntax error", "character 9", "\"and udp\""],
    );
    check("tcp port", &["syntax error", "not complete"]);
    check("(host 10.0.0.1 or tcp", &["syntax error", "not complete"]);
    check("tcp port 80)", &["character 12"]);
    check(
        "host 10.0.0.1 10.0.0.2 udp",
        &["character 15", "\"10.0.0.2 udp\""],
    );
    check("ip[0 = 5", &["character"]);
    check("tcp[13 & 2 != 0", &["character"]);
    check("port 70000", &["illegal port number 70000"]);
    check("host no.such.name.invalid", &["no.such.name.invalid"]);
    check("tcp\0", &["NUL"]);
    check("gateway 10.0.0.1", &["gateway"]);
}

/// Each try takes libpcap milliseconds: not one for each word.
#[test]
fn an_error_among_hundreds_of_hosts_is_found() {
    let Some(_) = libpcap() else { return };
    let host = |number: u32| format!("host 10.0.{}.{}", number / 250, number % 250);
    let hosts: Vec<_> = (0..400).map(host).collect();
    let wrong = hosts
        .join(" or ")
        .replacen("10.0.1.3 or", "10.0.1.3 oder", 1);
    let at = wrong.find("oder").expect("it is there") + 1;
    let began = Instant::now();
    let error = Filter::from_expression(&wrong).unwrap_err().to_string();
    // The search ends by itself after a second; one try for each word took minutes.
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{:?}",
        began.elapsed()
    );
    let rest = error.split_once(": wrong ").map(|(_, rest)| rest);
    let rest = rest.unwrap_or_else(|| panic!("{error}"));
    let numbers = rest.split(',').next().unwrap_or_default();
    let numbers: Vec<usize> = numbers
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert!((first..=last).contains(&at), "{at} is not in {error}");
}

#[test]
fn a_broadcast_address_depends_on_the_netmask() {
    let Some(_) = libpcap() else { return };
    let filter = Filter::from_expression("ip broadcast and udp").unwrap();
    assert!(filter.asks_for_netmask);
    let mut frame = vec![0_u8; 60];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 17;
    let mut matches = |netmask: Option<[u8; 4]>, to: [u8; 4]| {
        frame[30..34].copy_from_slice(&to);
        let program = filter.program_for(LinkType::Ethernet, netmask.map(Ipv4Addr::from));
        program.unwrap().verdict(&Frame::received(&frame)) != 0
    };
    for (netmask, to, expected) in [
        (Some([255, 255, 255, 0]), [10, 0, 7, 255], true),
        (Some([255, 255, 255, 0]), [10, 0, 7, 0], true),
        (Some([255, 255, 255, 0]), [10, 0, 7, 5], false),
        (Some([255, 255, 0, 0]), [10, 0, 7, 255], false),
        (Some([255, 255, 0, 0]), [10, 0, 255, 255], true),
        (None, [10, 0, 7, 255], false),
        (None, [255; 4], true),
    ] {
        assert_eq!(matches(netmask, to), expected, "{netmask:?} {to:?}");
    }
    let other = Filter::from_expression("ether broadcast").unwrap();
    assert!(!other.asks_for_netmask);
}

/// A filter decides on an IP packet by itself as on one behind an Ethernet header.
#[test]
fn frames_without_an_ethernet_header_have_their_own_program() {
    let Some(_) = libpcap() else { return };
    let is_ip = |frame: &&Vec<u8>| {
        let version = frame.get(14).map(|byte| byte >> 4);
        match frame.get(12..14) {
            Some([0x08, 0x00]) => version == Some(4),
            Some([0x86, 0xdd]) => version == Some(6),
            _ => false,
        }
    };
    let frames = frames::frames(53, 2_000);
    let frames: Vec<_> = frames.iter().filter(is_ip).collect();
    for expression in [
        "",
        "udp port 53",
        "tcp[tcpflags] & tcp-syn != 0",
        "ip6",
        "net 10.0.0.0/8 or icmp",
        "inbound and ip",
        "outbound",
    ] {
        let filter = Filter::from_expression(expression).unwrap();
        let raw = filter.program_for(LinkType::RawIp, None).unwrap();
        assert_eq!(filter.program_for(LinkType::RawIp, None).unwrap(), raw);
        let ethernet = filter.program_for(LinkType::Ethernet, None).unwrap();
        let accepts = |program: &Program, frame| program.verdict(&Frame::received(frame)) != 0;
        for frame in &frames {
            assert_eq!(
                accepts(raw, &frame[14..]),
                accepts(ethernet, frame),
                "{expression}: {frame:02x?}"
            );
        }
        let matches = frames.iter().filter(|frame| accepts(raw, &frame[14..]));
        assert_eq!(
            matches.count() == 0,
            expression == "outbound",
            "{expression}"
        );
    }
    let arp = Filter::from_expression("arp").unwrap();
    assert!(!arp.program_for(LinkType::RawIp, None).unwrap().can_match());
    for expression in ["ether host 2:0:0:0:0:1", "vlan 5 and tcp"] {
        let filter = Filter::from_expression(expression).unwrap();
        let error = filter.program_for(LinkType::RawIp, None).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("(link type RAW)") && said.contains(expression),
            "{said}"
        );
        assert!(error.what_next().unwrap().contains("IP header"), "{said}");
    }
}

#[test]
fn names_that_libpcap_resolved_are_told() {
    let Some(_) = libpcap() else { return };
    let filter = Filter::from_expression("host localhost and tcp").unwrap();
    let mut frame = vec![0_u8; 60];
    frame[12] = 8;
    frame[14] = 0x45;
    frame[23] = 6;
    frame[26..30].copy_from_slice(&[127, 0, 0, 1]);
    assert_ne!(filter.program.verdict(&Frame::received(&frame)), 0);
    let names = host_names(&filter.expression);
    assert!(
        names[0].addresses.contains(&[127, 0, 0, 1].into()),
        "{names:?}"
    );
}
