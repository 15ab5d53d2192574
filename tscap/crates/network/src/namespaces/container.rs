//! The process of a container or of a pod.

use super::names::known;
use super::state::{Container, Survey};
use super::{NamespaceError, Places, Target, tools};
use tscap_base::kernel_files::{KernelFileError, KernelFiles};
use tscap_host::process;

/// Digits of an id that people are shown, as Docker does.
const SHORT_ID: usize = 12;

/// A process, known again by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    /// Clock ticks since boot; `None` if the runtime does not note it.
    pub started: Option<u64>,
}

impl Process {
    pub fn is_alive(self, files: &KernelFiles) -> Result<bool, KernelFileError> {
        let now = process::started(files, self.pid)?;
        Ok(now.is_some() && (self.started.is_none() || now == self.started))
    }
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted<'a> {
    /// A container, by its name or the beginning of its id.
    Container(&'a str),
    /// Any container of a pod: they share the network namespace.
    Pod { namespace: &'a str, name: &'a str },
}

/// The process of what is looked for.
pub(super) fn find(places: &Places, wanted: &Wanted<'_>) -> Result<Process, NamespaceError> {
    let mut survey = Survey::of(&places.root);
    let (known, problems) = known(&places.root);
    survey.problems.extend(problems);
    // Names of those that have no process show that they are not running.
    let mut is_known = false;
    for known in known {
        is_known |= wanted.is(&known.id, &known.names, known.pod.as_ref());
        let mut containers = survey.containers.iter_mut();
        if let Some(container) = containers.find(|it| it.id == known.id) {
            container.names.extend(known.names);
            container.pod = container.pod.take().or(known.pod);
        }
    }
    let mut found = wanted.among(&survey.containers);
    is_known |= !found.is_empty();
    let mut alive = Vec::new();
    for container in found.drain(..) {
        if container.process.is_alive(&places.files)? {
            alive.push(container);
        }
    }
    match (&alive[..], wanted) {
        ([one], _) | ([one, ..], Wanted::Pod { .. }) => Ok(one.process),
        ([], _) => tools::ask(places, wanted).ok_or_else(|| {
            if is_known {
                NamespaceError::NotRunning {
                    target: wanted.target(),
                }
            } else {
                NamespaceError::NotFound {
                    target: wanted.target(),
                    looked: survey.looked,
                    problems: survey.problems,
                }
            }
        }),
        (several, _) => Err(NamespaceError::Ambiguous {
            target: wanted.target(),
            candidates: several.iter().map(|it| it.shown()).collect(),
        }),
    }
}

impl Wanted<'_> {
    /// The containers that are meant: those of this name before those whose id begins so.
    fn among<'a>(&self, containers: &'a [Container]) -> Vec<&'a Container> {
        let named = containers
            .iter()
            .filter(|it| self.is(&it.id, &it.names, it.pod.as_ref()));
        let named: Vec<_> = named.collect();
        match self {
            Self::Container(text) if named.is_empty() && !text.is_empty() => {
                let begin = containers.iter().filter(|it| it.id.starts_with(text));
                begin.collect()
            }
            _ => named,
        }
    }

    fn is(&self, id: &str, names: &[String], pod: Option<&super::annotations::Pod>) -> bool {
        match self {
            Self::Container(text) => id == *text || names.iter().any(|name| name == text),
            Self::Pod { namespace, name } => {
                pod.is_some_and(|pod| pod.namespace == *namespace && pod.name == *name)
            }
        }
    }

    fn target(&self) -> Target {
        match *self {
            Self::Container(text) => Target::Container(text.into()),
            Self::Pod { namespace, name } => Target::Pod {
                namespace: namespace.into(),
                name: name.into(),
            },
        }
    }
}

impl Container {
    fn shown(&self) -> String {
        let id = self.id.get(..SHORT_ID).unwrap_or(&self.id);
        match &self.pod {
            Some(pod) => format!("{id} (pod {}/{})", pod.namespace, pod.name),
            None => id.to_owned(),
        }
    }
}
