//! Network namespaces as people name them: by `ip netns`, by a path, by a process, by a
//! container, by a pod. Containers are found by what their runtimes write on this machine, so
//! that no daemon need be asked.

mod annotations;
mod container;
mod error;
mod names;
mod state;
mod tools;

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};

use self::container::{Process, Wanted};
pub use self::error::NamespaceError;
use crate::netns::NetnsId;
use crate::own_netns::in_thread;
use tscap_base::kernel_files::{KernelFiles, names};
use tscap_host::process;

/// Where `ip netns` keeps the ones that it has named (`NETNS_RUN_DIR`).
const NAMED: [&str; 2] = ["run/netns", "var/run/netns"];

/// What a namespace is asked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A name that `ip netns` has given, a path (which has a slash), or the number of a
    /// process.
    Netns(String),
    /// A container: its name, or its id or the beginning of that.
    Container(String),
    /// A pod of Kubernetes on this node.
    Pod {
        /// The namespace of Kubernetes.
        namespace: String,
        /// The name.
        name: String,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Netns(text) => write!(f, "network namespace {}", text.escape_debug()),
            Self::Container(text) => write!(f, "container {}", text.escape_debug()),
            Self::Pod { namespace, name } => {
                write!(
                    f,
                    "pod {}/{}",
                    namespace.escape_debug(),
                    name.escape_debug()
                )
            }
        }
    }
}

/// Where names are looked up: the machine's files, or a tree in a test.
#[derive(Clone, Debug)]
pub struct Places {
    root: PathBuf,
    files: KernelFiles,
}

impl Places {
    /// This machine.
    pub fn live() -> Self {
        Self::below(Path::new("/"))
    }

    /// A tree with `proc`, `run` and `var` in it; no program is asked.
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: KernelFiles::below(root),
        }
    }
}

/// A network namespace that was found, for as long as it is held.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    id: NetnsId,
    label: String,
}

/// What stands for a namespace.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(PathBuf),
    /// A process in it.
    Process(Process),
}

impl Namespace {
    /// Finds and opens one.
    ///
    /// # Errors
    /// See [`NamespaceError`].
    pub fn open(target: &Target, places: &Places) -> Result<Self, NamespaceError> {
        match places.find(target)? {
            Found::File(path) => Self::at(&path, target.to_string()),
            Found::Process(process) => {
                let path = places.files.proc(format!("{}/ns/net", process.pid));
                let namespace = Self::at(&path, target.to_string());
                // After it was opened: the number may be another process's by now.
                if !process.is_alive(&places.files)? {
                    return Err(NamespaceError::Ended {
                        target: target.clone(),
                        pid: process.pid,
                    });
                }
                let namespace = namespace?;
                if namespace.id.is_here() {
                    Err(NamespaceError::Here {
                        target: target.clone(),
                    })
                } else {
                    Ok(namespace)
                }
            }
        }
    }

    fn at(path: &Path, label: String) -> Result<Self, NamespaceError> {
        let file = File::open(path).map_err(NamespaceError::failed("open", path))?;
        let id = in_thread(|| enter(&file).and_then(|()| NetnsId::here()));
        let id = id.map_err(NamespaceError::failed("enter", path))?;
        Ok(Self { file, id, label })
    }

    /// The file that stands for it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// What identifies it.
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// What it is called, for people.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Does something there, in this thread, which comes back afterwards.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN.
    pub fn visit<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = Home(File::open("/proc/thread-self/ns/net")?);
        enter(&self.file)?;
        let result = work();
        drop(home);
        Ok(result)
    }
}

/// Where a thread comes back to, also from a panic.
struct Home(File);

impl Drop for Home {
    fn drop(&mut self) {
        // It got out by the same right. A thread elsewhere would act on the wrong interfaces.
        enter(&self.0).expect("a thread may enter the network namespace that it came from");
    }
}

fn enter(file: &File) -> io::Result<()> {
    Ok(setns(file, CloneFlags::CLONE_NEWNET)?)
}

impl Places {
    fn find(&self, target: &Target) -> Result<Found, NamespaceError> {
        match target {
            Target::Netns(text) => self.find_netns(text),
            Target::Container(text) => {
                container::find(self, &Wanted::Container(text)).map(Found::Process)
            }
            Target::Pod { namespace, name } => {
                container::find(self, &Wanted::Pod { namespace, name }).map(Found::Process)
            }
        }
    }

    fn find_netns(&self, text: &str) -> Result<Found, NamespaceError> {
        if text.contains('/') {
            return Ok(Found::File(text.into()));
        }
        let folders = NAMED.map(|folder| self.root.join(folder));
        if !matches!(text, "" | "." | "..") {
            let mut named = folders.iter().map(|folder| folder.join(text));
            if let Some(path) = named.find(|path| path.exists()) {
                return Ok(Found::File(path));
            }
        }
        let Ok(pid) = text.parse() else {
            let mut known = Vec::new();
            for folder in &folders {
                known.extend(names(folder)?);
            }
            known.sort();
            known.dedup();
            return Err(NamespaceError::NoName {
                name: text.into(),
                known,
            });
        };
        match process::started(&self.files, pid)? {
            Some(started) => Ok(Found::Process(Process {
                pid,
                started: Some(started),
            })),
            None => Err(NamespaceError::NoProcess { pid }),
        }
    }
}

#[cfg(test)]
mod tests;
