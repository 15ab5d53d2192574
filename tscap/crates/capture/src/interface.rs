//! Looking up an interface by what a user calls it.

use tscap_base::failure::{Context as _, Failure};
use tscap_file::accounting::Direction;
use tscap_filter::LinkType;
use tscap_network::netdev::{self, Link, Obstacle};

/// The interface `name`, or with that number in the list; `task` is what was to be done
/// with it.
pub fn find(name: &str, task: &str) -> Result<Link, Failure> {
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

/// Checks that the frames of an interface that go in `directions` are of `kinds`; `task` is
/// what was to be done with the interface, which is called `name`.
pub(crate) fn check_frames(
    link: &Link,
    (name, task): (&str, &str),
    kinds: &[LinkType],
    directions: &[Direction],
) -> Result<(), Failure> {
    if let Some(Obstacle { why, advice }) = link.obstacle(directions) {
        return Err(Failure::new(format!("cannot {task} {name}: {why}")).hint(advice));
    }
    if link.frames().is_some_and(|frames| kinds.contains(&frames)) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "cannot {task} {name}: it carries IP packets without an Ethernet header (link type {})",
        link.link_type
    ))
    .hint(format!("{task} the Ethernet interface below it")))
}

/// The interface `name`, which must be up, and carry frames of `kinds` in both directions.
pub fn find_usable(name: &str, task: &str, kinds: &[LinkType]) -> Result<Link, Failure> {
    find_usable_in(name, task, kinds, |_| &Direction::ALL)
}

/// The same in those `directions` alone.
pub(crate) fn find_usable_in(
    name: &str,
    task: &str,
    kinds: &[LinkType],
    directions: impl FnOnce(&Link) -> &'static [Direction],
) -> Result<Link, Failure> {
    let link = find(name, task)?;
    check_frames(&link, (name, task), kinds, directions(&link))?;
    if link.is_up {
        Ok(link)
    } else {
        Err(Failure::new(format!("cannot {task} {name}: it is down"))
            .hint(format!("ip link set dev {name} up")))
    }
}
