//! `tscap capture -D`.

use super::print::tell;
use super::{Context as _, Exit, Failure, Hint as _};
use tscap_file::accounting::Direction;
use tscap_filter::LinkType;
use tscap_network::ethtool;
use tscap_network::namespaces::{Namespace, Places, Target};
use tscap_network::netdev::{self, Obstacle};

/// Lists the interfaces, as tcpdump -D does, with what matters to a capture: those of the
/// namespaces that `targets` name, each under its name, or those of this process's own.
pub(super) fn list(targets: &[Target]) -> Result<Exit, Failure> {
    if targets.is_empty() {
        return tell(&here()?);
    }
    let mut text = String::new();
    for target in targets {
        let namespace = Namespace::open(target, &Places::live()).map_err(|error| {
            let remedy = error.remedy();
            Failure::from_error(error, format!("cannot list the interfaces of {target}"))
                .hint(remedy)
        })?;
        let label = namespace.label();
        let listed = namespace.visit(here);
        let listed = listed
            .context(format!("cannot enter {label}"))
            .hint("it takes CAP_SYS_ADMIN: run as root")?;
        text += &format!("{label}:\n{}", listed?);
    }
    tell(&text)
}

/// The interfaces of this thread's network namespace.
fn here() -> Result<String, Failure> {
    let links = netdev::all().context("cannot list the interfaces")?;
    let mut text = String::new();
    for link in links {
        let driver = ethtool::driver(&link.name).map(|driver| driver.name);
        let mut notes = vec![if link.is_up { "up" } else { "down" }.to_owned()];
        notes.extend(link.kind.clone().or(driver));
        notes.push(format!("MTU {}", link.mtu));
        notes.extend(link.frames().map(|frames| match frames {
            LinkType::Ethernet => "Ethernet".to_owned(),
            LinkType::RawIp => "IP packets".to_owned(),
        }));
        if let Some(Obstacle { why, .. }) = link.obstacle(&Direction::ALL) {
            let sent = link.obstacle(&[Direction::Out]);
            let what = sent.map_or("can be captured by -Q out only", |_| "can't be captured");
            notes.push(format!("{what}: {why}"));
        }
        if let Some(xdp) = &link.xdp {
            notes.push(format!("has XDP program {}", xdp.ids()));
        }
        text += &format!("{}.{} [{}]\n", link.index, link.name, notes.join(", "));
    }
    text += "any [all that are up, and those that come up later]\n";
    Ok(text)
}
