//! The room that a socket has for what it received, and what found none (socket(7)).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

use nix::sys::socket::{setsockopt, sockopt};

/// Fields of `SO_MEMINFO`, and the one that counts drops (`SK_MEMINFO_VARS` and `SK_MEMINFO_DROPS`,
/// include/uapi/linux/sock_diag.h).
const MEMINFO_FIELDS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Gives a socket room for `bytes` of what it received, with the kernel's own data about each
/// packet: 768 bytes or more for the smallest. Without CAP_NET_ADMIN it is at most what
/// `net.core.rmem_max` says, 212,992 bytes by default.
///
/// # Errors
/// Those of setsockopt(2).
pub fn make_room(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    let socket = &socket.as_fd();
    if setsockopt(socket, sockopt::RcvBufForce, &bytes).is_err() {
        setsockopt(socket, sockopt::RcvBuf, &bytes)?;
    }
    Ok(())
}

/// Packets that a socket had no room for since it was opened, modulo 2^32 (`sk_drops`). The
/// kernel counts packets with a wrong checksum with them.
///
/// # Errors
/// Those of getsockopt(2): ENOPROTOOPT before Linux 4.12.
pub fn dropped(socket: &impl AsFd) -> io::Result<u32> {
    let mut fields = [0u32; MEMINFO_FIELDS];
    let mut length = size_of_val(&fields) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the fields, and the length.
    let read = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO as c_int,
            fields.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match read {
        0 if length as usize >= size_of::<u32>() * (MEMINFO_DROPS + 1) => Ok(fields[MEMINFO_DROPS]),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
