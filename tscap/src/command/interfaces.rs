//! `tscap capture -D`, and looking up an interface.

use super::print::print;
use super::{Exit, Failure, Hint};
use crate::capturing::host::ethtool;
use crate::capturing::host::netdev::{self, Link};

/// Lists the interfaces, as tcpdump -D does, with what matters to a capture.
pub(super) fn list() -> Result<Exit, Failure> {
    let links = netdev::all().trying("cannot list the interfaces")?;
    let mut text = String::new();
    for link in links {
        let driver = ethtool::driver(&link.name).map(|driver| driver.name);
        let mut notes = vec![if link.is_up { "up" } else { "down" }.to_owned()];
        notes.extend(link.kind.clone().or(driver));
        notes.push(format!("MTU {}", link.mtu));
        if !link.is_ethernet() {
            notes.push("not Ethernet: can't be captured".into());
        }
        if let Some(xdp) = &link.xdp {
            notes.push(format!("has XDP program {}", xdp.ids()));
        }
        text += &format!("{}.{} [{}]\n", link.index, link.name, notes.join(", "));
    }
    print(&text)
}

/// The interface `name`, or with that number in the list; `task` is what was to be done
/// with it.
pub(super) fn find(name: &str, task: &str) -> Result<Link, Failure> {
    let what = || format!("cannot look up interface {name}");
    let mut link = netdev::by_name(name).trying(what())?;
    if let (None, Ok(number)) = (&link, name.parse()) {
        link = netdev::by_index(number).trying(what())?;
    }
    link.ok_or_else(|| {
        let failure = Failure::new(format!("cannot {task} {name}: no such interface here"));
        failure.hint(match name {
            "any" => "name each interface: -i eth0 -i eth1 (tscap -D lists them)",
            _ => "tscap -D lists the interfaces of this network namespace",
        })
    })
}

/// The same, and it must carry Ethernet frames and be up.
pub(super) fn find_usable(name: &str, task: &str) -> Result<Link, Failure> {
    let link = find(name, task)?;
    if !link.is_ethernet() {
        return Err(Failure::new(format!(
            "cannot {task} {name}: it carries no Ethernet frames (link type {})",
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
