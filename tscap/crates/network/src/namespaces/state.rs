//! What OCI runtimes write of a running container: a folder by its id, with a state file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::annotations::{self, Pod};
use super::container::Process;
use tscap_base::kernel_files::{KernelFileError, names, read_if_there};

/// Folders whose folders are containers: of runc and crun, as Podman and CRI-O call them.
const RUNTIMES: [&str; 2] = ["run/runc", "run/crun"];
/// Folders whose folders are containerd's namespaces, and in those containers: of runc under
/// containerd, and the tasks of containerd, of that of Docker and of that of k3s, which runtimes
/// without a state file have too.
const NAMESPACED: [&str; 4] = [
    "run/containerd/runc",
    "run/containerd/io.containerd.runtime.v2.task",
    "run/docker/containerd/daemon/io.containerd.runtime.v2.task",
    "run/k3s/containerd/io.containerd.runtime.v2.task",
];
/// Where Docker keeps `runtime-<name>/moby`, whose folders are containers.
const DOCKER: &str = "run/docker";
/// Where users keep the state of their own containers.
const USERS: &str = "run/user";

/// A container that runs, or whose runtime has not cleared up behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub id: String,
    pub process: Process,
    pub names: Vec<String>,
    pub pod: Option<Pod>,
}

/// `state.json` of runc (libcontainer's `State` and `BaseState`).
#[derive(Deserialize)]
struct Runc {
    init_process_pid: u32,
    init_process_start: u64,
    config: RuncConfig,
}

#[derive(Deserialize)]
struct RuncConfig {
    /// `key=value`: annotations, and the bundle.
    labels: Option<Vec<String>>,
}

/// `status` of crun (`libcrun_write_container_status`).
#[derive(Deserialize)]
struct Crun {
    pid: u32,
    #[serde(rename = "process-start-time")]
    started: Option<u64>,
    bundle: PathBuf,
}

/// `config.json` of a bundle (OCI runtime specification).
#[derive(Default, Deserialize)]
struct Bundle {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// What was found, and where.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub containers: Vec<Container>,
    /// Folders of runtimes that are there.
    pub looked: Vec<PathBuf>,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl Survey {
    /// All containers below `root`.
    pub fn of(root: &Path) -> Self {
        let mut survey = Self::default();
        for folder in survey.folders(root) {
            survey.look(root, folder);
        }
        survey
    }

    /// The folders whose folders are containers.
    fn folders(&mut self, root: &Path) -> Vec<PathBuf> {
        let mut folders: Vec<_> = RUNTIMES.iter().map(|it| root.join(it)).collect();
        for name in self.names(&root.join(DOCKER)) {
            if name.starts_with("runtime-") {
                folders.push(root.join(DOCKER).join(name).join("moby"));
            }
        }
        for user in self.names(&root.join(USERS)) {
            let own = root.join(USERS).join(user);
            folders.extend(["runc", "crun"].map(|runtime| own.join(runtime)));
        }
        for runtime in NAMESPACED.map(|it| root.join(it)) {
            let namespaces = self.names(&runtime);
            folders.extend(namespaces.iter().map(|it| runtime.join(it)));
        }
        folders
    }

    fn look(&mut self, root: &Path, folder: PathBuf) {
        if !folder.exists() {
            return;
        }
        for id in self.names(&folder) {
            // A task has a state file elsewhere, which knows more.
            if self.containers.iter().any(|known| known.id == id) {
                continue;
            }
            match container(root, &folder.join(&id), id) {
                Ok(container) => self.containers.extend(container),
                Err(problem) => self.problems.push(problem),
            }
        }
        self.looked.push(folder);
    }

    fn names(&mut self, folder: &Path) -> Vec<String> {
        names(folder).unwrap_or_else(|error| {
            self.problems.push(tscap_base::text::causes::chain(&error));
            Vec::new()
        })
    }
}

/// The container of a folder, if it has a process.
fn container(root: &Path, folder: &Path, id: String) -> Result<Option<Container>, String> {
    let (process, get) = if let Some(state) = json::<Runc>(&folder.join("state.json"))? {
        let process = Process {
            pid: state.init_process_pid,
            started: Some(state.init_process_start),
        };
        let labels = state.config.labels.unwrap_or_default();
        let pairs = labels.iter().filter_map(|label| label.split_once('='));
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        (process, pairs.collect())
    } else if let Some(status) = json::<Crun>(&folder.join("status"))? {
        let process = Process {
            pid: status.pid,
            started: status.started,
        };
        let bundle = status.bundle.strip_prefix("/").unwrap_or(&status.bundle);
        (process, bundle_annotations(&root.join(bundle))?)
    } else if let Some(pid) = text(&folder.join("init.pid"))? {
        let pid = pid
            .parse()
            .map_err(|_| malformed(&folder.join("init.pid")))?;
        let process = Process { pid, started: None };
        (process, bundle_annotations(folder)?)
    } else {
        return Ok(None);
    };
    let get: BTreeMap<String, String> = get;
    let get = |key: &str| get.get(key).map(String::as_str);
    Ok((process.pid != 0).then(|| Container {
        id,
        process,
        names: annotations::name(get).into_iter().collect(),
        pod: annotations::pod(get),
    }))
}

fn bundle_annotations(bundle: &Path) -> Result<BTreeMap<String, String>, String> {
    let config = json::<Bundle>(&bundle.join("config.json"))?;
    Ok(config.unwrap_or_default().annotations)
}

/// What a file holds, if it is there.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let parse = |text: String| serde_json::from_str(&text).map_err(|_| malformed(path));
    text(path)?.map(parse).transpose()
}

fn text(path: &Path) -> Result<Option<String>, String> {
    read_if_there(path).map_err(|error: KernelFileError| tscap_base::text::causes::chain(&error))
}

fn malformed(path: &Path) -> String {
    format!("cannot understand {}", path.display())
}
