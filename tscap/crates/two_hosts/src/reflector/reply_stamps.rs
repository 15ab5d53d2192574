//! When replies left, by the kernel's word from the socket's error queue
//! (Documentation/networking/timestamping.rst).

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::cmsg_space;
use nix::libc::sock_extended_err;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, Timestamps, recvmsg,
    setsockopt, sockopt,
};
use tscap_clock::RealNs;

use super::Answer;
use super::socket::{AT_ONCE, real};

/// Replies whose time of sending the kernel has yet to tell.
const MOST_UNTOLD: usize = 4_096;

/// Replies of which the kernel tells when they left.
#[derive(Debug, Default)]
pub(super) struct ReplyStamps {
    is_on: bool,
    /// Number of the next one.
    next: u32,
    untold: VecDeque<(u32, Answer)>,
}

impl ReplyStamps {
    /// Has the kernel tell when the packets that follow leave, if it can.
    pub fn turn_on(&mut self, socket: &OwnedFd) {
        if !self.is_on {
            self.is_on = asks_for_stamps(socket).is_ok();
        }
    }

    /// Forgets all of them: nobody knows whether the kernel has numbered a packet that could not
    /// be sent, so that its numbers have to begin anew.
    pub fn turn_off(&mut self, socket: &OwnedFd) {
        *self = Self::default();
        let _ = setsockopt(socket, sockopt::Timestamping, &TimestampingFlag::empty());
    }

    /// A reply was sent.
    pub fn sent(&mut self, answer: Answer) {
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

    /// Takes the kernel's word of when replies left, some at once.
    pub fn take(&mut self, socket: &OwnedFd, mut left: impl FnMut(&Answer, RealNs)) {
        if !self.is_on {
            return;
        }
        let mut control = cmsg_space!(Timestamps, sock_extended_err, SockaddrStorage);
        for _ in 0..AT_ONCE {
            let fd = socket.as_raw_fd();
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
            let answer = id.and_then(|id| self.reported(id));
            if let (Some(at), Some(answer)) = (at, answer) {
                left(&answer, at);
            }
        }
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
