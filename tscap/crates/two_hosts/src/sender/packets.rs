//! Sends the packets of a session from a thread of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use tscap_clock::RealNs;
use tscap_host::caps;
use tscap_host::random::Random;
use tscap_protocol::{
    ErrorEstimate, Key, Mode, Request, TimeFormat, Timestamp, append_hmac, request_tlvs, sign,
};

use super::plan::Pacing;

/// Packets leave with this time to live: how many routers took one away shows (RFC 8762, section
/// 4.2, has the reflector tell it).
const TTL: i32 = 255;
/// A sender that is so far behind does not catch up.
const MOST_BEHIND: Duration = Duration::from_millis(100);
/// A request to stop waits for no longer.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// What is particular to the packets of a session.
#[derive(Clone, Debug)]
pub(super) struct PacketPlan {
    pub pacing: Pacing,
    pub size: u32,
    pub count: Option<u64>,
    pub ssid: u16,
    pub mode: Mode,
    pub key: Option<Key>,
}

/// What the thread and others tell each other.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    /// Packets given to the kernel, also those that it refused.
    pub sent: AtomicU64,
    /// Packets that the kernel refused.
    pub unsent: AtomicU64,
    /// The peer's host has said that nobody has the port.
    pub is_refused: AtomicBool,
    /// Error Estimate of this host's clock.
    pub error: AtomicU16,
}

/// A session's socket.
pub(super) struct PacketSocket {
    socket: UdpSocket,
    pub local: SocketAddr,
}

/// The packets of a session, on their way. When it is dropped, no more are sent.
#[derive(Debug)]
pub(super) struct Sending {
    pub shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl PacketSocket {
    /// A socket for packets to `peer`, in this thread's network namespace.
    ///
    /// # Errors
    /// Those of socket(2) and connect(2): ENETUNREACH if there is no way there.
    pub fn open(peer: SocketAddr, dscp: u8) -> io::Result<Self> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        let tos = i32::from(dscp) << 2;
        match peer {
            SocketAddr::V4(_) => {
                setsockopt(&socket, sockopt::Ipv4Ttl, &TTL)?;
                setsockopt(&socket, sockopt::Ipv4Tos, &tos)?;
            }
            SocketAddr::V6(_) => {
                setsockopt(&socket, sockopt::Ipv6Ttl, &TTL)?;
                setsockopt(&socket, sockopt::Ipv6TClass, &tos)?;
            }
        }
        // Replies are read where they are stamped; the kernel drops what nobody reads here.
        setsockopt(&socket, sockopt::RcvBuf, &0)?;
        socket.connect(peer)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
        })
    }

    /// Sends from a thread of its own, without capabilities.
    ///
    /// # Errors
    /// If there can be no thread, or no random numbers.
    pub fn send(self, plan: PacketPlan) -> io::Result<Sending> {
        let mut random = Random::open()?;
        let seed = random.number()?;
        let pad = random.number()?.to_ne_bytes();
        let error = ErrorEstimate::covering(u64::MAX, false, TimeFormat::Ntp);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            unsent: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            error: AtomicU16::new(error.to_bits()),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tscap-to".into());
        let thread = thread.spawn(move || {
            // Best effort: it sends from a socket that is open.
            let _ = caps::keep_only(&[]);
            run(&self.socket, &plan, &theirs, (seed, pad));
        })?;
        Ok(Sending {
            shared,
            thread: Some(thread),
        })
    }
}

impl Sending {
    /// Whether all packets of the session were sent.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// No more packets after this.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been told already.
            let _ = thread.join();
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(socket: &UdpSocket, plan: &PacketPlan, shared: &Shared, (seed, pad): (u64, [u8; 8])) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut packet = vec![0; plan.size as usize];
    let mut due = Instant::now();
    let count = plan.count.unwrap_or(u64::MAX);
    for number in 0..count {
        if !sleep_until(due, shared) {
            return;
        }
        let now = Instant::now();
        if now.saturating_duration_since(due) > MOST_BEHIND {
            due = now;
        }
        write(&mut packet, plan, number as u32, shared, &pad);
        match socket.send(&packet) {
            Ok(_) => {}
            // Of a packet before; this one is sent again.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                shared.is_refused.store(true, Ordering::Relaxed);
                if socket.send(&packet).is_err() {
                    shared.unsent.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(_) => {
                shared.unsent.fetch_add(1, Ordering::Relaxed);
            }
        }
        shared.sent.fetch_add(1, Ordering::Relaxed);
        due += Duration::from_nanos(match plan.pacing {
            Pacing::Every(ns) => ns,
            Pacing::Poisson(mean_ns) => poisson(mean_ns, &mut random),
        });
    }
}

/// An exponential gap.
fn poisson(mean_ns: u64, random: &mut fastrand::Rng) -> u64 {
    let gap = -(1.0 - random.f64()).ln() * mean_ns as f64;
    gap as u64
}

/// Says whether it is to be sent.
fn sleep_until(due: Instant, shared: &Shared) -> bool {
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::park_timeout(left.min(LONGEST_SLEEP));
    }
}

/// The time at which it leaves is written where it leaves, if there is a program that does; this
/// one is earlier.
fn write(packet: &mut [u8], plan: &PacketPlan, sequence: u32, shared: &Shared, pad: &[u8; 8]) {
    let bits = shared.error.load(Ordering::Relaxed);
    let widest = ErrorEstimate::covering(u64::MAX, false, TimeFormat::Ntp);
    let request = Request {
        sequence,
        timestamp: Timestamp::of(RealNs::now(), TimeFormat::Ntp, 0),
        error: ErrorEstimate::from_bits(bits).unwrap_or(widest),
        ssid: plan.ssid,
    };
    request.write(plan.mode, packet);
    let extensions = &mut packet[plan.mode.base()..];
    match &plan.key {
        None => request_tlvs(extensions, pad),
        Some(key) => {
            let asks = extensions.len().saturating_sub(20);
            request_tlvs(&mut extensions[..asks], pad);
            append_hmac(sequence, extensions, key);
            sign(packet, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_protocol::{Tlvs, authenticates};

    fn plan(mode: Mode, size: u32) -> PacketPlan {
        let key = (mode == Mode::Authenticated).then(|| Key::new(&[7; 16]).unwrap());
        PacketPlan {
            pacing: Pacing::Every(1_000),
            size,
            count: Some(5),
            ssid: 4_711,
            mode,
            key,
        }
    }

    #[test]
    fn packets_are_those_of_the_session_in_their_order() {
        for (mode, size) in [
            (Mode::Unauthenticated, 44),
            (Mode::Unauthenticated, 64),
            (Mode::Unauthenticated, 200),
            (Mode::Authenticated, 112),
            (Mode::Authenticated, 152),
            (Mode::Authenticated, 300),
        ] {
            let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
            receiver
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let plan = plan(mode, size);
            let socket = PacketSocket::open(receiver.local_addr().unwrap(), 46).unwrap();
            let local = socket.local;
            let sending = socket.send(plan.clone()).unwrap();
            let mut packet = [0; 1_500];
            for sequence in 0..5 {
                let (length, from) = receiver.recv_from(&mut packet).unwrap();
                assert_eq!((length, from), (size as usize, local));
                let read = Request::parse(&packet[..length], mode).unwrap();
                assert_eq!((read.sequence, read.ssid), (sequence, 4_711));
                if let Some(key) = &plan.key {
                    assert!(authenticates(&packet[..length], key));
                }
                let extensions = Tlvs::of(&packet[mode.base()..length]);
                assert_eq!(extensions.count() > 0, size as usize > mode.base());
            }
            while !sending.is_over() {
                std::thread::yield_now();
            }
            assert_eq!(sending.shared.sent.load(Ordering::Relaxed), 5);
        }
    }

    #[test]
    fn a_poisson_process_keeps_its_mean() {
        let mut random = fastrand::Rng::with_seed(5);
        let sum: u64 = (0..100_000).map(|_| poisson(1_000_000, &mut random)).sum();
        let mean = sum / 100_000;
        assert!((980_000..1_020_000).contains(&mean), "{mean}");
    }

    #[test]
    fn a_sender_stops_when_it_is_told() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = PacketPlan {
            pacing: Pacing::Every(3_600_000_000_000),
            count: None,
            ..plan(Mode::Unauthenticated, 44)
        };
        let socket = PacketSocket::open(receiver.local_addr().unwrap(), 0).unwrap();
        let mut sending = socket.send(plan).unwrap();
        assert!(!sending.is_over());
        sending.stop();
        assert!(sending.is_over());
    }
}
