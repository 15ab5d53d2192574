//! The network namespaces that a capture is in.

use tscap_base::failure::{Context as _, Failure};
use tscap_network::namespaces::{Namespace, Places, Target};

/// A network namespace: this process's own, or another one.
#[derive(Debug)]
pub(super) struct Scope(Option<Namespace>);

impl Scope {
    /// Those that `targets` name, each once; without any, this process's own.
    pub fn open(targets: &[Target]) -> Result<Vec<Self>, Failure> {
        if targets.is_empty() {
            return Ok(vec![Self(None)]);
        }
        let mut scopes: Vec<Self> = Vec::new();
        for target in targets {
            let namespace = Namespace::open(target, &Places::live()).map_err(|error| {
                let remedy = error.remedy();
                Failure::from_error(error, format!("cannot capture in {target}")).hint(remedy)
            })?;
            let mut earlier = scopes.iter().filter_map(|scope| scope.0.as_ref());
            if let Some(same) = earlier.find(|it| it.id().is(namespace.id())) {
                return Err(Failure::new(format!(
                    "cannot capture in {target} and in {}: they are the same network namespace",
                    same.label()
                ))
                .hint("give it once"));
            }
            scopes.push(Self(Some(namespace)));
        }
        Ok(scopes)
    }

    /// What it is called, unless it is this process's own.
    pub fn label(&self) -> Option<&str> {
        self.0.as_ref().map(Namespace::label)
    }

    /// Does something there, in this thread.
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
