//! Links of programs to places in the network stack that belong to no interface, and what the
//! kernel counts of programs.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use super::{
    BPF_LINK_CREATE, BPF_LINK_DETACH, BPF_OBJ_GET_INFO_BY_FD, GetInfo, LinkCreate, LinkDetach, bpf,
    owned,
};

/// `enum bpf_attach_type`.
const BPF_CGROUP_INET_INGRESS: u32 = 0;
pub(super) const BPF_NETFILTER: u32 = 45;
/// Priorities that other programs may have: so many are tried.
const PRIORITIES: i32 = 16;

/// A hook of netfilter, of received packets (`enum nf_inet_hooks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetfilterHook {
    /// Before the route is chosen.
    PreRouting = 0,
    /// Before a packet for this host goes to its protocol.
    LocalIn = 1,
}

/// A version of IP (`NFPROTO_*` in include/uapi/linux/netfilter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4 = 2,
    /// IPv6.
    V6 = 10,
}

/// A program attached to a place in the network stack. The kernel detaches it when the last
/// descriptor is closed.
#[derive(Debug)]
pub struct StackLink(OwnedFd);

impl StackLink {
    /// Attaches `program` to a hook of netfilter in this thread's network namespace, before
    /// everything else there (Linux 6.4).
    ///
    /// # Errors
    /// The kernel's; EBUSY where other programs have the first priorities.
    pub fn netfilter(
        program: BorrowedFd<'_>,
        family: Family,
        hook: NetfilterHook,
    ) -> io::Result<Self> {
        // The very first one is reserved (`bpf_nf_check_pf_and_hooks`).
        let mut priorities = (1..=PRIORITIES).map(|step| i32::MIN + step);
        loop {
            let priority = priorities.next().ok_or(io::ErrorKind::ResourceBusy)?;
            let mut attr = LinkCreate {
                prog_fd: program.as_raw_fd().cast_unsigned(),
                target_ifindex: 0,
                attach_type: BPF_NETFILTER,
                flags: 0,
                // Family and hook; priority and flags.
                rest: [
                    pair([family as u32, hook as u32]),
                    pair([priority.cast_unsigned(), 0]),
                    0,
                    0,
                ],
            };
            match bpf(BPF_LINK_CREATE, &mut attr) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                link => return Ok(Self(owned(link?)?)),
            }
        }
    }

    /// Attaches `program` to what sockets of a control group receive.
    ///
    /// # Errors
    /// The kernel's; EPERM where a program is there that allows no other.
    pub fn cgroup(program: BorrowedFd<'_>, cgroup: BorrowedFd<'_>) -> io::Result<Self> {
        let mut attr = LinkCreate {
            prog_fd: program.as_raw_fd().cast_unsigned(),
            target_ifindex: cgroup.as_raw_fd().cast_unsigned(),
            attach_type: BPF_CGROUP_INET_INGRESS,
            flags: 0,
            rest: [0; 4],
        };
        Ok(Self(owned(bpf(BPF_LINK_CREATE, &mut attr)?)?))
    }

    /// Detaches now, whoever else holds the descriptor.
    ///
    /// # Errors
    /// The kernel's.
    pub fn detach(&self) -> io::Result<()> {
        let mut attr = LinkDetach {
            link_fd: self.0.as_raw_fd().cast_unsigned(),
        };
        bpf(BPF_LINK_DETACH, &mut attr).map(drop)
    }
}

/// Two words as they lie in memory.
fn pair([first, second]: [u32; 2]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// `struct bpf_prog_info` up to what is counted (Linux 5.12). Nothing is asked for that would
/// be written elsewhere.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    others: [u64; 24],
    run_time_ns: u64,
    run_cnt: u64,
    recursion_misses: u64,
}

const _: () = assert!(std::mem::offset_of!(ProgramInfo, run_time_ns) == 192);

/// What the kernel has counted of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Time that it ran, ns, while statistics were on (`BPF_ENABLE_STATS`).
    pub ns: u64,
    /// How often it ran, meanwhile.
    pub runs: u64,
    /// How often it did not, because it ran already on that CPU.
    pub misses: u64,
}

/// What the kernel has counted of `program`.
///
/// # Errors
/// The kernel's.
pub fn run_counts(program: BorrowedFd<'_>) -> io::Result<RunCounts> {
    let mut info = ProgramInfo::default();
    let mut attr = GetInfo {
        bpf_fd: program.as_raw_fd().cast_unsigned(),
        info_len: size_of::<ProgramInfo>() as u32,
        info: (&raw mut info).expose_provenance() as u64,
    };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(RunCounts {
        ns: info.run_time_ns,
        runs: info.run_cnt,
        misses: info.recursion_misses,
    })
}
