//! Receives requests with their stamps, and sends the replies of a [`Reflector`].

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_pktinfo, in6_pktinfo, sock_extended_err};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{self, BindToDevice};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    SockaddrStorage, TimestampingFlag, Timestamps, bind, recvmsg, sendmsg, setsockopt, socket,
};
use nix::sys::time::TimeSpec;
use tscap_clock::RealNs;
use tscap_host::caps;
use tscap_protocol::{ErrorEstimate, SyncSource};

use super::{Answer, Arrival, ClockState, Outcome, Outcomes, Reflector};

/// Longest that a request to stop waits for, ms.
const LOOK_EACH_MS: u16 = 50;
const LONGEST: usize = 1 << 16;
/// Requests that wait for the thread, bytes of the socket.
const BUFFER_BYTES: usize = 8 << 20;
/// Requests that are taken from a socket before the other one has its turn.
const AT_ONCE: u32 = 64;
/// Time to live of replies: how many routers took one away can be told by the peer.
const TTL: i32 = 255;
/// Replies whose time of sending the kernel has yet to tell.
const MOST_UNTOLD: usize = 4_096;

/// Sockets of one port: of IPv4, of IPv6, or both.
#[derive(Debug)]
pub struct Socket {
    families: Vec<Family>,
    port: u16,
}

#[derive(Debug)]
struct Family {
    socket: OwnedFd,
    /// Requests that it had no room for.
    overflowed: u32,
    stamped: Stamped,
}

/// Replies of which the kernel tells when they left.
#[derive(Debug, Default)]
struct Stamped {
    is_on: bool,
    /// Number of the next one.
    next: u32,
    untold: VecDeque<(u32, Answer)>,
}

/// This host's clock, as another thread knows it.
#[derive(Debug, Default)]
pub struct Clock(AtomicU32);

/// Watches and stops a reflector that is at work in another thread.
#[derive(Debug)]
pub struct Watch {
    stop: AtomicBool,
    counts: [AtomicU64; Outcome::ALL.len()],
    overflowed: AtomicU64,
    sessions: AtomicU64,
}

/// A reflector at work. When it is dropped, it ends.
#[derive(Debug)]
pub struct Reflecting {
    shared: Arc<Watch>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Clock {
    /// Says how far off the clock is, and what it follows.
    pub fn set(&self, state: ClockState) {
        let source = state.source as u32;
        let bits = u32::from(state.error.to_bits());
        self.0.store(source << 16 | bits, Ordering::Relaxed);
    }

    /// What was said last; `None` before.
    pub fn get(&self) -> Option<ClockState> {
        let word = self.0.load(Ordering::Relaxed);
        Some(ClockState {
            error: ErrorEstimate::from_bits((word & 0xffff) as u16)?,
            source: match word >> 16 {
                1 => SyncSource::Ntp,
                2 => SyncSource::Ptp,
                _ => SyncSource::Local,
            },
        })
    }
}

impl Socket {
    /// Binds to a port of `device`, of this thread's network namespace: at one address, or at
    /// all that it has.
    ///
    /// # Errors
    /// Those of bind(2): EADDRINUSE if somebody has the port, EACCES for a port below 1024
    /// without CAP_NET_BIND_SERVICE.
    pub fn bind(device: &str, address: Option<IpAddr>, port: u16) -> io::Result<Self> {
        let addresses = match address {
            Some(address) => vec![address],
            None => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
        };
        let families = addresses.iter().map(|it| Family::bind(device, *it, port));
        let families: Vec<_> = families
            .filter(|it| match it {
                // A host without IPv6.
                Err(error) => {
                    address.is_some() || error.raw_os_error() != Some(Errno::EAFNOSUPPORT as i32)
                }
                Ok(_) => true,
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { families, port })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Answers in a thread of its own, without capabilities, until it is stopped.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn reflect(self, reflector: Reflector, clock: Arc<Clock>) -> io::Result<Reflecting> {
        let shared = Arc::new(Watch::new());
        let mut work = Work {
            socket: self,
            reflector,
            clock,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name("tscap-reflector".into());
        let thread = thread.spawn(move || {
            caps::keep_only(&[])?;
            work.run()
        })?;
        Ok(Reflecting {
            shared,
            thread: Some(thread),
        })
    }
}

impl Family {
    fn bind(device: &str, address: IpAddr, port: u16) -> io::Result<Self> {
        let family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Datagram, flags, None)?;
        setsockopt(&socket, BindToDevice, &OsString::from(device))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES).is_err() {
            setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES)?;
        }
        match address {
            IpAddr::V4(_) => {
                setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
                setsockopt(&socket, sockopt::Ipv4RecvTtl, &true)?;
                setsockopt(&socket, sockopt::Ipv4Ttl, &TTL)?;
            }
            IpAddr::V6(_) => {
                setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
                setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
                setsockopt(&socket, sockopt::Ipv6RecvHopLimit, &true)?;
                setsockopt(&socket, sockopt::Ipv6Ttl, &TTL)?;
            }
        }
        let at = SockaddrStorage::from(SocketAddr::new(address, port));
        bind(socket.as_raw_fd(), &at)?;
        Ok(Self {
            socket,
            overflowed: 0,
            stamped: Stamped::default(),
        })
    }
}

impl Watch {
    fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            counts: std::array::from_fn(|_| AtomicU64::new(0)),
            overflowed: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
        }
    }

    /// What became of the requests so far.
    pub fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for outcome in Outcome::ALL {
            let count = self.counts[outcome as usize].load(Ordering::Relaxed);
            outcomes.add(outcome, count);
        }
        outcomes
    }

    /// Requests that the sockets had no room for, as far as one came behind them.
    pub fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Sessions that are remembered.
    pub fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    fn count(&self, outcome: Outcome) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

impl Reflecting {
    /// What it does.
    pub fn watch(&self) -> &Watch {
        &self.shared
    }

    /// Whether it has ended by itself: [`Self::stop`] says why.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it.
    ///
    /// # Errors
    /// What its sockets failed with.
    pub fn stop(mut self) -> io::Result<Arc<Watch>> {
        self.end()?;
        Ok(Arc::clone(&self.shared))
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(Ok(()))).unwrap_or_else(|_| {
            Err(io::Error::other(
                "the reflector panicked: please report this",
            ))
        })
    }
}

impl Drop for Reflecting {
    fn drop(&mut self) {
        // Whoever wants to know why it ended stops it.
        let _ = self.end();
    }
}

/// What the thread owns.
struct Work {
    socket: Socket,
    reflector: Reflector,
    clock: Arc<Clock>,
    shared: Arc<Watch>,
}

/// What came with a request.
#[derive(Default)]
struct Came {
    at: Option<RealNs>,
    to: Option<(IpAddr, IpAddr)>,
    interface: u32,
    ttl: u8,
}

impl Work {
    fn run(&mut self) -> io::Result<()> {
        let mut buffers = (vec![0; LONGEST], vec![0; LONGEST]);
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.wait()?;
            for number in 0..self.socket.families.len() {
                self.turn(number, &mut buffers)?;
            }
            let sessions = self.reflector.sessions() as u64;
            self.shared.sessions.store(sessions, Ordering::Relaxed);
        }
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let families = self.socket.families.iter();
        let watched = families.map(|it| PollFd::new(it.socket.as_fd(), PollFlags::POLLIN));
        let mut watched: Vec<_> = watched.collect();
        match poll(&mut watched, PollTimeout::from(LOOK_EACH_MS)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what a socket has, some at once.
    fn turn(&mut self, number: usize, buffers: &mut (Vec<u8>, Vec<u8>)) -> io::Result<()> {
        self.take_stamps(number);
        for _ in 0..AT_ONCE {
            if !self.answer_one(number, buffers)? {
                break;
            }
        }
        Ok(())
    }

    /// Answers the next request; says whether there was one.
    fn answer_one(
        &mut self,
        number: usize,
        (request, reply): &mut (Vec<u8>, Vec<u8>),
    ) -> io::Result<bool> {
        let family = &mut self.socket.families[number];
        let mut control = cmsg_space!(TimeSpec, Timestamps, in6_pktinfo, i32, u32);
        let (length, from, came) = {
            let mut parts = [IoSliceMut::new(request)];
            let flags = MsgFlags::empty();
            let fd = family.socket.as_raw_fd();
            let received = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags);
            let received = match received {
                Ok(received) => received,
                Err(Errno::EAGAIN) => return Ok(false),
                // What became of a reply: the peer's port is closed, for instance.
                Err(error) if is_about_a_reply(error) => return Ok(true),
                Err(error) => return Err(error.into()),
            };
            let mut came = Came::default();
            for message in received.cmsgs().into_iter().flatten() {
                came.take(&message, &mut family.overflowed, &self.shared);
            }
            (
                received.bytes,
                received.address.and_then(|it| ip_of(&it)),
                came,
            )
        };
        let outcome = match (from, came.to, came.at) {
            (Some(from), Some((to, local)), Some(at)) => {
                let arrival = Arrival {
                    packet: &request[..length],
                    from,
                    to,
                    local,
                    at,
                    ttl: came.ttl,
                };
                self.answer(number, &arrival, came.interface, reply)
            }
            _ => Outcome::NoStamp,
        };
        self.shared.count(outcome);
        Ok(true)
    }

    fn answer(
        &mut self,
        number: usize,
        arrival: &Arrival<'_>,
        interface: u32,
        reply: &mut [u8],
    ) -> Outcome {
        let Some(clock) = self.clock.get() else {
            return Outcome::NoStamp;
        };
        let answered = self
            .reflector
            .answer(arrival, clock, Instant::now(), RealNs::now, reply);
        let answer = match answered {
            Ok(answer) => answer,
            Err(outcome) => return outcome,
        };
        let family = &mut self.socket.families[number];
        if answer.asks_to_follow_up && !family.stamped.is_on {
            family.stamped.is_on = asks_for_stamps(&family.socket).is_ok();
        }
        let packet = &reply[..answer.length];
        if send(&family.socket, packet, arrival, interface).is_err() {
            // Nobody knows whether the kernel has numbered it: its numbers begin anew.
            family.stamped = Stamped::default();
            let _ = setsockopt(
                &family.socket,
                sockopt::Timestamping,
                &TimestampingFlag::empty(),
            );
            return Outcome::NotSent;
        }
        family.stamped.sent(answer);
        Outcome::Answered
    }

    /// Takes the kernel's word of when replies left.
    fn take_stamps(&mut self, number: usize) {
        let family = &mut self.socket.families[number];
        if !family.stamped.is_on {
            return;
        }
        let mut control = cmsg_space!(Timestamps, sock_extended_err, SockaddrStorage);
        for _ in 0..AT_ONCE {
            let fd = family.socket.as_raw_fd();
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let mut nothing = [0; 1];
            let mut parts = [IoSliceMut::new(&mut nothing)];
            let reported = recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags);
            let Ok(reported) = reported else {
                return;
            };
            let (mut at, mut id) = (None, None);
            for message in reported.cmsgs().into_iter().flatten() {
                match message {
                    ControlMessageOwned::ScmTimestampsns(times) => at = real(times.system),
                    ControlMessageOwned::Ipv4RecvErr(error, _)
                    | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                        const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
                        let is_stamp = error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
                        id = is_stamp.then_some(error.ee_data);
                    }
                    _ => {}
                }
            }
            let answer = id.and_then(|id| family.stamped.reported(id));
            if let (Some(at), Some(answer)) = (at, answer) {
                self.reflector.left(&answer, at);
            }
        }
    }
}

impl Came {
    fn take(&mut self, message: &ControlMessageOwned, overflowed: &mut u32, shared: &Watch) {
        match message {
            ControlMessageOwned::ScmTimestampns(time) => self.at = real(*time),
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = |it: nix::libc::in_addr| Ipv4Addr::from_bits(u32::from_be(it.s_addr));
                let to = address(info.ipi_addr);
                self.to = Some((to.into(), address(info.ipi_spec_dst).into()));
                self.interface = info.ipi_ifindex.cast_unsigned();
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let to: IpAddr = Ipv6Addr::from(info.ipi6_addr.s6_addr).into();
                self.to = Some((to, to));
                self.interface = info.ipi6_ifindex;
            }
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                self.ttl = u8::try_from(*ttl).unwrap_or(0);
            }
            ControlMessageOwned::RxqOvfl(all) => {
                let more = all.wrapping_sub(*overflowed);
                *overflowed = *all;
                shared.overflowed.fetch_add(more.into(), Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Stamped {
    fn sent(&mut self, answer: Answer) {
        if !self.is_on {
            return;
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        if answer.asks_to_follow_up {
            if self.untold.len() == MOST_UNTOLD {
                self.untold.pop_front();
            }
            self.untold.push_back((id, answer));
        }
    }

    /// The reply of that number; those before it are not told any more.
    fn reported(&mut self, id: u32) -> Option<Answer> {
        while let Some((number, answer)) = self.untold.pop_front() {
            let behind = id.wrapping_sub(number).cast_signed();
            if behind == 0 {
                return Some(answer);
            }
            if behind < 0 {
                self.untold.push_front((number, answer));
                return None;
            }
        }
        None
    }
}

/// From now on the kernel tells when packets were handed to the driver.
fn asks_for_stamps(socket: &OwnedFd) -> nix::Result<()> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(socket, sockopt::Timestamping, &flags)
}

/// From the address that the request was sent to, which a host with several would not choose.
fn send(
    socket: &OwnedFd,
    packet: &[u8],
    arrival: &Arrival<'_>,
    interface: u32,
) -> nix::Result<usize> {
    let parts = [IoSlice::new(packet)];
    let to = SockaddrStorage::from(arrival.from);
    let fd = socket.as_raw_fd();
    let flags = MsgFlags::empty();
    match arrival.local {
        IpAddr::V4(local) => {
            let info = in_pktinfo {
                ipi_ifindex: interface.cast_signed(),
                ipi_spec_dst: nix::libc::in_addr {
                    s_addr: local.to_bits().to_be(),
                },
                ipi_addr: nix::libc::in_addr { s_addr: 0 },
            };
            sendmsg(
                fd,
                &parts,
                &[ControlMessage::Ipv4PacketInfo(&info)],
                flags,
                Some(&to),
            )
        }
        IpAddr::V6(local) => {
            let info = in6_pktinfo {
                ipi6_addr: nix::libc::in6_addr {
                    s6_addr: local.octets(),
                },
                ipi6_ifindex: interface,
            };
            sendmsg(
                fd,
                &parts,
                &[ControlMessage::Ipv6PacketInfo(&info)],
                flags,
                Some(&to),
            )
        }
    }
}

/// Errors that a socket tells of what was sent before.
fn is_about_a_reply(error: Errno) -> bool {
    matches!(
        error,
        Errno::ECONNREFUSED
            | Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::EMSGSIZE
            | Errno::EINTR
            | Errno::ENOBUFS
            | Errno::EPROTO
            | Errno::EACCES
            | Errno::EHOSTDOWN
            | Errno::ENOPROTOOPT
    )
}

fn ip_of(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|it| SocketAddrV4::from(*it).into());
    v4.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|it| SocketAddrV6::from(*it).into())
    })
}

fn real(time: TimeSpec) -> Option<RealNs> {
    let seconds = u64::try_from(time.tv_sec()).ok().filter(|it| *it > 0)?;
    let ns = seconds
        .checked_mul(1_000_000_000)?
        .checked_add_signed(time.tv_nsec())?;
    Some(RealNs(ns))
}
