//! What the flags of a packet say of the frame's state: its checksum, and aggregates.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};

use tscap_common::block::{
    FLAGS_CHECKSUM_NOT_READY, FLAGS_INBOUND, FLAGS_OUTBOUND, FLAGS_SEGMENTED_LATER,
};
use tscap_testkit::bench::Bench;
use tscap_testkit::capture::capture_both;
use tscap_testkit::files;
use tscap_testkit::port::Port;
use tscap_testkit::recording::{Packet, Recording};
use tscap_testkit::root::{root_with, skip};

const UDP: u8 = 17;
const TCP: u8 = 6;

fn set_offloads(port: &Port, offloads: &[&str]) {
    let mut arguments = vec!["-K", &port.name];
    arguments.extend(offloads);
    port.netns.must("ethtool", &arguments);
}

/// What tc programs record of a protocol while `work` is done, stamped by `clock`.
fn captured(port: &Port, clock: &str, protocol: u8, work: impl FnOnce()) -> Vec<Packet> {
    let folder = files::folder();
    let path = folder.path().join("out.pcapng");
    let plan = capture_both(&port.netns).on(port).to(&path);
    let capture = plan.with(["--hook", "tcx", "--clock", clock]).ready();
    work();
    capture.stop().success();
    let packets = Recording::read(&path).packets;
    let is_ip = |it: &Packet| it.data[12..14] == [8, 0] && it.data[23] == protocol;
    packets.into_iter().filter(is_ip).collect()
}

#[test]
fn a_checksum_that_is_not_ready_is_told() {
    let Some(_lock) = root_with(&["ip", "ethtool"]) else {
        return;
    };
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    if !symbols.contains(" bpf_cast_to_kern_ctx") {
        return skip("needs Linux 6.2");
    }
    let bench = Bench::new("checksum");
    bench.add_addresses();
    let receiver = bench.rx.netns.enter(|| UdpSocket::bind("10.9.0.2:7000"));
    let receiver = receiver.unwrap();
    let sender = bench.tx.netns.enter(|| UdpSocket::bind("10.9.0.1:0"));
    let sender = sender.unwrap();
    let send = || {
        for number in 0..5 {
            sender.send_to(b"hello", "10.9.0.2:7000").unwrap();
            let mut buffer = [0; 9];
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 5, "{number}");
        }
    };
    for (offload, state) in [("on", FLAGS_CHECKSUM_NOT_READY), ("off", 0)] {
        set_offloads(&bench.tx, &["tx", offload]);
        for clock in ["ktime", "tai"] {
            // A veth pair hands the buffer over as it is.
            for (port, direction) in [(&bench.tx, FLAGS_OUTBOUND), (&bench.rx, FLAGS_INBOUND)] {
                let packets = captured(port, clock, UDP, send);
                let flags: Vec<_> = packets.iter().map(|it| it.flags).collect();
                assert_eq!(flags, [Some(direction | state); 5], "{offload} {clock}");
            }
        }
    }
}

#[test]
fn an_aggregate_is_told() {
    const LENGTH: usize = 60_000;
    let Some(_lock) = root_with(&["ip", "ethtool"]) else {
        return;
    };
    let bench = Bench::new("aggregate");
    bench.add_addresses();
    set_offloads(&bench.tx, &["tx", "on", "gso", "on", "tso", "on"]);
    let listener = bench.rx.netns.enter(|| TcpListener::bind("10.9.0.2:7000"));
    let listener = listener.unwrap();
    let packets = captured(&bench.tx, "ktime", TCP, || {
        let connect = || TcpStream::connect("10.9.0.2:7000");
        let mut client = bench.tx.netns.enter(connect).unwrap();
        client.write_all(&[7; LENGTH]).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.read_exact(&mut [0; LENGTH]).unwrap();
    });
    let sent = packets.iter().filter_map(|packet| {
        let flags = packet.flags.expect("flags");
        (flags & FLAGS_OUTBOUND != 0).then_some((packet.origlen, flags & FLAGS_SEGMENTED_LATER))
    });
    let (long, short): (Vec<_>, Vec<_>) = sent.partition(|(length, _)| *length > 1514);
    assert!(!long.is_empty() && !short.is_empty());
    assert!(long.iter().all(|(_, flag)| *flag != 0), "{long:?}");
    assert!(short.iter().all(|(_, flag)| *flag == 0), "{short:?}");
}
