//! Changes what blocks say of their times, byte by byte, so that it can be undone
//! without a trace; and which filter interface descriptions name.

use pcap_file::Endianness;

use super::block::{DESCRIPTION_OPTIONS, STATISTICS_OPTIONS, options, word as word_at};
use super::file::{FILTER_TEXT, text_filter};
use super::options::{COMMENT, json_of_ours, options_of, with_json, with_options, word};
use tscap_clock::{FileClock, NtpBase, PeerBase, TimeBase};

/// Where an interface statistics block's time stands, bytes.
pub(super) const STATISTICS_TIME: usize = 12;
/// Codes of options (draft-ietf-opsawg-pcapng, sections 4.2 and 4.6).
const IF_FILTER: u16 = 11;
pub(super) const START_TIME: u16 = 2;
pub(super) const END_TIME: u16 = 3;

/// What other programs show of an interface whose times are not of CLOCK_REALTIME.
fn comment(clock: FileClock) -> Option<String> {
    match (clock.base, clock.table) {
        (TimeBase::Realtime, _) => None,
        (TimeBase::Ntp, _) => Some(match clock.ntp {
            None => "times are of an NTP server's clock".into(),
            Some(NtpBase {
                server,
                bound_ns,
                root_distance_ns,
            }) => format!(
                "times are UTC by the clock of NTP server {server}: off that by {bound_ns} ns at \
                 most, and that off UTC by {root_distance_ns} ns at most, as it says"
            ),
        }),
        (TimeBase::Peer, _) => Some(match clock.peer {
            None => "times are of another host's clock".into(),
            Some(PeerBase { boot, bound_ns, .. }) => format!(
                "times are of the clock of the host of boot {boot}: off that by {bound_ns} ns at most"
            ),
        }),
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
    if let Some(ntp) = &clock.ntp {
        let ntp = serde_json::to_string(ntp).expect("plain structs always serialise");
        fields = format!("{fields},\"ntp\":{ntp}");
    }
    if let Some(peer) = &clock.peer {
        let peer = serde_json::to_string(peer).expect("plain structs always serialise");
        fields = format!("{fields},\"peer\":{peer}");
    }
    fields
}

/// tscap's interface description, with the clock `to` instead of `from`; `None` if
/// the option that says so has no room for it.
pub(super) fn describe(
    block: &[u8],
    from: FileClock,
    to: FileClock,
    endianness: Endianness,
) -> Option<Vec<u8>> {
    let mut options = Vec::new();
    let from_comment = comment(from).map(String::into_bytes);
    for (code, value) in options_of(block, DESCRIPTION_OPTIONS, endianness) {
        if code == COMMENT && Some(&value) == from_comment.as_ref() {
            continue;
        }
        let Some(json) = json_of_ours(code, &value, endianness) else {
            options.push((code, value));
            continue;
        };
        options.extend(comment(to).map(|text| (COMMENT, text.into_bytes())));
        let mut json = json.replace(&fields(from), "");
        let end = json.rfind('}').unwrap_or(json.len());
        json.insert_str(end, &fields(to));
        options.push((code, with_json(&value, &json)));
    }
    with_options(block, DESCRIPTION_OPTIONS, &options, endianness)
}

/// A description that says nothing, in the place of one that can't be read: those behind it keep
/// their numbers.
pub(super) fn undescribed(block: &[u8], endianness: Endianness) -> Vec<u8> {
    let mut start = block[..block.len().min(DESCRIPTION_OPTIONS)].to_vec();
    if block.len() < DESCRIPTION_OPTIONS + 4 {
        start.truncate(8);
        start.resize(DESCRIPTION_OPTIONS, 0);
    }
    with_options(&start, DESCRIPTION_OPTIONS, &[], endianness).expect("no option is too long")
}

/// An interface description with a filter that its packets have matched, after the one
/// that it names; `None` if there is no room for it.
pub(super) fn describe_filter(
    block: &[u8],
    filter: &str,
    endianness: Endianness,
) -> Option<Vec<u8>> {
    let mut options = options_of(block, DESCRIPTION_OPTIONS, endianness);
    let named = options.iter_mut().find(|(code, _)| *code == IF_FILTER);
    match named.map(|(_, value)| value) {
        Some(value) => match value.split_first() {
            Some((&FILTER_TEXT, old)) if !old.trim_ascii().is_empty() => {
                let both = [b"(", old, b") and (", filter.as_bytes(), b")"];
                *value = [&[FILTER_TEXT][..], &both.concat()].concat();
            }
            Some((&FILTER_TEXT, _)) | None => *value = text_filter(filter),
            // Compiled: no expression says both.
            Some(_) => {
                let comment = format!("packets were filtered again: {filter}");
                options.push((COMMENT, comment.into_bytes()));
            }
        },
        None => options.push((IF_FILTER, text_filter(filter))),
    }
    with_options(block, DESCRIPTION_OPTIONS, &options, endianness)
}

/// Moves the times of a statistics block: that of the start, and those of its making.
pub(super) fn move_statistics(block: &mut [u8], [start, made]: [i64; 2], endianness: Endianness) {
    let mut moves = vec![(STATISTICS_TIME, made)];
    for (code, range) in options(block, STATISTICS_OPTIONS, endianness).map_while(Result::ok) {
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

fn read(bytes: &[u8], endianness: Endianness) -> u32 {
    word_at(bytes, 0, endianness).expect("a block is long enough")
}

#[cfg(test)]
mod tests {
    use super::super::options::{CUSTOM_TEXT, put_option};
    use super::*;
    use tscap_clock::{RealNs, TableOffset};
    use tscap_common::block::PEN;

    fn of(base: TimeBase) -> FileClock {
        FileClock {
            base,
            ..FileClock::default()
        }
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
            let all = options_of(&to_tai, DESCRIPTION_OPTIONS, endianness);
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
            let by_table = FileClock { table, ..of(base) };
            let to_tai = describe(&real, of(TimeBase::Realtime), by_table, endianness).unwrap();
            let text = String::from_utf8_lossy(&to_tai);
            assert!(text.contains("times are of TAI: UTC + 37 s by the leap-second table"));
            assert!(text.contains(
                r#""time_base":"tai","leap_table":{"tai_offset_s":37,"expires":1782604800000000000}}"#
            ));
            let back = describe(&to_tai, by_table, of(TimeBase::Realtime), endianness);
            assert_eq!(back.as_ref(), Some(&real));
            let by_server = FileClock {
                ntp: Some(NtpBase {
                    server: "10.9.0.1:123".parse().unwrap(),
                    bound_ns: 7,
                    root_distance_ns: 9,
                }),
                ..of(TimeBase::Ntp)
            };
            let to_ntp = describe(&real, of(TimeBase::Realtime), by_server, endianness).unwrap();
            let text = String::from_utf8_lossy(&to_ntp);
            assert!(text.contains("by the clock of NTP server 10.9.0.1:123: off that by 7 ns"));
            assert!(text.contains(
                r#""time_base":"ntp","ntp":{"server":"10.9.0.1:123","bound_ns":7,"root_distance_ns":9}}"#
            ));
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
    fn filters_are_named_together() {
        for endianness in [Endianness::Little, Endianness::Big] {
            let filters = |block: &[u8]| -> Vec<_> {
                let mut options = options_of(block, DESCRIPTION_OPTIONS, endianness);
                options.retain(|(code, _)| [COMMENT, IF_FILTER].contains(code));
                options.into_iter().skip(1).collect()
            };
            let text = |text: &str| (IF_FILTER, text_filter(text));
            let plain = description(endianness);
            let one = describe_filter(&plain, "tcp or udp", endianness).unwrap();
            assert_eq!(filters(&one), [text("tcp or udp")]);
            let two = describe_filter(&one, "port 1", endianness).unwrap();
            assert_eq!(filters(&two), [text("(tcp or udp) and (port 1)")]);
            let with = |value: &[u8]| {
                let mut options = options_of(&plain, DESCRIPTION_OPTIONS, endianness);
                options.push((IF_FILTER, value.to_vec()));
                let block = with_options(&plain, DESCRIPTION_OPTIONS, &options, endianness);
                filters(&describe_filter(&block.unwrap(), "udp", endianness).unwrap())
            };
            assert_eq!(with(b"\0 "), [text("udp")]);
            assert_eq!(with(b""), [text("udp")]);
            let again = b"packets were filtered again: udp".to_vec();
            let compiled = b"\x01\x06\0\0\0".to_vec();
            assert_eq!(with(&compiled), [(IF_FILTER, compiled), (COMMENT, again)]);
            let long = "a".repeat(65_535);
            assert_eq!(describe_filter(&plain, &long, endianness), None);
        }
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
            // Options of a length that no time has.
            let mut wrong = vec![0; STATISTICS_OPTIONS];
            for code in [START_TIME, END_TIME] {
                put_option(&mut wrong, code, &[1; 4], endianness);
            }
            wrong.extend([0; 8]);
            let before = wrong[STATISTICS_OPTIONS..].to_vec();
            move_statistics(&mut wrong, [-100, 5], endianness);
            assert_eq!(wrong[STATISTICS_OPTIONS..], before);
        }
    }
}
