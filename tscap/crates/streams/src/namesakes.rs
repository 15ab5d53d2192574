//! Interfaces of one name in a file: one interface, or several.

use tscap_base::text::escaped::escaped;
use tscap_file::pcapng::{Interface, TimesClock};

/// An interface of a file, and the clock of its times.
pub type Described<'a> = (&'a Interface, &'a TimesClock);

/// Whether two interfaces of one name are one: in one network namespace of one boot of a machine.
/// `None` if nobody can tell. Those of other programs never are: nothing in a file says of which
/// machine they are.
pub fn are_one(one: Described<'_>, other: Described<'_>) -> Option<bool> {
    let options = one.0.tscap.as_ref().zip(other.0.tscap.as_ref());
    let Some((option, another)) = options.filter(|_| one.1.is_of_one_boot(other.1)) else {
        return Some(false);
    };
    option.is_in_namespace_of(another)
}

/// An interface by its number and its host.
pub fn by_number(index: usize, (interface, clock): Described<'_>) -> String {
    let Some(tscap) = &interface.tscap else {
        return format!("{index} (by another program)");
    };
    let namespace = match &tscap.namespace {
        Some(name) => format!(", namespace {}", escaped(name)),
        None => String::new(),
    };
    format!("{index} ({}{namespace})", clock.whose())
}

/// The names of the interfaces of a file; with number and host where another one has the name.
pub fn names(all: &[Described<'_>]) -> Vec<Option<String>> {
    let name = |(index, one): (usize, &Described<'_>)| {
        let name = one.0.name.as_ref()?;
        let mut others = all.iter().enumerate().filter(|(it, _)| *it != index);
        let has_namesake = others.any(|(_, other)| {
            other.0.name.as_ref() == Some(name) && are_one(*one, *other) != Some(true)
        });
        Some(if has_namesake {
            format!("{name}, interface {}", by_number(index, *one))
        } else {
            name.clone()
        })
    };
    all.iter().enumerate().map(name).collect()
}
