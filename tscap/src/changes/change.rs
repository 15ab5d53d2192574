//! One changed setting: planned, made, given back.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::setting::{ChangeError, InterfaceId, Setting};
use crate::sys::kernel_files::KernelFiles;
use crate::sys::netns;

/// A setting with its value before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// On whose account.
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
pub enum GivenBack {
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
    /// It is in another network namespace.
    Elsewhere,
    /// The old value could not be set.
    Failed(ChangeError),
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
        let Some(old) = change.now(files)? else {
            return Ok(Planned::Absent);
        };
        change.old = old;
        Ok(match change.old == change.new {
            true => Planned::AsWanted,
            false => Planned::Change(change),
        })
    }

    /// Whether it can be given back from this network namespace.
    pub fn is_here(&self) -> bool {
        let is_of_here = || netns::here().is_ok_and(|here| here == self.interface.netns);
        !self.setting.is_of_a_namespace() || is_of_here()
    }

    /// The command that gives it back after a capture that was killed; `None` if
    /// it is in a network namespace without a name.
    pub fn restore_command(&self) -> Option<String> {
        if self.is_here() {
            return Some("tscap restore".into());
        }
        let name = netns::name_of(self.interface.netns)?;
        Some(format!("ip netns exec {name} tscap restore"))
    }

    /// The value now; `None` if what it was is gone.
    pub fn now(&self, files: &KernelFiles) -> Result<Option<String>, ChangeError> {
        self.setting.read(files, &self.interface)
    }

    /// Sets the new value.
    pub(super) fn make(&self, files: &KernelFiles) -> Result<(), ChangeError> {
        self.setting.set(files, &self.interface, &self.new)
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

    /// The old value, for people.
    pub fn old_shown(&self) -> &str {
        shown(&self.old)
    }

    /// The new one.
    pub fn new_shown(&self) -> &str {
        shown(&self.new)
    }

    /// Gives the old value back, unless somebody else has set another one.
    pub fn give_back(&self, files: &KernelFiles) -> GivenBack {
        if !self.is_here() {
            return match netns::exists(files, self.interface.netns) {
                true => GivenBack::Elsewhere,
                false => GivenBack::Gone,
            };
        }
        match self.now(files) {
            Ok(None) => GivenBack::Gone,
            Err(error) if error.is_gone() => GivenBack::Gone,
            Err(error) => GivenBack::Failed(error),
            Ok(Some(now)) if now == self.old => GivenBack::Already,
            Ok(Some(now)) if now != self.new => GivenBack::LeftAlone { now },
            Ok(Some(_)) => match self.setting.set(files, &self.interface, &self.old) {
                Ok(()) => GivenBack::Restored,
                Err(error) if error.is_gone() => GivenBack::Gone,
                Err(error) => GivenBack::Failed(error),
            },
        }
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
