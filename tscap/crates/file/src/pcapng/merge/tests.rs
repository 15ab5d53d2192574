//! Held against a sort, with files of every shape.

use std::io::Cursor;

use pcap_file::Endianness;
use proptest::prelude::*;

use super::super::reader::{MOST_INTERFACES, records};
use super::super::record::{Packet, Record};
use super::*;
use crate::accounting::Totals;
use tscap_clock::{FileNs, RealNs};

const BIG: Endianness = Endianness::Big;
const LITTLE: Endianness = Endianness::Little;

fn half(half: u16, endianness: Endianness) -> [u8; 2] {
    match endianness {
        Endianness::Big => half.to_be_bytes(),
        Endianness::Little => half.to_le_bytes(),
    }
}

use super::super::options::word;

fn block(kind: u32, body: &[u8], endianness: Endianness) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = word(body.len() as u32 + 12, endianness);
    [&word(kind, endianness)[..], &length, &body, &length].concat()
}

fn head(endianness: Endianness) -> Vec<u8> {
    let magic = word(0x1a2b_3c4d, endianness);
    let version = [half(1, endianness), half(0, endianness)].concat();
    let body = [&magic[..], &version, &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &body, endianness)
}

fn interface(snaplen: u32, endianness: Endianness) -> Vec<u8> {
    let option = [half(9, endianness), half(1, endianness)].concat();
    let link = [half(1, endianness), [0, 0]].concat();
    let body = [
        &link[..],
        &word(snaplen, endianness),
        &option,
        &[9, 0, 0, 0],
    ]
    .concat();
    block(1, &body, endianness)
}

fn packet(interface: u32, time: u64, data: &[u8], endianness: Endianness) -> Vec<u8> {
    let length = data.len() as u32;
    let numbers = [interface, (time >> 32) as u32, time as u32, length, length];
    let mut body = numbers.map(|number| word(number, endianness)).concat();
    body.extend(data);
    block(6, &body, endianness)
}

fn joined(files: &[Vec<u8>]) -> Result<(Vec<u8>, Merged), MergeError> {
    let sources = files.iter().enumerate().map(|(index, bytes)| Source {
        name: format!("file {index}"),
        from: Cursor::new(&bytes[..]),
    });
    let mut copy = Vec::new();
    let merged = merge(sources.collect(), &mut copy)?;
    Ok((copy, merged))
}

fn packets(bytes: &[u8]) -> Vec<Packet> {
    let all = records(bytes).unwrap().map(Result::unwrap);
    let packets = all.filter_map(|record| match record {
        Record::Packet(packet) => Some(packet),
        _ => None,
    });
    packets.collect()
}

/// Packets of a file: how much later than the one before, on which of its interfaces.
fn file() -> impl Strategy<Value = Vec<(u64, u32, Vec<u8>)>> {
    let data = prop::collection::vec(any::<u8>(), 0..70);
    prop::collection::vec((0..4u64, 0..3u32, data), 0..40)
}

proptest! {
    #[test]
    fn it_is_a_sort_by_time_and_file(
        files in prop::collection::vec(file(), 1..8),
        is_big in any::<bool>(),
    ) {
        let endianness = if is_big { BIG } else { LITTLE };
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        for (index, packets) in files.iter().enumerate() {
            let mut bytes = head(endianness);
            for _ in 0..3 {
                bytes.extend(interface(96, endianness));
            }
            let mut time = 0;
            for (later, of, data) in packets {
                time += later;
                bytes.extend(packet(*of, time, data, endianness));
                expected.push((FileNs(time), 3 * index as u32 + of, data.clone()));
            }
            written.push(bytes);
        }
        // Stable: those of the same time stay in the order of the files.
        expected.sort_by_key(|(time, _, _)| *time);
        let (copy, merged) = joined(&written).unwrap();
        let found = packets(&copy).into_iter();
        let found: Vec<_> = found.map(|it| (it.time, it.interface, it.data)).collect();
        let pairs = expected.windows(2).filter(|pair| pair[0].1 / 3 != pair[1].1 / 3).count();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(merged.packets, expected.len() as u64);
        prop_assert_eq!(merged.interfaces, 3 * files.len() as u32);
        prop_assert_eq!(merged.neighbours.between_files, pairs as u64);
        prop_assert_eq!(merged.neighbours.without_bounds, pairs as u64);
        prop_assert!(merged.inputs.iter().all(|it| it.is_whole && it.disordered == 0));
    }

    /// Neither a panic nor a packet that is not in a file.
    #[test]
    fn damage_is_an_error_or_is_kept(at in 0..400usize, value in any::<u8>(), cut in 0..400usize) {
        let mut bytes = head(LITTLE);
        bytes.extend(interface(96, LITTLE));
        for time in 0..6 {
            bytes.extend(packet(0, time, &[7; 20], LITTLE));
        }
        let whole = bytes.clone();
        let at = at % bytes.len();
        bytes[at] = value;
        let cut_at = bytes.len() - cut % bytes.len();
        bytes.truncate(cut_at);
        if let Ok((copy, merged)) = joined(&[bytes, whole]) {
            prop_assert_eq!(packets(&copy).len() as u64, merged.packets);
            prop_assert!(merged.packets >= 6);
        }
    }
}

#[test]
fn every_byte_but_the_interface_is_kept() {
    let mut files = Vec::new();
    for snaplen in [1, 2] {
        let mut bytes = [head(LITTLE), interface(snaplen, LITTLE)].concat();
        let mut frame = packet(0, 5, &[9; 8], LITTLE);
        // Options of others, also ones that tscap does not know.
        let options = [[4, 0, 8, 0], [1; 4], [2; 4], [77, 3, 4, 0], [3; 4], [0; 4]].concat();
        let at = frame.len() - 4;
        frame.splice(at..at, options);
        let length = word(frame.len() as u32, LITTLE);
        let end = frame.len() - 4;
        frame[4..8].copy_from_slice(&length);
        frame[end..].copy_from_slice(&length);
        bytes.extend(block(4, &[0; 4], LITTLE));
        bytes.extend(frame);
        bytes.extend(block(0x4000_0bad, &[1; 4], LITTLE));
        files.push(bytes);
    }
    let (copy, _) = joined(&files).unwrap();
    let descriptions = [interface(1, LITTLE), interface(2, LITTLE)];
    let names = block(4, &[0; 4], LITTLE);
    // The header's options end with their end.
    let mut header = head(LITTLE);
    header.splice(24..24, [0; 4]);
    for at in [4, 28] {
        header[at..at + 4].copy_from_slice(&word(32, LITTLE));
    }
    let start = [&header[..], &descriptions[0], &names].concat();
    assert!(copy.starts_with(&start));
    let at = |number: u32| {
        let mut frame =
            files[0][head(LITTLE).len() + descriptions[0].len() + names.len()..].to_vec();
        // Without the block that is not to be copied.
        frame.truncate(frame.len() - 16);
        frame[8..12].copy_from_slice(&word(number, LITTLE));
        frame
    };
    let end = [descriptions[1].clone(), names.clone(), at(0), at(1)].concat();
    assert_eq!(copy[start.len()..], end);
}

/// In an obsolete Packet Block the interface is half a word; the other half counts drops.
#[test]
fn the_interface_is_changed_in_every_kind_of_block() {
    for endianness in [BIG, LITTLE] {
        let obsolete = |interface| {
            let halves = [half(interface, endianness), half(0x0304, endianness)].concat();
            let words = [0, 7, 8, 8].map(|number| word(number, endianness)).concat();
            block(2, &[&halves[..], &words, &[9; 8]].concat(), endianness)
        };
        let statistics = |interface| {
            let words = [interface, 0, 8].map(|number| word(number, endianness));
            block(5, &words.concat(), endianness)
        };
        let files = [1, 2].map(|snaplen| {
            let start = [head(endianness), interface(snaplen, endianness)].concat();
            [start, obsolete(0), statistics(0)].concat()
        });
        let (copy, merged) = joined(&files).unwrap();
        assert_eq!(merged.packets, 2);
        let end = [obsolete(0), statistics(0), obsolete(1), statistics(1)];
        let mut blocks = end.iter();
        assert!(blocks.all(|block| copy.windows(block.len()).any(|it| it == block)));
    }
}

#[test]
fn times_that_go_back_are_counted() {
    let mut bytes = [head(LITTLE), interface(1, LITTLE)].concat();
    for time in [5, 9, 8, 8, 7, 20] {
        bytes.extend(packet(0, time, &[], LITTLE));
    }
    let other = [
        head(LITTLE),
        interface(2, LITTLE),
        packet(0, 8, &[], LITTLE),
    ]
    .concat();
    let (copy, merged) = joined(&[bytes, other]).unwrap();
    let disordered: Vec<_> = merged.inputs.iter().map(|it| it.disordered).collect();
    assert_eq!(disordered, [2, 0]);
    let own = packets(&copy).into_iter().filter(|it| it.interface == 0);
    let times: Vec<_> = own.map(|it| it.time.0).collect();
    assert_eq!(times, [5, 9, 8, 8, 7, 20], "the file's own order");
}

#[test]
fn what_can_not_be_joined_is_said() {
    let plain = [head(LITTLE), interface(1, LITTLE)].concat();
    let other_order = [head(BIG), interface(1, BIG)].concat();
    let error = |files: &[Vec<u8>]| joined(files).unwrap_err().to_string();
    assert!(error(&[plain.clone(), other_order]).contains("file 1 with file 0: its byte order"));
    let twice = [plain.clone(), plain.clone()].concat();
    assert!(error(&[twice]).contains("several sections"));
    let simple = [plain.clone(), block(3, &[0; 4], LITTLE)].concat();
    assert!(error(&[simple]).contains("without a time"));
    assert!(error(&[b"hello".to_vec()]).contains("cannot read file 0"));
}

#[test]
fn what_can_not_be_read_is_left_out_and_named() {
    let plain = [
        head(LITTLE),
        interface(1, LITTLE),
        packet(0, 5, &[8; 9], LITTLE),
    ]
    .concat();
    let longer = {
        let mut block = packet(0, 6, &[8; 9], LITTLE);
        block[20] = 10;
        block
    };
    let undescribed = [interface(1, LITTLE), packet(1, 6, &[8; 9], LITTLE)];
    let undescribed = {
        let mut bytes = undescribed.concat();
        // The length of its option.
        bytes[18] = 2;
        bytes
    };
    for (damage, parts, packets_lost) in [
        (longer, 1, 1),
        (packet(1, 0, &[], LITTLE), 1, 1),
        (block(5, &[9; 12], LITTLE), 1, 0),
        (undescribed, 2, 1),
        (vec![0; 4096], 1, 0),
        (vec![0xff; 70], 1, 0),
    ] {
        let length = damage.len() as u64;
        let last = packet(0, 9, &[8; 9], LITTLE);
        let damaged = [&plain[..], &damage, &last].concat();
        let (copy, merged) = joined(&[damaged, plain.clone()]).unwrap();
        let times: Vec<_> = packets(&copy).iter().map(|it| it.time.0).collect();
        assert_eq!((times, merged.interfaces), (vec![5, 5, 9], 2));
        let [
            InputReport {
                damage,
                is_whole: false,
                ..
            },
            InputReport { is_whole: true, .. },
        ] = &merged.inputs[..]
        else {
            panic!("{merged:?}");
        };
        assert_eq!(
            (damage.parts, damage.packets, damage.bytes),
            (parts, packets_lost, length)
        );
        assert_eq!(damage.first[0].at, plain.len() as u64);
    }
}

#[test]
fn options_that_are_not_to_be_copied_are_not() {
    let with = |codes: &[u16]| {
        let mut block = packet(0, 5, &[9; 8], LITTLE);
        let options = codes.iter().flat_map(|code| {
            let head = [half(*code, LITTLE), half(8, LITTLE)].concat();
            [head, vec![5; 8]].concat()
        });
        let at = block.len() - 4;
        block.splice(at..at, options.chain([0; 4]));
        let length = word(block.len() as u32, LITTLE);
        let end = block.len() - 4;
        block[4..8].copy_from_slice(&length);
        block[end..].copy_from_slice(&length);
        block
    };
    let file = [
        head(LITTLE),
        interface(1, LITTLE),
        with(&[2988, 19_372, 2989, 19_373]),
    ]
    .concat();
    let (copy, _) = joined(&[file]).unwrap();
    assert!(copy.ends_with(&with(&[2988, 2989])));
}

#[test]
fn a_file_that_was_cut_gives_what_is_whole() {
    let mut bytes = [head(LITTLE), interface(1, LITTLE)].concat();
    for time in 0..3 {
        bytes.extend(packet(0, time, &[1; 30], LITTLE));
    }
    bytes.truncate(bytes.len() - 1);
    let (copy, merged) = joined(&[bytes]).unwrap();
    assert_eq!(
        (packets(&copy).len(), merged.inputs[0].is_whole),
        (2, false)
    );
}

#[test]
fn a_copy_has_no_more_interfaces_than_a_file_can_have() {
    let file = |count: usize| [head(LITTLE), interface(1, LITTLE).repeat(count)].concat();
    let error = joined(&[file(MOST_INTERFACES), file(1)]).unwrap_err();
    let MergeError::Interfaces(MOST_INTERFACES) = error else {
        panic!("{error}");
    };
}

/// As a disk that is full, of a file whose end is written when it is closed.
#[test]
fn a_copy_that_is_not_whole_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
    }
    let source = Source {
        name: "file".into(),
        from: Cursor::new(head(LITTLE)),
    };
    let error = merge(vec![source], Full).unwrap_err();
    assert!(matches!(error, MergeError::Copy(_)), "{error}");
}

/// The length that its section had is no longer the copy's.
#[test]
fn the_section_of_a_copy_has_no_length() {
    let mut header = head(LITTLE);
    header[16..24].fill(0);
    header[16] = interface(1, LITTLE).len() as u8;
    let (copy, _) = joined(&[[header, interface(1, LITTLE)].concat()]).unwrap();
    assert_eq!(copy[16..24], [0xff; 8]);
}

/// Several writers of one capture, as [`super::super::file`] writes them.
mod parts;
