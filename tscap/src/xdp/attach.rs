//! Attaches the program to an interface, natively if the driver can.

use std::io;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};

use super::load::Loaded;
use crate::sys::bpf::{XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE, XdpLink};
use crate::sys::netdev::Link;

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
    #[error("{interface} already has XDP program {program_ids} attached")]
    Busy {
        /// The interface.
        interface: String,
        /// Its id, as `bpftool prog` shows it; several if there are.
        program_ids: String,
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
    /// Where it runs.
    pub mode: XdpMode,
    /// Why it is not native although that would have been taken.
    pub fallback: Option<io::Error>,
}

/// Attaches the program to `interface`.
pub fn attach(
    loaded: &Loaded,
    interface: &Link,
    choice: ModeChoice,
) -> Result<Attachment, AttachError> {
    if let Some(xdp) = &interface.xdp {
        return Err(AttachError::Busy {
            interface: interface.name.clone(),
            program_ids: xdp.ids(),
        });
    }
    let first = match choice {
        ModeChoice::Auto | ModeChoice::Native => XdpMode::Native,
        ModeChoice::Generic => XdpMode::Generic,
    };
    match try_attach(loaded, interface, first) {
        Ok(link) => Ok(Attachment {
            link,
            mode: first,
            fallback: None,
        }),
        Err(AttachError::Refused { source, .. })
            if choice == ModeChoice::Auto && is_driver_refusal(&source) =>
        {
            let link = try_attach(loaded, interface, XdpMode::Generic)?;
            Ok(Attachment {
                link,
                mode: XdpMode::Generic,
                fallback: Some(source),
            })
        }
        Err(error) => Err(error),
    }
}

fn try_attach(loaded: &Loaded, interface: &Link, mode: XdpMode) -> Result<XdpLink, AttachError> {
    let program = loaded.program.as_fd();
    XdpLink::attach(program, interface.index, mode.flags()).map_err(|source| AttachError::Refused {
        interface: interface.name.clone(),
        mode,
        source,
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
