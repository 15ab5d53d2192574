//! Network namespaces of interfaces.

use tscap_base::failure::{Context as _, Failure};
use tscap_network::namespaces::{Namespace, Places, Target};

/// The network namespace that is asked for.
///
/// # Errors
/// If it is not to be found.
pub fn open_namespace(target: Option<&Target>) -> Result<Option<Namespace>, Failure> {
    let open = |target: &Target| {
        Namespace::open(target, &Places::live()).map_err(|error| {
            let remedy = error.remedy();
            Failure::from_error(error, format!("cannot measure in {target}")).hint(remedy)
        })
    };
    target.map(open).transpose()
}

/// Does something in a network namespace, in this thread.
///
/// # Errors
/// If it can't be entered.
pub fn visit<T>(scope: Option<&Namespace>, work: impl FnOnce() -> T) -> Result<T, Failure> {
    match scope {
        None => Ok(work()),
        Some(namespace) => {
            let label = namespace.label();
            namespace
                .visit(work)
                .context(format!("cannot enter {label}"))
        }
    }
}
