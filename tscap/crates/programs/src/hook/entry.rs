//! The entry of somebody else's XDP program: where its frames are seen before it decides
//! about them.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::{fmt, io};

use super::call::Device;
use super::kfunc::EnteredFrameLoads;
use tscap_base::kernel_files::KernelFiles;
use tscap_network::bpf::program::Entered;
use tscap_network::bpf::target::Target;
use tscap_network::bpf::{TracingLink, TracingPoint};
use tscap_network::netdev::{AttachedMode, AttachedXdp, Link};
use tscap_network::netns::NetnsId;

/// How names of tscap's own programs begin.
const OWN: &str = "tscap_";

/// Why the entry of an XDP program can't be had.
#[derive(Debug, thiserror::Error)]
pub enum NoEntry {
    /// It runs on the device, or there are several.
    #[error("only the entry of one program, native or generic, can be captured")]
    NotOne,
    /// Programs are found by an administrator only.
    #[error("this process lacks CAP_SYS_ADMIN, without which nobody gets at a program")]
    NoPrivilege,
    /// It has gone meanwhile.
    #[error("it is gone")]
    Gone,
    /// It belongs to another capture.
    #[error("it is of another capture by tscap, whose stamps this one would delay")]
    OwnCapture,
    /// It was loaded without types.
    #[error("it was loaded without types (BTF)")]
    NoTypes,
    /// The kernel's structures are not known.
    #[error("this kernel does not show its types (no /sys/kernel/btf/vmlinux), or has others")]
    NoKernelTypes,
    /// The kernel does not give it.
    #[error("cannot look at it")]
    Look(#[source] io::Error),
}

/// The entry of an XDP program, as far as frames of one interface come there.
#[derive(Debug)]
pub struct Entry {
    target: Target,
    function: u32,
    /// Where frames are read.
    pub(super) loads: EnteredFrameLoads,
    place: EntryPlace,
}

/// A program on an interface.
#[derive(Clone, Debug)]
struct EntryPlace {
    name: String,
    program_id: u32,
    is_generic: bool,
    device: Device,
}

impl Entry {
    /// Of the program `xdp` on an interface of this thread's network namespace.
    ///
    /// # Errors
    /// If it can't be had, with the reason.
    pub fn of(link: &Link, xdp: &AttachedXdp) -> Result<Self, NoEntry> {
        let (is_generic, program_id) = match (xdp.mode, xdp.program_ids.as_slice()) {
            (AttachedMode::Native, [id]) => (false, *id),
            (AttachedMode::Generic, [id]) => (true, *id),
            _ => return Err(NoEntry::NotOne),
        };
        let target = Target::by_id(program_id).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => NoEntry::NoPrivilege,
            _ => NoEntry::Look(error),
        })?;
        let target = target.ok_or(NoEntry::Gone)?;
        if target.name.starts_with(OWN) {
            return Err(NoEntry::OwnCapture);
        }
        let netns = NetnsId::here().map_err(NoEntry::Look)?;
        Ok(Self {
            function: target.function.ok_or(NoEntry::NoTypes)?,
            loads: EnteredFrameLoads::find(&KernelFiles::live()).ok_or(NoEntry::NoKernelTypes)?,
            place: EntryPlace {
                name: target.name.escape_default().to_string(),
                program_id,
                is_generic,
                device: Device {
                    index: link.index,
                    // The kernel gives out numbers of 32 bits.
                    netns: netns.inode as u32,
                },
            },
            target,
        })
    }

    pub(super) fn device(&self) -> Device {
        self.place.device
    }

    /// Whether it is in the network stack.
    pub(super) fn is_generic(&self) -> bool {
        self.place.is_generic
    }

    pub(super) fn entered(&self) -> Entered<'_> {
        Entered {
            program: self.target.as_fd(),
            function: self.function,
        }
    }

    /// Attaches `program`, which was loaded for this entry.
    pub(super) fn attach(&self, program: BorrowedFd<'_>) -> io::Result<HeldEntry> {
        Ok(HeldEntry {
            place: self.place.clone(),
            link: TracingLink::attach(program, TracingPoint::Entry)?,
        })
    }
}

/// A program at an entry; the kernel detaches it when the descriptor of the link is closed.
#[derive(Debug)]
pub struct HeldEntry {
    place: EntryPlace,
    link: TracingLink,
}

impl HeldEntry {
    pub(super) fn detach(&self) {
        self.link.detach();
    }
}

/// The hook as people know it: "fentry on xdp_filter (id 12)".
impl fmt::Display for HeldEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntryPlace {
            name, program_id, ..
        } = &self.place;
        let mode = if self.place.is_generic {
            ", generic XDP"
        } else {
            ""
        };
        write!(f, "fentry on {name} (id {program_id}{mode})")
    }
}
