//! What the files say that are joined, and the copy of it.

use super::super::super::super::block::{DESCRIPTION_OPTIONS, STATISTICS_OPTIONS};
use super::super::super::super::options::{CUSTOM_TEXT, options_of, with_options};
use super::*;

fn blocks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let length = u32::from_ne_bytes(rest[4..8].try_into().unwrap());
        let (block, behind) = rest.split_at(length as usize);
        blocks.push(block.to_vec());
        rest = behind;
    }
    blocks
}

/// Its option of tscap's, as a file of the byte order has it.
fn ours(block: &[u8], at: usize, endianness: Endianness) -> (u16, Vec<u8>) {
    let options = options_of(block, at, Endianness::native()).into_iter();
    let (code, value) = options
        .rev()
        .find(|(code, _)| *code == CUSTOM_TEXT)
        .unwrap();
    (code, [&word(PEN, endianness)[..], &value[4..]].concat())
}

/// What a file's statistics say of its clock is read from its end, in either byte order.
#[test]
fn bounds_are_read_in_either_byte_order() {
    let [start, _, statistics] = alone();
    let [_, description, ..] = &blocks(&start)[..] else {
        panic!("a header and interfaces");
    };
    for endianness in [BIG, LITTLE] {
        let nanoseconds = (9, vec![9]);
        let options = [
            nanoseconds,
            ours(description, DESCRIPTION_OPTIONS, endianness),
        ];
        let described = interface(96, endianness);
        let described = with_options(&described, DESCRIPTION_OPTIONS, &options, endianness);
        let last = block(5, &[0; 12], endianness);
        let options = [ours(
            &blocks(&statistics)[0],
            STATISTICS_OPTIONS,
            endianness,
        )];
        let last = with_options(&last, STATISTICS_OPTIONS, &options, endianness);
        let file = [
            head(endianness),
            described.unwrap(),
            packet(0, 7, &[1; 20], endianness),
            last.unwrap(),
        ];
        let (_, merged) = joined(&[file.concat()]).unwrap();
        assert!(merged.inputs[0].host_bound_ns.is_some(), "{endianness:?}");
    }
}

/// The clock of one of its interfaces may be known better than that of another.
#[test]
fn the_bound_of_a_file_is_the_greatest_of_its_interfaces() {
    let [start, packets, statistics] = alone();
    let last = Last {
        stamp_error_ns: 500,
        ..SCRIPT.last
    };
    let worse = Script {
        writers: 1,
        last,
        ..SCRIPT
    };
    let end = written(&worse, false).len();
    let worse = blocks(&written(&worse, true)[end..]);
    let better = blocks(&statistics);
    let bound = |statistics: [&[u8]; 2]| {
        let file = [&start[..], &packets, &statistics.concat()].concat();
        joined(&[file]).unwrap().1.inputs[0].host_bound_ns.unwrap()
    };
    let greatest = bound([&worse[0], &worse[1]]);
    assert!(bound([&better[0], &better[1]]) < greatest);
    assert_eq!(bound([&worse[0], &better[1]]), greatest);
    assert_eq!(bound([&better[0], &worse[1]]), greatest);
}

/// Of an interface that tscap did not describe nothing is known.
#[test]
fn packets_without_a_bound_leave_their_file_without_one() {
    let native = Endianness::native();
    let [start, packets, statistics] = alone();
    let other = interface(96, native);
    let bound = |foreign: &[u8]| {
        let file = [&start[..], &other, &packets, foreign, &statistics];
        joined(&[file.concat()]).unwrap().1.inputs[0].host_bound_ns
    };
    assert!(bound(&[]).is_some());
    assert_eq!(bound(&packet(2, 50_000, &[1; 20], native)), None);
}

#[test]
fn an_account_of_more_frames_than_the_interfaces_saw_does_not_add_up() {
    let native = Endianness::native();
    let whole = written(&of(0), true);
    let packets = written(&of(0), false).len();
    let mut last = blocks(&whole[packets..]);
    let mut options = options_of(&last[0], STATISTICS_OPTIONS, native);
    let seen = options.iter_mut().find(|(code, _)| *code == 4).unwrap();
    seen.1[if native == LITTLE { 0 } else { 7 }] += 1;
    last[0] = with_options(&last[0], STATISTICS_OPTIONS, &options, native).unwrap();
    let other = [&whole[..packets], &last.concat()].concat();
    for (first, adds_up) in [(whole, true), (other, false)] {
        let (_, merged) = joined(&[first, written(&of(1), true)]).unwrap();
        assert_eq!(merged.captures[0].adds_up, Some(adds_up));
    }
}

/// As of a ring that no interface was bound to.
#[test]
fn a_writer_without_interfaces_has_an_empty_account() {
    let header = blocks(&written(&of(1), false)).swap_remove(0);
    let (_, merged) = joined(&[written(&of(0), true), header]).unwrap();
    let capture = &merged.captures[0];
    assert_eq!(capture.without_account, [""; 0]);
    assert_eq!(capture.totals.map(|totals| totals.written), Some(5));
    assert_eq!(capture.adds_up, Some(true));
}

#[test]
fn files_that_contradict_each_other_about_their_writers_are_refused() {
    let of_three = Script {
        writers: 3,
        ..of(1)
    };
    let error = joined(&[written(&of(0), true), written(&of_three, true)]).unwrap_err();
    assert!(
        error.to_string().contains("another number of writers"),
        "{error}"
    );
}

/// What the headers of all files say stands in that of the copy, what only some say in a
/// comment of their own.
#[test]
fn the_header_says_what_its_files_say() {
    let header = |writer, hardware: &str| {
        let section = SectionInfo {
            hardware: hardware.into(),
            os: "Linux".into(),
            application: "tscap".into(),
            part: Some(PartOption::new("c".into(), writer, 3)),
        };
        FileWriter::new(&section, &[], RealNs(0)).unwrap().take()
    };
    let said = |bytes: &[u8]| -> Vec<String> {
        let header = blocks(bytes).swap_remove(0);
        let options = options_of(&header, 24, Endianness::native()).into_iter();
        let options = options.map(|(code, value)| match code {
            CUSTOM_TEXT => "part".into(),
            _ => format!("{code} {}", String::from_utf8(value).unwrap()),
        });
        options.collect()
    };
    let (same, _) = joined(&[header(0, "a"), header(1, "a")]).unwrap();
    assert_eq!(said(&same), ["2 a", "3 Linux", "4 tscap", "part"]);
    let (copy, _) = joined(&[same, header(2, "b")]).unwrap();
    let comments = ["1 file 0: a; Linux; tscap", "1 file 1: b; Linux; tscap"];
    assert_eq!(
        said(&copy),
        ["3 Linux", "4 tscap", comments[0], comments[1], "part"]
    );
}
