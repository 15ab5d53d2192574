//! The sockets of a reflector: where requests arrive with their stamps, and replies leave.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::sockopt::{self, BindToDevice};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    SockaddrStorage, Timestamps, bind, recvmsg, sendmsg, setsockopt, socket,
};
use nix::sys::time::TimeSpec;
use tscap_clock::RealNs;
use tscap_network::receive_room::{dropped, make_room};

use super::Arrival;
use super::reply_stamps::ReplyStamps;

/// Requests that wait for the thread, bytes of the socket.
const BUFFER_BYTES: usize = 8 << 20;
/// Requests, or stamps of replies, that are taken from a socket before the other one has its turn.
pub(super) const AT_ONCE: u32 = 64;
/// Time to live of replies: how many routers took one away can be told by the peer.
const TTL: i32 = 255;

/// Sockets of one port: of IPv4, of IPv6, or both.
#[derive(Debug)]
pub struct Socket {
    pub(super) families: Vec<Family>,
    port: u16,
}

/// A socket of one family.
#[derive(Debug)]
pub(super) struct Family {
    pub socket: OwnedFd,
    /// Requests that it had no room for, modulo 2^32.
    overflowed: u32,
    pub stamps: ReplyStamps,
}

/// A request that was taken from a socket.
pub(super) struct Request {
    /// Its length, bytes.
    pub length: usize,
    /// Where it came from; `None` if the kernel did not say.
    pub from: Option<SocketAddr>,
    /// What came with it.
    pub came: Came,
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
        make_room(&socket, BUFFER_BYTES)?;
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
            stamps: ReplyStamps::default(),
        })
    }

    /// Takes the next request to `buffer`; `None` if there is none.
    ///
    /// # Errors
    /// Those of recvmsg(2) that are not about a reply.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Request>> {
        let mut control = cmsg_space!(TimeSpec, Timestamps, in6_pktinfo, i32);
        loop {
            let mut parts = [IoSliceMut::new(buffer)];
            let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
            match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags) {
                Ok(received) => {
                    let mut came = Came::default();
                    for message in received.cmsgs().into_iter().flatten() {
                        came.take(&message);
                    }
                    return Ok(Some(Request {
                        length: received.bytes,
                        from: received.address.and_then(|it| ip_of(&it)),
                        came,
                    }));
                }
                Err(Errno::EAGAIN) => return Ok(None),
                // What became of a reply: the peer's port is closed, for instance.
                Err(error) if is_about_a_reply(error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Requests that it had no room for since the last call.
    pub fn newly_overflowed(&mut self) -> u32 {
        // A kernel before 4.12 does not say.
        let all = dropped(&self.socket).unwrap_or(self.overflowed);
        let more = all.wrapping_sub(self.overflowed);
        self.overflowed = all;
        more
    }
}

/// What came with a request.
#[derive(Default)]
pub(super) struct Came {
    /// When it came, by the kernel's software stamp.
    pub at: Option<RealNs>,
    /// The address that it was sent to, and the host's own that it reached.
    pub to: Option<(IpAddr, IpAddr)>,
    pub interface: u32,
    pub ttl: u8,
}

impl Came {
    fn take(&mut self, message: &ControlMessageOwned) {
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
            _ => {}
        }
    }
}

/// From the address that the request was sent to, which a host with several would not choose.
pub(super) fn send(
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

/// A time of the kernel's; `None` if it has none.
pub(super) fn real(time: TimeSpec) -> Option<RealNs> {
    let seconds = u64::try_from(time.tv_sec()).ok().filter(|it| *it > 0)?;
    let ns = seconds
        .checked_mul(1_000_000_000)?
        .checked_add_signed(time.tv_nsec())?;
    Some(RealNs(ns))
}
