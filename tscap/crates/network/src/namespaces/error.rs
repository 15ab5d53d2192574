//! Why a network namespace could not be found or entered.

use std::io;
use std::path::{Path, PathBuf};

use super::Target;
use tscap_base::kernel_files::KernelFileError;

/// Why there is no such network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No name of `ip netns`, and no number.
    #[error("no network namespace is called {name:?}")]
    NoName {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No such process.
    #[error("no process has the number {pid}")]
    NoProcess {
        /// The number.
        pid: u32,
    },
    /// No container or pod was found.
    #[error("there is no {target} here")]
    NotFound {
        /// What was asked for.
        target: Target,
        /// Where containers of runtimes were looked for.
        looked: Vec<PathBuf>,
        /// What could not be read.
        problems: Vec<String>,
    },
    /// It is known, and has no process.
    #[error("{target} is not running")]
    NotRunning {
        /// What was asked for.
        target: Target,
    },
    /// Several have this name, or an id that begins so.
    #[error("several containers could be meant by {target}: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        target: Target,
        /// Their ids, and pods if they have one.
        candidates: Vec<String>,
    },
    /// Its process has ended meanwhile.
    #[error("process {pid} of {target} has just ended")]
    Ended {
        /// What was asked for.
        target: Target,
        /// The process.
        pid: u32,
    },
    /// It is in the namespace in which tscap is.
    #[error("{target} has no network namespace of its own: it is in that of tscap")]
    Here {
        /// What was asked for.
        target: Target,
    },
    /// The file that stands for it.
    #[error("cannot {operation} the network namespace {}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that tells of it.
    #[error(transparent)]
    Read(#[from] KernelFileError),
}

impl NamespaceError {
    pub(super) fn failed<'a>(
        operation: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::File {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoName { known, .. } if known.is_empty() => {
                "ip netns has named none; --netns takes a path or the number of a process too".into()
            }
            Self::NoName { known, .. } => format!("there are: {}", known.join(", ")),
            Self::NotFound {
                looked, problems, ..
            } => {
                let looked: Vec<_> = looked.iter().map(|path| path.display().to_string()).collect();
                let looked = if looked.is_empty() {
                    "no container runtime was found (Docker, Podman, containerd, CRI-O)".into()
                } else {
                    format!("looked in {}", looked.join(", "))
                };
                let problems: String = problems.iter().map(|it| format!("; {it}")).collect();
                format!("{looked}{problems}; --netns PID takes the number of one of its processes")
            }
            Self::NotRunning { .. } => "start it before the capture".into(),
            Self::Ambiguous { .. } => "give more of the id, or --pod NAMESPACE/NAME".into(),
            Self::Here { .. } => "capture without this option, by -i".into(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run it as root: a namespace is entered with CAP_SYS_ADMIN, and CAP_SYS_PTRACE looks into a process".into()
            }
            Self::File { source, .. } if source.raw_os_error() == Some(libc::EINVAL) => {
                "it is no network namespace: ip netns list shows those that are named".into()
            }
            Self::NoProcess { .. } | Self::Ended { .. } | Self::File { .. } | Self::Read(_) => {
                "lsns -t net lists network namespaces and their processes".into()
            }
        }
    }
}
