//! A perf event of our own for `bpf_perf_event_output`: aya opens only such as
//! wake up with every record.
#![allow(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use tscap_host::perf::{self, PerfEventAttr};

/// `PERF_TYPE_SOFTWARE` (include/uapi/linux/perf_event.h, as all below).
const TYPE_SOFTWARE: u32 = 1;
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const SW_BPF_OUTPUT: u64 = 10;
/// `PERF_SAMPLE_RAW`.
const SAMPLE_RAW: u64 = 1 << 10;
/// Bit `watermark` of the flags: wake up by bytes instead of records.
const WATERMARK: u64 = 1 << 14;
/// `PERF_EVENT_IOC_ENABLE`, `_IO('$', 0)`.
const IOC_ENABLE: u64 = 0x2400;
/// `PERF_EVENT_IOC_SET_OUTPUT`, `_IO('$', 5)`.
const IOC_SET_OUTPUT: u64 = 0x2405;
/// `BPF_MAP_UPDATE_ELEM` (include/uapi/linux/bpf.h).
const MAP_UPDATE_ELEM: c_long = 2;

/// Opens an event for `cpu` that wakes up once in `watermark` bytes.
pub fn open(cpu: u32, watermark: u32) -> io::Result<OwnedFd> {
    let attr = PerfEventAttr {
        kind: TYPE_SOFTWARE,
        config: SW_BPF_OUTPUT,
        sample_period: 1,
        sample_type: SAMPLE_RAW,
        flags: WATERMARK,
        wakeup: watermark,
        ..PerfEventAttr::default()
    };
    let event = perf::open(attr, cpu)?;
    // SAFETY: takes no pointer.
    check(unsafe { libc::ioctl(event.as_raw_fd(), IOC_ENABLE, 0) }.into())?;
    Ok(event)
}

/// Lets `event` write into the buffer of `other`.
pub fn set_output(event: BorrowedFd<'_>, other: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes a descriptor, no pointer.
    check(unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT, other.as_raw_fd()) }.into())
        .map(drop)
}

/// Puts `event` at `index` of a perf event array.
pub fn put_into_map(map: BorrowedFd<'_>, index: u32, event: BorrowedFd<'_>) -> io::Result<()> {
    /// The map element member of `union bpf_attr`.
    #[repr(C)]
    struct Update {
        map_fd: u32,
        padding: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let value = event.as_raw_fd();
    let update = Update {
        map_fd: map.as_raw_fd().cast_unsigned(),
        padding: 0,
        key: (&raw const index).addr() as u64,
        value: (&raw const value).addr() as u64,
        flags: 0,
    };
    // SAFETY: key and value are a u32 and an i32 that live until the call is
    // over, as a perf event array has them; `update` has the length given.
    check(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            MAP_UPDATE_ELEM,
            &raw const update,
            size_of::<Update>(),
        )
    })
    .map(drop)
}

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
