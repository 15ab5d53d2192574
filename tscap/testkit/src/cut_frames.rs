//! Sends frames of which only the first bytes are in one piece, and knows whether a program
//! of tc dropped them.

#![allow(unsafe_code, reason = "nix has no PACKET_VNET_HDR")]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use crate::packet_socket::open;
use crate::port::Port;

/// In include/uapi/linux/if_packet.h.
const PACKET_VNET_HDR: c_int = 15;
/// `struct virtio_net_hdr`, bytes, and where its `hdr_len` is.
const HEADER: usize = 10;
const HEADER_LENGTH_AT: usize = 2;

/// Frames at least so long are cut: the kernel keeps what fits a page in one piece
/// (`packet_alloc_skb` in net/packet/af_packet.c).
pub const LEAST_CUT: usize = 4_096;

/// A socket that sends out of one interface.
#[derive(Debug)]
pub struct CutFrames(OwnedFd);

impl CutFrames {
    /// Opens a socket on `port`, in its namespace.
    pub fn open(port: &Port) -> Self {
        let socket = port.netns.enter(|| {
            let socket = open(port.index)?;
            set_option(&socket, libc::SOL_PACKET, PACKET_VNET_HDR, 1)?;
            io::Result::Ok(socket)
        });
        Self(socket.unwrap_or_else(|error| panic!("AF_PACKET on {}: {error}", port.name)))
    }

    /// Sends a frame of which the first `linear` bytes, which is more than 0, are in one
    /// piece, and with a mark. False if it was dropped on its way to the interface.
    pub fn send(&self, frame: &[u8], linear: usize, mark: u32) -> bool {
        let marked = set_option(&self.0, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed());
        marked.unwrap_or_else(|error| panic!("mark frames: {error}"));
        let mut bytes = vec![0; HEADER];
        let length = u16::try_from(linear).expect("a header that fits");
        bytes[HEADER_LENGTH_AT..][..2].copy_from_slice(&length.to_ne_bytes());
        bytes.extend(frame);
        // SAFETY: the kernel reads as many bytes as there are.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        match (sent < 0).then(io::Error::last_os_error) {
            None => true,
            Some(error) if error.raw_os_error() == Some(libc::ENOBUFS) => false,
            Some(error) => panic!("send a frame of {} bytes: {error}", frame.len()),
        }
    }
}

fn set_option(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the value lives until the call returns, and its size is right.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
