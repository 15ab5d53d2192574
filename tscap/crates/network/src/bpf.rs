//! Links of programs to interfaces by the `bpf` system call: aya's own attach falls back
//! to netlink without a word, and such an attachment would outlive the process.

pub mod btf;
pub mod program;
pub mod stack;
pub mod target;

use std::ffi::{c_int, c_long};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// `enum bpf_cmd` in include/uapi/linux/bpf.h.
const BPF_MAP_UPDATE_ELEM: c_int = 2;
const BPF_OBJ_GET_INFO_BY_FD: c_int = 15;
const BPF_LINK_CREATE: c_int = 28;
const BPF_LINK_UPDATE: c_int = 29;
const BPF_LINK_DETACH: c_int = 34;
/// `enum bpf_attach_type`.
const BPF_TRACE_RAW_TP: u32 = 23;
const BPF_TRACE_FENTRY: u32 = 24;
const BPF_TRACE_FEXIT: u32 = 25;
const BPF_XDP: u32 = 37;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
/// Generic and native XDP (include/uapi/linux/if_link.h).
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// Before all programs that are there. Without it a program runs behind them, and not at
/// all where one of them decides about the frame.
const BPF_F_BEFORE: u32 = 1 << 3;

/// Where a link attaches its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPoint {
    /// XDP in the driver.
    NativeXdp,
    /// XDP in the network stack.
    GenericXdp,
    /// Before the other programs that see received frames in the stack (kernel 6.6).
    TcxIngress,
    /// Before the other programs that see frames to be sent (kernel 6.6).
    TcxEgress,
}

impl LinkPoint {
    fn attach_type(self) -> u32 {
        match self {
            Self::NativeXdp | Self::GenericXdp => BPF_XDP,
            Self::TcxIngress => BPF_TCX_INGRESS,
            Self::TcxEgress => BPF_TCX_EGRESS,
        }
    }

    fn flags(self) -> u32 {
        match self {
            Self::NativeXdp => XDP_FLAGS_DRV_MODE,
            Self::GenericXdp => XDP_FLAGS_SKB_MODE,
            Self::TcxIngress | Self::TcxEgress => BPF_F_BEFORE,
        }
    }
}

/// The `link_create` member of `union bpf_attr`.
#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 4],
}

/// The `BPF_MAP_*_ELEM` member of `union bpf_attr`.
#[repr(C)]
struct MapElement {
    map_fd: u32,
    reserved: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The `info` member of `union bpf_attr`.
#[repr(C)]
struct GetInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// The `*_GET_*_ID` member of `union bpf_attr`.
#[repr(C)]
struct GetId {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

/// `struct bpf_link_info` of an XDP or tcx link, with room for what newer kernels add.
#[repr(C)]
#[derive(Default)]
struct LinkInfo {
    link_type: u32,
    id: u32,
    prog_id: u32,
    reserved: u32,
    ifindex: u32,
    rest: [u32; 11],
}

/// The `link_update` member of `union bpf_attr`.
#[repr(C)]
struct LinkUpdate {
    link_fd: u32,
    new_prog_fd: u32,
    flags: u32,
    old_prog_fd: u32,
}

/// The `link_detach` member of `union bpf_attr`.
#[repr(C)]
struct LinkDetach {
    link_fd: u32,
}

/// A program attached to an interface. The kernel detaches it when the last
/// descriptor is closed, so also when the process dies, however it dies.
#[derive(Debug)]
pub struct InterfaceLink(OwnedFd);

impl InterfaceLink {
    /// Attaches `program` to the interface with number `ifindex`.
    pub fn attach(program: BorrowedFd<'_>, ifindex: u32, at: LinkPoint) -> io::Result<Self> {
        let mut attr = LinkCreate {
            prog_fd: program.as_raw_fd().cast_unsigned(),
            target_ifindex: ifindex,
            attach_type: at.attach_type(),
            flags: at.flags(),
            rest: [0; 4],
        };
        Ok(Self(owned(bpf(BPF_LINK_CREATE, &mut attr)?)?))
    }

    /// Number of the interface now: it changes when the interface moves to
    /// another namespace where its number is taken. `None` once the interface is
    /// gone or the link was detached.
    pub fn ifindex(&self) -> io::Result<Option<u32>> {
        let mut info = LinkInfo::default();
        let mut attr = GetInfo {
            bpf_fd: self.0.as_raw_fd().cast_unsigned(),
            info_len: u32::try_from(size_of::<LinkInfo>()).expect("64 bytes"),
            info: (&raw mut info).addr() as u64,
        };
        bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
        Ok((info.ifindex != 0).then_some(info.ifindex))
    }

    /// Puts another program in the place of the one attached; no frame finds none.
    pub fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut attr = LinkUpdate {
            link_fd: self.0.as_raw_fd().cast_unsigned(),
            new_prog_fd: program.as_raw_fd().cast_unsigned(),
            flags: 0,
            old_prog_fd: 0,
        };
        bpf(BPF_LINK_UPDATE, &mut attr).map(drop)
    }

    /// Detaches now, whoever else holds the descriptor (kernel 5.9).
    pub fn detach(&self) -> io::Result<()> {
        let mut attr = LinkDetach {
            link_fd: self.0.as_raw_fd().cast_unsigned(),
        };
        bpf(BPF_LINK_DETACH, &mut attr).map(drop)
    }
}

impl AsFd for InterfaceLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Where a link attaches a program that was loaded for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracingPoint {
    /// A tracepoint.
    Tracepoint,
    /// The entry of another program.
    Entry,
    /// The end of a function of the kernel.
    Exit,
}

/// A program attached to what it was loaded for. The kernel detaches it as it does one on an
/// interface.
#[derive(Debug)]
pub struct TracingLink(Mutex<Option<OwnedFd>>);

impl TracingLink {
    /// Attaches `program`.
    pub fn attach(program: BorrowedFd<'_>, at: TracingPoint) -> io::Result<Self> {
        let mut attr = LinkCreate {
            prog_fd: program.as_raw_fd().cast_unsigned(),
            target_ifindex: 0,
            attach_type: match at {
                TracingPoint::Tracepoint => BPF_TRACE_RAW_TP,
                TracingPoint::Entry => BPF_TRACE_FENTRY,
                TracingPoint::Exit => BPF_TRACE_FEXIT,
            },
            flags: 0,
            rest: [0; 4],
        };
        let link = owned(bpf(BPF_LINK_CREATE, &mut attr)?)?;
        Ok(Self(Mutex::new(Some(link))))
    }

    /// Detaches now: such a link knows no `BPF_LINK_DETACH`, and ends with its descriptor.
    pub fn detach(&self) {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(link.take());
    }
}

/// Puts a descriptor of our own into a map of descriptors with `u32` keys, such
/// as a perf event array (aya opens the events itself).
pub fn put_fd(map: BorrowedFd<'_>, key: u32, fd: BorrowedFd<'_>) -> io::Result<()> {
    let value = fd.as_raw_fd().cast_unsigned();
    let mut attr = MapElement {
        map_fd: map.as_raw_fd().cast_unsigned(),
        reserved: 0,
        key: (&raw const key).addr() as u64,
        value: (&raw const value).addr() as u64,
        flags: 0,
    };
    bpf(BPF_MAP_UPDATE_ELEM, &mut attr).map(drop)
}

/// The new descriptor that a command has returned.
fn owned(fd: c_long) -> io::Result<OwnedFd> {
    let fd = c_int::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: private to these files; called on what the kernel has just given us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The system call. `attr` must be the member of `union bpf_attr` that `command`
/// reads, with every pointer in it valid for what the command writes.
fn bpf<A>(command: c_int, attr: &mut A) -> io::Result<c_long> {
    // SAFETY: private to these files; each caller passes the structure of its
    // command with its own length. The key and value of `MapElement` point to
    // live words as long as the map's; `GetInfo::info` points to a live structure of
    // `info_len` bytes, the name in one for BTF to `name_len` bytes, and the functions in one
    // for a program to `nr_func_info` of them. The pointers of both `Load` and of `TestRun` are those of slices, strings and a context
    // that outlive the call, with their lengths; `fd_array` has the two that a program names.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attr),
            size_of::<A>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Waits until no CPU runs a program that was detached before the call.
///
/// XDP and tc programs run inside an RCU read-side section, and
/// `MEMBARRIER_CMD_GLOBAL` is one `synchronize_rcu()` (kernel/sched/membarrier.c).
/// Kernels with `nohz_full` CPUs refuse it (EINVAL).
pub fn wait_for_running_programs() -> io::Result<()> {
    const MEMBARRIER_CMD_GLOBAL: c_int = 1;
    // SAFETY: takes no pointers.
    match unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
