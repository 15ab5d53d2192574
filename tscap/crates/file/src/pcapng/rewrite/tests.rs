//! Copies of files that are damaged, or have what is not to be copied.

use tscap_common::block::{EPB_TYPE, PEN};

use super::super::block::{CUSTOM, INTERFACE_DESCRIPTION, SECRETS};
use super::super::reader::tests::{block, file, interface, option, packet, with_option};
use super::*;
use crate::pcapng::BlockFault;

fn copied(bytes: &[u8]) -> (Vec<u8>, Copied) {
    let mut copy = Vec::new();
    let copied = rewrite(bytes, &mut copy, Changes::default()).unwrap();
    (copy, copied)
}

/// A custom option in binary that is not to be copied.
fn not_to_copy(pen: u32) -> Vec<u8> {
    option(19_373, &[&pen.to_ne_bytes()[..], b"value"].concat())
}

#[test]
fn what_is_whole_is_copied_byte_for_byte() {
    let good = [0, 1, 2].map(|number| packet(EPB_TYPE, 0, number, &[7; 30]));
    let mut longer = packet(EPB_TYPE, 0, 9, &[7; 30]);
    longer[20..24].copy_from_slice(&31u32.to_ne_bytes());
    let unknown = block(0x8000_0001, b"of somebody");
    let start = file(&[interface(&[]), unknown, good[0].clone()]);
    let torn = &good[0][..20];
    let (copy, copied) = copied(&[&start, &longer, &good[1], &good[2], torn].concat());
    assert_eq!(copy, [&start[..], &good[1], &good[2]].concat());
    assert_eq!(
        (copied.packets, copied.damage.parts, copied.damage.packets),
        (3, 2, 1)
    );
    assert_eq!(copied.damage.bytes, (longer.len() + torn.len()) as u64);
    let faults: Vec<_> = copied.damage.first.iter().map(|it| it.fault).collect();
    assert_eq!(faults, [BlockFault::Caplen(31, 30), BlockFault::Torn]);
    let (again, copied) = self::copied(&copy);
    assert!(again == copy && copied.damage.is_none());
}

#[test]
fn interfaces_keep_their_numbers() {
    for bad in [
        interface(&[option(9, &[77])]),
        block(INTERFACE_DESCRIPTION, &[]),
    ] {
        let last = packet(EPB_TYPE, 1, 5, b"frame");
        let of_bad = packet(EPB_TYPE, 0, 5, b"frame");
        let bytes = file(&[bad, interface(&[]), of_bad, last.clone()]);
        let (copy, copied) = copied(&bytes);
        assert!(copy.ends_with(&[interface(&[]), last].concat()));
        assert_eq!(
            (copied.packets, copied.damage.packets, copied.damage.parts),
            (1, 1, 2)
        );
        let (again, copied) = self::copied(&copy);
        assert!(again == copy && copied.damage.is_none() && copied.packets == 1);
    }
}

#[test]
fn what_is_not_to_be_copied_is_not() {
    let foreign = not_to_copy(PEN + 1);
    let secrets = |options: &[u8]| {
        let head = [1u32, 5].map(u32::to_ne_bytes).concat();
        block(SECRETS, &[&head, &b"12345\0\0\0"[..], options].concat())
    };
    let names = |options: &[u8]| {
        block(
            4,
            &[&[1, 0, 2, 0, 8, 8, 0, 0, 0, 0, 0, 0][..], options].concat(),
        )
    };
    let end = option(0, &[]);
    let with = |more: &[u8]| {
        let more = [more, &option(1, b"comment"), &end].concat();
        file(&[
            interface(std::slice::from_ref(&more)),
            names(&more),
            secrets(&more),
            with_option(&more),
            block(CUSTOM, &foreign),
        ])
    };
    let bytes = [with(&foreign), block(CUSTOM_NOT_TO_COPY, &[7; 40])].concat();
    let (copy, copied) = copied(&bytes);
    assert_eq!(copy, with(&[]));
    assert!(copied.damage.is_none() && copied.packets == 1);
    // The padding of tscap says nothing of the file.
    let own = with(&not_to_copy(PEN));
    assert_eq!(self::copied(&own).0, own);
}

#[test]
fn the_length_of_a_section_is_left_open() {
    let mut bytes = file(&[interface(&[])]);
    let expected = bytes.clone();
    bytes[16..24].copy_from_slice(&20u64.to_ne_bytes());
    assert_eq!(copied(&bytes).0, expected);
}

/// A section header whose options can't be read says the rest all the same.
#[test]
fn a_section_is_one_without_its_options() {
    let head = [0x1a2b_3c4d, 1, u32::MAX, u32::MAX].map(u32::to_ne_bytes);
    let of = |options: &[u8]| {
        let header = block(0x0a0d_0d0a, &[&head.concat()[..], options].concat());
        [header, interface(&[])].concat()
    };
    let mut options = [option(1, b"comment"), option(2, b"CPU")].concat();
    let length = options.len();
    options[length - 6] = 99;
    for before in [Vec::new(), of(&[])] {
        let (copy, copied) = copied(&[&before[..], &of(&options)].concat());
        let less = [option(1, b"comment"), option(0, &[])].concat();
        assert_eq!(copy, [&before[..], &of(&less)].concat());
        assert_eq!(
            (copied.damage.parts, copied.damage.first[0].fault),
            (1, BlockFault::Option)
        );
    }
}
