//! `tscap gen --read` of files that others made.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tscap_testkit::command::tscap_path;

/// In so many KiB of address space.
fn read_within(path: &Path, kib: u64, more: &str) -> Output {
    let limited = format!("ulimit -v {kib}; exec \"$0\" gen --read \"$1\" {more}");
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
    for (file, why) in [
        (many, "no stream of `tscap gen`"),
        (most, "no stream of `tscap gen`"),
        (more, "more than 65536 interfaces"),
    ] {
        fs::write(&path, file).unwrap();
        let output = read_within(&path, 200 << 10, "");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(why), "{text}");
        assert_eq!(output.status.code(), Some(1));
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
    fs::write(&path, [section(), interface].concat()).unwrap();
    let output = read_within(&path, 1 << 20, "");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains(r"ve\u001b[2J\u000a! is not Ethernet"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "{text:?}");
}
