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
        let failure = Failure::new(format!("cannot {task} {name}: no such interface here"));
        failure.hint(match name {
            "any" => "name each interface: -i eth0 -i eth1 (tscap -D lists them)",
            _ => "tscap -D lists the interfaces of this network namespace",
        })
    })
}

/// The same, and it must be up and carry frames of `kinds`.
pub(crate) fn find_usable(name: &str, task: &str, kinds: &[LinkType]) -> Result<Link, Failure> {
    let link = find(name, task)?;
    if !link.frames().is_some_and(|it| kinds.contains(&it)) {
        let frames = match kinds {
            [LinkType::Ethernet] => "Ethernet frames",
            _ => "Ethernet frames or IP packets",
        };
        return Err(Failure::new(format!(
            "cannot {task} {name}: it carries no {frames} (link type {})",
            link.link_type
        ))
        .hint(format!("{task} the Ethernet interface below it")));
    }
    if !link.is_up {
        return Err(Failure::new(format!("cannot {task} {name}: it is down"))
            .hint(format!("ip link set dev {name} up")));
    }
    Ok(link)
}
