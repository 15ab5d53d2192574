//! `tscap qos` of files, as any user.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use etherparse::PacketBuilder;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use tempfile::TempDir;
use tscap_flows::schema::Quality;
use tscap_report::saved::Saved;
use tscap_testkit::command::tscap_path;

fn tscap(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(tscap_path());
    command.args(["qos", "-r"]).arg(file).args(arguments);
    command.output().expect("start tscap")
}

#[track_caller]
fn quality(arguments: &[&str], file: &Path) -> Quality {
    let output = tscap(&[arguments, &["--json"]].concat(), file);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    match Saved::from_json(&text).expect("a result") {
        Saved::Quality(quality) => *quality,
        other => panic!("{other:?}"),
    }
}

/// RTP of payload type 96, every 20 ms of a clock of 48 kHz: 2 is lost, 4 and 5 are swapped.
fn call() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("call.pcapng");
    let mut file = PcapNgWriter::new(Vec::new()).expect("a file");
    let interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    file.write_pcapng_block(interface).expect("written");
    for (at, number) in [0_u32, 1, 3, 5, 4, 6].into_iter().enumerate() {
        let mut payload = vec![0x80, 96];
        payload.extend((number as u16).to_be_bytes());
        payload.extend((number * 960).to_be_bytes());
        payload.extend(7_u32.to_be_bytes());
        let mut data = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(5_004, 5_006);
        builder.write(&mut data, &payload).expect("a frame");
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_micros(1_800_000_000_000_000 + 20_000 * at as u64),
            original_len: data.len() as u32,
            data: Cow::Owned(data),
            options: Vec::new(),
        };
        file.write_pcapng_block(block).expect("written");
    }
    fs::write(&path, file.into_inner()).expect("written");
    (folder, path)
}

#[test]
fn a_call_is_told_exactly() {
    let (_folder, path) = call();
    let of = quality(&["--flow", "rtp", "--rtp-clock", "96:48000"], &path);
    assert!(of.account.adds_up() && of.flows.len() == 1, "{of:?}");
    let flow = &of.flows[0];
    let loss = flow.loss.expect("numbers");
    assert_eq!((flow.packets, loss.lost, loss.duplicates), (6, 1, 0));
    assert_eq!(flow.reordering.expect("numbers").reordered, 1);
    let gap = flow.inter_arrival.expect("several packets");
    assert_eq!((gap.n, gap.min_ns, gap.max_ns), (5, 20_000_000, 20_000_000));
    assert_eq!(gap.bound_ns, None, "another program wrote the file");
    assert_eq!(flow.jitter.expect("a clock").n, 5);
    // Without a clock there is no jitter.
    assert_eq!(quality(&["--flow", "rtp"], &path).flows[0].jitter, None);
    // Not a stream of tscap gen.
    let gen_streams = quality(&["--flow", "gen"], &path);
    assert_eq!(gen_streams.account.without_key, 6);
    assert_eq!(quality(&["udp", "port", "1"], &path).account.in_flows, 0);
}

#[test]
fn the_text_fits_a_terminal_and_the_page_is_drawn() {
    let (folder, path) = call();
    let page = folder.path().join("qos.html");
    let page_text = page.to_str().expect("UTF-8");
    let output = tscap(&["--flow", "rtp", "--report", page_text], &path);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for said in [
        "6 packets = 6 in 1 flow",
        "lost 1 of 7",
        "no bound: not captured by tscap",
        "10.0.0.1:5004 → 10.0.0.2:5006 udp ssrc 0x00000007",
    ] {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{said}\n{text}");
    }
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("Quality of flows"));
    // The JSON is drawn again.
    let saved = folder.path().join("qos.json");
    let of = tscap(&["--flow", "rtp", "--json"], &path);
    fs::write(&saved, of.stdout).expect("written");
    let mut command = Command::new(tscap_path());
    let again = command
        .arg("report")
        .arg(&saved)
        .output()
        .expect("start tscap");
    assert!(String::from_utf8_lossy(&again.stdout).contains("lost 1 of 7"));
}

#[test]
fn what_is_no_capture_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("in.pcap");
    fs::write(&path, 0xa1b2_c3d4_u32.to_le_bytes()).expect("written");
    let output = tscap(&[], &path);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("editcap -F pcapng"), "{stderr}");
    let output = tscap(&[], Path::new("/nowhere"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot read /nowhere"), "{stderr}");
}
