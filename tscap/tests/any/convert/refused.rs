//! Files and filters that no copy is made of.

use std::fs;

use pcap_file::DataLink;
use tscap_testkit::libpcap::libpcap;

use super::filter::{byte_14_is, scripted};
use super::foreign::{Foreign, numbered};
use super::script::{convert, file, refuses_with};

#[test]
fn what_cannot_be_filtered_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let filter = byte_14_is(&folder, 7);
    let filter = ["--filter-bytecode", filter.to_str().unwrap()];
    let refused = |content: &[u8], more: &[&str], parts: &[&str]| {
        refuses_with(&folder, content, more, parts);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "half a copy stays");
    };
    let mut input = Foreign::new(false, u64::MAX);
    input.interface(1, 0, &[]);
    input.packet(0, 40, &numbered(0));
    let named = input.option(2, b"tun0");
    for (options, name) in [(&named[..], "tun0"), (&[], "interface 1")] {
        let mut other = Foreign::new(false, u64::MAX);
        other.interface(1, 0, &[]);
        other.interface(113, 0, options);
        other.packet(0, 40, &numbered(0));
        other.packet(1, 40, &numbered(0));
        let cooked = u32::from(DataLink::LINUX_SLL);
        let what = format!("a packet of {name} is of link type {cooked}");
        refused(&other.bytes, &filter, &["cannot convert", &what, "hint: "]);
    }
    refused(
        b"hello",
        &filter,
        &["cannot read", "hint: `editcap -F pcapng`"],
    );
    let other_version = &mut input.bytes.clone();
    other_version[12..14].copy_from_slice(&2u16.to_ne_bytes());
    refused(other_version, &filter, &["cannot read", "pcapng 2.0"]);

    let beside = folder.path().join("filter.bpf");
    fs::write(&beside, "2\n40 0 0 4294963208\n22 0 0 0\n").unwrap();
    refused(
        &input.bytes,
        &filter,
        &["number of an interface", "hint: ifindex"],
    );
    fs::write(&beside, "nothing").unwrap();
    refused(&input.bytes, &filter, &["cannot use", "as a filter"]);
    fs::remove_file(&beside).unwrap();
    fs::write(folder.path().join("other"), "").unwrap();
    refused(&input.bytes, &filter, &["cannot read the compiled filter"]);
    refused(
        &input.bytes,
        &["-F", filter[1]],
        &["cannot read the filter"],
    );
    if libpcap().is_some() {
        let parts = [
            "cannot compile the filter \"tcp prot 1\"",
            "wrong from character 5",
        ];
        refused(&input.bytes, &["tcp", "prot", "1"], &parts);
    }
}

#[test]
fn neither_the_file_nor_the_filter_is_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = scripted(false);
    let input = file(&folder, &bytes);
    let filter = byte_14_is(&folder, 7);
    let text = fs::read(&filter).unwrap();
    for (target, what) in [(&input, "into itself"), (&filter, "over the filter")] {
        let more = ["--filter-bytecode", filter.to_str().unwrap()];
        let output = convert(&input, target, &more);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            error.contains(what) && error.contains("hint: give -w another file"),
            "{error}"
        );
    }
    assert!(fs::read(&input).unwrap() == bytes && fs::read(&filter).unwrap() == text);
}
