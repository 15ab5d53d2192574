//! Receive offloads: turned off where the user wants it, and given back where
//! attaching a program turned them off.

use super::event::Reporter;
use std::collections::BTreeMap;

use super::pinning;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_file::pcapng::VlanTags;
use tscap_live::settings::{Change, ChangeError, InterfaceId, Setting, SettingsGuard};
use tscap_network::ethtool::Feature;
use tscap_network::netdev::Link;
use tscap_programs::hook::offloads;

/// Turns those off that hide frames as they arrived.
pub(super) fn turn_off(
    link: &Link,
    generic: bool,
    changes: &mut SettingsGuard,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    let features = offloads::read(&link.name);
    let names: Vec<_> = offloads::hiding(&features, generic)
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| features.get(*name).is_some_and(|feature| !feature.fixed))
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let turned_off = turn_off_journalled(link, &names, changes);
    turned_off.hint("--offloads keep leaves them as they are")?;
    reporter.note(&format!(
        "{}: turned off for the capture: {}",
        link.name,
        names.join(", ")
    ));
    Ok(())
}

/// Warns of what hides frames as they arrived: offloads in force, and VLAN tags that may
/// have been taken off before.
pub(super) fn say_hiding(
    link: &Link,
    in_force: &BTreeMap<String, Feature>,
    tags: VlanTags,
    reporter: &mut Reporter<'_>,
) {
    let name = &link.name;
    for (offload, why) in offloads::hiding_with_tags(in_force, false, tags) {
        reporter.warning(&format!(
            "{name}: {offload} is on: {why} (--offloads off turns it off for the capture)"
        ));
    }
    if tags == VlanTags::Unknown {
        reporter.warning(&format!(
            "{name}: the outer VLAN tag of a frame may be missing: the network stack can have \
             taken it off before, and this program can't read it (tcpdump -e shows it)"
        ));
    }
}

fn turn_off_journalled(
    link: &Link,
    names: &[&str],
    changes: &mut SettingsGuard,
) -> Result<(), Failure> {
    let what = || format!("cannot turn off offloads of {}", link.name);
    let interface = InterfaceId::here(link).context(what())?;
    let planned = plan_off(&interface, names, changes).context(what())?;
    let refused = changes.make(planned).map_err(pinning::journal_failure)?;
    match refused.into_iter().next() {
        Some(refused) => Err(refused.error).context(what()),
        None => Ok(()),
    }
}

/// Journals what attaching may turn off for good, before it does.
pub(super) fn journal_offloads_ahead(
    link: &Link,
    features: &BTreeMap<String, Feature>,
    changes: &mut SettingsGuard,
) -> Result<(), Failure> {
    let lasting = features
        .iter()
        .filter(|(name, feature)| feature.on && !feature.fixed && offloads::is_lasting(name));
    let names: Vec<_> = lasting.map(|(name, _)| name.as_str()).collect();
    let what = || format!("cannot give back offloads of {}", link.name);
    let interface = InterfaceId::here(link).context(what())?;
    let planned = plan_off(&interface, &names, changes).context(what())?;
    let switches: String = names.iter().map(|name| format!(" {name} on")).collect();
    let foreseen = changes
        .journal_ahead(planned)
        .map_err(pinning::journal_failure);
    foreseen.map_err(|failure| {
        let command = format!("after the capture: ethtool -K {}{switches}", link.name);
        failure.hint(command)
    })
}

fn plan_off(
    interface: &InterfaceId,
    names: &[&str],
    changes: &SettingsGuard,
) -> Result<Vec<Change>, ChangeError> {
    let mut planned = Vec::new();
    for name in names {
        let setting = Setting::Offload {
            name: (*name).to_owned(),
        };
        let change = Change::plan(changes.files(), interface, setting, "off".into())?;
        planned.extend(change.change());
    }
    Ok(planned)
}

/// Warns of tags that a filter does not see.
pub(super) fn say_unfiltered_tags(link: &Link, reporter: &mut Reporter<'_>) {
    reporter.warning(&format!(
        "{}: a VLAN tag may be beside its frame and not in it, where the filter's vlan does not \
         find it; --offloads off keeps the tags that this device strips in their frames",
        link.name
    ));
}

/// Says what attaching changed, and what of that nobody will give back.
pub(super) fn say_changes(
    link: &Link,
    changes: &[(String, bool)],
    foreseen: Result<(), Failure>,
    reporter: &mut Reporter<'_>,
) {
    let lasting = changes.iter().find(|(name, _)| offloads::is_lasting(name));
    if let (Some((name, _)), Err(failure)) = (lasting, foreseen) {
        reporter.warning(&format!(
            "{}: attaching turned {name} off, and it stays off: {failure}",
            link.name
        ));
    }
    if !changes.is_empty() {
        let changes: Vec<_> = changes
            .iter()
            .map(|(name, on)| format!("{name} {}", if *on { "on" } else { "off" }))
            .collect();
        reporter.detail(&format!(
            "{}: attaching changed offloads: {}",
            link.name,
            changes.join(", ")
        ));
    }
}
