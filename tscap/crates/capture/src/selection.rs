//! Which interfaces a capture is on: those named, and all that a pattern matches.

use glob::Pattern;

use super::interface;
use super::plan::{Capture, DirectionChoice};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_filter::LinkType;
use tscap_host::process;
use tscap_live::Scope;
use tscap_network::link_watch::LinkWatch;
use tscap_network::netdev::{self, Link};

/// What can be captured.
const KINDS: [LinkType; 2] = [LinkType::Ethernet, LinkType::RawIp];
/// What is to be done with an interface.
const CAPTURE: &str = "capture on";
/// All interfaces, as tcpdump calls them.
const ANY: &str = "any";
/// What makes a pattern of a name (glob(7)).
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// An interface to capture on.
#[derive(Clone, Debug)]
pub(super) struct Selected {
    /// Index of its namespace.
    pub scope: usize,
    pub link: Link,
    /// By its name: that it can't be captured on is an error.
    pub is_named: bool,
    /// Whether promiscuous mode is for it: not if it was not asked for by name or pattern.
    pub may_be_promiscuous: bool,
}

/// What was asked for.
#[derive(Debug, Default)]
pub(super) struct Selection {
    names: Vec<String>,
    patterns: Vec<Pattern>,
    any: bool,
    direction: DirectionChoice,
}

/// The namespaces and interfaces of a capture.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    pub scopes: Vec<Scope>,
    pub selection: Selection,
    /// Those that are there.
    pub now: Vec<Selected>,
    /// What tells of others, by the index of the namespace; none if none may join.
    pub watches: Vec<LinkWatch>,
}

impl Interfaces {
    pub fn find(plan: &Capture) -> Result<Self, Failure> {
        let selection = Selection::of(plan)?;
        let scopes = Scope::open_all(&plan.namespaces, "capture")?;
        let watches = if selection.is_open() {
            // Some for each interface.
            process::allow_most_files();
            watch(&scopes)?
        } else {
            Vec::new()
        };
        Ok(Self {
            now: selection.find(&scopes)?,
            scopes,
            selection,
            watches,
        })
    }

    /// Whether some are in other network namespaces than this process.
    pub fn is_elsewhere(&self) -> bool {
        self.scopes.iter().any(|scope| scope.label().is_some())
    }

    /// The namespace of an interface.
    pub fn scope_of(&self, selected: &Selected) -> &Scope {
        &self.scopes[selected.scope]
    }
}

/// Whether a name stands for what joins later too.
pub(super) fn is_open(name: &str) -> bool {
    name == ANY || is_pattern(name)
}

fn is_pattern(name: &str) -> bool {
    name.contains(WILDCARDS)
}

/// Watches the interfaces of `scopes`.
fn watch(scopes: &[Scope]) -> Result<Vec<LinkWatch>, Failure> {
    let watches = scopes.iter().map(|scope| {
        let watch = scope.visit(LinkWatch::new)?;
        watch.context("cannot watch for interfaces that join")
    });
    watches.collect()
}

impl Selection {
    fn of(plan: &Capture) -> Result<Self, Failure> {
        let mut selection = Self {
            direction: plan.direction,
            ..Self::default()
        };
        for name in &plan.interfaces {
            if name == ANY {
                selection.any = true;
            } else if is_pattern(name) {
                let pattern = Pattern::new(name);
                let pattern = pattern.context(format!("cannot capture on {name}"));
                let advice = "a pattern has * for any characters, ? for one, [a-z] for one of some";
                selection.patterns.push(pattern.hint(advice)?);
            } else {
                selection.names.push(name.clone());
            }
        }
        Ok(selection)
    }

    /// Whether interfaces may join later.
    pub fn is_open(&self) -> bool {
        self.any || !self.patterns.is_empty()
    }

    /// What to say where there is none yet.
    pub fn waits_for(&self) -> String {
        let patterns = self.patterns.iter().map(Pattern::as_str);
        let asked: Vec<_> = patterns.chain(self.any.then_some(ANY)).collect();
        format!(
            "no interface is up that is {}: waiting for one",
            asked.join(" or ")
        )
    }

    /// The interface, if it is one of those that may join, and up. Whether its frames can be
    /// taken is [another question](Self::check_frames), whose answer people hear.
    pub fn joining(&self, scope: usize, link: Link) -> Option<Selected> {
        let is_matched = self.patterns.iter().any(|it| it.matches(&link.name));
        let is_taken = (self.any || is_matched) && link.is_up;
        is_taken.then_some(Selected {
            scope,
            link,
            is_named: false,
            may_be_promiscuous: is_matched,
        })
    }

    /// Checks that frames of an interface can be taken.
    pub fn check_frames(&self, selected: &Selected) -> Result<(), Failure> {
        let link = &selected.link;
        let directions = self.direction.of(link);
        interface::check_frames(link, (&link.name, CAPTURE), &KINDS, directions)
    }

    /// The interfaces in `scopes`, those named first.
    fn find(&self, scopes: &[Scope]) -> Result<Vec<Selected>, Failure> {
        let mut found: Vec<Selected> = Vec::new();
        for (number, scope) in scopes.iter().enumerate() {
            let before = found.len();
            scope.visit(|| self.find_here(number, scope, &mut found))??;
            let here = &found[before..];
            check_each_once(here)?;
        }
        Ok(found)
    }

    fn find_here(
        &self,
        number: usize,
        scope: &Scope,
        found: &mut Vec<Selected>,
    ) -> Result<(), Failure> {
        for name in &self.names {
            let directions = |link: &Link| self.direction.of(link);
            let link = match scope.label() {
                None => interface::find_usable_in(name, CAPTURE, &KINDS, directions)?,
                Some(label) => {
                    let task = format!("capture in {label} on");
                    let link = interface::find_usable_in(name, &task, &KINDS, directions);
                    link.hint("-i any takes all interfaces there that are up")?
                }
            };
            found.push(Selected {
                scope: number,
                link,
                is_named: true,
                may_be_promiscuous: true,
            });
        }
        if !self.is_open() {
            return Ok(());
        }
        for link in netdev::all().context("cannot list the interfaces")? {
            let mut named = found.iter().filter(|it| it.scope == number);
            if named.all(|it| it.link.index != link.index) {
                found.extend(self.joining(number, link));
            }
        }
        Ok(())
    }
}

/// An interface can have alternative names.
fn check_each_once(found: &[Selected]) -> Result<(), Failure> {
    for (position, it) in found.iter().enumerate() {
        let mut earlier = found[..position].iter();
        if earlier.any(|earlier| earlier.link.index == it.link.index) {
            return Err(
                Failure::new(format!("cannot capture on {} twice", it.link.name))
                    .hint("give each interface once, by one of its names"),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_network::recorded::link;

    fn selection(interfaces: &[&str]) -> Result<Selection, Failure> {
        Selection::of(&Capture::on(interfaces.iter().copied(), "f"))
    }

    #[test]
    fn a_pattern_takes_what_it_matches() {
        let selection = selection(&["eth0", "ve[0-3]*", "x?"]).unwrap();
        assert!(selection.is_open());
        let joins = |name: &str| selection.joining(0, link(name, 7)).is_some();
        for name in ["ve0", "ve3x", "xy"] {
            assert!(joins(name), "{name}");
        }
        for name in ["eth0", "ve4", "x", "xyz", "ave0"] {
            assert!(!joins(name), "{name}");
        }
        let waits = "no interface is up that is ve[0-3]* or x?: waiting for one";
        assert_eq!(selection.waits_for(), waits);
    }

    #[test]
    fn any_takes_all_that_can_be_captured() {
        let any = selection(&["any", "eth*"]).unwrap();
        let joining = |link: Link| any.joining(3, link);
        let other = joining(link("wg0", 7)).unwrap();
        assert!(!other.may_be_promiscuous && !other.is_named && other.scope == 3);
        assert!(joining(link("eth0", 7)).unwrap().may_be_promiscuous);
        let down = Link {
            is_up: false,
            ..link("eth0", 7)
        };
        assert!(joining(down).is_none());
    }

    #[test]
    fn what_cannot_be_taken_is_an_answer_to_people() {
        let any = selection(&["any"]).unwrap();
        let netlink = Link {
            link_type: 824,
            ..link("nlmon0", 7)
        };
        let selected = any.joining(0, netlink).unwrap();
        let failure = any.check_frames(&selected).unwrap_err().to_string();
        assert!(failure.contains("nlmon0: it carries netlink"), "{failure}");
        let eth0 = any.joining(0, link("eth0", 7)).unwrap();
        any.check_frames(&eth0).unwrap();
    }

    #[test]
    fn what_is_received_is_no_obstacle_to_what_is_sent() {
        let mut plan = Capture::on(["any"], "f");
        let tunnel = Link {
            link_type: libc::ARPHRD_NONE,
            kind: Some("xfrm".into()),
            ..link("xfrm0", 7)
        };
        for (direction, is_taken) in [
            (DirectionChoice::Inout, false),
            (DirectionChoice::In, false),
            (DirectionChoice::Out, true),
        ] {
            plan.direction = direction;
            let selection = Selection::of(&plan).unwrap();
            let selected = selection.joining(0, tunnel.clone()).unwrap();
            let checked = selection.check_frames(&selected);
            assert_eq!(checked.is_ok(), is_taken, "{direction:?}");
        }
    }

    #[test]
    fn names_and_nothing_else_join_no_more() {
        let named = selection(&["eth0", "any0"]).unwrap();
        assert!(!named.is_open());
        assert!(named.joining(0, link("eth0", 7)).is_none());
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        let failure = selection(&["eth[0"]).unwrap_err().to_string();
        assert!(
            failure.starts_with("cannot capture on eth[0: "),
            "{failure}"
        );
    }
}
