use super::*;

/// Blocks in this machine's byte order.
fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
    let header = block(
        0x0a0d_0d0a,
        &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]
            .map(u32::to_ne_bytes)
            .concat(),
    );
    [&[header], blocks].concat().concat()
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(padded(body.len()), 0);
    let length = (body.len() as u32 + 12).to_ne_bytes();
    [&kind.to_ne_bytes()[..], &length, &body, &length].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code, value.len() as u16].map(u16::to_ne_bytes).concat();
    option.extend(value);
    option.resize(padded(option.len()), 0);
    option
}

fn interface(options: &[Vec<u8>]) -> Vec<u8> {
    let head = [1u32, 0].map(u32::to_ne_bytes).concat();
    block(INTERFACE_DESCRIPTION, &[&[head], options].concat().concat())
}

fn packet(kind: u32, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
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
    let records = records(file).unwrap();
    records.map(|record| record.unwrap()).collect()
}

/// The end of what can be read, and why.
fn fault(blocks: &[Vec<u8>]) -> BlockFault {
    let file = file(blocks);
    match records(&file[..]).unwrap().last() {
        Some(Err(ReadError::Block { fault, .. })) => fault,
        other => panic!("{other:?}"),
    }
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
        (127, 0, u64::MAX, 0, 1),
        (0x80, 0, 7, 7 * S, S),
        (0x80 | 10, 0, 1_536, 3 * S / 2, 976_562),
        (0x80 | 32, 0, 3 << 31, 3 * S / 2, 1),
        (0x80 | 127, 0, u64::MAX, 0, 1),
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
fn an_interval_back_in_time_is_negative() {
    let interval = |from, to| interval_ns(RawStamp(from), RawStamp(to), None);
    assert_eq!((interval(5, 2), interval(2, 5)), (-3, 3));
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
    let long = vec![0xa5; 9_000_000];
    let file = file(&[interface(&[]), packet(EPB_TYPE, 0, 1, &long)]);
    let Record::Packet(packet) = &read(&file)[1] else {
        panic!("a packet");
    };
    assert!(packet.data == long);
    let longer = block(0xbad, &vec![0; 16 << 20]);
    assert_eq!(fault(&[longer]), BlockFault::TooLong((16 << 20) + 12));
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
        let error = records(&file[..end]).err().map(|error| error.is_torn_end());
        assert_eq!(error, Some(end >= 4), "{end}");
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
fn with_option(option: &[u8]) -> Vec<u8> {
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
fn a_block_is_where_it_begins() {
    let (first, second) = (interface(&[]), packet(6, 0, 7, &[1; 20]));
    let bytes = file(&[first.clone(), second]);
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let header = bytes.len() - first.len() - 12 - 20 - 20;
    for at in [0, header, header + first.len()] {
        assert_eq!(reader.at(), at as u64);
        reader.next().unwrap();
    }
}
