//! Changes what blocks say of their times, byte by byte, so that it can be undone
//! without a trace.

use std::ops::Range;

use pcap_file::Endianness;
use tscap_common::block::PEN;

use super::block::{options, word as word_at};
use crate::capturing::clock::{FileClock, TimeBase};

/// Where an interface description's options begin, bytes.
const DESCRIPTION_OPTIONS: usize = 16;
/// Where an interface statistics block's time stands, and its options begin, bytes.
const STATISTICS_TIME: usize = 12;
const STATISTICS_OPTIONS: usize = 20;
/// Codes of options (draft-ietf-opsawg-pcapng, sections 3.5, 4.4 and 4.6).
const COMMENT: u16 = 1;
const CUSTOM_TEXT: u16 = 2988;
const START_TIME: u16 = 2;
const END_TIME: u16 = 3;

/// What other programs show of an interface whose times are not of CLOCK_REALTIME.
fn comment(clock: FileClock) -> Option<String> {
    match (clock.base, clock.table) {
        (TimeBase::Realtime, _) => None,
        (TimeBase::Tai, None) => {
            Some("times are of CLOCK_TAI, ahead of UTC by leap seconds".into())
        }
        (TimeBase::Tai, Some(table)) => Some(format!("times are of TAI: {table}")),
        (TimeBase::Monotonic, _) => {
            Some("times are of CLOCK_MONOTONIC, since the machine's boot".into())
        }
    }
}

/// As our option says it: its last fields, left out for CLOCK_REALTIME.
fn fields(clock: FileClock) -> String {
    let mut fields = match clock.base {
        TimeBase::Realtime => String::new(),
        base => format!(",\"time_base\":\"{}\"", base.name()),
    };
    if let Some(table) = &clock.table {
        let table = serde_json::to_string(table).expect("plain structs always serialise");
        fields = format!("{fields},\"leap_table\":{table}");
    }
    fields
}

/// An interface description of ours, with the clock `to` instead of `from`; `None` if
/// the option that says so has no room for it.
pub(super) fn describe(
    block: &[u8],
    from: FileClock,
    to: FileClock,
    endianness: Endianness,
) -> Option<Vec<u8>> {
    let mut options = Vec::new();
    let from_comment = comment(from);
    for (code, range) in all_options(block, DESCRIPTION_OPTIONS, endianness) {
        let value = &block[range];
        if code == COMMENT
            && from_comment
                .as_ref()
                .is_some_and(|text| text.as_bytes() == value)
        {
            continue;
        }
        let ours = (code == CUSTOM_TEXT).then(|| of_ours(value, endianness));
        match ours.flatten() {
            Some(json) => {
                if let Some(text) = comment(to) {
                    put_option(&mut options, COMMENT, text.as_bytes(), endianness)?;
                }
                let mut json = json.replace(&fields(from), "");
                let end = json.rfind('}').unwrap_or(json.len());
                json.insert_str(end, &fields(to));
                let value = [&value[..4], json.as_bytes()].concat();
                put_option(&mut options, code, &value, endianness)?;
            }
            None => put_option(&mut options, code, value, endianness)?,
        }
    }
    put_option(&mut options, 0, &[], endianness)?;
    let length = DESCRIPTION_OPTIONS + options.len() + 4;
    let length = u32::try_from(length).expect("options hold 64 KiB each");
    let mut changed = block[..DESCRIPTION_OPTIONS].to_vec();
    changed[4..8].copy_from_slice(&word(length, endianness));
    changed.extend(options);
    changed.extend(word(length, endianness));
    Some(changed)
}

/// Moves the times of a statistics block: that of the start, and those of its making.
pub(super) fn move_statistics(block: &mut [u8], [start, made]: [i64; 2], endianness: Endianness) {
    let mut moves = vec![(STATISTICS_TIME, made)];
    for (code, range) in all_options(block, STATISTICS_OPTIONS, endianness) {
        match code {
            START_TIME if range.len() == 8 => moves.push((range.start, start)),
            END_TIME if range.len() == 8 => moves.push((range.start, made)),
            _ => {}
        }
    }
    for (at, by_ns) in moves {
        let high = u64::from(read(&block[at..], endianness));
        let low = u64::from(read(&block[at + 4..], endianness));
        let time = (high << 32 | low).wrapping_add_signed(by_ns);
        put_time(&mut block[at..], time, endianness);
    }
}

/// Writes a time as pcapng has it: its high word, then its low one.
pub(super) fn put_time(bytes: &mut [u8], time: u64, endianness: Endianness) {
    let [high, low] = [time >> 32, time & 0xffff_ffff].map(|half| half as u32);
    bytes[..4].copy_from_slice(&word(high, endianness));
    bytes[4..8].copy_from_slice(&word(low, endianness));
}

/// The JSON of our option.
fn of_ours(value: &[u8], endianness: Endianness) -> Option<&str> {
    let (pen, json) = value.split_at_checked(4)?;
    (read(pen, endianness) == PEN).then_some(())?;
    std::str::from_utf8(json).ok()
}

/// Code and value of each option of a block that can be read.
fn all_options(block: &[u8], at: usize, endianness: Endianness) -> Vec<(u16, Range<usize>)> {
    options(block, at, endianness)
        .map_while(Result::ok)
        .collect()
}

fn put_option(
    options: &mut Vec<u8>,
    code: u16,
    value: &[u8],
    endianness: Endianness,
) -> Option<()> {
    let length = u16::try_from(value.len()).ok()?;
    for half in [code, length] {
        options.extend(match endianness {
            Endianness::Big => half.to_be_bytes(),
            Endianness::Little => half.to_le_bytes(),
        });
    }
    options.extend(value);
    options.resize(options.len().next_multiple_of(4), 0);
    Some(())
}

fn read(bytes: &[u8], endianness: Endianness) -> u32 {
    word_at(bytes, 0, endianness).expect("a block is long enough")
}

fn word(word: u32, endianness: Endianness) -> [u8; 4] {
    match endianness {
        Endianness::Big => word.to_be_bytes(),
        Endianness::Little => word.to_le_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capturing::clock::{RealNs, TableOffset};

    fn of(base: TimeBase) -> FileClock {
        FileClock { base, table: None }
    }

    fn description(endianness: Endianness) -> Vec<u8> {
        description_with(br#"{"v":1,"boot_id":"b"}"#, endianness)
    }

    fn description_with(json: &[u8], endianness: Endianness) -> Vec<u8> {
        let mut options = Vec::new();
        put_option(&mut options, 2, b"eth0", endianness);
        put_option(&mut options, COMMENT, b"of somebody else", endianness);
        let ours = [&word(PEN, endianness)[..], json].concat();
        put_option(&mut options, CUSTOM_TEXT, &ours, endianness);
        put_option(&mut options, 9, &[9], endianness);
        put_option(&mut options, 0, &[], endianness);
        let length = word(
            DESCRIPTION_OPTIONS as u32 + options.len() as u32 + 4,
            endianness,
        );
        let head = [
            &word(1, endianness)[..],
            &length,
            &[0, 1, 0, 0, 0, 0, 0, 96],
        ];
        [&head.concat()[..], &options, &length].concat()
    }

    #[test]
    fn a_description_is_changed_and_changed_back() {
        for endianness in [Endianness::Little, Endianness::Big] {
            let real = description(endianness);
            let to_tai =
                describe(&real, of(TimeBase::Realtime), of(TimeBase::Tai), endianness).unwrap();
            let all = all_options(&to_tai, DESCRIPTION_OPTIONS, endianness);
            let codes: Vec<_> = all.iter().map(|(code, _)| *code).collect();
            assert_eq!(codes, [2, COMMENT, COMMENT, CUSTOM_TEXT, 9]);
            let text = String::from_utf8_lossy(&to_tai);
            assert!(text.contains("times are of CLOCK_TAI"));
            assert!(text.contains(r#"{"v":1,"boot_id":"b","time_base":"tai"}"#));
            assert_eq!(read(&to_tai[4..], endianness) as usize, to_tai.len());
            let mono = of(TimeBase::Monotonic);
            let to_mono = describe(&to_tai, of(TimeBase::Tai), mono, endianness).unwrap();
            assert!(!String::from_utf8_lossy(&to_mono).contains("TAI"));
            let back = describe(&to_mono, mono, of(TimeBase::Realtime), endianness);
            assert_eq!(back.as_ref(), Some(&real));
            let table = Some(TableOffset {
                tai_offset_s: 37,
                expires: RealNs(1_782_604_800_000_000_000),
            });
            let base = TimeBase::Tai;
            let by_table = FileClock { base, table };
            let to_tai = describe(&real, of(TimeBase::Realtime), by_table, endianness).unwrap();
            let text = String::from_utf8_lossy(&to_tai);
            assert!(text.contains("times are of TAI: UTC + 37 s by the leap-second table"));
            assert!(text.contains(
                r#""time_base":"tai","leap_table":{"tai_offset_s":37,"expires":1782604800000000000}}"#
            ));
            let back = describe(&to_tai, by_table, of(TimeBase::Realtime), endianness);
            assert_eq!(back, Some(real));
        }
    }

    #[test]
    fn a_full_option_is_refused() {
        let json = format!("{{\"v\":1,\"boot_id\":\"{}\"}}", "b".repeat(65_500));
        let full = description_with(json.as_bytes(), Endianness::Little);
        let (real, mono) = (of(TimeBase::Realtime), of(TimeBase::Monotonic));
        assert!(describe(&full, real, real, Endianness::Little).is_some());
        assert!(describe(&full, real, mono, Endianness::Little).is_none());
    }

    #[test]
    fn times_of_statistics_move() {
        for endianness in [Endianness::Little, Endianness::Big] {
            let mut block = vec![0; STATISTICS_OPTIONS];
            put_time(&mut block[STATISTICS_TIME..], 0x1_ffff_ffff, endianness);
            for (code, time) in [(START_TIME, 1000), (END_TIME, 0x1_ffff_ffff), (4, 77)] {
                let mut value = [0; 8];
                put_time(&mut value, time, endianness);
                put_option(&mut block, code, &value, endianness);
            }
            put_option(&mut block, 0, &[], endianness);
            block.extend([0; 4]);
            let before = block.clone();
            move_statistics(&mut block, [-100, 5], endianness);
            let time = |at: usize| {
                let words = [at, at + 4].map(|at| u64::from(read(&block[at..], endianness)));
                words[0] << 32 | words[1]
            };
            let times = [12, 24, 36, 48].map(time);
            assert_eq!(times, [0x2_0000_0004, 900, 0x2_0000_0004, 77]);
            move_statistics(&mut block, [100, -5], endianness);
            assert_eq!(block, before);
        }
    }
}
