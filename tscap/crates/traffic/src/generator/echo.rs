//! A UDP responder in user space: what comes goes back to its sender unchanged.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tscap_network::receive_room::{dropped, make_room};

/// Longest that a request to stop waits for.
const LOOK_EACH: Duration = Duration::from_millis(50);
const LONGEST: usize = 1 << 16;
/// Room for packets that wait for the thread: some 10,000 of the smallest.
const ROOM_BYTES: usize = 8 << 20;
/// A socket from which nothing else comes is of no use.
const MOST_ERRORS: u32 = 1_000;

/// What a responder did: `received` = `sent` + `unsent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echoed {
    /// Packets that were taken from the socket.
    pub received: u64,
    /// Packets that the kernel took for their way back.
    pub sent: u64,
    /// Packets that could not be sent back.
    pub unsent: u64,
    /// Calls of recvfrom(2) that failed, but for those without a packet.
    pub failed: u64,
}

/// Watches and stops a responder that is at work in another thread.
#[derive(Debug, Default)]
pub struct EchoControl {
    stop: AtomicBool,
    received: AtomicU64,
    sent: AtomicU64,
    unsent: AtomicU64,
    failed: AtomicU64,
}

impl EchoControl {
    /// What was done so far.
    pub fn so_far(&self) -> Echoed {
        // In this order no packet is sent that was not received.
        let sent = self.sent.load(Ordering::Acquire);
        let unsent = self.unsent.load(Ordering::Acquire);
        Echoed {
            received: self.received.load(Ordering::Acquire),
            sent,
            unsent,
            failed: self.failed.load(Ordering::Acquire),
        }
    }

    /// No more packets after this, within 50 ms.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A responder.
#[derive(Debug)]
pub struct Echo {
    socket: UdpSocket,
    control: Arc<EchoControl>,
}

impl Echo {
    /// Binds to an address, in this thread's network namespace. An unspecified one is all
    /// of the host's: the kernel then chooses the address that replies come from.
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        make_room(&socket, ROOM_BYTES)?;
        socket.set_read_timeout(Some(LOOK_EACH))?;
        Ok(Self {
            socket,
            control: Arc::default(),
        })
    }

    /// Where it is bound, with the port that the kernel chose for port 0.
    ///
    /// # Errors
    /// Those of getsockname(2).
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What another thread needs to watch and to stop it.
    pub fn control(&self) -> Arc<EchoControl> {
        Arc::clone(&self.control)
    }

    /// Answers until it is stopped, or `count` packets have come.
    ///
    /// # Errors
    /// The last one, if receiving fails a thousand times in a row.
    pub fn run(&self, count: Option<u64>) -> io::Result<()> {
        let control = &self.control;
        let mut payload = vec![0; LONGEST];
        let mut failures = 0;
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 && !control.stop.load(Ordering::Relaxed) {
            let (length, from) = match self.socket.recv_from(&mut payload) {
                Ok(received) => received,
                Err(error) if is_nothing(&error) => continue,
                Err(error) => {
                    control.failed.fetch_add(1, Ordering::Release);
                    failures += 1;
                    if failures >= MOST_ERRORS {
                        return Err(error);
                    }
                    continue;
                }
            };
            failures = 0;
            left -= 1;
            control.received.fetch_add(1, Ordering::Release);
            let outcome = match self.socket.send_to(&payload[..length], from) {
                Ok(sent) if sent == length => &control.sent,
                _ => &control.unsent,
            };
            outcome.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    /// Packets that the socket had no room for so far; `None` if the kernel does not say.
    pub fn overflowed(&self) -> Option<u64> {
        dropped(&self.socket).ok().map(u64::from)
    }
}

fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    [Interrupted, TimedOut, WouldBlock].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;
    use std::time::Instant;

    use super::*;

    fn local() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn what_comes_goes_back() {
        let echo = Echo::bind(local()).unwrap();
        let address = echo.address().unwrap();
        let control = echo.control();
        let sender = UdpSocket::bind(local()).unwrap();
        sender
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        thread::scope(|scope| {
            let answering = scope.spawn(|| echo.run(Some(3)));
            for payload in [&b""[..], b"one", &[7; 1_400]] {
                sender.send_to(payload, address).unwrap();
                let mut reply = [0; 2_000];
                let (length, from) = sender.recv_from(&mut reply).unwrap();
                assert_eq!((&reply[..length], from), (payload, address));
            }
            answering.join().unwrap().unwrap();
        });
        let expected = Echoed {
            received: 3,
            sent: 3,
            ..Echoed::default()
        };
        assert_eq!(control.so_far(), expected);
        assert_eq!(echo.overflowed(), Some(0));
    }

    #[test]
    fn it_stops_when_it_is_told_to() {
        let echo = Echo::bind(local()).unwrap();
        let control = echo.control();
        control.stop();
        echo.run(None).unwrap();
        assert_eq!(control.so_far(), Echoed::default());
    }

    /// Packets that come while nobody takes them out, until the socket is full. A packet may
    /// be on its way when its sending is over, where the kernel leaves it to ksoftirqd.
    #[test]
    fn what_finds_no_room_is_counted() {
        const LONGEST: Duration = Duration::from_secs(60);
        let echo = Echo::bind(local()).unwrap();
        // Few, so that the queue of loopback has room for all: it would drop them unseen.
        make_room(&echo.socket, 0).unwrap();
        let address = echo.address().unwrap();
        let sender = UdpSocket::bind(local()).unwrap();
        let begun = Instant::now();
        let mut sent = 0u64;
        while echo.overflowed() == Some(0) {
            assert!(
                begun.elapsed() < LONGEST,
                "{sent} sent: the socket is never full"
            );
            sender.send_to(&[0; 1_000], address).unwrap();
            sent += 1;
        }
        let control = echo.control();
        thread::scope(|scope| {
            let answering = scope.spawn(|| echo.run(None));
            let all = || control.so_far().received + echo.overflowed().unwrap();
            while all() < sent && begun.elapsed() < LONGEST {
                thread::yield_now();
            }
            control.stop();
            answering.join().unwrap().unwrap();
        });
        let lost = echo.overflowed().unwrap();
        assert!((1..sent).contains(&lost), "{lost} of {sent}");
        assert_eq!(control.so_far().received + lost, sent);
    }
}
