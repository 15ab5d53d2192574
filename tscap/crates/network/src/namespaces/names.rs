//! The names of containers where the state file of the runtime has only the id.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::annotations::{self, Pod};
use super::state::json;
use tscap_base::kernel_files::names;
use tscap_base::text::causes::chain;

/// Where Docker keeps a folder for each container.
const DOCKER: &str = "var/lib/docker/containers";
/// Where Podman and CRI-O list theirs.
const STORAGE: [&str; 2] = [
    "var/lib/containers/storage/overlay-containers/containers.json",
    "run/containers/storage/overlay-containers/volatile-containers.json",
];

/// What is known of a container, running or not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub id: String,
    pub names: Vec<String>,
    pub pod: Option<Pod>,
}

/// `config.v2.json` of Docker (daemon/container's `Container`).
#[derive(Deserialize)]
struct Docker {
    #[serde(rename = "ID")]
    id: String,
    /// Begins with a slash.
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Config")]
    config: Option<DockerConfig>,
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

/// An entry of `containers.json` (containers/storage's `Container`).
#[derive(Deserialize)]
struct Stored {
    id: String,
    names: Option<Vec<String>>,
}

/// The containers with names below `root`, and what could not be read.
pub(super) fn known(root: &Path) -> (Vec<Known>, Vec<String>) {
    let (mut known, mut problems) = (Vec::new(), Vec::new());
    let docker = root.join(DOCKER);
    let ids = names(&docker).unwrap_or_else(|error| {
        problems.push(chain(&error));
        Vec::new()
    });
    for id in ids {
        match json::<Docker>(&docker.join(id).join("config.v2.json")) {
            Ok(config) => known.extend(config.map(Known::from)),
            Err(problem) => problems.push(problem),
        }
    }
    for list in STORAGE {
        match json::<Vec<Stored>>(&root.join(list)) {
            Ok(stored) => known.extend(stored.into_iter().flatten().map(Known::from)),
            Err(problem) => problems.push(problem),
        }
    }
    (known, problems)
}

impl From<Docker> for Known {
    fn from(docker: Docker) -> Self {
        let labels = docker.config.and_then(|config| config.labels);
        let labels = labels.unwrap_or_default();
        Self {
            id: docker.id,
            names: vec![docker.name.trim_start_matches('/').to_owned()],
            pod: annotations::pod(|key| labels.get(key).map(String::as_str)),
        }
    }
}

impl From<Stored> for Known {
    fn from(stored: Stored) -> Self {
        Self {
            id: stored.id,
            names: stored.names.unwrap_or_default(),
            pod: None,
        }
    }
}
