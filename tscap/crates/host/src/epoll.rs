//! Waiting for events by epoll(7), which a sandbox may refuse.

use std::io;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};

/// Waits for nothing, for no time.
///
/// # Errors
/// If this process may not wait so.
pub fn try_out() -> io::Result<()> {
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::ZERO)?;
    Ok(())
}
