//! chronyd's state, by its command protocol (candm.h of chrony, version 6): the request TRACKING,
//! which chronyd answers to everybody on the machine.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use crate::bound::{Leap, Parts, UtcBound, UtcInterval};
use crate::bytes::{Fields, growth_ns};
use tscap_base::kernel_files::{KernelFiles, names, read};
use tscap_time::{MonoNs, RealNs};

const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const TRACKING: u16 = 33;
/// `RPY_TRACKING`.
const OF_TRACKING: u16 = 5;
/// Of a reply to TRACKING, octets. A request must be no shorter.
pub(crate) const LENGTH: usize = 104;
/// Where the data of a reply begin.
const DATA: usize = 28;
/// Oscillators are this good at least by `maxclockerror` of chrony.conf, whose default it is, ppb.
const CLOCK_ERROR_PPB: u64 = 1_000;
/// chronyd's own clock, which it serves as `local` in chrony.conf (`NTP_REFID_LOCAL`).
const LOCAL: u32 = 0x7f7f_0101;
/// A clock that somebody has set by hand.
const MANUAL: [u8; 4] = *b"MANU";
/// What it rounds each number to, 25 bits of a fraction, upwards.
const ROUNDED: f64 = 1.0 + 1.0 / (1 << 24) as f64;
/// Requests whose replies may still come.
const OPEN: usize = 4;
/// Looks at a socket at which nobody answers are so many turns apart.
const RETRIED_EVERY: u32 = 10;
/// The names of sockets of this program beside chronyd's, around the number of the process.
const OWN: [&str; 2] = ["tscap.", ".sock"];

/// chronyd's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tracking {
    reference: [u8; 4],
    /// The reference is a server, not a device.
    is_server: bool,
    stratum: u16,
    leap: u16,
    /// Of the latest update, since the epoch; 0 if there was none.
    updated: RealNs,
    correction_s: f64,
    residual_ppm: f64,
    skew_ppm: f64,
    root_delay_s: f64,
    root_dispersion_s: f64,
}

/// A state, and when it was asked for: it is no older.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub tracking: Tracking,
    pub asked: MonoNs,
}

/// A request with this number.
pub(crate) fn request(sequence: u32) -> [u8; LENGTH] {
    let mut octets = [0; LENGTH];
    octets[..2].copy_from_slice(&[VERSION, REQUEST]);
    octets[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    octets[8..12].copy_from_slice(&sequence.to_be_bytes());
    octets
}

/// The number of the request that a datagram answers, and the state in it; `None` if it is no
/// such answer.
pub(crate) fn parse(octets: &[u8]) -> Option<(u32, Tracking)> {
    let fields = Fields(octets);
    let is_reply = octets.len() >= LENGTH
        && octets.starts_with(&[VERSION, REPLY])
        && fields.be16(4)? == TRACKING
        && fields.be16(6)? == OF_TRACKING
        // `STT_SUCCESS`.
        && fields.be16(8)? == 0;
    if !is_reply {
        return None;
    }
    let float = |index: usize| Some(float(fields.be32(DATA + 40 + 4 * index)?));
    let [high, low, ns] = [28, 32, 36].map(|at| fields.be32(DATA + at));
    let (high, low, ns) = (high?, low?, ns?);
    // Seconds of an unknown high half.
    let high = if high == 0x7fff_ffff { 0 } else { high };
    let seconds = u64::from(high) << 32 | u64::from(low);
    let tracking = Tracking {
        reference: fields.at(DATA)?,
        is_server: fields.be16(DATA + 20)? != 0,
        stratum: fields.be16(DATA + 24)?,
        leap: fields.be16(DATA + 26)?,
        updated: RealNs(
            seconds
                .saturating_mul(1_000_000_000)
                .saturating_add(ns.into()),
        ),
        correction_s: float(0)?,
        residual_ppm: float(4)?,
        skew_ppm: float(5)?,
        root_delay_s: float(6)?,
        root_dispersion_s: float(7)?,
    };
    Some((fields.be32(16)?, tracking))
}

/// chronyd's numbers: 7 bits of exponent and 25 of a fraction, both in two's complement
/// (`UTI_FloatNetworkToHost`).
fn float(bits: u32) -> f64 {
    let exponent = (bits.cast_signed() >> 25) - 25;
    let fraction = (bits << 7).cast_signed() >> 7;
    f64::from(fraction) * 2_f64.powi(exponent)
}

/// As ns or parts per billion, rounded up.
fn up(value: f64) -> u64 {
    (value.abs() * ROUNDED * 1e9).ceil() as u64
}

impl Tracking {
    /// A reference of chronyd that is a device beside it, whose own error it does not know.
    pub fn is_of_device(&self) -> bool {
        !self.is_server && u32::from_be_bytes(self.reference) != LOCAL
    }

    /// The latest update.
    pub fn updated(&self) -> RealNs {
        self.updated
    }

    fn reference(&self) -> String {
        let letters = self.reference;
        let letters = letters.split(|it| *it == 0).next().unwrap_or_default();
        let is_word = !letters.is_empty() && letters.iter().all(u8::is_ascii_graphic);
        if !self.is_server && is_word {
            return letters.iter().map(|it| char::from(*it)).collect();
        }
        Ipv4Addr::from(self.reference).to_string()
    }

    fn leap(&self) -> Leap {
        match self.leap {
            0 => Leap::None,
            1 => Leap::Insert,
            2 => Leap::Delete,
            _ => Leap::Unknown,
        }
    }

    /// Why it bounds nothing.
    fn refused(&self) -> Option<&'static str> {
        let numbers = [
            self.correction_s,
            self.residual_ppm,
            self.skew_ppm,
            self.root_delay_s,
            self.root_dispersion_s,
        ];
        if self.leap() == Leap::Unknown {
            Some("it is not synchronised")
        } else if !self.is_server && u32::from_be_bytes(self.reference) == LOCAL {
            Some("it serves its own clock")
        } else if !self.is_server && self.reference == MANUAL {
            Some("it follows times that were typed in")
        } else if numbers.iter().any(|it| !it.is_finite()) || self.root_dispersion_s < 0.0 {
            Some("its answer has impossible values")
        } else {
            None
        }
    }
}

impl Answer {
    /// What it says at a time of both clocks, where the device that chronyd follows is off by so
    /// much.
    pub fn bound(&self, now: MonoNs, real: RealNs, device_error_ns: u64) -> UtcBound {
        let of = &self.tracking;
        let age_ns = now.0.saturating_sub(self.asked.0);
        // Parts per million, as parts per billion.
        let [skew_ppb, residual_ppb] = [of.skew_ppm, of.residual_ppm].map(|ppm| up(ppm / 1e6));
        let drift_ppb = skew_ppb
            .saturating_add(residual_ppb)
            .saturating_add(CLOCK_ERROR_PPB);
        let growth_ns = growth_ns(age_ns, drift_ppb);
        let (root_delay_ns, root_dispersion_ns) = (up(of.root_delay_s), up(of.root_dispersion_s));
        let device_error_ns = if of.is_of_device() {
            device_error_ns
        } else {
            0
        };
        let correction_ns = up(of.correction_s).min(i64::MAX as u64).cast_signed();
        let correction_ns = if of.correction_s < 0.0 {
            -correction_ns
        } else {
            correction_ns
        };
        let parts = Parts::Chrony {
            correction_ns,
            root_delay_ns,
            root_dispersion_ns,
            growth_ns,
            skew_ppb,
            device_error_ns,
            stratum: of.stratum,
            reference: of.reference(),
            updated_ago_ns: real.0.saturating_sub(of.updated.0),
            age_ns,
            leap: of.leap(),
        };
        let interval = match of.refused() {
            Some(why) => Err(why.to_owned()),
            None => {
                let distance = [root_dispersion_ns, growth_ns, device_error_ns]
                    .iter()
                    .fold(root_delay_ns.div_ceil(2), |sum, it| sum.saturating_add(*it));
                let slewed = UtcInterval([correction_ns; 2]).with_host();
                Ok(slewed.widened(distance))
            }
        };
        UtcBound::new(parts, self.asked, interval)
    }
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Unix {
        socket: UnixDatagram,
        _own: OwnSocket,
    },
}

/// The path of a socket of this process; removed on drop, if it may be.
#[derive(Debug)]
struct OwnSocket(PathBuf);

impl Drop for OwnSocket {
    fn drop(&mut self) {
        // Without root's privileges it stays, and the next process with them removes it.
        let _ = fs::remove_file(&self.0);
    }
}

impl Socket {
    fn send(&self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.send(octets),
            Self::Unix { socket, .. } => socket.send(octets),
        }
    }

    fn receive(&self, octets: &mut [u8], within: Duration) -> io::Result<usize> {
        // 0 would have no end.
        let within = Some(within.max(Duration::from_micros(1)));
        match self {
            Self::Udp(socket) => {
                socket.set_read_timeout(within)?;
                socket.recv(octets)
            }
            Self::Unix { socket, .. } => {
                socket.set_read_timeout(within)?;
                socket.recv(octets)
            }
        }
    }
}

/// Asks chronyd.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Option<Socket>,
    port: u16,
    files: KernelFiles,
    next: u32,
    /// The latest requests, and when each was sent.
    asked: [(u32, MonoNs); OPEN],
    latest: Option<Answer>,
    /// Turns until one is made at which nobody answers.
    passes: u32,
}

impl Client {
    /// Finds a socket at which chronyd answers within a time: the UDP port, which takes no
    /// privilege, otherwise the socket in the file system, which takes root's.
    pub fn open(port: SocketAddr, path: &Path, files: &KernelFiles, within: Duration) -> Self {
        let mut client = Self {
            socket: udp(port).ok().map(Socket::Udp),
            port: port.port(),
            files: files.clone(),
            // Replies to an earlier process at the same port are not taken.
            next: process::id().rotate_left(16),
            asked: [(0, MonoNs(0)); OPEN],
            latest: None,
            passes: 0,
        };
        client.ask(within);
        if client.latest.is_some() {
            return client;
        }
        if let Ok(socket) = unix(path, files) {
            let udp = client.socket.replace(socket);
            client.passes = 0;
            client.ask(within);
            if client.latest.is_none() {
                client.socket = udp;
            }
        }
        client
    }

    /// Asks, and takes what is answered within a time: the latest answer, if one came to one of
    /// the latest requests.
    pub fn ask(&mut self, within: Duration) {
        if self.passes > 0 {
            self.passes -= 1;
            return;
        }
        let is_udp = matches!(self.socket, Some(Socket::Udp(_)));
        if is_udp && !is_listened_at(&self.files, self.port) {
            return self.is_refused();
        }
        let Some(socket) = &self.socket else {
            return;
        };
        let until = Instant::now() + within;
        let sequence = self.next;
        self.next = self.next.wrapping_add(1);
        let slot = sequence as usize % OPEN;
        self.asked[slot] = (sequence, MonoNs::now());
        if socket.send(&request(sequence)).is_err() {
            // Nobody listens, which the kernel may have heard of at the request before.
            self.is_refused();
            return;
        }
        let mut octets = [0; 1024];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match socket.receive(&mut octets, left) {
                Ok(length) => {
                    let Some((answered, tracking)) = parse(&octets[..length]) else {
                        continue;
                    };
                    let asked = self.asked.iter().find(|(it, _)| *it == answered);
                    if let Some((_, asked)) = asked {
                        let asked = *asked;
                        self.latest = Some(Answer { tracking, asked });
                    }
                    if answered == sequence {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => return,
                Err(_) => return self.is_refused(),
            }
            if left.is_zero() {
                return;
            }
        }
    }

    fn is_refused(&mut self) {
        self.latest = None;
        self.passes = RETRIED_EVERY;
    }

    /// The latest answer.
    pub fn latest(&self) -> Option<&Answer> {
        self.latest.as_ref()
    }
}

/// Nothing has come in time.
pub(crate) fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Whether somebody listens at an IPv4 port, as far as the kernel says: where nobody does, a request
/// would be a packet at the loopback for nothing, and in a capture of it.
fn is_listened_at(files: &KernelFiles, port: u16) -> bool {
    let Ok(sockets) = read(&files.proc("net/udp")) else {
        return true;
    };
    // "  12: 0100007F:0143 00000000:0000 07 …"
    let is_it = |line: &str| {
        let local = line.split_whitespace().nth(1);
        let local = local.and_then(|it| it.split_once(':'));
        local.is_some_and(|(_, number)| u16::from_str_radix(number, 16) == Ok(port))
    };
    sockets.lines().skip(1).any(is_it)
}

fn udp(port: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((port.ip(), 0))?;
    socket.connect(port)?;
    Ok(socket)
}

/// chronyd answers to a path, beside its own, that its user can write to.
fn unix(path: &Path, files: &KernelFiles) -> io::Result<Socket> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Those of processes that had lost the privilege to remove them.
    for name in names(folder).unwrap_or_default() {
        let number = name
            .strip_prefix(OWN[0])
            .and_then(|it| it.strip_suffix(OWN[1]));
        let number: Option<u32> = number.and_then(|it| it.parse().ok());
        if number.is_some_and(|number| !files.proc(number.to_string()).exists()) {
            fs::remove_file(folder.join(name))?;
        }
    }
    let own = folder.join(format!("{}{}{}", OWN[0], process::id(), OWN[1]));
    let socket = UnixDatagram::bind(&own)?;
    let own = OwnSocket(own);
    fs::set_permissions(&own.0, fs::Permissions::from_mode(0o666))?;
    socket.connect(path)?;
    // A daemon that does not read must not stop this program.
    socket.set_write_timeout(Some(Duration::from_millis(1)))?;
    Ok(Socket::Unix { socket, _own: own })
}

#[cfg(test)]
mod tests;
