//! UDP sockets of programs that ask the kernel for receive times.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use tscap_clock::RealNs;

use crate::netns::Netns;

/// Longest wait for a datagram.
const LIMIT: Duration = Duration::from_secs(10);
/// Datagrams until the kernel stamps: it begins to, in a work of its own, some moments after
/// the first socket has asked (`net_enable_timestamp`, net/core/dev.c).
const MOST_TRIES: u32 = 100_000;

/// A sender and a receiver that gets times with its datagrams (SO_TIMESTAMPNS).
#[derive(Debug)]
pub struct StampedUdp {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// What is known of a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// Before it was sent.
    pub sent: RealNs,
    /// Its receive time.
    pub stamp: RealNs,
    /// After it was sent, by when it mostly has arrived: it waits for its receiver.
    pub arrived: RealNs,
    /// After it was received.
    pub received: RealNs,
}

impl StampedUdp {
    /// From the namespace `from` to `address` in the namespace `to`, once the kernel stamps.
    pub fn new(from: &Netns, to: &Netns, address: &str) -> Self {
        let bind = |netns: &Netns, address| netns.enter(|| UdpSocket::bind((address, 0)));
        let receiver = bind(to, address).unwrap_or_else(|e| panic!("bind {address}: {e}"));
        Self::of(bind(from, "0.0.0.0").expect("a socket"), receiver)
    }

    /// By two sockets, once the kernel stamps.
    pub fn of(sender: UdpSocket, receiver: UdpSocket) -> Self {
        setsockopt(&receiver, ReceiveTimestampns, &true).expect("ask for receive times");
        receiver
            .set_read_timeout(Some(LIMIT))
            .expect("a time limit");
        let there = receiver.local_addr().expect("an address");
        sender.connect(there).expect("connect");
        let udp = Self { sender, receiver };
        // Without a stamp a datagram gets the time at which it is read.
        let stamps = (0..MOST_TRIES).any(|_| {
            let exchange = udp.exchange();
            exchange.stamp <= exchange.arrived
        });
        assert!(stamps, "the kernel does not stamp");
        udp
    }

    /// Sends a datagram and receives it.
    pub fn exchange(&self) -> Exchange {
        let sent = RealNs::now();
        self.sender.send(b"tscap").expect("send a datagram");
        let arrived = RealNs::now();
        let mut bytes = [0; 64];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut control = cmsg_space!(TimeSpec);
        let socket = self.receiver.as_raw_fd();
        let message = recvmsg::<()>(socket, &mut parts, Some(&mut control), MsgFlags::empty());
        let message = message.expect("receive a datagram");
        let received = RealNs::now();
        let stamp = message
            .cmsgs()
            .expect("control messages")
            .find_map(|it| match it {
                ControlMessageOwned::ScmTimestampns(time) => Some(real(time)),
                _ => None,
            });
        Exchange {
            sent,
            stamp: stamp.expect("a receive time"),
            arrived,
            received,
        }
    }

    /// So many of them.
    pub fn exchanges(&self, count: usize) -> Vec<Exchange> {
        (0..count).map(|_| self.exchange()).collect()
    }
}

impl Exchange {
    /// Panics unless the receive time lies between sending and receiving, give or take its
    /// bound.
    #[track_caller]
    pub fn is_within(&self, bound_ns: u64) {
        let earliest = self.sent.0 - bound_ns;
        let latest = self.received.0 + bound_ns;
        let stamp = self.stamp.0;
        assert!(
            (earliest..=latest).contains(&stamp),
            "±{bound_ns}: {self:?}"
        );
    }
}

fn real(time: TimeSpec) -> RealNs {
    let seconds = u64::try_from(time.tv_sec()).expect("after 1970");
    let rest = u64::try_from(time.tv_nsec()).expect("a part of a second");
    RealNs(seconds * 1_000_000_000 + rest)
}
