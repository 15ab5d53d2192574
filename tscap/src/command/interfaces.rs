//! `tscap capture -D`.

use super::print::print;
use super::{Context as _, Exit, Failure};
use crate::capturing::filter::LinkType;
use crate::capturing::host::ethtool;
use crate::capturing::host::netdev;

/// Lists the interfaces, as tcpdump -D does, with what matters to a capture.
pub(super) fn list() -> Result<Exit, Failure> {
    let links = netdev::all().context("cannot list the interfaces")?;
    let mut text = String::new();
    for link in links {
        let driver = ethtool::driver(&link.name).map(|driver| driver.name);
        let mut notes = vec![if link.is_up { "up" } else { "down" }.to_owned()];
        notes.extend(link.kind.clone().or(driver));
        notes.push(format!("MTU {}", link.mtu));
        notes.push(match link.frames() {
            Some(LinkType::Ethernet) => "Ethernet".into(),
            Some(LinkType::RawIp) => "IP packets".into(),
            None => format!("link type {}: can't be captured", link.link_type),
        });
        if let Some(xdp) = &link.xdp {
            notes.push(format!("has XDP program {}", xdp.ids()));
        }
        text += &format!("{}.{} [{}]\n", link.index, link.name, notes.join(", "));
    }
    text += "any [all that are up, and those that come up later]\n";
    print(&text)
}
