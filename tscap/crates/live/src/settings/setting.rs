//! What can be changed, and how each is read and set.

use std::io;

use serde::{Deserialize, Serialize};

use tscap_base::kernel_files::{self, KernelFileError, KernelFiles};
use tscap_host::{affinity, cpu_list, process};
use tscap_network::clsact::{ClsactError, Filter, Filters, QdiscState};
use tscap_network::ethtool::{self, EthtoolError, ReceiveFilter};
use tscap_network::netdev::{self, NetdevError};
use tscap_network::{irq, napi, rps};

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
    /// Whether threads poll; "0", "1" or "2".
    ThreadedNapi,
    /// Empty polls before the interrupts are on again; a number.
    DeferredInterrupts,
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
    /// Which received frames an interface stamps itself; ethtool's name of the filter.
    ReceiveFilter,
    /// The queueing discipline clsact; "none", "unused" or "used".
    ClsactQdisc,
    /// A filter of clsact; "none" or "attached".
    ClsactFilter(Filter),
}

/// A setting and the value that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    /// What.
    pub setting: Setting,
    /// In the setting's one form.
    pub value: String,
}

/// The value of a discipline or filter that is not there.
pub(super) const NONE: &str = "none";
/// The value of clsact without filters.
pub(super) const UNUSED: &str = "unused";
/// The value of a filter that is there.
pub(super) const ATTACHED: &str = "attached";

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
    /// A filter or its discipline.
    #[error(transparent)]
    Clsact(#[from] ClsactError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] NetdevError),
    /// The network namespace of the interface.
    #[error("cannot enter the network namespace")]
    Namespace(#[source] io::Error),
    /// The process that changes settings for this one says why.
    #[error("{0}")]
    Kept(String),
}

impl Setting {
    /// Whether it is only to be found inside the network namespace.
    pub(super) fn is_of_a_namespace(&self) -> bool {
        match self {
            Self::IrqAffinity { .. } | Self::NapiAffinity { .. } => false,
            Self::Rps { .. }
            | Self::RpsFlows { .. }
            | Self::ThreadedNapi
            | Self::DeferredInterrupts
            | Self::Offload { .. }
            | Self::ReceiveFilter
            | Self::ClsactQdisc
            | Self::ClsactFilter(_) => true,
        }
    }

    /// Whether it is a file of sysfs, which shows one network namespace.
    pub(super) fn is_in_sysfs(&self) -> bool {
        matches!(
            self,
            Self::Rps { .. }
                | Self::RpsFlows { .. }
                | Self::ThreadedNapi
                | Self::DeferredInterrupts
        )
    }

    /// What it is, for people.
    pub fn of(&self, interface: &str) -> String {
        match self {
            Self::IrqAffinity { irq, name } => {
                format!("CPUs of interrupt {irq} ({name}) of {interface}")
            }
            Self::Rps { queue } => format!("RPS CPUs of {interface}'s queue {queue}"),
            Self::RpsFlows { queue } => format!("RPS flow table of {interface}'s queue {queue}"),
            Self::ThreadedNapi => format!("threaded NAPI of {interface}"),
            Self::DeferredInterrupts => format!("deferred interrupts of {interface}"),
            Self::NapiAffinity { pid, name, .. } => format!("CPUs of poll thread {pid} ({name})"),
            Self::Offload { name } => format!("offload {name} of {interface}"),
            Self::ReceiveFilter => format!("receive filter of {interface}'s hardware stamps"),
            Self::ClsactQdisc => format!("queueing discipline clsact of {interface}"),
            Self::ClsactFilter(filter) => {
                let (side, program) = (filter.side.name(), filter.program);
                format!("tc filter at {side} of {interface} (program {program})")
            }
        }
    }

    /// Where a person finds it.
    pub(super) fn path(&self, files: &KernelFiles, interface: &str) -> String {
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
            Self::ThreadedNapi => napi::threaded_file(files, interface).display().to_string(),
            Self::DeferredInterrupts => napi::deferred_file(files, interface).display().to_string(),
            Self::NapiAffinity { pid, .. } => format!("taskset -pc {pid}"),
            Self::Offload { name } => format!("ethtool -K {interface} {name}"),
            Self::ReceiveFilter => format!("hwstamp_ctl -i {interface} -r"),
            Self::ClsactQdisc => format!("tc qdisc show dev {interface} clsact"),
            Self::ClsactFilter(filter) => {
                format!("tc filter show dev {interface} {}", filter.side.name())
            }
        }
    }

    /// Its value now, where `interface` is the name of the interface now; `None` if
    /// there is no such thing, or not any more.
    pub(super) fn read(
        &self,
        files: &KernelFiles,
        interface: &str,
    ) -> Result<Option<String>, ChangeError> {
        let text = |path| kernel_files::read_if_there(path);
        let value = match self {
            Self::IrqAffinity { irq, name } => {
                if !irq::is_named(files, *irq, name)? {
                    return Ok(None);
                }
                let list = text(&irq::affinity_file(files, *irq))?;
                list.map(|list| self.canonical(files, interface, cpu_list::parse(&list), list))
            }
            Self::Rps { queue } => {
                let mask = text(&rps::cpus_file(files, interface, *queue))?;
                mask.map(|mask| self.canonical(files, interface, cpu_list::parse_mask(&mask), mask))
            }
            Self::RpsFlows { queue } => text(&rps::flows_file(files, interface, *queue))?.map(Ok),
            Self::ThreadedNapi => text(&napi::threaded_file(files, interface))?.map(Ok),
            Self::DeferredInterrupts => text(&napi::deferred_file(files, interface))?.map(Ok),
            Self::NapiAffinity { pid, started, name } => {
                if process::started(files, *pid)? != Some(*started) {
                    return Ok(None);
                }
                let cpus = affinity::of_thread(*pid).map_err(thread("read", name))?;
                Some(Ok(cpu_list::list(&cpus)))
            }
            Self::Offload { name } => {
                let features = ethtool::features(interface)?;
                features.get(name).map(|feature| Ok(on_off(feature.on)))
            }
            Self::ReceiveFilter => {
                ethtool::receive_filter(interface)?.map(|filter| Ok(filter.name()))
            }
            Self::ClsactQdisc => match filters(interface)? {
                Some(filters) => Some(Ok(match filters.qdisc()? {
                    QdiscState::None | QdiscState::Ingress => NONE.into(),
                    QdiscState::Unused => UNUSED.into(),
                    QdiscState::Used => "used".into(),
                })),
                None => None,
            },
            Self::ClsactFilter(filter) => match filters(interface)? {
                Some(filters) => Some(Ok(if filters.has(filter)? {
                    ATTACHED.into()
                } else {
                    NONE.into()
                })),
                None => None,
            },
        };
        value.transpose()
    }

    /// Sets it to `value`, where `interface` is the name of the interface now.
    pub(super) fn set(
        &self,
        files: &KernelFiles,
        interface: &str,
        value: &str,
    ) -> Result<(), ChangeError> {
        let cpus = || {
            cpu_list::parse(value).ok_or_else(|| ChangeError::Value {
                path: self.path(files, interface),
                value: value.to_owned(),
            })
        };
        match self {
            Self::IrqAffinity { irq, .. } => {
                let list = cpu_list::list(&cpus()?);
                let written = kernel_files::write(&irq::affinity_file(files, *irq), &list);
                written.map_err(|error| match error.os_error() {
                    Some(libc::EIO) => ChangeError::ManagedIrq(error),
                    _ => ChangeError::File(error),
                })?;
            }
            Self::Rps { queue } => {
                let mask = cpu_list::mask(&cpus()?);
                kernel_files::write(&rps::cpus_file(files, interface, *queue), &mask)?;
            }
            Self::RpsFlows { queue } => {
                kernel_files::write(&rps::flows_file(files, interface, *queue), value)?;
            }
            Self::ThreadedNapi => {
                kernel_files::write(&napi::threaded_file(files, interface), value)?;
            }
            Self::DeferredInterrupts => {
                kernel_files::write(&napi::deferred_file(files, interface), value)?;
            }
            Self::NapiAffinity { pid, name, .. } => {
                affinity::set_of_thread(*pid, &cpus()?).map_err(thread("set", name))?;
            }
            Self::Offload { name } => {
                ethtool::set_features(interface, &[(name.as_str(), value == on_off(true))])?;
            }
            Self::ReceiveFilter => {
                let filter = ReceiveFilter::named(value).ok_or_else(|| ChangeError::Value {
                    path: self.path(files, interface),
                    value: value.to_owned(),
                })?;
                ethtool::set_receive_filter(interface, filter)?;
            }
            // Made by `SettingsGuard::attach_filter`, which has the program: here only removed.
            Self::ClsactQdisc => {
                if let Some(filters) = filters(interface)? {
                    filters.remove_unused_qdisc()?;
                }
            }
            Self::ClsactFilter(filter) => {
                if let Some(filters) = filters(interface)? {
                    filters.remove(filter)?;
                }
            }
        }
        Ok(())
    }

    /// CPUs that were read, in the one form.
    fn canonical(
        &self,
        files: &KernelFiles,
        interface: &str,
        cpus: Option<Vec<u32>>,
        text: String,
    ) -> Result<String, ChangeError> {
        let cpus = cpus.ok_or_else(|| ChangeError::Value {
            path: self.path(files, interface),
            value: text,
        })?;
        Ok(cpu_list::list(&cpus))
    }
}

impl ChangeError {
    /// Whether what was to be changed does not exist any more.
    pub(super) fn is_gone(&self) -> bool {
        let errno = match self {
            Self::File(error) => return error.is_missing(),
            Self::Clsact(error) => return error.is_gone(),
            Self::Value { .. } | Self::ManagedIrq(_) => None,
            Self::Thread { source, .. } | Self::Offload(EthtoolError::Request { source, .. }) => {
                source.raw_os_error()
            }
            Self::Offload(_) | Self::Interface(_) | Self::Namespace(_) | Self::Kept(_) => None,
        };
        matches!(errno, Some(libc::ESRCH | libc::ENODEV))
    }
}

/// The filters of the interface that has this name now.
fn filters(interface: &str) -> Result<Option<Filters>, ChangeError> {
    let link = netdev::by_name(interface)?;
    Ok(link.map(|link| Filters::of(link.index)).transpose()?)
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
