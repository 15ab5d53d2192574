//! An NTP server that answers by a script. Its time is the host's own clock, which the other
//! namespaces have too: the truth, unless the script lies.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::netns::Netns;

/// From 1900 to 1970, s.
const UNIX_EPOCH_S: u64 = 2_208_988_800;
/// Between two looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A request that came in.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How many came before it.
    pub number: u64,
    /// The packet.
    pub packet: [u8; 48],
    /// When it came, ns since 1970.
    pub at: u64,
}

impl Asked {
    /// A good reply that leaves now, by a clock that is ahead by `lie_ns`: stratum 1, with
    /// root delay and dispersion of 1/65536 s, precision 2^-25 s.
    pub fn reply(&self, lie_ns: i64) -> [u8; 48] {
        let mut reply = [0; 48];
        reply[..4].copy_from_slice(&[0x24, 1, self.packet[2], 0xe7]);
        reply[7] = 1;
        reply[11] = 1;
        reply[12..16].copy_from_slice(b"TEST");
        reply[24..32].copy_from_slice(&self.packet[40..48]);
        let ahead = |at: u64| stamp(at.wrapping_add_signed(lie_ns));
        reply[16..24].copy_from_slice(&ahead(self.at - 1_000_000_000));
        reply[32..40].copy_from_slice(&ahead(self.at));
        reply[40..48].copy_from_slice(&ahead(now()));
        reply
    }

    /// The receive time, as in a packet, of the reply that a request in the interleaved mode
    /// asks about.
    pub fn asks_about(&self) -> Option<[u8; 8]> {
        let about: [u8; 8] = self.packet[24..32].try_into().expect("8 bytes");
        (about != [0; 8]).then_some(about)
    }

    /// A reply in the interleaved mode: the one that it asks about left at `left`, ns since
    /// 1970.
    pub fn interleaved(&self, left: u64) -> [u8; 48] {
        let mut reply = self.reply(0);
        reply[24..32].copy_from_slice(&self.packet[32..40]);
        reply[40..48].copy_from_slice(&stamp(left));
        reply
    }

    /// A kiss-o'-death.
    pub fn kiss(&self, code: [u8; 4]) -> [u8; 48] {
        let mut reply = self.reply(0);
        reply[0] |= 0xc0;
        reply[1] = 0;
        reply[12..16].copy_from_slice(&code);
        reply
    }
}

/// A server, which ends when it is dropped.
#[derive(Debug)]
pub struct NtpServer {
    asked: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NtpServer {
    /// Listens at `address` of a namespace; `script` gives the datagrams that answer a
    /// request.
    pub fn start(
        netns: &Netns,
        address: &str,
        mut script: impl FnMut(&Asked) -> Vec<Vec<u8>> + Send + 'static,
    ) -> Self {
        let socket = socket(netns, address);
        let (asked, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, ends) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut packet = [0; 48];
            while !ends.load(Ordering::Relaxed) {
                // Without a request it is time to look.
                let Ok((_, from)) = socket.recv_from(&mut packet) else {
                    continue;
                };
                let at = now();
                let number = count.fetch_add(1, Ordering::Relaxed);
                for reply in script(&Asked { number, packet, at }) {
                    socket.send_to(&reply, from).expect("send a reply");
                }
            }
        });
        let thread = Some(thread);
        Self {
            asked,
            stop,
            thread,
        }
    }

    /// Requests so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for NtpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        if matches!(ended, Some(Err(_))) && !std::thread::panicking() {
            panic!("the NTP server panicked");
        }
    }
}

/// A client of somebody else: asks `server` from a namespace, as often as told.
#[derive(Debug)]
pub struct NtpClient(UdpSocket);

impl NtpClient {
    /// With a socket of its own.
    pub fn new(netns: &Netns, server: SocketAddr) -> Self {
        let socket = socket(netns, "0.0.0.0:0");
        socket.connect(server).expect("connect to the server");
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("set a deadline");
        Self(socket)
    }

    /// One exchange, which must succeed.
    pub fn ask(&self, cookie: u64) {
        let mut packet = [0; 48];
        packet[0] = 0x23;
        packet[40..].copy_from_slice(&cookie.to_be_bytes());
        self.0.send(&packet).expect("send a request");
        let mut reply = [0; 48];
        self.0.recv(&mut reply).expect("a reply");
        assert_eq!(reply[24..32], packet[40..], "the reply to another request");
    }
}

fn socket(netns: &Netns, address: &str) -> UdpSocket {
    let bound = netns.enter(|| UdpSocket::bind(address));
    let socket = bound.unwrap_or_else(|error| panic!("listen at {address}: {error}"));
    let timeout = socket.set_read_timeout(Some(LOOK_EVERY));
    timeout.expect("set a deadline");
    socket
}

/// CLOCK_REALTIME, ns.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a clock after 1970").as_nanos() as u64
}

/// As in a packet.
fn stamp(ns: u64) -> [u8; 8] {
    let seconds = ns / 1_000_000_000 + UNIX_EPOCH_S;
    let fraction = ((ns % 1_000_000_000) << 32) / 1_000_000_000;
    (seconds << 32 | fraction).to_be_bytes()
}
