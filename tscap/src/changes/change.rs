//! One changed setting: reading it, setting it, giving it back.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::sys::ethtool::{self, EthtoolError};
use crate::sys::kernel_files::{self, KernelFileError, KernelFiles};
use crate::sys::netdev::{self, NetdevError};
use crate::sys::{affinity, class_net, cpu_list, irq, netns, process, rps};

/// The interface on whose account a setting was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceId {
    /// Its name.
    pub name: String,
    /// Its number in its network namespace.
    pub ifindex: u32,
    /// Inode number of that namespace.
    pub netns: u64,
}

impl InterfaceId {
    /// An interface of this thread's network namespace.
    pub fn here(name: &str, ifindex: u32) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            ifindex,
            netns: netns::here()?,
        })
    }
}

/// What can be changed. The values of each are text, in one form only, so that
/// two can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Setting {
    /// The CPUs of an interrupt; a list of CPUs.
    IrqAffinity {
        /// The interrupt.
        irq: u32,
        /// Its name, by which a number that was reused is told.
        name: String,
    },
    /// The CPUs that a queue's frames are handed to; a list of CPUs, which is
    /// empty when they stay where they came in.
    Rps {
        /// The receive queue.
        queue: u32,
    },
    /// The length of a queue's flow table; a number.
    RpsFlows {
        /// The receive queue.
        queue: u32,
    },
    /// The CPUs of a poll thread; a list of CPUs.
    NapiAffinity {
        /// The thread.
        pid: u32,
        /// When it was started, clock ticks since boot.
        started: u64,
        /// Its name.
        name: String,
    },
    /// An offload; "on" or "off".
    Offload {
        /// The kernel's name for it.
        name: String,
    },
}

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

/// Why a setting could not be read or set.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A file of procfs or sysfs.
    #[error(transparent)]
    File(#[from] KernelFileError),
    /// A file does not hold what it should, or the journal does not.
    #[error("cannot understand {value:?} as the value of {path}")]
    Value {
        /// Where.
        path: String,
        /// What it holds.
        value: String,
    },
    /// An interrupt whose affinity the kernel keeps to itself
    /// (`write_irq_affinity`, kernel/irq/proc.c: EIO).
    #[error("the kernel manages this interrupt itself")]
    ManagedIrq(#[source] KernelFileError),
    /// The affinity of a thread.
    #[error("cannot {operation} the affinity of {name}")]
    Thread {
        /// What was tried.
        operation: &'static str,
        /// The thread.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// An offload.
    #[error(transparent)]
    Offload(#[from] EthtoolError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] NetdevError),
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
    /// A change to `new`, with the old value read now; `None` if that is the
    /// value already or there is no such thing.
    pub fn plan(
        files: &KernelFiles,
        interface: &InterfaceId,
        setting: Setting,
        new: String,
    ) -> Result<Option<Self>, ChangeError> {
        let mut change = Self {
            interface: interface.clone(),
            path: setting.path(files, &interface.name),
            setting,
            old: String::new(),
            new,
        };
        let Some(old) = change.now(files)? else {
            return Ok(None);
        };
        change.old = old;
        Ok((change.old != change.new).then_some(change))
    }

    /// Whether it can be given back from this network namespace.
    pub fn is_here(&self) -> bool {
        let is_of_here = || netns::here().is_ok_and(|here| here == self.interface.netns);
        !self.setting.is_of_a_namespace() || is_of_here()
    }

    /// The value now; `None` if what it was is gone.
    pub fn now(&self, files: &KernelFiles) -> Result<Option<String>, ChangeError> {
        let Some(interface) = self.interface_now(files)? else {
            return Ok(None);
        };
        let text = |path| kernel_files::read_if_there(path);
        let value = match &self.setting {
            Setting::IrqAffinity { irq, name } => {
                if !irq::is_named(files, *irq, name)? {
                    return Ok(None);
                }
                let list = text(&irq::affinity_file(files, *irq))?;
                list.map(|list| self.canonical(cpu_list::parse(&list), list))
            }
            Setting::Rps { queue } => {
                let mask = text(&rps::cpus_file(files, &interface, *queue))?;
                mask.map(|mask| self.canonical(cpu_list::parse_mask(&mask), mask))
            }
            Setting::RpsFlows { queue } => {
                text(&rps::flows_file(files, &interface, *queue))?.map(Ok)
            }
            Setting::NapiAffinity { pid, started, name } => {
                if process::started(files, *pid)? != Some(*started) {
                    return Ok(None);
                }
                let cpus = affinity::of_thread(*pid).map_err(thread("read", name))?;
                Some(Ok(cpu_list::list(&cpus)))
            }
            Setting::Offload { name } => {
                let features = ethtool::features(&interface)?;
                features.get(name).map(|feature| Ok(on_off(feature.on)))
            }
        };
        value.transpose()
    }

    /// Sets the new value.
    pub(super) fn make(&self, files: &KernelFiles) -> Result<(), ChangeError> {
        self.set(files, &self.new)
    }

    fn set(&self, files: &KernelFiles, value: &str) -> Result<(), ChangeError> {
        let now = self.interface_now(files)?;
        let interface = now.as_deref().unwrap_or(&self.interface.name);
        let cpus = || {
            cpu_list::parse(value).ok_or_else(|| ChangeError::Value {
                path: self.path.clone(),
                value: value.to_owned(),
            })
        };
        match &self.setting {
            Setting::IrqAffinity { irq, .. } => {
                let list = cpu_list::list(&cpus()?);
                let written = kernel_files::write(&irq::affinity_file(files, *irq), &list);
                written.map_err(|error| match error.os_error() {
                    Some(libc::EIO) => ChangeError::ManagedIrq(error),
                    _ => ChangeError::File(error),
                })?;
            }
            Setting::Rps { queue } => {
                let mask = cpu_list::mask(&cpus()?);
                kernel_files::write(&rps::cpus_file(files, interface, *queue), &mask)?;
            }
            Setting::RpsFlows { queue } => {
                kernel_files::write(&rps::flows_file(files, interface, *queue), value)?;
            }
            Setting::NapiAffinity { pid, name, .. } => {
                affinity::set_of_thread(*pid, &cpus()?).map_err(thread("set", name))?;
            }
            Setting::Offload { name } => {
                ethtool::set_features(interface, &[(name.as_str(), value == on_off(true))])?;
            }
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
            Ok(Some(_)) => match self.set(files, &self.old) {
                Ok(()) => GivenBack::Restored,
                Err(error) if error.is_gone() => GivenBack::Gone,
                Err(error) => GivenBack::Failed(error),
            },
        }
    }

    /// The interface's name now, where the setting is under its name; `None` if
    /// it is not here any more.
    fn interface_now(&self, files: &KernelFiles) -> Result<Option<String>, ChangeError> {
        let InterfaceId { name, ifindex, .. } = &self.interface;
        Ok(match &self.setting {
            Setting::IrqAffinity { .. } | Setting::NapiAffinity { .. } => Some(name.clone()),
            Setting::Rps { .. } | Setting::RpsFlows { .. } => class_net::name_of(files, *ifindex)?,
            Setting::Offload { .. } => netdev::by_index(*ifindex)?.map(|link| link.name),
        })
    }

    fn canonical(&self, cpus: Option<Vec<u32>>, text: String) -> Result<String, ChangeError> {
        let cpus = cpus.ok_or_else(|| ChangeError::Value {
            path: self.path.clone(),
            value: text,
        })?;
        Ok(cpu_list::list(&cpus))
    }
}

impl Setting {
    /// Whether it is only to be found inside the network namespace.
    pub(super) fn is_of_a_namespace(&self) -> bool {
        match self {
            Self::IrqAffinity { .. } | Self::NapiAffinity { .. } => false,
            Self::Rps { .. } | Self::RpsFlows { .. } | Self::Offload { .. } => true,
        }
    }

    /// What it is, for people.
    pub fn of(&self, interface: &str) -> String {
        match self {
            Self::IrqAffinity { irq, name } => {
                format!("CPUs of interrupt {irq} ({name}) of {interface}")
            }
            Self::Rps { queue } => format!("RPS CPUs of {interface}'s queue {queue}"),
            Self::RpsFlows { queue } => format!("RPS flow table of {interface}'s queue {queue}"),
            Self::NapiAffinity { pid, name, .. } => format!("CPUs of poll thread {pid} ({name})"),
            Self::Offload { name } => format!("offload {name} of {interface}"),
        }
    }

    fn path(&self, files: &KernelFiles, interface: &str) -> String {
        match self {
            Self::IrqAffinity { irq, .. } => irq::affinity_file(files, *irq).display().to_string(),
            Self::Rps { queue } => {
                let path = rps::cpus_file(files, interface, *queue);
                path.display().to_string()
            }
            Self::RpsFlows { queue } => {
                let path = rps::flows_file(files, interface, *queue);
                path.display().to_string()
            }
            Self::NapiAffinity { pid, .. } => format!("taskset -pc {pid}"),
            Self::Offload { name } => format!("ethtool -K {interface} {name}"),
        }
    }
}

impl ChangeError {
    /// Whether what was to be changed does not exist any more.
    fn is_gone(&self) -> bool {
        let errno = match self {
            Self::File(error) => return error.is_missing(),
            Self::Value { .. } | Self::ManagedIrq(_) => None,
            Self::Thread { source, .. } | Self::Offload(EthtoolError::Request { source, .. }) => {
                source.raw_os_error()
            }
            Self::Offload(_) | Self::Interface(_) => None,
        };
        matches!(errno, Some(libc::ESRCH | libc::ENODEV))
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

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn thread<'a>(
    operation: &'static str,
    name: &'a str,
) -> impl FnOnce(io::Error) -> ChangeError + 'a {
    move |source| ChangeError::Thread {
        operation,
        name: name.to_owned(),
        source,
    }
}
