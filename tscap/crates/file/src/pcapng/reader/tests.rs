use super::*;
use crate::pcapng::damage::Damage;
use tscap_clock::FileNs;

/// Blocks in this machine's byte order.
pub(in crate::pcapng) fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
    let header = block(
        0x0a0d_0d0a,
        &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]
            .map(u32::to_ne_bytes)
            .concat(),
    );
    [&[header], blocks].concat().concat()
}

pub(in crate::pcapng) fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(padded(body.len()), 0);
    let length = (body.len() as u32 + 12).to_ne_bytes();
    [&kind.to_ne_bytes()[..], &length, &body, &length].concat()
}

pub(in crate::pcapng) fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code, value.len() as u16].map(u16::to_ne_bytes).concat();
    option.extend(value);
    option.resize(padded(option.len()), 0);
    option
}

pub(in crate::pcapng) fn interface(options: &[Vec<u8>]) -> Vec<u8> {
    let head = [1u32, 0].map(u32::to_ne_bytes).concat();
    block(INTERFACE_DESCRIPTION, &[&[head], options].concat().concat())
}

pub(in crate::pcapng) fn packet(kind: u32, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let head = [
        interface,
        (ticks >> 32) as u32,
        ticks as u32,
        length,
        length,
    ];
    block(kind, &[&head.map(u32::to_ne_bytes).concat(), data].concat())
}

fn read(file: &[u8]) -> Vec<Record> {
    let records = records(file).unwrap().map(|record| record.unwrap());
    let records = records.filter(|it| !matches!(it, Record::Section(_)));
    records.collect()
}

/// What is wrong in the last part that can't be read.
fn fault(blocks: &[Vec<u8>]) -> BlockFault {
    let read = read(&file(blocks));
    let mut faults = read.iter().rev().filter_map(|record| match record {
        Record::Damaged(damaged) => Some(damaged.fault),
        _ => None,
    });
    faults.next().unwrap_or_else(|| panic!("{read:?}"))
}

#[test]
fn times_of_any_resolution_are_read() {
    const S: u64 = 1_000_000_000;
    for (tsresol, offset_s, ticks, ns, resolution_ns) in [
        (6, 0, 7, 7_000, 1_000),
        (0, 0, 7, 7 * S, S),
        (9, 0, 7, 7, 1),
        (10, 0, 79, 7, 1),
        (12, 0, 7_999, 7, 1),
        (19, 0, u64::MAX, 1_844_674_407, 1),
        (0x80, 0, 7, 7 * S, S),
        (0x80 | 10, 0, 1_536, 3 * S / 2, 976_562),
        (0x80 | 32, 0, 3 << 31, 3 * S / 2, 1),
        (0x80 | 63, 0, u64::MAX, 1_999_999_999, 1),
        (9, 2, 7, 2 * S + 7, 1),
        (9, -2, 2 * S + 7, 7, 1),
        // Before 1970, and after 2554.
        (9, -2, 7, 0, 1),
        (0, i64::MAX, 7, u64::MAX, S),
    ] {
        let options = [
            option(IF_TSRESOL, &[tsresol]),
            option(IF_TSOFFSET, &i64::to_ne_bytes(offset_s)),
        ];
        let file = file(&[interface(&options), packet(EPB_TYPE, 0, ticks, b"frame")]);
        let read = read(&file);
        let [Record::Interface(described), Record::Packet(packet)] = &read[..] else {
            panic!("{read:?}");
        };
        assert_eq!(packet.time, FileNs(ns), "{tsresol:#x} {offset_s}");
        assert_eq!(described.resolution_ns, resolution_ns, "{tsresol:#x}");
    }
}

#[test]
fn times_that_64_bits_can_not_count_are_damage() {
    for tsresol in [20, 127, 0x80 | 64, 0xff] {
        let described = interface(&[option(IF_TSRESOL, &[tsresol])]);
        let impossible = BlockFault::Resolution(tsresol);
        assert_eq!(fault(std::slice::from_ref(&described)), impossible);
        let of_it = packet(EPB_TYPE, 0, 1, b"frame");
        assert_eq!(fault(&[described, of_it]), BlockFault::Undescribed(0));
    }
}

#[test]
fn options_have_the_length_that_they_must_have() {
    for (code, least) in [(IF_TSRESOL, 1), (IF_TSOFFSET, 8)] {
        for length in (0..10).filter(|length| *length != least) {
            let described = interface(&[option(code, &vec![6; length])]);
            assert_eq!(fault(&[described]), BlockFault::OptionLength(code, length));
        }
    }
    for length in (0..10).filter(|length| *length != 4) {
        let framed = with_option(&option(FLAGS, &vec![0; length]));
        let expected = BlockFault::OptionLength(FLAGS, length);
        assert_eq!(fault(&[interface(&[]), framed]), expected);
    }
}

#[test]
fn obsolete_packet_blocks_are_packets() {
    // Five drops before it.
    let drops = 5u16.to_ne_bytes();
    let mut obsolete = packet(OBSOLETE_PACKET, 0, 9, b"abc");
    obsolete[10..12].copy_from_slice(&drops);
    obsolete[8..10].copy_from_slice(&1u16.to_ne_bytes());
    let file = file(&[interface(&[]), interface(&[]), obsolete]);
    assert_eq!(
        read(&file)[2],
        Record::Packet(Packet {
            interface: 1,
            time: FileNs(9_000),
            raw: None,
            direction: Direction::In,
            origlen: 3,
            data: b"abc".to_vec(),
        })
    );
}

#[test]
fn a_frame_without_a_time_is_one() {
    let simple = |origlen: u32| block(SIMPLE_PACKET, &[origlen.to_ne_bytes(), *b"abcd"].concat());
    let unknown = block(0xbad, b"????");
    let mut limited = interface(&[]);
    limited[12..16].copy_from_slice(&3u32.to_ne_bytes());
    let first = file(&[interface(&[]), limited.clone(), simple(4), unknown]);
    let second = file(&[limited, interface(&[]), simple(900)]);
    let untimed = |interface, origlen, data: &[u8]| Record::Untimed {
        interface,
        origlen,
        data: data.to_vec(),
    };
    let read = read(&[first, second].concat());
    assert_eq!(read[2], untimed(0, 4, b"abcd"));
    assert_eq!(read[5], untimed(2, 900, b"abc"));
    assert_eq!(fault(&[simple(4)]), BlockFault::Interface(0));
    assert_eq!(fault(&[interface(&[]), simple(5)]), BlockFault::Short);
}

#[test]
fn long_blocks_are_read_and_longer_ones_named() {
    let long = vec![0xa5; 17_000_000];
    let file = file(&[interface(&[]), packet(EPB_TYPE, 0, 1, &long)]);
    let Record::Packet(packet) = &read(&file)[1] else {
        panic!("a packet");
    };
    assert!(packet.data == long);
    let secrets = block(10, &vec![0xa5; 17 << 20]);
    assert_eq!(read(&self::file(&[secrets, interface(&[])])).len(), 1);
    let longer = [0xbad, (256 << 20) + 4, 7].map(u32::to_ne_bytes).concat();
    assert_eq!(fault(&[longer]), BlockFault::TooLong((256 << 20) + 4));
}

#[test]
fn interfaces_are_limited_in_number() {
    let most = vec![interface(&[]); MOST_INTERFACES];
    assert_eq!(read(&file(&most)).len(), MOST_INTERFACES);
    // Over all sections.
    let more = [&most[..], &[file(&[]), interface(&[])]].concat();
    assert_eq!(fault(&more), BlockFault::Interfaces(MOST_INTERFACES));
}

#[test]
fn a_damaged_block_is_named() {
    let good = interface(&[]);
    let mut beyond = packet(EPB_TYPE, 0, 1, b"frame");
    beyond[20..24].copy_from_slice(&5_000u32.to_ne_bytes());
    assert_eq!(
        fault(&[good.clone(), beyond.clone()]),
        BlockFault::Caplen(5_000, 5)
    );
    beyond[24..28].copy_from_slice(&5_000u32.to_ne_bytes());
    assert_eq!(fault(&[good.clone(), beyond]), BlockFault::Short);
    let foreign = packet(EPB_TYPE, 1, 1, b"frame");
    assert_eq!(
        fault(&[good.clone(), foreign.clone()]),
        BlockFault::Interface(1)
    );
    // Nor does it belong to the section before.
    let other = [good.clone(), good, file(&[]), foreign];
    assert_eq!(fault(&other), BlockFault::Interface(1));
    let file = file(&[]);
    for end in 0..file.len() {
        let error = records(&file[..end]).err().unwrap();
        let torn = BlockFault::Torn;
        let is_torn = matches!(error, ReadError::Block { at: 0, fault } if fault == torn);
        assert_eq!(is_torn, end >= 4, "{end}: {error}");
    }
}

#[test]
fn blocks_have_a_least_and_a_greatest_length() {
    let with_length = |length: u32| [0xbad, length, length].map(u32::to_ne_bytes).concat();
    for length in [0, 4, 8, 14] {
        assert_eq!(fault(&[with_length(length)]), BlockFault::Length(length));
    }
    let least = with_length(12);
    let greatest = block(0xbad, &vec![0; (16 << 20) - 12]);
    assert!(read(&file(&[least, greatest, interface(&[])])).len() == 1);
}

#[test]
fn an_option_ends_before_the_blocks_last_length() {
    let mut beyond = option(IF_NAME, b"name");
    beyond[2..4].copy_from_slice(&8u16.to_ne_bytes());
    assert_eq!(fault(&[interface(&[beyond])]), BlockFault::Option);
}

#[test]
fn the_first_of_several_names_is_taken() {
    let names = [option(IF_NAME, b"first"), option(IF_NAME, b"second")];
    let read = read(&file(&[interface(&names)]));
    assert!(matches!(&read[0], Record::Interface(it) if it.name.as_deref() == Some("first")));
}

#[test]
fn options_of_other_programs_are_not_tscaps() {
    let stamp = 7u64.to_ne_bytes();
    for (code, pen) in [
        (CUSTOM_TEXT, PEN + 1),
        (CUSTOM_BINARY, PEN + 1),
        (CUSTOM_TEXT + 2, PEN),
        (CUSTOM_BINARY + 2, PEN),
    ] {
        let foreign = option(code, &[&pen.to_ne_bytes()[..], &stamp].concat());
        let mut framed = packet(EPB_TYPE, 0, 1, b"frame");
        let trailer = framed.split_off(framed.len() - 4);
        framed.extend([&foreign[..], &trailer].concat());
        let length = (framed.len() as u32).to_ne_bytes();
        framed[4..8].copy_from_slice(&length);
        let end = framed.len() - 4;
        framed[end..].copy_from_slice(&length);
        let read = read(&file(&[interface(&[foreign]), framed]));
        assert!(matches!(&read[0], Record::Interface(it) if it.tscap.is_none()));
        assert!(matches!(&read[1], Record::Packet(it) if it.raw.is_none()));
    }
}

/// A packet block with this option.
pub(in crate::pcapng) fn with_option(option: &[u8]) -> Vec<u8> {
    let mut framed = packet(EPB_TYPE, 0, 1, b"frame");
    let trailer = framed.split_off(framed.len() - 4);
    framed.extend([option, &trailer].concat());
    let length = (framed.len() as u32).to_ne_bytes();
    framed[4..8].copy_from_slice(&length);
    let end = framed.len() - 4;
    framed[end..].copy_from_slice(&length);
    framed
}

#[test]
fn a_hardware_stamp_is_no_raw_one() {
    for (length, raw) in [(8, Some(RawStamp(7))), (16, None)] {
        let mut value = [&PEN.to_ne_bytes()[..], &7u64.to_ne_bytes()].concat();
        value.resize(4 + length, 0);
        let framed = with_option(&option(CUSTOM_BINARY, &value));
        let read = read(&file(&[interface(&[]), framed]));
        assert!(matches!(&read[1], Record::Packet(it) if it.raw == raw));
    }
}

#[test]
fn a_frame_does_not_reach_into_the_blocks_last_length() {
    for more in [1, 4, 8] {
        let mut cut = packet(EPB_TYPE, 0, 1, b"fram");
        let caplen = (4u32 + more).to_ne_bytes();
        for at in [CAPLEN_OFFSET, ORIGLEN_OFFSET] {
            cut[at..at + 4].copy_from_slice(&caplen);
        }
        assert_eq!(fault(&[interface(&[]), cut]), BlockFault::Short, "{more}");
    }
}

#[test]
fn a_section_says_where_it_is_of() {
    let said = [(2, "CPU"), (3, "Linux"), (3, "another"), (4, "program")];
    let said = said.map(|(code, text)| option(code, text.as_bytes()));
    let head = [0x1a2b_3c4d, 1, u32::MAX, u32::MAX].map(u32::to_ne_bytes);
    let header = block(
        SECTION_HEADER,
        &[&head.concat(), &said.concat()[..]].concat(),
    );
    let origin = |hardware: &str, os: &str, application: &str| Origin {
        hardware: Some(hardware.into()),
        os: Some(os.into()),
        application: Some(application.into()),
    };
    let bytes = [file(&[]), header].concat();
    let read: Vec<_> = records(&bytes[..]).unwrap().map(Result::unwrap).collect();
    let expected = [Origin::default(), origin("CPU", "Linux", "program")];
    assert_eq!(read, expected.map(Record::Section));
}

#[test]
fn versions_1_0_and_1_2_are_read() {
    let of_version = |major: u16, minor: u16| {
        let mut file = file(&[interface(&[])]);
        file[12..14].copy_from_slice(&major.to_ne_bytes());
        file[14..16].copy_from_slice(&minor.to_ne_bytes());
        file
    };
    for (major, minor) in [(0, 0), (1, 1), (1, 3), (2, 0), (u16::MAX, 2)] {
        let other = of_version(major, minor);
        let error = records(&other[..]).err().unwrap();
        let version = BlockFault::Version(major, minor);
        assert!(matches!(error, ReadError::Block { fault, .. } if fault == version));
        // In a later section: all of it.
        let later = read(&[&of_version(1, 2)[..], &other, &of_version(1, 0)].concat());
        let faults = [version, BlockFault::Behind];
        let damaged = later[1..3].iter().zip(faults);
        assert!(
            damaged.clone().all(
                |(it, fault)| matches!(it, Record::Damaged(damaged) if damaged.fault == fault)
            )
        );
        assert!(matches!(later[3], Record::Interface(_)) && later.len() == 4);
    }
}

#[test]
fn an_interface_that_can_not_be_described_keeps_its_number() {
    let bad = interface(&[option(IF_TSRESOL, b"ab")]);
    let packets = [0, 1, 2].map(|of| packet(EPB_TYPE, of, 1, b"frame"));
    let all = [&[interface(&[]), bad.clone(), interface(&[])], &packets[..]].concat();
    let read = read(&file(&all));
    let mut interfaces = Vec::new();
    let mut damage = Damage::default();
    for record in &read {
        match record {
            Record::Packet(packet) => interfaces.push(packet.interface),
            Record::Damaged(damaged) => damage.add(*damaged),
            _ => {}
        }
    }
    assert_eq!(interfaces, [0, 2]);
    let header = file(&[interface(&[])]).len() as u64;
    let of = |it: &Damaged| (it.at, it.bytes, it.block, it.fault);
    assert_eq!(
        damage.first.iter().map(of).collect::<Vec<_>>(),
        [
            (
                header,
                bad.len() as u64,
                Some(1),
                BlockFault::OptionLength(IF_TSRESOL, 2)
            ),
            (
                header + (bad.len() + interface(&[]).len() + packets[0].len()) as u64,
                packets[1].len() as u64,
                Some(EPB_TYPE),
                BlockFault::Undescribed(1)
            ),
        ]
    );
    assert_eq!((damage.parts, damage.packets), (2, 1));
}
