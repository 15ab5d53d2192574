//! Perf events that count the TSC, one per CPU.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

/// An event of the `msr` PMU that counts TSC cycles on one CPU.
#[derive(Debug)]
pub struct TscEvent(OwnedFd);

/// Why there is no such event.
#[derive(Debug, thiserror::Error)]
pub enum PerfError {
    /// No such PMU: the kernel is built without `CONFIG_PERF_EVENTS_…MSR`, or
    /// this is no x86.
    #[error("this kernel has no perf PMU `msr` with an event `tsc` ({path})")]
    NoPmu {
        /// Where it would be.
        path: String,
        /// What reading it gave.
        source: io::Error,
    },
    /// The event could not be opened.
    #[error("cannot open the perf event msr/tsc/ on CPU {cpu}")]
    Open {
        /// The CPU.
        cpu: u32,
        /// Why.
        source: io::Error,
    },
}

const PMU: &str = "/sys/bus/event_source/devices/msr";

/// Who gives way to whom on a CPU. Whenever an event is opened, those of its own
/// priority and below pause for about 2 µs (`ctx_resched`, kernel/events/core.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventPriority {
    /// Pauses for other pinned events only.
    Pinned,
    /// Pauses for all others, and makes no pinned one pause.
    Flexible,
}

impl TscEvent {
    /// Opens the event on `cpu`; it counts from now on, whatever runs there.
    pub fn open(cpu: u32, priority: EventPriority) -> Result<Self, PerfError> {
        let (pmu, event) = pmu(Path::new(PMU))?;
        let attr = PerfEventAttr {
            kind: pmu,
            config: event,
            flags: match priority {
                EventPriority::Pinned => PINNED,
                EventPriority::Flexible => 0,
            },
            ..PerfEventAttr::default()
        };
        let event = open(attr, cpu).map_err(|source| PerfError::Open { cpu, source })?;
        Ok(Self(event))
    }
}

/// Opens an event on `cpu` for whatever runs there.
///
/// # Errors
/// Those of `perf_event_open(2)`.
pub fn open(mut attr: PerfEventAttr, cpu: u32) -> io::Result<OwnedFd> {
    attr.size = u32::try_from(size_of::<PerfEventAttr>()).expect("64 bytes");
    let (any_task, no_group) = (-1, -1);
    // SAFETY: `attr` is a live `struct perf_event_attr` of the size that it
    // says (PERF_ATTR_SIZE_VER0); the kernel writes `size` back at most.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw mut attr,
            any_task,
            cpu.cast_signed(),
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that the kernel has just given us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl AsFd for TscEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `perf_event_attr.pinned`, bit 2 of the flags: scheduled before all that are not.
const PINNED: u64 = 1 << 2;
/// `PERF_FLAG_FD_CLOEXEC` (include/uapi/linux/perf_event.h).
const PERF_FLAG_FD_CLOEXEC: u64 = 1 << 3;

/// `struct perf_event_attr`, its first published version (64 bytes).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfEventAttr {
    /// `type`: the PMU, by its number in /sys/bus/event_source/devices/PMU/type.
    pub kind: u32,
    /// Length of the structure, bytes: [`open`] states it.
    pub size: u32,
    /// Which event of it.
    pub config: u64,
    /// A sample every so many events.
    pub sample_period: u64,
    /// What a sample holds.
    pub sample_type: u64,
    /// What a read gives besides the count.
    pub read_format: u64,
    /// The bit field.
    pub flags: u64,
    /// A wake-up every so many samples; bytes with the flag `watermark`.
    pub wakeup: u32,
    /// For breakpoints.
    pub bp_type: u32,
    /// More of the event.
    pub config1: u64,
}

const _: () = assert!(size_of::<PerfEventAttr>() == 64);

/// The number of the PMU, and of its event `tsc`.
fn pmu(folder: &Path) -> Result<(u32, u64), PerfError> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|source| PerfError::NoPmu {
            path: path.display().to_string(),
            source,
        })
    };
    let odd = |name: &str| PerfError::NoPmu {
        path: folder.join(name).display().to_string(),
        source: io::Error::other("it does not have the form of Linux's msr PMU"),
    };
    let kind = read("type")?.trim().parse().map_err(|_| odd("type"))?;
    let text = read("events/tsc")?;
    let event = text.trim().strip_prefix("event=0x").unwrap_or_default();
    let event = u64::from_str_radix(event, 16).map_err(|_| odd("events/tsc"))?;
    Ok((kind, event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pmu_is_found_in_sysfs() {
        let folder = tempfile::tempdir().unwrap();
        let missing = pmu(folder.path()).unwrap_err().to_string();
        assert!(missing.contains("no perf PMU"), "{missing}");
        std::fs::create_dir(folder.path().join("events")).unwrap();
        std::fs::write(folder.path().join("type"), "9\n").unwrap();
        std::fs::write(folder.path().join("events/tsc"), "event=0x00\n").unwrap();
        assert_eq!(pmu(folder.path()).unwrap(), (9, 0));
        std::fs::write(folder.path().join("events/tsc"), "nonsense").unwrap();
        assert!(pmu(folder.path()).is_err());
    }
}
