//! `tscap capture -D`.

use super::print::print;
use super::{Context as _, Exit, Failure};
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
