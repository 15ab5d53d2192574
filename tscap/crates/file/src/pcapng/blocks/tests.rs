//! Files that are damaged in every way: what is whole is found, nothing else is, and each byte
//! is counted once.

use proptest::prelude::*;
use tscap_common::block::EPB_TYPE;

use super::super::block::CUSTOM;
use super::super::reader::records;
use super::super::reader::tests::{block, file, interface, packet};
use super::super::record::Record;
use super::*;

/// Frames with a number each, and what else a capture has.
fn capture(frames: u64) -> Vec<Vec<u8>> {
    let mut blocks = vec![file(&[]), interface(&[])];
    blocks.extend((0..frames).map(numbered));
    blocks
}

fn numbered(number: u64) -> Vec<u8> {
    packet(EPB_TYPE, 0, 1_000 + number, &[0x40 + number as u8; 21])
}

/// The times of the packets, and what can't be read: where, how long, and why.
fn found(bytes: &[u8]) -> (Vec<u64>, Vec<(u64, u64, BlockFault)>) {
    let (mut times, mut damaged) = (Vec::new(), Vec::new());
    for record in records(bytes).unwrap() {
        match record.unwrap() {
            Record::Packet(packet) => times.push(packet.time.0 / 1_000 - 1_000),
            Record::Damaged(it) => damaged.push((it.at, it.bytes, it.fault)),
            _ => {}
        }
    }
    (times, damaged)
}

/// Where block `index` begins.
fn start(blocks: &[Vec<u8>], index: usize) -> usize {
    blocks[..index].concat().len()
}

#[test]
fn one_damaged_block_is_left_out_alone() {
    use BlockFault::{Caplen, Interface, Length, Lengths, Option, Short, TooLong, Torn};
    let of = |at: usize, value: u32| {
        move |block: &mut Vec<u8>| {
            block[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
    };
    let length = numbered(0).len() as u32;
    let last = length as usize - 4;
    type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);
    let damages: [(Damage<'_>, BlockFault); 13] = [
        (&of(20, 22), Caplen(22, 21)),
        (&of(24, 20), Caplen(21, 20)),
        (
            &|it| [20, 24].into_iter().for_each(|at| of(at, 5_000)(it)),
            Short,
        ),
        (&of(8, 3), Interface(3)),
        (&of(last, 0), Lengths(length, 0)),
        (&of(last, 12), Lengths(length, 12)),
        (&of(last, length + 4), Lengths(length, length + 4)),
        (&of(4, 0), Length(0)),
        (&of(4, length + 1), Length(length + 1)),
        (&of(4, 1 << 20), Torn),
        (&of(4, u32::MAX - 3), TooLong(u32::MAX - 3)),
        (&of(4, 12), Lengths(12, 0)),
        (
            &|block| {
                let end = block.split_off(block.len() - 4);
                block.extend([4u16, 40].map(u16::to_ne_bytes).concat());
                block.extend(end);
                let length = block.len() as u32;
                [4, block.len() - 4]
                    .into_iter()
                    .for_each(|at| of(at, length)(block));
            },
            Option,
        ),
    ];
    for (damage, fault) in damages {
        for index in 0..6 {
            let mut blocks = capture(6);
            let at = start(&blocks, 2 + index) as u64;
            damage(&mut blocks[2 + index]);
            let bytes = blocks[2 + index].len() as u64;
            let (times, damaged) = found(&blocks.concat());
            let others = (0..6).filter(|number| *number != index as u64);
            assert_eq!(times, others.collect::<Vec<_>>(), "{index} {fault}");
            assert_eq!(damaged, [(at, bytes, fault)], "{index}");
        }
    }
}

#[test]
fn zeros_are_named_wherever_they_are() {
    let blocks = capture(6);
    let whole = blocks.concat();
    for zeros in [12, 13, 4096, (1 << 20) + 5] {
        let (times, damaged) = found(&[&whole[..], &vec![0; zeros]].concat());
        assert_eq!(times, [0, 1, 2, 3, 4, 5]);
        let at = whole.len() as u64;
        assert_eq!(damaged, [(at, zeros as u64, BlockFault::Zeros)]);
        let (before, behind) = whole.split_at(start(&blocks, 4));
        let (times, damaged) = found(&[before, &vec![0; zeros], behind].concat());
        assert_eq!(times, [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            damaged,
            [(before.len() as u64, zeros as u64, BlockFault::Zeros)]
        );
    }
    // In the place of blocks: half of one, and one and a half.
    let (from, to) = (start(&blocks, 4) + 20, start(&blocks, 6));
    let mut zeroed = whole;
    zeroed[from..to].fill(0);
    let (times, damaged) = found(&zeroed);
    assert_eq!(times, [0, 1, 4, 5]);
    let hole = (start(&blocks, 4) as u64, (to - start(&blocks, 4)) as u64);
    assert_eq!(
        (damaged[0].0, damaged[0].1, damaged.len()),
        (hole.0, hole.1, 1)
    );
}

#[test]
fn bytes_of_something_else_are_passed_over() {
    let blocks = capture(4);
    let (before, behind) = (blocks[..4].concat(), blocks[4..].concat());
    for length in [1usize, 2, 3, 11, 100, (1 << 20) - 7, (1 << 20) + 1] {
        // Types of blocks stand in it, and no blocks.
        let garbage: Vec<u8> = (0..length).map(|at| [6, 0, 0, 0, 9][at % 5]).collect();
        let (times, damaged) = found(&[&before[..], &garbage, &behind].concat());
        assert_eq!(times, [0, 1, 2, 3], "{length}");
        let [(at, bytes, _)] = damaged[..] else {
            panic!("{damaged:?}");
        };
        assert_eq!((at, bytes), (before.len() as u64, length as u64));
    }
}

/// A frame that holds a capture, as one that was sent over a network.
#[test]
fn what_a_frame_holds_is_never_taken_for_blocks_of_the_file() {
    let inner = (7..20).map(numbered).collect::<Vec<_>>().concat();
    let mut limited = interface(&[]);
    limited[12..16].copy_from_slice(&(inner.len() as u32).to_ne_bytes());
    let holding = |number: u64| packet(EPB_TYPE, 0, 1_000 + number, &inner);
    let blocks = [file(&[]), limited, numbered(0), holding(1), numbered(2)];
    let (from, to) = (start(&blocks, 3), start(&blocks, 4));
    // Cut anywhere in it.
    for end in from + 1..to {
        let (times, damaged) = found(&blocks.concat()[..end]);
        assert_eq!(times, [0], "{end}");
        let bytes = (end - from) as u64;
        assert_eq!(damaged, [(from as u64, bytes, BlockFault::Torn)], "{end}");
    }
    // With both lengths wrong, or with its head.
    for damage in [
        vec![4, to - from - 4],
        vec![0, 4, 20],
        vec![4, 20, to - from - 4],
    ] {
        let mut bytes = blocks.concat();
        for at in damage {
            bytes[from + at] ^= 0x51;
        }
        let (times, damaged) = found(&bytes);
        assert_eq!(times, [0, 2]);
        assert_eq!(damaged[0].1, (to - from) as u64);
    }
}

#[test]
fn what_may_be_of_another_section_is_not_taken_for_this_ones() {
    let first = capture(3);
    let mut second = vec![file(&[]), interface(&[]), interface(&[])];
    second.extend((3..6).map(numbered));
    // Its header: the type, the magic, and all of it.
    for damage in [0..28, 4..28, 8..12] {
        let mut bytes = second.concat();
        bytes[damage.clone()].fill(0);
        let third = file(&[interface(&[]), numbered(6)]);
        let (times, damaged) = found(&[first.concat(), bytes.clone(), third].concat());
        assert_eq!(times, [0, 1, 2, 6], "{damage:?}");
        let lost: u64 = damaged.iter().map(|it| it.1).sum();
        assert_eq!(lost, bytes.len() as u64);
    }
    // An interface that joins behind a hole has a number that nobody knows.
    let hole = vec![0x77; 100];
    let joined = [interface(&[]), numbered(4)].concat();
    let (times, damaged) = found(&[first.concat(), hole, numbered(3), joined].concat());
    assert_eq!(times, [0, 1, 2, 3]);
    let faults: Vec<_> = damaged.iter().map(|it| it.2).collect();
    assert_eq!(faults[1..], [BlockFault::Behind; 2]);
}

#[test]
fn sections_of_either_byte_order_stand_in_one_file() {
    let swapped = |mut block: Vec<u8>| {
        // A section header without options, whose words are all numbers but for the version.
        block[12..16].copy_from_slice(&[1u16.swap_bytes(), 0].map(u16::to_ne_bytes).concat());
        for at in [0, 4, 8, block.len() - 4] {
            block[at..at + 4].reverse();
        }
        block
    };
    let other = [swapped(file(&[])), {
        let mut described = interface(&[]);
        described[8..10].reverse();
        for at in [0, 4, 12, 16] {
            described[at..at + 4].reverse();
        }
        described
    }];
    let bytes = [
        capture(2).concat(),
        vec![9; 50],
        other.concat(),
        capture(2).concat(),
    ]
    .concat();
    let (times, damaged) = found(&bytes);
    assert_eq!(
        (times, damaged.len(), damaged[0].1),
        (vec![0, 1, 0, 1], 1, 50)
    );
}

/// Bytes in which every place begins a block, and none goes on.
#[test]
fn the_work_grows_no_faster_than_the_file() {
    let least = block(CUSTOM, &[]);
    let chain = least.repeat(100_000);
    let bytes = [&capture(1).concat()[..], b"!!!!!!!!!!!!", &chain, b"torn"].concat();
    let (times, damaged) = found(&bytes);
    // No frame is so long as the chain is.
    assert_eq!(times, [0]);
    assert_eq!(damaged.len(), 2);
    // Where frames may be: nothing is sure.
    let mut limited = interface(&[]);
    limited[12..16].copy_from_slice(&(2u32 << 20).to_ne_bytes());
    let bytes = [&file(&[limited])[..], b"!!!!!!!!!!!!", &chain, b"torn"].concat();
    let (_, damaged) = found(&bytes);
    assert_eq!(damaged[0].1, 12 + chain.len() as u64 + 4);
}

/// Every part of the file, in order.
fn parts(bytes: &[u8]) -> Vec<(u64, u64, Part)> {
    let mut blocks = Blocks::new(bytes);
    let mut parts = Vec::new();
    while let Ok(Some(part)) = blocks.next(100) {
        parts.push((blocks.at, blocks.length(), part));
    }
    parts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn each_byte_is_of_one_part_and_no_packet_is_made_up(
        changes in prop::collection::vec((28..900usize, any::<u8>()), 1..6),
        cut in 0..900usize,
        is_cut in any::<bool>(),
    ) {
        let blocks = capture(14);
        let mut bytes = blocks.concat();
        for (at, value) in &changes {
            let at = at % bytes.len();
            // The first section header: the next test.
            bytes[at.max(28)] = *value;
        }
        if is_cut {
            bytes.truncate(bytes.len() - cut % (bytes.len() - 28));
        }
        let mut end = 0;
        for (at, length, _) in parts(&bytes) {
            prop_assert_eq!(at, end);
            end += length;
        }
        prop_assert_eq!(end, bytes.len() as u64);
        let whole = |bytes: &[u8]| -> Vec<_> {
            let all = records(bytes).unwrap().map(Result::unwrap);
            all.filter_map(|it| match it {
                Record::Packet(packet) => Some((packet.time, packet.data)),
                _ => None,
            }).collect()
        };
        let (before, after) = (whole(&blocks.concat()), whole(&bytes));
        // All but those with a changed byte are packets of the file, in its order.
        let mut rest = before.iter();
        let foreign = after.iter().filter(|it| !rest.clone().any(|other| {
            let is_it = other == *it;
            if is_it { while rest.next() != Some(*it) {} }
            is_it
        }));
        prop_assert!(foreign.count() <= changes.len());
    }

    #[test]
    fn anything_can_be_read(mut bytes in prop::collection::vec(any::<u8>(), 0..600), head in any::<bool>()) {
        if head {
            bytes.splice(..0, file(&[interface(&[])]));
        }
        if let Ok(all) = records(&bytes[..]) {
            prop_assert!(all.count() <= bytes.len());
        }
    }
}
