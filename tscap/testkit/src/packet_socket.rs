//! Sends frames through an AF_PACKET socket and knows exactly how many.

#![allow(
    unsafe_code,
    reason = "nix has no AF_PACKET addresses and no sendmmsg that reports a short count"
)]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use crate::frame::Frame;
use crate::port::Port;
use crate::process::on_cpu;

/// Frames for one system call.
const BATCH: usize = 64;
/// Sending more than this is a hang.
const LIMIT: Duration = Duration::from_secs(60);

/// A socket that sends out of one interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket on `port`, in its namespace.
    pub fn open(port: &Port) -> Self {
        let socket = port.netns.enter(|| open(port.index));
        Self {
            socket: socket.unwrap_or_else(|error| panic!("AF_PACKET on {}: {error}", port.name)),
        }
    }

    /// The same, and round the queueing discipline (`PACKET_QDISC_BYPASS`).
    pub fn open_bypassing(port: &Port) -> Self {
        let socket = Self::open(port);
        let yes: libc::c_int = 1;
        // SAFETY: the value lives until the call returns, and its size is right.
        let result = unsafe {
            libc::setsockopt(
                socket.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_QDISC_BYPASS,
                (&raw const yes).cast(),
                size_of_val(&yes) as libc::socklen_t,
            )
        };
        let error = io::Error::last_os_error();
        assert_eq!(result, 0, "PACKET_QDISC_BYPASS on {}: {error}", port.name);
        socket
    }

    /// Sends a frame; an error if it did not leave.
    pub fn send_once(&self, frame: &[u8]) -> io::Result<()> {
        let sent = nix::sys::socket::send(
            self.socket.as_raw_fd(),
            frame,
            nix::sys::socket::MsgFlags::empty(),
        )?;
        assert_eq!(sent, frame.len());
        Ok(())
    }

    /// Sends frames `numbers` from CPU `cpu`, flat out. Every one of them has
    /// left when this returns: a full queue is waited for.
    pub fn send(&self, frame: &Frame, numbers: std::ops::Range<u64>, cpu: usize) -> u64 {
        on_cpu(cpu, || {
            let all: Vec<u64> = numbers.collect();
            for batch in all.chunks(BATCH) {
                let frames: Vec<Vec<u8>> = batch.iter().map(|n| frame.bytes(*n)).collect();
                self.send_all(&frames);
            }
            all.len() as u64
        })
    }

    /// Sends frames `numbers` from CPU `cpu`, each `gap` after the one before.
    pub fn send_paced(
        &self,
        frame: &Frame,
        numbers: std::ops::Range<u64>,
        cpu: usize,
        gap: Duration,
    ) -> u64 {
        on_cpu(cpu, || {
            let start = Instant::now();
            let count = numbers.end - numbers.start;
            for (index, number) in numbers.enumerate() {
                let bytes = frame.bytes(number);
                while start.elapsed() < gap * index as u32 {
                    std::hint::spin_loop();
                }
                self.send_all(&[bytes]);
            }
            count
        })
    }

    /// Sends each of `frames` once, in order.
    pub fn send_all(&self, frames: &[Vec<u8>]) {
        let deadline = Instant::now() + LIMIT;
        let mut left = frames;
        while !left.is_empty() {
            match send_some(&self.socket, left) {
                Ok(sent) => left = &left[sent..],
                // The queue of the device is full: the frame did not leave.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    std::thread::yield_now();
                }
                Err(error) => panic!("send a frame of {} bytes: {error}", left[0].len()),
            }
            assert!(
                Instant::now() < deadline,
                "{} frames not sent in {LIMIT:?}",
                left.len()
            );
        }
    }
}

pub(crate) fn open(ifindex: u32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; protocol 0 receives nothing.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex as i32;
    // SAFETY: the address lives until the call returns, and its size is right.
    let result = unsafe {
        libc::bind(
            fd,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(socket)
    }
}

fn send_some(socket: &OwnedFd, frames: &[Vec<u8>]) -> io::Result<usize> {
    let mut slices: Vec<libc::iovec> = frames
        .iter()
        .map(|frame| libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = slices
        .iter_mut()
        .map(|slice| {
            // SAFETY: all zeros is a valid mmsghdr: no name, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = slice;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    // SAFETY: the headers point at `slices` and those at `frames`, which all
    // outlive the call; the kernel only reads the frames.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            messages.len() as u32,
            0,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(sent as usize)
    }
}
