//! A part of the packets of a file, also of another program's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pcap_file::pcap::PcapReader;
use tempfile::TempDir;
use tscap_testkit::command::tscap_path;
use tscap_testkit::libpcap::libpcap;
use tscap_testkit::recording::Recording;
use tscap_testkit::root::skip;

use super::foreign::{Foreign, numbered};
use super::script::{LENGTH, convert, file, log, packets, slewed, slewed_capture, without_times};
use tscap_testkit::filters::frames::frames;
use tscap_testkit::shown::{Runner, commands};

/// A compiled filter, which needs no libpcap: for frames whose byte 14 is `byte`.
pub fn byte_14_is(folder: &TempDir, byte: u8) -> PathBuf {
    let path = folder.path().join("filter.bpf");
    let text = format!("4\n48 0 0 14\n21 0 1 {byte}\n6 0 0 65535\n6 0 0 0\n");
    fs::write(&path, text).unwrap();
    path
}

/// A copy of `bytes` by such a filter and these arguments.
fn filtered(folder: &TempDir, bytes: &[u8], byte: u8, more: &[&str]) -> (Vec<u8>, Output) {
    let path = folder.path().join("out.pcapng");
    let filter = byte_14_is(folder, byte);
    let mut options = vec!["--filter-bytecode", filter.to_str().unwrap()];
    options.extend(more);
    let output = convert(&file(folder, bytes), &path, &options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    (fs::read(path).unwrap(), output)
}

#[test]
fn a_foreign_file_keeps_what_matches_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for is_big in [false, true] {
        let mut input = Foreign::new(is_big, 5_000);
        let mut kept = Foreign::new(is_big, u64::MAX);
        let old = [input.option(2, b"lan"), input.option(11, b"\0not arp")].concat();
        input.interface(1, 64, &old);
        let filter = byte_14_is(&folder, 7);
        let new = format!("\0(not arp) and ({})", filter.display());
        let end = kept.option(0, &[]);
        let options = [
            kept.option(2, b"lan"),
            kept.option(11, new.as_bytes()),
            end.clone(),
        ];
        kept.interface(1, 64, &options.concat());
        // Of another link type, but without packets.
        for file in [&mut input, &mut kept] {
            file.interface(113, 0, &[]);
        }
        for index in 0..30 {
            let data = numbered(index);
            let comment = input.option(1, b"kept as it is");
            let mut blocks = vec![input.packet_with(0, 1_000, &data, &comment)];
            // A simple and an obsolete one.
            let length = input.word(40);
            blocks.push(input.block(3, &[&length[..], &data].concat()));
            let head = [input.half(0), input.half(9)].concat();
            let times = [input.word(1), input.word(2), length, length].concat();
            blocks.push(input.block(2, &[&head[..], &times, &data].concat()));
            if index % 3 == 0 {
                kept.bytes.extend(blocks.concat());
            }
            // Names, statistics and what nobody knows.
            for kind in [4, 5, 0xbad] {
                let body = [input.word(0), input.word(1), input.word(2)].concat();
                for file in [&mut input, &mut kept] {
                    file.block(kind, &body);
                }
            }
        }
        let (copy, output) = filtered(&folder, &input.bytes, 7, &["--json"]);
        assert!(copy == kept.bytes, "{is_big}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (&json["packets"], &json["filtered"]),
            (&30.into(), &60.into())
        );
        assert_eq!(json["filter"]["compiler"], "bytecode");
        assert!(
            json["filter"]["expression"]
                .as_str()
                .unwrap()
                .ends_with("filter.bpf")
        );
        assert_eq!(
            (&json["is_whole"], &json["source"]),
            (&true.into(), &().into())
        );
    }
}

/// By the flags of packets, of either byte order; by those of an obsolete block too.
#[test]
fn the_direction_is_that_of_the_packets_flags() {
    let folder = tempfile::tempdir().unwrap();
    let filter = folder.path().join("filter.bpf");
    for is_big in [false, true] {
        let mut input = Foreign::new(is_big, u64::MAX);
        input.interface(1, 0, &[]);
        for (index, flags) in [1, 2, 0, 3, 0x202, 0x801].into_iter().enumerate() {
            let flags = input.option(2, &input.word(flags));
            input.packet_with(0, 40, &numbered(index), &flags);
        }
        input.packet(0, 40, &numbered(6));
        let length = input.word(40);
        let head = [input.half(0), input.half(0)].concat();
        let times = [input.word(1), input.word(2), length, length].concat();
        let flags = input.option(2, &input.word(2));
        input.block(2, &[&head[..], &times, &numbered(7), &flags].concat());
        // As libpcap compiles "outbound" and "inbound": is the packet type 4?
        for (verdicts, wanted) in [([65535, 0], &[1, 4, 7][..]), ([0, 65535], &[0, 2, 3, 5, 6])] {
            let [sent, received] = verdicts;
            let text = format!("4\n40 0 0 4294963204\n21 0 1 4\n6 0 0 {sent}\n6 0 0 {received}\n");
            fs::write(&filter, text).unwrap();
            let path = folder.path().join("out.pcapng");
            let more = ["--filter-bytecode", filter.to_str().unwrap()];
            let output = convert(&file(&folder, &input.bytes), &path, &more);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let copied = packets(&fs::read(path).unwrap());
            let copied: Vec<_> = copied.into_iter().map(|it| it.data).collect();
            let wanted: Vec<_> = wanted.iter().map(|index| numbered(*index)).collect();
            assert_eq!(copied, wanted, "{is_big}");
        }
    }
}

/// The file of what tcpdump takes of another one; `None` where it is absent.
fn tcpdump(input: &Path, expression: &str) -> Option<Vec<(u32, Vec<u8>)>> {
    let path = input.with_extension("tcpdump");
    let mut command = Command::new("tcpdump");
    command.arg("-r").arg(input).arg("-w").arg(&path);
    // As root it would become another user, who can't write here.
    let Ok(output) = command.args(["-Z", "root", "--", expression]).output() else {
        skip("needs `tcpdump`");
        return None;
    };
    assert!(output.status.success(), "{expression}: {output:?}");
    let mut reader = PcapReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        packets.push((packet.orig_len(), packet.data().to_vec()));
    }
    Some(packets)
}

#[test]
fn it_takes_what_tcpdump_takes() {
    let Some(_) = libpcap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut input = Foreign::new(false, u64::MAX);
    for _ in 0..3 {
        input.interface(1, 262_144, &[]);
    }
    for (index, frame) in frames(5, 3_000).into_iter().enumerate() {
        // Some are cut, as by a snaplen.
        let most = [frame.len(), 40, 60][index % 3].min(frame.len());
        input.packet(index as u32 % 3, frame.len() as u32, &frame[..most]);
    }
    let path = file(&folder, &input.bytes);
    let mut matched = 0;
    for expression in [
        "tcp port 443",
        "udp or icmp",
        "not ip",
        "greater 100",
        "len <= 60",
        "ip6 and tcp",
        "vlan and ip",
        "ip[8] < 64",
        "host 10.0.0.1",
        "net 10.0.0.0/8 and not port 53",
        "ether broadcast or multicast",
        "ip and not tcp and not udp",
    ] {
        let copy = folder.path().join("copy.pcapng");
        let output = convert(&path, &copy, &expression.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{expression}: {output:?}");
        let ours: Vec<_> = packets(&fs::read(&copy).unwrap())
            .into_iter()
            .map(|packet| (packet.origlen, packet.data))
            .collect();
        let Some(theirs) = tcpdump(&path, expression) else {
            return;
        };
        assert!(
            ours == theirs,
            "{expression}: {} {}",
            ours.len(),
            theirs.len()
        );
        matched += ours.len();
        let described = Recording::read(&copy).interfaces;
        let filters = described.iter().map(|it| it.filter.as_deref());
        assert!(filters.eq([Some(expression); 3]), "{expression}");
    }
    assert!(matched > 3_000, "{matched}");
}

#[test]
fn an_expression_stands_in_words_in_one_argument_or_in_a_file() {
    let Some(_) = libpcap() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut input = Foreign::new(false, u64::MAX);
    input.interface(1, 0, &[]);
    (0..9).for_each(|index| drop(input.packet(0, 40, &numbered(index))));
    file(&folder, &input.bytes);
    fs::write(folder.path().join("filter"), "ether[14] = 8\n").unwrap();
    for line in [
        "in.pcapng -w out.pcapng ether[14] = 8",
        "in.pcapng ether[14] -w out.pcapng = 8",
        "-w out.pcapng in.pcapng ether[14] = 8",
        "in.pcapng -w out.pcapng -f ether[14]=8",
        "-F filter in.pcapng -w out.pcapng",
    ] {
        let mut command = Command::new(tscap_path());
        command.arg("convert").args(line.split(' '));
        let output = command.current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("out.pcapng: 3 of 9 packets match \"ether[14]"),
            "{text}"
        );
        let copy = fs::read(folder.path().join("out.pcapng")).unwrap();
        assert!(packets(&copy).iter().all(|it| it.data[14] == 8), "{line}");
        fs::remove_file(folder.path().join("out.pcapng")).unwrap();
    }
    // All packets, and no filter to be named.
    let path = folder.path().join("all.pcapng");
    let output = convert(&folder.path().join("in.pcapng"), &path, &["-f", ""]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(fs::read(path).unwrap() == input.bytes);
}

#[test]
fn the_documented_commands_work() {
    let Some(_) = libpcap() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("out.pcapng"), scripted(false)).unwrap();
    for line in commands(Runner::ConvertFilter) {
        let mut command = Command::new(tscap_path());
        command.args(line.split(' ').skip(1));
        let status = command.current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}");
    }
    assert!(folder.path().join("https.pcapng").exists());
}

/// Packets of a capture from a script, every third with 7 in byte 14.
pub fn scripted(keep_raw: bool) -> Vec<u8> {
    let (mut bytes, _) = slewed_capture(keep_raw);
    let word = |bytes: &[u8], at: usize| {
        u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    let (mut at, mut index) = (0, 0);
    while at < bytes.len() {
        if word(&bytes, at) == 6 {
            bytes[at + 28 + 14] = 7 + index % 3;
            index = (index + 1) % 3;
        }
        at += word(&bytes, at + 4);
    }
    bytes
}

#[test]
fn times_stay_unless_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for keep_raw in [true, false] {
        let input = scripted(keep_raw);
        let (copy, output) = filtered(&folder, &input, 7, &[]);
        let wanted = packets(&input).into_iter().filter(|it| it.data[14] == 7);
        let copied = packets(&copy);
        assert!(copied.iter().cloned().eq(wanted));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let all = packets(&input).len();
        assert_eq!(copied.len(), all / 3);
    }
}

#[test]
fn a_filter_and_another_clock_are_done_in_one_turn_as_in_two() {
    let folder = tempfile::tempdir().unwrap();
    let input = scripted(true);
    let clock_log = log(&folder, &slewed(), 0, LENGTH);
    let clock_log = clock_log.to_str().unwrap();
    for options in [
        &["--time-base", "tai"][..],
        &["--clock-log", clock_log],
        &["--clock-log", clock_log, "--time-base", "monotonic"],
    ] {
        let path = folder.path().join("clock.pcapng");
        let output = convert(&file(&folder, &input), &path, options);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let (in_two, _) = filtered(&folder, &fs::read(path).unwrap(), 7, &[]);
        let (in_one, output) = filtered(&folder, &input, 7, &[options, &["--json"]].concat());
        assert!(in_one == in_two, "{options:?}");
        assert!(without_times(&in_one) != in_one);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let kept = packets(&in_one).len();
        assert_eq!(json["packets"], kept);
        assert_eq!(json["filtered"], packets(&input).len() - kept);
        if options[0] == "--clock-log" {
            let moved = json["moved_ns"]["n"].as_u64().unwrap();
            let left = json["left"].as_u64().unwrap();
            assert_eq!(moved + left, kept as u64);
        }
    }
}

#[test]
fn a_filter_that_nothing_matches_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, output) = filtered(&folder, &scripted(false), 99, &[]);
    assert!(packets(&copy).is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("warning: the filter ") && text.contains("matches no packet"),
        "{text}"
    );
    let (_, output) = filtered(&folder, &scripted(false), 7, &[]);
    assert!(output.stderr.is_empty(), "{output:?}");
    // In a file without packets, by what libpcap says.
    if libpcap().is_some() {
        let empty = Foreign::new(false, u64::MAX).bytes;
        let path = folder.path().join("out.pcapng");
        let output = convert(&file(&folder, &empty), &path, &["tcp and udp"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            text,
            "warning: the filter \"tcp and udp\" matches no packet\n"
        );
    }
}

#[test]
fn a_torn_file_is_filtered_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = scripted(false);
    let filter = byte_14_is(&folder, 7);
    let path = folder.path().join("out.pcapng");
    let input = file(&folder, &bytes[..bytes.len() - 3]);
    let more = ["--filter-bytecode", filter.to_str().unwrap()];
    let output = convert(&input, &path, &more);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ends within a block"), "{text}");
    assert_eq!(
        packets(&fs::read(&path).unwrap()).len(),
        packets(&bytes).len() / 3
    );
}
