//! The interface whose setting was changed, and what has become of it.

use std::io;

use serde::{Deserialize, Serialize};

use super::{ChangeError, RestoreOutcome};
use tscap_base::kernel_files::KernelFiles;
use tscap_network::class_net::{self, SysfsInterface};
use tscap_network::netdev::{self, Link};
use tscap_network::netns::NetnsId;

/// An interface, identified for as long as the machine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceId {
    /// Its name when it was changed.
    pub name: String,
    /// Its number in its network namespace.
    pub ifindex: u32,
    /// Its hardware address as sysfs writes it; `None` where it has none of 6 bytes,
    /// and in journals of version 1.
    #[serde(default)]
    pub mac: Option<String>,
    /// That namespace.
    #[serde(flatten)]
    pub netns: NetnsId,
}

impl InterfaceId {
    /// An interface of this thread's network namespace.
    ///
    /// # Errors
    /// If the namespace can't be identified.
    pub fn here(link: &Link) -> io::Result<Self> {
        Ok(Self {
            name: link.name.clone(),
            ifindex: link.index,
            mac: link.mac.map(class_net::address),
            netns: NetnsId::here()?,
        })
    }

    /// Whether both are the same interface.
    pub fn is(&self, other: &Self) -> bool {
        self.ifindex == other.ifindex && self.netns.is(other.netns)
    }

    /// The name that it has now in sysfs.
    pub(super) fn name_in_sysfs(&self, files: &KernelFiles) -> Result<String, RestoreOutcome> {
        self.check_namespace(files)?;
        if !sysfs_is_here(files, self.ifindex)? {
            return Err(RestoreOutcome::OtherSysfs);
        }
        let shown = class_net::by_index(files, self.ifindex);
        self.name_of(shown.map_err(ChangeError::from)?)
    }

    /// The name that it has now for system calls.
    pub(super) fn name_in_calls(&self, files: &KernelFiles) -> Result<String, RestoreOutcome> {
        self.check_namespace(files)?;
        let link = netdev::by_index(self.ifindex).map_err(ChangeError::from)?;
        self.name_of(link.map(shown))
    }

    fn check_namespace(&self, files: &KernelFiles) -> Result<(), RestoreOutcome> {
        match self.netns {
            netns if netns.is_here() => Ok(()),
            netns if netns.exists(files) => Err(RestoreOutcome::Elsewhere),
            _ => Err(RestoreOutcome::Gone),
        }
    }

    /// The name of the interface that has the number now, if that is this one: the
    /// hardware address decides, or the name where none is known.
    fn name_of(&self, now: Option<SysfsInterface>) -> Result<String, RestoreOutcome> {
        let now = now.ok_or(RestoreOutcome::Gone)?;
        let is_same = match &self.mac {
            Some(mac) => now.address == *mac,
            None => now.name == self.name,
        };
        if is_same {
            Ok(now.name)
        } else {
            Err(RestoreOutcome::NotSame { now })
        }
    }
}

/// Whether sysfs is the one of this thread's network namespace. Where that can't be
/// told for lack of CAP_SYS_ADMIN, it must show the interface of this number as the
/// kernel does to a system call.
pub fn sysfs_is_here(files: &KernelFiles, ifindex: u32) -> Result<bool, ChangeError> {
    // A recorded tree is of no namespace.
    if !files.are_live() {
        return Ok(true);
    }
    if let Ok(is_here) = class_net::is_of_this_namespace(files) {
        return Ok(is_here);
    }
    let link = netdev::by_index(ifindex)?.map(shown);
    Ok(class_net::by_index(files, ifindex)? == link)
}

fn shown(link: Link) -> SysfsInterface {
    SysfsInterface {
        name: link.name,
        address: link.mac.map(class_net::address).unwrap_or_default(),
    }
}
