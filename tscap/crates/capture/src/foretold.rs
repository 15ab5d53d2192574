//! What attaching will do to an interface at work, said before it is done.

use std::collections::BTreeMap;

use super::event::{Listener, Severity};
use tscap_network::ethtool::{self, Feature};
use tscap_network::netdev::Link;
use tscap_network::{route, xdp_features};
use tscap_programs::hook::{
    Disturbance, Expected, HookChoice, disturbance_in_words, expected, offloads,
};

/// Says what attaching to `link`, whose offloads are `before`, will do to frames on their way.
pub(super) fn say(
    (link, is_named): (&Link, bool),
    choice: HookChoice,
    before: &BTreeMap<String, Feature>,
    told: &mut Listener<'_>,
) {
    let name = &link.name;
    let lasting = before
        .iter()
        .filter(|(name, it)| it.on && !it.fixed && offloads::is_lasting(name));
    let lasting: Vec<_> = lasting.map(|(name, _)| name.as_str()).collect();
    if choice != HookChoice::Tcx && !lasting.is_empty() {
        told.detail(&format!(
            "{name}: attaching may turn {} off until the end of the capture",
            lasting.join(", ")
        ));
    }
    if !matches!(choice, HookChoice::Auto | HookChoice::Xdp) || link.is_loopback() {
        return;
    }
    let driver = ethtool::driver(name).map_or(String::new(), |driver| driver.name);
    let features = xdp_features::of(link.index).unwrap_or(None);
    if let Expected::InStack { .. } = expected(link, &driver, before, features) {
        return;
    }
    // A router has many routes, and a host of containers many interfaces: they are asked for
    // where it matters.
    let loses = Disturbance::of(&driver).is_some_and(|(disturbance, _)| disturbance.loses());
    let carries = (loses || is_named)
        && route::carriers_of_default().is_ok_and(|it| it.contains(&link.index));
    if let Some((severity, text)) = foretold(name, &driver, carries) {
        told.say(severity, &text);
    }
}

/// What to say before native XDP is attached, and how loud.
fn foretold(name: &str, driver: &str, carries_default_route: bool) -> Option<(Severity, String)> {
    let disturbance = Disturbance::of(driver).map(|(disturbance, _)| disturbance);
    let severity = match (disturbance, carries_default_route) {
        (Some(Disturbance::None), _) => return None,
        (Some(Disturbance::NewQueues), true) => Severity::Warning,
        (Some(Disturbance::NewQueues), false) | (_, true) => Severity::Note,
        (_, false) => Severity::Detail,
    };
    let route = match carries_default_route {
        true => ", and the default route goes through it",
        false => "",
    };
    let words = disturbance_in_words(driver);
    let text =
        format!("{name}: attaching native XDP {words}{route}; --hook tcx leaves the driver alone");
    Some((severity, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_loses_frames_on_the_default_route_is_warned_of() {
        let severity = |driver, carries| foretold("eth0", driver, carries).map(|(it, _)| it);
        assert_eq!(severity("ixgbe", true), Some(Severity::Warning));
        assert_eq!(severity("ixgbe", false), Some(Severity::Note));
        for driver in ["virtio_net", "veth", "bonding", "e1000e"] {
            assert_eq!(severity(driver, true), Some(Severity::Note), "{driver}");
            assert_eq!(severity(driver, false), Some(Severity::Detail), "{driver}");
        }
        assert_eq!(severity("sfc", true), None);
    }

    #[test]
    fn it_says_what_to_do_instead() {
        let (_, text) = foretold("eth0", "ena", true).unwrap();
        for part in [
            "eth0: ",
            "ena build its queues anew",
            "default route",
            "--hook tcx",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let (_, text) = foretold("eth0", "ena", false).unwrap();
        assert!(!text.contains("default route"), "{text}");
    }
}
