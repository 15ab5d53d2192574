//! A client that asks one server: name, socket, and how often it may.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_host::random::Random;
use tscap_network::netdev::{self, Link};
use tscap_network::route::{self, WayTo};
use tscap_references::ntp::{self, Interleaved, NtpTime, Poller, request};

/// A server that is not on this machine is asked no more often.
pub const SHORTEST_FOREIGN_POLL: Duration = Duration::from_secs(8);
/// A server that is asked more rarely is asked in the basic mode: in the interleaved one an
/// exchange is known one poll later.
const LONGEST_INTERLEAVED: Duration = Duration::from_secs(64);
/// Requests without a reply after which the next ones have the basic mode: the server may have
/// begun anew, or drop what it does not know.
const BASIC_AFTER: u32 = 4;
/// Requests without a reply after which the name is looked up again.
const LOOKED_UP_AFTER: u32 = 2;
/// Polls between two times that it is.
const POLLS_TO_LOOK_UP: u32 = 4;
/// The same time at least.
const SHORTEST_LOOK_UP: Duration = Duration::from_secs(1);
/// Longest that a name is looked up.
const LOOK_UP: Duration = Duration::from_secs(10);

/// Gives the first address of a name, if it has one.
type LookUp = mpsc::Receiver<io::Result<Option<SocketAddr>>>;

/// A server as somebody names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName {
    /// A name of the DNS, or an address.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
}

impl ServerName {
    /// Whether it may get another address.
    pub(super) fn is_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err()
    }

    /// Looks for its first address, in a thread.
    fn look_up(&self) -> io::Result<LookUp> {
        let (done, found) = mpsc::sync_channel(1);
        let target = (self.host.clone(), self.port);
        // The resolver has no deadline; a thread that it holds up ends with the process.
        let thread = std::thread::Builder::new().name("tscap-resolver".into());
        let thread = thread.spawn(move || {
            let found = target.to_socket_addrs().map(|mut all| all.next());
            let _ = done.send(found);
        });
        thread.map(|_| found)
    }

    /// The first address that it has.
    fn resolve(&self) -> Result<SocketAddr, Failure> {
        let found = self.look_up().context("cannot start a thread")?;
        let what = format!("cannot look up NTP server {}", self.host);
        let hint = "give its address, or see whether the system's resolver works";
        match found.recv_timeout(LOOK_UP) {
            Ok(found) => {
                let found = found.context(what.clone()).hint(hint)?;
                found.ok_or_else(|| Failure::new(format!("{what}: it has no address")))
            }
            Err(_) => {
                let seconds = LOOK_UP.as_secs();
                Err(Failure::new(format!("{what}: no answer in {seconds} s")).hint(hint))
            }
        }
    }
}

impl std::fmt::Display for ServerName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            ntp::PORT => f.write_str(&self.host),
            port if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            port => write!(f, "{}:{port}", self.host),
        }
    }
}

/// What came of a look at the socket.
#[derive(Debug)]
pub(super) enum AskOutcome {
    Nothing,
    Sent,
    Failed(io::Error),
}

#[derive(Debug)]
pub(super) struct Client {
    pub server: SocketAddr,
    pub poller: Poller,
    /// The interface towards the server.
    pub interface: String,
    socket: UdpSocket,
    random: Random,
    name: ServerName,
    /// A request was not delivered since the name was looked up.
    is_refused: bool,
    looking: Option<LookUp>,
    looked: Instant,
}

impl Client {
    /// Looks the server up and opens a socket. Sends nothing yet.
    ///
    /// # Errors
    /// If the server is not to be found, or may not be asked so often.
    pub fn open(name: &ServerName, poll: Duration) -> Result<Self, Failure> {
        Self::at(name, name.resolve()?, poll)
    }

    /// The same at an address of it.
    fn at(name: &ServerName, server: SocketAddr, poll: Duration) -> Result<Self, Failure> {
        let what = format!("cannot ask NTP server {name}");
        let way = route::way_to(server.ip())
            .context(format!("{what}: no way to {}", server.ip()))
            .hint("`ip route get` tells the way; it is taken once, at the start")?;
        let link = netdev::by_index(way.interface).context(what.clone())?;
        let link = link.ok_or_else(|| Failure::new(format!("{what}: its interface is gone")))?;
        if poll < SHORTEST_FOREIGN_POLL && !is_ours(&link, way, server.ip()) {
            let least = SHORTEST_FOREIGN_POLL.as_secs();
            return Err(Failure::new(format!(
                "{what} so often: a server that is not on this machine gets a request every \
                 {least} s at most"
            ))
            .hint(format!(
                "--reference ntp:HOST,poll={least}s, or more: the clock does not need it more often"
            )));
        }
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        // The kernel takes a random port, which nobody else can know (RFC 9109).
        let socket = UdpSocket::bind((any, 0)).context(what.clone())?;
        if poll < SHORTEST_FOREIGN_POLL {
            pass_no_router(&socket, server).context(what.clone())?;
        }
        socket.connect(server).context(what.clone())?;
        socket.set_nonblocking(true).context(what)?;
        Ok(Self {
            server,
            poller: Poller::new(poll),
            interface: link.name,
            socket,
            random: Random::open().context("cannot get random numbers")?,
            name: name.clone(),
            is_refused: false,
            looking: None,
            looked: Instant::now(),
        })
    }

    /// Looks the name up again, if the server does not answer. Gives another address that it has
    /// now, which is asked from now on: through the same interface, since packets are stamped
    /// there.
    ///
    /// # Errors
    /// Why the server can't be asked at the address that it has now.
    pub fn move_on(&mut self, now: Instant) -> Result<Option<SocketAddr>, Failure> {
        let Some(looking) = &self.looking else {
            let is_away = self.is_refused || self.poller.unanswered() >= LOOKED_UP_AFTER;
            let pause = (self.poller.base() * POLLS_TO_LOOK_UP).max(SHORTEST_LOOK_UP);
            if is_away && self.name.is_name() && now >= self.looked + pause {
                self.looked = now;
                // Without a thread there is one by the next time.
                self.looking = self.name.look_up().ok();
            }
            return Ok(None);
        };
        let server = match looking.try_recv() {
            Err(mpsc::TryRecvError::Empty) => return Ok(None),
            // The resolver fails too where the network does: it is asked again.
            Err(mpsc::TryRecvError::Disconnected) | Ok(Err(_) | Ok(None)) => None,
            Ok(Ok(found)) => found,
        };
        self.looking = None;
        self.is_refused = false;
        let Some(server) = server.filter(|it| *it != self.server) else {
            return Ok(None);
        };
        let moved = Self::at(&self.name, server, self.poller.base())?;
        if moved.interface != self.interface {
            return Err(Failure::new(format!(
                "{} is at {} now, which is reached through {}: its packets are stamped at {}",
                self.name, server, moved.interface, self.interface
            )));
        }
        *self = moved;
        Ok(Some(server))
    }

    /// Sends a request if one is due, in the interleaved mode about the reply with the receive
    /// time `before` if that is of use.
    pub fn ask(&mut self, now: Instant, before: Option<NtpTime>) -> AskOutcome {
        if !self.poller.is_due(now) {
            return AskOutcome::Nothing;
        }
        // Also if it fails: the next one is not earlier.
        self.poller.sent(now);
        match self.send(before.filter(|_| self.may_interleave())) {
            Ok(_) => AskOutcome::Sent,
            Err(error) => AskOutcome::Failed(error),
        }
    }

    fn may_interleave(&self) -> bool {
        let poller = &self.poller;
        poller.poll() <= LONGEST_INTERLEAVED && poller.unanswered() < BASIC_AFTER
    }

    fn send(&mut self, before: Option<NtpTime>) -> io::Result<usize> {
        // 0 says that there is no time.
        let mut cookie = || Ok::<_, io::Error>(NtpTime(self.random.number()?.max(1)));
        let (basic, cookie) = (cookie()?, cookie()?);
        let interleaved = before.map(|before| Interleaved { before, cookie });
        self.socket.send(&request(basic, interleaved))
    }

    /// Empties the socket, so that the kernel has room: replies are read where they are
    /// stamped. Gives the error of a request that could not be delivered.
    pub fn empty(&mut self) -> Option<io::Error> {
        let mut bytes = [0; 128];
        // More can't be outstanding; what floods is left to the socket's bounds.
        for _ in 0..64 {
            match self.socket.recv(&mut bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) => {
                    self.is_refused = true;
                    return Some(error);
                }
            }
        }
        None
    }
}

/// What is asked often must not reach another server when routes change.
fn pass_no_router(socket: &UdpSocket, server: SocketAddr) -> io::Result<()> {
    match server {
        SocketAddr::V4(_) => socket.set_ttl(1),
        SocketAddr::V6(_) => Ok(setsockopt(socket, sockopt::Ipv6Ttl, &1)?),
    }
}

/// Whether a server is on this machine, so that it may be asked more often: its address is of
/// this namespace, or a private one right behind a veth. Whether the other end of that is bridged
/// to a wire can't be seen from here: then it is in this segment, and nobody's but its owner's.
fn is_ours(link: &Link, way: WayTo, server: IpAddr) -> bool {
    let is_private = match server {
        IpAddr::V4(it) => it.is_private() || it.is_link_local(),
        IpAddr::V6(it) => it.is_unique_local() || it.is_unicast_link_local(),
    };
    let is_beside = link.kind.as_deref() == Some("veth") && !way.has_gateway && is_private;
    way.is_local || link.is_loopback() || is_beside
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;

    use super::*;

    #[test]
    fn names_are_shown_as_they_are_given() {
        for (host, port, shown) in [
            ("ntp.example", 123, "ntp.example"),
            ("10.0.0.1", 1_123, "10.0.0.1:1123"),
            ("2001:db8::1", 1_123, "[2001:db8::1]:1123"),
        ] {
            let host = host.to_owned();
            assert_eq!(ServerName { host, port }.to_string(), shown);
        }
    }

    fn open(host: &str, poll: Duration) -> Client {
        let host = host.to_owned();
        Client::open(&ServerName { host, port: 1 }, poll).unwrap()
    }

    /// An address of a name is taken, and the server here may be asked often.
    #[test]
    fn a_server_here_may_be_asked_often() {
        let client = open("localhost", Duration::from_millis(100));
        assert!(client.server.ip().is_loopback());
        assert_eq!(client.interface, "lo");
    }

    /// The mode of the next request.
    #[test]
    fn a_server_is_asked_in_the_basic_mode_where_the_other_is_of_no_use() {
        let longer = LONGEST_INTERLEAVED + Duration::from_nanos(1);
        assert!(!open("127.0.0.1", longer).may_interleave());
        let mut client = open("127.0.0.1", LONGEST_INTERLEAVED);
        let mut now = Instant::now();
        for unanswered in 0..=BASIC_AFTER {
            assert_eq!(client.may_interleave(), unanswered < BASIC_AFTER);
            client.poller.sent(now);
            now += LONGEST_INTERLEAVED;
            assert!(client.poller.expire(now).is_some());
        }
        client.poller.answered();
        assert!(client.may_interleave());
    }

    #[test]
    fn what_is_asked_often_passes_no_router() {
        let often = SHORTEST_FOREIGN_POLL - Duration::from_nanos(1);
        let hops = |poll| open("127.0.0.1", poll).socket.ttl().unwrap();
        assert_eq!(hops(often), 1);
        assert!(hops(SHORTEST_FOREIGN_POLL) > 1);
        // There are machines without IPv6.
        if UdpSocket::bind("[::1]:0").is_ok() {
            let hops = |poll| getsockopt(&open("::1", poll).socket, sockopt::Ipv6Ttl).unwrap();
            assert_eq!(hops(often), 1);
            assert!(hops(SHORTEST_FOREIGN_POLL) > 1);
        }
    }
}
