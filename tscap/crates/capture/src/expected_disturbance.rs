//! What attaching will do to an interface at work, said before it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::event::{Reporter, Severity};
use super::selection::Selected;
use tscap_network::ethtool::{self, Feature};
use tscap_network::{route, xdp_features};
use tscap_programs::hook::{
    Disturbance, Expected, HookChoice, disturbance_in_words, expected, offloads,
};

/// For so long the routes of a namespace count as they were found. Looking reads all routes and
/// all interfaces: for each of many interfaces that are attached to, that would take longer the
/// more of them there are.
const ROUTES_LAST: Duration = Duration::from_secs(1);

/// The interfaces that carry default routes, as they were found in one namespace.
#[derive(Debug, Default)]
pub(super) struct DefaultCarriers(Option<FoundCarriers>);

#[derive(Debug)]
struct FoundCarriers {
    /// Index of the namespace.
    scope: usize,
    at: Instant,
    interfaces: BTreeSet<u32>,
}

impl DefaultCarriers {
    /// Whether interface `index` of namespace `scope` is one of them. `look` finds all that are
    /// in that namespace.
    fn contain(
        &mut self,
        (scope, index): (usize, u32),
        now: Instant,
        look: impl FnOnce() -> BTreeSet<u32>,
    ) -> bool {
        let known = self.0.take();
        let known = known.filter(|it| it.scope == scope && now - it.at < ROUTES_LAST);
        let found = known.unwrap_or_else(|| FoundCarriers {
            scope,
            at: now,
            interfaces: look(),
        });
        self.0.insert(found).interfaces.contains(&index)
    }
}

/// Says what attaching to an interface, whose offloads are `before`, will do to frames on their
/// way.
pub(super) fn say(
    selected: &Selected,
    choice: HookChoice,
    before: &BTreeMap<String, Feature>,
    carriers: &mut DefaultCarriers,
    reporter: &mut Reporter<'_>,
) {
    let link = &selected.link;
    let name = &link.name;
    let lasting = before
        .iter()
        .filter(|(name, it)| it.on && !it.fixed && offloads::is_lasting(name));
    let lasting: Vec<_> = lasting.map(|(name, _)| name.as_str()).collect();
    if choice != HookChoice::Tcx && !lasting.is_empty() {
        reporter.detail(&format!(
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
    let look = || route::carriers_of_default().unwrap_or_default();
    let place = (selected.scope, link.index);
    let carries = (loses || selected.is_named) && carriers.contain(place, Instant::now(), look);
    if let Some((severity, text)) = expected_disturbance(name, &driver, carries) {
        reporter.say(severity, &text);
    }
}

/// What to say before native XDP is attached, and how loud.
fn expected_disturbance(
    name: &str,
    driver: &str,
    carries_default_route: bool,
) -> Option<(Severity, String)> {
    let disturbance = Disturbance::of(driver).map(|(disturbance, _)| disturbance);
    let severity = match (disturbance, carries_default_route) {
        (Some(Disturbance::None), _) => return None,
        (Some(Disturbance::NewQueues), true) => Severity::Warning,
        (Some(Disturbance::NewQueues), false) | (_, true) => Severity::Note,
        (_, false) => Severity::Detail,
    };
    let route = if carries_default_route {
        ", and the default route goes through it"
    } else {
        ""
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
    fn routes_are_looked_at_once_for_many_interfaces() {
        let mut carriers = DefaultCarriers::default();
        let began = Instant::now();
        let mut looks = 0;
        let mut contain = |place, after, found: &[u32]| {
            carriers.contain(place, began + after, || {
                looks += 1;
                found.iter().copied().collect()
            })
        };
        let soon = ROUTES_LAST - Duration::from_nanos(1);
        assert!(contain((0, 3), Duration::ZERO, &[3]));
        assert!(!contain((0, 4), soon, &[4]));
        assert!(contain((0, 3), soon, &[4]));
        // Later, and in another namespace, where numbers are given again.
        assert!(contain((0, 4), ROUTES_LAST, &[4]));
        assert!(!contain((1, 4), ROUTES_LAST, &[3]));
        assert_eq!(looks, 3);
    }

    #[test]
    fn a_driver_that_loses_frames_on_the_default_route_is_warned_of() {
        let severity =
            |driver, carries| expected_disturbance("eth0", driver, carries).map(|(it, _)| it);
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
        let (_, text) = expected_disturbance("eth0", "ena", true).unwrap();
        for part in [
            "eth0: ",
            "ena build its queues anew",
            "default route",
            "--hook tcx",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let (_, text) = expected_disturbance("eth0", "ena", false).unwrap();
        assert!(!text.contains("default route"), "{text}");
    }
}
