use super::*;
use tscap_common::block::{FLAGS_BYTES, FLAGS_INBOUND, ORIGLEN_OFFSET, PEN, RAW_BYTES};

/// A block of `caplen` bytes 0xa5 with room for stamps and flags, everything else 0.
fn bytes(caplen: usize) -> Vec<u8> {
    let length = block_len(caplen, RAW_BYTES + HARDWARE_BYTES + FLAGS_BYTES + 4);
    let mut bytes = vec![0; length];
    put(&mut bytes, TYPE_OFFSET, EPB_TYPE);
    put(&mut bytes, LENGTH_OFFSET, u32::try_from(length).unwrap());
    put(&mut bytes, CAPLEN_OFFSET, u32::try_from(caplen).unwrap());
    put(&mut bytes, ORIGLEN_OFFSET, u32::try_from(caplen).unwrap());
    bytes[DATA_OFFSET..][..caplen].fill(0xa5);
    put(&mut bytes, length - 4, u32::try_from(length).unwrap());
    bytes
}

#[test]
fn the_raw_stamp_stands_behind_the_frame_and_its_padding() {
    for caplen in 14..18 {
        let mut bytes = bytes(caplen);
        let before = bytes.clone();
        let mut block = Block::at_start(&mut bytes, 0, RawStamp(0)).unwrap();
        block.set_raw_option(RawStamp(u64::MAX));
        let at = DATA_OFFSET + caplen.next_multiple_of(4) + RAW_STAMP_OFFSET;
        assert_eq!(bytes[at..at + 8], [0xff; 8], "{caplen}");
        bytes[at..at + 8].fill(0);
        assert_eq!(bytes, before, "nothing else");
    }
}

#[test]
fn a_final_block_has_its_interface_and_time() {
    let mut bytes = bytes(60);
    let mut block = Block::at_start(&mut bytes, 0, RawStamp(0)).unwrap();
    block.finish(3, RealNs(0x1234_5678_9abc_def0));
    assert_eq!((block.data(), block.origlen()), (&[0xa5; 60][..], 60));
    assert_eq!(stamp(&bytes, 0), RawStamp(0x1234_5678_9abc_def0));
    assert_eq!(stamp(&bytes, -16), RawStamp(0x1234_5678_9abc_dee0));
    let length = bytes.len();
    let two = [&bytes[..], &bytes].concat();
    let ends: Vec<_> = blocks(&two).collect();
    let frame = FinalFrame {
        slot: Slot::of(3, Direction::In),
        has_hardware_stamp: false,
        is_converted: false,
    };
    assert_eq!(ends, [(Some(frame), length), (Some(frame), 2 * length)]);
    assert_eq!(last_block(&two), Some((length, Some(frame))));
    assert_eq!(blocks(&two[4..]).next(), None);
}

#[test]
fn a_final_block_still_says_which_way_its_frame_went() {
    for (keep_raw, has_hardware_stamp) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        for (flags, direction) in [
            (FLAGS_INBOUND, Direction::In),
            (FLAGS_OUTBOUND | 1 << 11, Direction::Out),
        ] {
            let mut bytes = bytes(61);
            let mut at = DATA_OFFSET + 64;
            if keep_raw {
                put(&mut bytes, at, OPT_RAW);
                at += RAW_BYTES;
            }
            if has_hardware_stamp {
                put(&mut bytes, at, OPT_HARDWARE);
                at += HARDWARE_BYTES;
            }
            put(&mut bytes, at, OPT_FLAGS);
            put(&mut bytes, at + 4, flags);
            let (frame, _) = blocks(&bytes).next().unwrap();
            let expected = FinalFrame {
                slot: Slot::of(0, direction),
                has_hardware_stamp,
                is_converted: has_hardware_stamp,
            };
            assert_eq!(frame, Some(expected));
        }
    }
}

/// Header, enterprise number, stamp and delay, as docs/file-format.md has them.
#[test]
fn a_hardware_stamp_is_read_and_its_delay_written() {
    for keep_raw in [false, true] {
        let mut bytes = bytes(61);
        assert_eq!(hardware_option(&bytes), None);
        let mut at = DATA_OFFSET + 64;
        if keep_raw {
            put(&mut bytes, at, OPT_RAW);
            at += 16;
        }
        put(&mut bytes, at, 2989 | 20 << 16);
        put(&mut bytes, at + 4, PEN);
        bytes[at + 8..at + 16].copy_from_slice(&0x1234_5678_9abc_def0u64.to_ne_bytes());
        let before = bytes.clone();
        let mut block = Block::at_start(&mut bytes, 0, RawStamp(0)).unwrap();
        assert_eq!(block.hardware_stamp(), Some(PhcNs(0x1234_5678_9abc_def0)));
        block.set_hardware_delay(-7);
        assert_eq!(bytes[at + 16..at + 24], (-7i64).to_ne_bytes());
        for (delay, is_converted) in [(-7, true), (NOT_CONVERTED, false)] {
            let mut block = Block::at_start(&mut bytes, 0, RawStamp(0)).unwrap();
            block.set_hardware_delay(delay);
            let (frame, _) = blocks(&bytes).next().unwrap();
            assert_eq!(frame.unwrap().is_converted, is_converted);
        }
        bytes[at + 16..at + 24].fill(0);
        assert_eq!(bytes, before, "nothing else");
    }
    let mut bytes = bytes(60);
    let before = bytes.clone();
    let mut block = Block::at_start(&mut bytes, 0, RawStamp(0)).unwrap();
    assert_eq!(block.hardware_stamp(), None);
    block.set_hardware_delay(7);
    assert_eq!(bytes, before);
}

#[test]
fn what_is_no_block_says_what_it_is() {
    let least = u32::try_from(block_len(0, 0)).unwrap();
    let whole = bytes(60);
    let length = u32::try_from(whole.len()).unwrap();
    let most = u32::try_from(MAX_RECORD).unwrap();
    for (block_type, length, is_block) in [
        (EPB_TYPE, length, true),
        (EPB_TYPE, least, true),
        (EPB_TYPE + 1, length, false),
        (EPB_TYPE, length - 1, false),
        (EPB_TYPE, least - 4, false),
        (EPB_TYPE, length + 4, false),
        (EPB_TYPE, most + 4, false),
    ] {
        let mut bytes = whole.clone();
        put(&mut bytes, TYPE_OFFSET, block_type);
        put(&mut bytes, LENGTH_OFFSET, length);
        let found = Block::at_start(&mut bytes, 77, RawStamp(0)).map(|block| block.len());
        let expected = CorruptBlock {
            position: 77,
            block_type,
            length,
            slot: 0,
        };
        let expected = is_block.then_some(length as usize).ok_or(expected);
        assert_eq!(found, expected);
    }
}

#[test]
fn no_stamp_is_never_whatever_stands_there() {
    let bytes = [0xff; DATA_OFFSET];
    for offset in [0, 1, -1] {
        assert!(stamp(&bytes, offset) < RawStamp::NEVER, "{offset}");
    }
}

/// 28 bytes before the frame and 4 behind it, which are those of the pcapng draft.
#[test]
fn a_block_has_room_for_its_frame_padding_and_options() {
    for (caplen, options, length) in [
        (0, 0, 32),
        (1, 0, 36),
        (4, 0, 36),
        (60, 0, 92),
        (61, 0, 96),
        (60, 20, 112),
    ] {
        assert_eq!(block_len(caplen, options), length, "{caplen} {options}");
    }
}
