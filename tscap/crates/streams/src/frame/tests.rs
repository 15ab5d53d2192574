//! Frames built by etherparse and by `tscap gen`'s own layout, whole and cut.

use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{Headers, header};

#[test]
fn finds_the_header_behind_tags_and_options() {
    for made in Headers::each_kind() {
        let frame = made.frame(&header(3, 9));
        let origlen = frame.len() as u32;
        let right = Content::Stream(header(3, 9), Checksum::Right);
        assert_eq!(content(&frame, origlen), right, "{made:?}");
        // 22 bytes of payload are enough.
        let caplen = made.payload_at() + LENGTH;
        let unknown = Content::Stream(header(3, 9), Checksum::Unknown);
        assert_eq!(content(&frame[..caplen], origlen), unknown, "{made:?}");
        let cut = Content::Malformed(Malformed::Cut);
        for caplen in 0..caplen {
            assert_eq!(
                content(&frame[..caplen], origlen),
                cut,
                "{made:?} to {caplen}"
            );
        }
    }
}

#[test]
fn padding_behind_the_datagram_is_not_part_of_it() {
    let mut frame = Headers::V4.frame(&header(0, 0));
    frame.extend([0xaa; 10]);
    let length = frame.len() as u32;
    let right = Content::Stream(header(0, 0), Checksum::Right);
    assert_eq!(content(&frame, length), right);
}

#[test]
fn a_frame_that_was_corrupted_is_not_counted_in_its_stream() {
    for made in Headers::each_kind() {
        let mut frame = made.frame(&header(0, 0));
        *frame.last_mut().unwrap() ^= 1;
        let wrong = Content::Malformed(Malformed::Checksum);
        assert_eq!(content(&frame, frame.len() as u32), wrong);
    }
}

#[test]
fn a_missing_checksum_is_allowed_over_ipv4_only() {
    for (made, expected) in [
        (Headers::V4, Content::Stream(header(0, 0), Checksum::Absent)),
        (Headers::V6, Content::Malformed(Malformed::Checksum)),
    ] {
        let mut frame = made.frame(&header(0, 0));
        let at = made.payload_at() - 2;
        frame[at..at + 2].fill(0);
        assert_eq!(content(&frame, frame.len() as u32), expected);
    }
}

#[test]
fn a_port_of_another_flow_and_impossible_lengths_are_malformed() {
    let mut frame = Headers::V4.frame(&header(0, 1));
    let length = frame.len() as u32;
    let payload_at = Headers::V4.payload_at();
    frame[payload_at + 5] ^= 1;
    assert_eq!(content(&frame, length), Content::Malformed(Malformed::Port));
    let mut frame = Headers::V4.frame(&header(0, 1));
    frame[payload_at - 4] = 0x7f;
    assert_eq!(
        content(&frame, length),
        Content::Malformed(Malformed::Length)
    );
}

#[test]
fn other_traffic_is_neither() {
    let udp = |port, payload: &[u8]| {
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([192, 0, 2, 1], [192, 0, 2, 2], 9);
        let mut frame = Vec::new();
        builder.udp(port, 9).write(&mut frame, payload).unwrap();
        frame
    };
    let header = Headers::V4.frame(&header(0, 0))[42..].to_vec();
    let tcp = {
        let builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([192, 0, 2, 1], [192, 0, 2, 2], 9);
        let mut frame = Vec::new();
        builder
            .tcp(50_000, 9, 1, 1)
            .write(&mut frame, &header)
            .unwrap();
        frame
    };
    let mut fragment = Headers::V4.frame(&super::super::fixtures::header(0, 0));
    fragment[20] |= 0x20;
    for frame in [
        udp(53, &header),
        udp(FIRST_PORT, b"hello"),
        udp(FIRST_PORT, &[0; 100]),
        tcp,
        fragment,
        [&[0xff; 12][..], &[8, 6], &[0; 28]].concat(),
        vec![0; 5],
        Vec::new(),
    ] {
        assert_eq!(
            content(&frame, frame.len() as u32),
            Content::Other,
            "{frame:x?}"
        );
    }
    // Cut, but the magic is wrong already, or the datagram is too short.
    assert_eq!(
        content(&udp(FIRST_PORT, &[0; 100])[..43], 142),
        Content::Other
    );
    assert_eq!(
        content(&udp(FIRST_PORT, b"hello")[..42], 47),
        Content::Other
    );
}

proptest! {
    #[test]
    fn any_bytes_do_no_harm(
        made in prop::sample::select(Headers::each_kind()),
        flips in prop::collection::vec((0usize..120, any::<u8>()), 0..6),
        caplen in 0usize..140,
        origlen in any::<u32>(),
    ) {
        let mut frame = made.frame(&header(1, 2));
        for (at, with) in flips {
            if let Some(byte) = frame.get_mut(at) {
                *byte = with;
            }
        }
        frame.truncate(caplen);
        content(&frame, origlen);
    }

    #[test]
    fn noise_does_no_harm(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        content(&noise, noise.len() as u32);
    }
}
