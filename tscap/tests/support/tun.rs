//! A TUN interface: what is written to it comes in as bare IP packets, so also
//! frames too short to have an Ethernet header.

#![allow(
    unsafe_code,
    reason = "TUNSETIFF and its structure have no safe wrapper"
)]

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use super::netns::Netns;
use super::port::Port;

/// The interface, as long as this is held.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// The interface.
    pub port: Port,
}

impl Tun {
    /// Makes `name` in `netns`, up.
    pub fn new(netns: &Arc<Netns>, name: &str) -> Self {
        let file = netns.enter(|| open(name));
        let file = file.unwrap_or_else(|error| panic!("make {name}: {error}"));
        let port = Port::find(netns, name);
        port.set(&["up"]);
        Self { file, port }
    }

    /// Lets a packet come in: its first byte must be that of IPv4 or IPv6.
    pub fn receive(&mut self, packet: &[u8]) {
        let length = packet.len();
        let written = self.file.write(packet);
        let written = written.unwrap_or_else(|error| panic!("write {length} bytes: {error}"));
        assert_eq!(written, length);
    }
}

fn open(name: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    // SAFETY: all zeros is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}
