//! Looking up an interface by what a user calls it.

use crate::capturing::filter::LinkType;
use crate::capturing::host::netdev::{self, Link};
use crate::failure::{Context as _, Failure};

/// The interface `name`, or with that number in the list; `task` is what was to be done
/// with it.
pub(crate) fn find(name: &str, task: &str) -> Result<Link, Failure> {
    let what = || format!("cannot look up interface {name}");
    let mut link = netdev::by_name(name).context(what())?;
    if let (None, Ok(number)) = (&link, name.parse()) {
        link = netdev::by_index(number).context(what())?;
    }
    link.ok_or_else(|| {
        Failure::new(format!("cannot {task} {name}: no such interface here"))
            .hint("tscap -D lists the interfaces of this network namespace")
    })
}

/// Why frames of an interface can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// They are of another kind than those asked for.
    OtherFrames,
    /// It is down.
    Down,
}

/// Whether an interface is up and carries frames of `kinds`.
pub(crate) fn check(link: &Link, kinds: &[LinkType]) -> Result<(), Unusable> {
    match link.frames() {
        Some(frames) if kinds.contains(&frames) => {}
        _ => return Err(Unusable::OtherFrames),
    }
    match link.is_up {
        true => Ok(()),
        false => Err(Unusable::Down),
    }
}

/// The same, and it must be up and carry frames of `kinds`.
pub(crate) fn find_usable(name: &str, task: &str, kinds: &[LinkType]) -> Result<Link, Failure> {
    let link = find(name, task)?;
    match check(&link, kinds) {
        Ok(()) => Ok(link),
        Err(Unusable::OtherFrames) => {
            let frames = match kinds {
                [LinkType::Ethernet] => "Ethernet frames",
                _ => "Ethernet frames or IP packets",
            };
            Err(Failure::new(format!(
                "cannot {task} {name}: it carries no {frames} (link type {})",
                link.link_type
            ))
            .hint(format!("{task} the Ethernet interface below it")))
        }
        Err(Unusable::Down) => Err(Failure::new(format!("cannot {task} {name}: it is down"))
            .hint(format!("ip link set dev {name} up"))),
    }
}
