//! TUN and TAP interfaces, whose other end is a file. What is written to a TUN comes in
//! as bare IP packets, so also frames too short to have an Ethernet header; what is sent
//! into a TAP is read as Ethernet frames.

#![allow(
    unsafe_code,
    reason = "TUNSETIFF and its structure have no safe wrapper"
)]

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use crate::netns::Netns;
use crate::port::Port;

/// `_IOW('T', 205, int)` (linux/if_tun.h).
const TUNSETLINK: libc::Ioctl = 0x4004_54cd;
/// The longest frame that is read, bytes.
const LONGEST: usize = 2048;

/// The interface, as long as this is held.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// The interface.
    pub port: Port,
}

impl Tun {
    /// Makes TUN `name` in `netns`, up.
    pub fn new(netns: &Arc<Netns>, name: &str) -> Self {
        Self::of_kind(libc::IFF_TUN, netns, name)
    }

    /// Makes TAP `name` in `netns`, up.
    pub fn tap(netns: &Arc<Netns>, name: &str) -> Self {
        Self::of_kind(libc::IFF_TAP, netns, name)
    }

    fn of_kind(kind: libc::c_int, netns: &Arc<Netns>, name: &str) -> Self {
        let file = netns.enter(|| open(kind, name));
        let file = file.unwrap_or_else(|error| panic!("make {name}: {error}"));
        let port = Port::find(netns, name);
        port.set(&["up"]);
        Self { file, port }
    }

    /// Gives it frames of another kind, by its `ARPHRD_` number (linux/if_arp.h).
    pub fn set_link_type(&self, number: u16) {
        self.port.set(&["down"]);
        // SAFETY: TUNSETLINK takes a number.
        let result = unsafe {
            let number = libc::c_ulong::from(number);
            libc::ioctl(self.file.as_raw_fd(), TUNSETLINK, number)
        };
        let error = io::Error::last_os_error();
        assert_eq!(result, 0, "link type of {}: {error}", self.port.name);
        self.port.set(&["up"]);
    }

    /// Lets a packet come in: its first byte must be that of IPv4 or IPv6.
    pub fn receive(&mut self, packet: &[u8]) {
        let length = packet.len();
        let written = self.file.write(packet);
        let written = written.unwrap_or_else(|error| panic!("write {length} bytes: {error}"));
        assert_eq!(written, length);
    }

    /// The next frame that was sent into it, if one is there.
    pub fn sent(&mut self) -> Option<Vec<u8>> {
        let mut frame = vec![0; LONGEST];
        match self.file.read(&mut frame) {
            Ok(length) => {
                frame.truncate(length);
                Some(frame)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("read from {}: {error}", self.port.name),
        }
    }
}

fn open(kind: libc::c_int, name: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}
