//! `tscap qos --flow gen FILE` of files that others made.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tscap_testkit::command::tscap_path;

/// In so many KiB of address space.
fn read_within(path: &Path, kib: u64) -> Output {
    let limited = format!("ulimit -v {kib}; exec \"$0\" qos --flow gen -r \"$1\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, tscap_path()]).arg(path);
    command.output().expect("start sh")
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_ne_bytes();
    [&kind.to_ne_bytes()[..], &length, body, &length].concat()
}

fn section() -> Vec<u8> {
    let body = [0x1a2b_3c4d, 1, u32::MAX, u32::MAX].map(u32::to_ne_bytes);
    block(0x0a0d_0d0a, &body.concat())
}

fn interface(options: &[u8]) -> Vec<u8> {
    let head = [1u32, 0].map(u32::to_ne_bytes).concat();
    block(1, &[&head, options].concat())
}

/// Both outputs, as words.
fn both(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// By its interface description, which no frame follows.
#[test]
fn a_file_of_which_no_block_can_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcapng");
    let at = section().len();
    let with = |words: &[u32]| {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        [section(), words.collect::<Vec<_>>()].concat()
    };
    for (words, why) in [
        (
            &[1, 20, 1, 0, 24][..],
            "its length is 20 bytes at its start and 24 at its end",
        ),
        (&[1, 21, 1, 0, 21], "no block is 21 bytes long"),
        (
            &[1, 1 << 30, 1],
            "it is 1073741824 bytes long, and tscap reads blocks of up to 256 MiB",
        ),
        (
            &[1, 24, 1, 0, 0x00ff_0002, 24],
            "an option is longer than the block",
        ),
        (
            &[6, 32, 0, 0, 0, 0, 0, 32],
            "it is of interface 0, which is not described before it",
        ),
    ] {
        fs::write(&path, with(words)).unwrap();
        let output = read_within(&path, 1 << 20);
        let text = both(&output);
        let bytes = 4 * words.len();
        let part = format!("at byte {at}, {bytes} bytes: {why}");
        for said in [
            &part[..],
            "left out: 1 part that can't",
            "0 packets = 0 in 0 flows",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
    fs::write(&path, with(&[1, 20, 1])).unwrap();
    let text = both(&read_within(&path, 1 << 20));
    let torn = "the file ends in the middle of a block";
    assert!(text.contains(torn), "{text}");
}

/// Descriptions, and what each of them says, are not kept.
#[test]
fn many_interface_descriptions_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcapng");
    // Each of 15,000 empty comments.
    let long = interface(&[1u16, 0].map(u16::to_ne_bytes).concat().repeat(15_000));
    let many = [section(), long.repeat(400)].concat();
    // As many as are read, and ten times as many.
    let short = interface(&[]);
    let most = [section(), short.repeat(1 << 16)].concat();
    let more = [section(), short.repeat(10 << 16)].concat();
    for (file, why, code) in [
        (many, "no stream of `tscap gen`", 0),
        (most, "no stream of `tscap gen`", 0),
        (more, "more than 65536 interfaces", 1),
    ] {
        fs::write(&path, file).unwrap();
        let output = read_within(&path, 320 << 10);
        let text = both(&output);
        assert!(text.contains(why), "{text}");
        assert_eq!(output.status.code(), Some(code));
    }
}

#[test]
fn an_interfaces_name_does_not_steer_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcapng");
    // The name, eight bytes, with an escape; and a link type that is not looked into.
    let name = [
        &[2u16, 8].map(u16::to_ne_bytes).concat()[..],
        b"ve\x1b[2J\n!",
    ]
    .concat();
    let mut interface = interface(&name);
    interface[8..10].copy_from_slice(&101u16.to_ne_bytes());
    // A packet of it, empty, at time 0.
    let packet = block(6, &[0; 20]);
    fs::write(&path, [section(), interface, packet].concat()).unwrap();
    let output = read_within(&path, 1 << 20);
    let text = both(&output);
    assert!(
        text.contains(r"ve\u001b[2J\u000a! is not Ethernet"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
}
