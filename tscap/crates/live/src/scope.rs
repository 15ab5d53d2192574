//! The network namespaces that interfaces are in.

use tscap_base::failure::{Context as _, Failure};
use tscap_network::namespaces::{Namespace, Places, Target};

/// A network namespace: this process's own, or another one.
#[derive(Debug)]
pub struct Scope(Option<Namespace>);

impl Scope {
    /// Opens the one that `target` names; without any, this process's own. `task` is what is to
    /// be done there, in errors.
    ///
    /// # Errors
    /// If it is not to be found.
    pub fn open(target: Option<&Target>, task: &str) -> Result<Self, Failure> {
        let namespace = target.map(|target| find(target, task)).transpose()?;
        Ok(Self(namespace))
    }

    /// Opens those that `targets` name, each once; without any, this process's own.
    ///
    /// # Errors
    /// If one is not to be found, or is named twice.
    pub fn open_all(targets: &[Target], task: &str) -> Result<Vec<Self>, Failure> {
        if targets.is_empty() {
            return Ok(vec![Self(None)]);
        }
        let mut scopes: Vec<Self> = Vec::new();
        for target in targets {
            let namespace = find(target, task)?;
            let mut earlier = scopes.iter().filter_map(|scope| scope.0.as_ref());
            if let Some(same) = earlier.find(|it| it.id().is(namespace.id())) {
                return Err(Failure::new(format!(
                    "cannot {task} in {target} and in {}: they are the same network namespace",
                    same.label()
                ))
                .hint("give it once"));
            }
            scopes.push(Self(Some(namespace)));
        }
        Ok(scopes)
    }

    /// Whether it is not this process's own.
    pub fn is_elsewhere(&self) -> bool {
        self.0.is_some()
    }

    /// What it is called, unless it is this process's own.
    pub fn label(&self) -> Option<&str> {
        self.0.as_ref().map(Namespace::label)
    }

    /// Does something there, in this thread.
    ///
    /// # Errors
    /// If it can't be entered.
    pub fn visit<T>(&self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        match &self.0 {
            None => Ok(work()),
            Some(namespace) => namespace
                .visit(work)
                .context(format!("cannot enter {}", namespace.label())),
        }
    }

    /// An interface's name, with the namespace's if it is another.
    pub fn name_of(&self, interface: &str) -> String {
        match self.label() {
            None => interface.to_owned(),
            Some(label) => format!("{interface} in {label}"),
        }
    }
}

fn find(target: &Target, task: &str) -> Result<Namespace, Failure> {
    Namespace::open(target, &Places::live()).map_err(|error| {
        let remedy = error.remedy();
        Failure::from_error(error, format!("cannot {task} in {target}")).hint(remedy)
    })
}
