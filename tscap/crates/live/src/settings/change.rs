//! One changed setting: planned, made, given back.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

use super::InterfaceId;
use super::setting::{ChangeError, Setting};
use tscap_base::kernel_files::KernelFiles;
use tscap_network::class_net::SysfsInterface;

/// A setting with its value before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The interface of which it is a setting.
    pub interface: InterfaceId,
    /// What.
    #[serde(flatten)]
    pub setting: Setting,
    /// Where a person finds it. Never read back.
    pub path: String,
    /// Value before.
    pub old: String,
    /// Value that was set.
    pub new: String,
}

/// What is to be done for a setting to have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Planned {
    /// This.
    Change(Change),
    /// Nothing: it has that value.
    AsWanted,
    /// Nothing can be done: there is no such setting, or not any more.
    Absent,
}

impl Planned {
    /// The change, if there is one to be made.
    pub fn change(self) -> Option<Change> {
        match self {
            Self::Change(change) => Some(change),
            Self::AsWanted | Self::Absent => None,
        }
    }
}

/// What became of a change when it was to be given back.
#[derive(Debug)]
pub enum RestoreOutcome {
    /// The old value is back.
    Restored,
    /// It was back already.
    Already,
    /// Somebody else has set another value since; it was left alone.
    LeftAlone {
        /// The value now.
        now: String,
    },
    /// What was changed does not exist any more.
    Gone,
    /// It is in another network namespace, and can't be given back from here.
    Elsewhere,
    /// sysfs is the one of another network namespace.
    OtherSysfs,
    /// The number of the interface belongs to an interface with another hardware
    /// address now, or with another name where the address is not known.
    NotSame {
        /// That interface.
        now: SysfsInterface,
    },
    /// A running process has changed the same setting since.
    InUse {
        /// The process.
        pid: u32,
    },
    /// The old value could not be set.
    Failed(ChangeError),
}

impl RestoreOutcome {
    /// Whether the change is still to be given back.
    pub(super) fn is_pending(&self) -> bool {
        match self {
            Self::Restored | Self::Already | Self::LeftAlone { .. } | Self::Gone => false,
            Self::Elsewhere
            | Self::OtherSysfs
            | Self::NotSame { .. }
            | Self::InUse { .. }
            | Self::Failed(_) => true,
        }
    }
}

impl From<ChangeError> for RestoreOutcome {
    fn from(error: ChangeError) -> Self {
        if error.is_gone() {
            Self::Gone
        } else {
            Self::Failed(error)
        }
    }
}

impl Change {
    /// A change to `new`, with the old value read now.
    pub fn plan(
        files: &KernelFiles,
        interface: &InterfaceId,
        setting: Setting,
        new: String,
    ) -> Result<Planned, ChangeError> {
        let mut change = Self {
            interface: interface.clone(),
            path: setting.path(files, &interface.name),
            setting,
            old: String::new(),
            new,
        };
        let old = match change.now(files) {
            Ok(Some(old)) => old,
            Ok(None) => return Ok(Planned::Absent),
            Err(error) if error.is_gone() => return Ok(Planned::Absent),
            Err(error) => return Err(error),
        };
        change.old = old;
        Ok(if change.old == change.new {
            Planned::AsWanted
        } else {
            Planned::Change(change)
        })
    }

    /// Whether it can be given back from this network namespace.
    pub fn is_here(&self) -> bool {
        !self.setting.is_of_a_namespace() || self.interface.netns.is_here()
    }

    /// Whether both are of the same setting.
    pub(super) fn is_of_same_setting(&self, other: &Self) -> bool {
        self.setting == other.setting
            && (!self.setting.is_of_a_namespace() || self.interface.is(&other.interface))
    }

    /// The command that gives it back after a capture that was killed; `None` if
    /// it is in a network namespace without a name.
    pub fn restore_command(&self) -> Option<String> {
        if self.is_here() {
            Some("tscap restore".into())
        } else {
            self.command_in_namespace()
        }
    }

    /// The command that gives it back from any namespace, and with any sysfs; `None`
    /// if its network namespace has no name.
    pub fn command_in_namespace(&self) -> Option<String> {
        let name = self.interface.netns.name()?;
        Some(format!("ip netns exec {name} tscap restore"))
    }

    /// The value now; `None` if what it was is gone.
    pub fn now(&self, files: &KernelFiles) -> Result<Option<String>, ChangeError> {
        self.setting.read(files, &self.interface.name)
    }

    /// Sets the new value, in the network namespace of the interface. The kernel may take
    /// less than it was given: RPS leaves out isolated CPUs (`rps_cpumask_housekeeping`).
    pub(super) fn make(&mut self, files: &KernelFiles) -> Result<(), ChangeError> {
        let netns = self.interface.netns;
        if !self.setting.is_of_a_namespace() || self.setting.is_in_sysfs() || netns.is_here() {
            return self.make_here(files);
        }
        let within = netns.within(files, || Ok(self.make_here(files)));
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let made = within.and_then(|made| made.ok_or_else(gone));
        made.map_err(ChangeError::Namespace)?
    }

    fn make_here(&mut self, files: &KernelFiles) -> Result<(), ChangeError> {
        self.setting.set(files, &self.interface.name, &self.new)?;
        if let Ok(Some(now)) = self.now(files) {
            self.new = now;
        }
        Ok(())
    }

    /// What to say when somebody else has set another value since.
    pub fn left_alone(&self, now: &str) -> String {
        format!(
            "left the {self} alone: {} now, not {} as tscap set it (it was {} before)",
            shown(now),
            shown(&self.new),
            shown(&self.old),
        )
    }

    /// What to say when the interface's number belongs to another interface.
    pub fn not_same(&self, now: &SysfsInterface) -> String {
        let id = &self.interface;
        let with = |address: &str| match address {
            "" => String::new(),
            address => format!(" with address {address}"),
        };
        format!(
            "cannot restore the {self}: number {} was {}{} and is {}{} now\nhint: if it is the \
             same interface, set {} to {} by hand; then remove the journal in /run/tscap",
            id.ifindex,
            id.name,
            with(id.mac.as_deref().unwrap_or_default()),
            now.name,
            with(&now.address),
            self.path,
            self.old_shown(),
        )
    }

    /// The old value, for people.
    pub fn old_shown(&self) -> &str {
        shown(&self.old)
    }

    /// The new one.
    pub fn new_shown(&self) -> &str {
        shown(&self.new)
    }

    /// Gives the old value back, unless somebody else has set another one. What takes no
    /// sysfs is given back in its network namespace, wherever this thread is.
    pub fn give_back(&self, files: &KernelFiles) -> RestoreOutcome {
        let given_back = || match self.try_give_back(files) {
            Ok(given_back) | Err(given_back) => given_back,
        };
        match given_back() {
            RestoreOutcome::Elsewhere if !self.setting.is_in_sysfs() => {
                let netns = self.interface.netns;
                let within = netns.within(files, || Ok(given_back()));
                within.ok().flatten().unwrap_or(RestoreOutcome::Elsewhere)
            }
            given_back => given_back,
        }
    }

    fn try_give_back(&self, files: &KernelFiles) -> Result<RestoreOutcome, RestoreOutcome> {
        let interface = match &self.setting {
            // Known by names of their own.
            Setting::IrqAffinity { .. } | Setting::NapiAffinity { .. } => {
                self.interface.name.clone()
            }
            Setting::Rps { .. }
            | Setting::RpsFlows { .. }
            | Setting::ThreadedNapi
            | Setting::DeferredInterrupts => self.interface.name_in_sysfs(files)?,
            Setting::Offload { .. }
            | Setting::ReceiveFilter
            | Setting::ClsactQdisc
            | Setting::ClsactFilter(_) => self.interface.name_in_calls(files)?,
        };
        let Some(now) = self.setting.read(files, &interface)? else {
            return Ok(RestoreOutcome::Gone);
        };
        if now == self.old {
            return Ok(RestoreOutcome::Already);
        }
        if now != self.new {
            return Ok(RestoreOutcome::LeftAlone { now });
        }
        self.setting.set(files, &interface, &self.old)?;
        Ok(RestoreOutcome::Restored)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.setting.of(&self.interface.name))
    }
}

/// A value for people.
fn shown(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}
