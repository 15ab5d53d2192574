//! Attaches the program to an interface, natively if the driver can.

use std::io;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use super::kfunc::VlanTagKfunc;
use super::load::Loaded;
use super::program::Program;
use crate::capturing::host::bpf::{XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE, XdpLink};
use crate::capturing::host::kernel_files::KernelFiles;
use crate::capturing::host::netdev::{AttachedXdp, Link};
use crate::capturing::host::xdp_features;

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver, before a socket buffer is made.
    Native,
    /// In the network stack: frames may be aggregates (GRO, GSO).
    Generic,
}

impl XdpMode {
    /// Name as on the command line and in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }

    fn flags(self) -> u32 {
        match self {
            Self::Native => XDP_FLAGS_DRV_MODE,
            Self::Generic => XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Where a program is attached, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// To the frames that the interface receives.
    Xdp(XdpMode),
}

/// Which mode to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeChoice {
    /// Native if the driver can, else generic.
    #[default]
    Auto,
    /// Native or not at all.
    Native,
    /// Generic.
    Generic,
}

/// Why the program could not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Another program is there already.
    #[error("{interface} already has XDP program {} attached", xdp.ids())]
    Busy {
        /// The interface.
        interface: String,
        /// What is attached.
        xdp: AttachedXdp,
    },
    /// The kernel refused.
    #[error("cannot attach to {interface} in {} mode", mode.name())]
    Refused {
        /// The interface.
        interface: String,
        /// The mode tried.
        mode: XdpMode,
        /// Why.
        source: io::Error,
    },
}

/// A program on an interface; detached on drop.
#[derive(Debug)]
pub struct Attachment {
    /// The link that holds it there.
    pub link: XdpLink,
    /// Where it is attached.
    pub at: AttachPoint,
    /// Whether it puts VLAN tags back that were taken off the frames.
    pub reads_vlan_tags: bool,
    /// Why it is not native although that would have been taken.
    pub fallback: Option<io::Error>,
}

/// Attaches the program to `interface`; one of its own that reads VLAN tags if the driver
/// tells them.
pub fn attach(
    loaded: &Loaded,
    interface: &Link,
    choice: ModeChoice,
) -> Result<Attachment, AttachError> {
    if let Some(xdp) = &interface.xdp {
        return Err(AttachError::Busy {
            interface: interface.name.clone(),
            xdp: xdp.clone(),
        });
    }
    let first = match choice {
        ModeChoice::Auto | ModeChoice::Native => XdpMode::Native,
        ModeChoice::Generic => XdpMode::Generic,
    };
    let attached = |link, mode| Attachment {
        link,
        at: AttachPoint::Xdp(mode),
        reads_vlan_tags: false,
        fallback: None,
    };
    if first == XdpMode::Native
        && let Some(link) = attach_bound(loaded, interface)
    {
        return Ok(Attachment {
            reads_vlan_tags: true,
            ..attached(link, first)
        });
    }
    match try_attach(&loaded.program, interface, first) {
        Ok(link) => Ok(attached(link, first)),
        Err(AttachError::Refused { source, .. })
            if choice == ModeChoice::Auto && is_driver_refusal(&source) =>
        {
            let link = try_attach(&loaded.program, interface, XdpMode::Generic)?;
            Ok(Attachment {
                fallback: Some(source),
                ..attached(link, XdpMode::Generic)
            })
        }
        Err(error) => Err(error),
    }
}

/// Attaches a program of its own that reads VLAN tags. `None` if the driver or the kernel
/// can't: one without is attached then.
fn attach_bound(loaded: &Loaded, interface: &Link) -> Option<XdpLink> {
    let features = xdp_features::of(interface.index).ok().flatten()?;
    if !features.tells_vlan_tags() {
        return None;
    }
    let kfunc = VlanTagKfunc::find(&KernelFiles::live()).ok()?;
    let program = loaded.bound_to(interface.index, &kfunc).ok()?;
    try_attach(&program, interface, XdpMode::Native).ok()
}

fn try_attach(program: &Program, interface: &Link, mode: XdpMode) -> Result<XdpLink, AttachError> {
    XdpLink::attach(program.as_fd(), interface.index, mode.flags()).map_err(|source| {
        AttachError::Refused {
            interface: interface.name.clone(),
            mode,
            source,
        }
    })
}

/// Whether the driver can't (rather than may not, or not now): no native XDP,
/// or not at this MTU, with these features or so few queues (veth: ENOSPC).
fn is_driver_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE | libc::EMSGSIZE | libc::ENOSPC)
    )
}
