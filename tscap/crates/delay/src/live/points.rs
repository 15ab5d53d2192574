//! The programs of a measurement on its interfaces.

use tokio::task::yield_now;

use super::plan::{LivePlan, MeasuredPath, OutPoint};
use crate::schema::Match;
use crate::{MOST_EXITS, SeenAt};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_capture::interface::{find, find_usable};
use tscap_filter::LinkType;
use tscap_live::Scope;
use tscap_live::settings::SettingsGuard;
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::ethtool;
use tscap_network::netdev::{self, Link};
use tscap_programs::hook::Loaded;
use tscap_session::{Attached, Place, Points, SeenWhen};

/// The task, in errors.
const TASK: &str = "measure at";
const KINDS: [LinkType; 1] = [LinkType::Ethernet];

/// What a program is for in the measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    /// What it is called as an exit.
    pub name: &'static str,
    /// The way that it belongs to.
    pub way: usize,
    /// Where on that it is.
    pub at: SeenAt,
}

/// Where a program of the measurement is.
pub(super) type Point = tscap_session::Point<Role>;

/// A way through what is measured, before its programs are attached.
#[derive(Clone, Debug)]
struct PlannedWay {
    name: String,
    entry: (Link, Seen),
    exits: Vec<(Link, Seen)>,
}

/// How an interface shows a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Received,
    /// By the other end of a veth pair.
    ReceivedByPeer,
    BeforeQueueing,
    BehindQueueing,
}

impl Seen {
    fn name(self) -> &'static str {
        match self {
            Self::Received => "xdp",
            Self::ReceivedByPeer => "peer",
            Self::BeforeQueueing => "egress",
            Self::BehindQueueing => "tap",
        }
    }
}

/// All programs of a measurement; they are detached on drop, the entries first.
pub(super) struct AttachedPoints {
    /// Where packets leave, then where they enter.
    pub programs: Attached<Role>,
    /// Names of the ways.
    pub ways: Vec<String>,
    mirrors: Vec<InterfaceLink>,
}

/// The interfaces of a measurement, looked up.
pub(super) struct Interfaces {
    ways: Vec<PlannedWay>,
    /// What is mirrored to which interface.
    mirrored: Option<([Link; 2], Link)>,
    scope: Scope,
    peer_scope: Scope,
    suits: Match,
}

impl Interfaces {
    /// Looks up the interfaces of `plan`.
    ///
    /// # Errors
    /// If one is not there, is down or is no Ethernet interface.
    pub fn find(plan: &LivePlan) -> Result<Self, Failure> {
        let scope = Scope::open(plan.namespace.as_ref(), "measure")?;
        let peer_scope = Scope::open(plan.peer_namespace.as_ref(), "measure")?;
        let (ways, mirrored, suits) = scope.visit(|| ways(plan, &peer_scope))??;
        Ok(Self {
            ways,
            mirrored,
            scope,
            peer_scope,
            suits,
        })
    }

    /// What packets are matched by, if nobody says.
    pub fn suitable_match(&self) -> Match {
        self.suits
    }

    /// Most programs that are attached.
    pub fn most_points(&self) -> u32 {
        (self.ways.len() * (1 + MOST_EXITS)) as u32
    }

    /// Number of exits of each way.
    pub fn exits(&self) -> impl Iterator<Item = usize> {
        self.ways.iter().map(|way| way.exits.len())
    }
}

impl LivePlan {
    /// Does something in the network namespace of the interfaces, in this thread.
    ///
    /// # Errors
    /// If it is not to be found or entered.
    pub fn visit<T>(&self, work: impl FnOnce() -> T) -> Result<T, Failure> {
        Scope::open(self.namespace.as_ref(), "measure")?.visit(work)
    }
}

type Found = (Vec<PlannedWay>, Option<([Link; 2], Link)>, Match);

fn ways(plan: &LivePlan, peer_scope: &Scope) -> Result<Found, Failure> {
    let usable = |name: &str| find_usable(name, TASK, &KINDS);
    let exits = |link: &Link| exits_of(plan.out_point, link, peer_scope);
    let through = |entry: &Link, exit: &Link| {
        Ok::<_, Failure>(PlannedWay {
            name: format!("{} → {}", entry.name, exit.name),
            entry: (entry.clone(), Seen::Received),
            exits: exits(exit)?,
        })
    };
    Ok(match &plan.course {
        MeasuredPath::Through {
            entry,
            exit,
            is_both,
        } => {
            let (a, b) = (usable(entry)?, usable(exit)?);
            if a.index == b.index {
                return Err(Failure::new(format!(
                    "cannot measure from {entry} to itself: --in and --out are one interface"
                ))
                .hint(format!(
                    "--reflect {entry} measures replies that leave where requests came in"
                )));
            }
            let suits = if a.master.is_some() && a.master == b.master {
                Match::Bridge
            } else {
                Match::Route
            };
            let mut ways = vec![through(&a, &b)?];
            if *is_both {
                ways.push(through(&b, &a)?);
            }
            (ways, None, suits)
        }
        MeasuredPath::Reflected(name) => {
            let link = usable(name)?;
            let way = PlannedWay {
                name: format!("{name}, request to reply"),
                entry: (link.clone(), Seen::Received),
                exits: exits(&link)?,
            };
            (vec![way], None, Match::Reply)
        }
        MeasuredPath::RoundTrip(name) => {
            let link = usable(name)?;
            let way = PlannedWay {
                name: format!("{name}, there and back"),
                entry: (link.clone(), Seen::BehindQueueing),
                exits: vec![(link, Seen::Received)],
            };
            (vec![way], None, Match::Reply)
        }
        MeasuredPath::Mirrored {
            entry,
            exit,
            to,
            from,
        } => {
            let (a, b, from) = (usable(entry)?, usable(exit)?, usable(from)?);
            let to = find(to, "mirror to")?;
            let way = PlannedWay {
                name: format!("{} → {}", a.name, b.name),
                entry: (from, Seen::Received),
                exits: Vec::new(),
            };
            (vec![way], Some(([a, b], to)), Match::Route)
        }
    })
}

/// Where packets that leave by `link` are seen, the place that counts first.
fn exits_of(
    out_point: OutPoint,
    link: &Link,
    peer_scope: &Scope,
) -> Result<Vec<(Link, Seen)>, Failure> {
    Ok(match out_point {
        OutPoint::Tap => vec![
            (link.clone(), Seen::BehindQueueing),
            (link.clone(), Seen::BeforeQueueing),
        ],
        OutPoint::Egress => vec![(link.clone(), Seen::BeforeQueueing)],
        OutPoint::Peer => vec![(peer_of(link, peer_scope)?, Seen::ReceivedByPeer)],
    })
}

/// The other end of a veth pair, in its namespace.
fn peer_of(link: &Link, scope: &Scope) -> Result<Link, Failure> {
    let name = &link.name;
    let what = || format!("cannot find the other end of {name}");
    if link.kind.as_deref() != Some("veth") {
        return Err(Failure::new(format!("{}: it is no veth", what()))
            .hint("--out-point tap sees what the driver gets"));
    }
    let Some(index) = peer_index(name).context(what())? else {
        return Err(Failure::new(format!(
            "{}: its driver does not tell it",
            what()
        )));
    };
    // Numbers are unique in a namespace only: the other end knows this one's too.
    let found = scope.visit(|| {
        let link = netdev::by_index(index).context(what())?;
        let link = link.filter(|link| link.kind.as_deref() == Some("veth"));
        let Some(peer) = link else { return Ok(None) };
        let back = peer_index(&peer.name).context(what())?;
        Ok::<_, Failure>(Some((peer, back)))
    })??;
    let is_here = || link.lower == Some(index);
    let peer =
        found.filter(|(_, back)| *back == Some(link.index) && (scope.is_elsewhere() || is_here()));
    peer.map(|(peer, _)| peer).ok_or_else(|| {
        Failure::new(format!("{}: it is not number {index} there", what()))
            .hint("name the network namespace that it is in: --peer-netns NAME")
    })
}

/// Number of the other end of a veth pair, in the namespace of that one
/// (`veth_get_ethtool_stats` in drivers/net/veth.c).
fn peer_index(name: &str) -> Result<Option<u32>, ethtool::EthtoolError> {
    let counters = ethtool::statistics(name)?;
    let index = counters.iter().find(|(name, _)| name == "peer_ifindex");
    let index = index.and_then(|(_, index)| u32::try_from(*index).ok());
    Ok(index.filter(|index| *index > 0))
}

impl AttachedPoints {
    /// Attaches the programs of `loaded`: the exits before the entries, so that what is seen
    /// at an entry can be seen at each exit.
    ///
    /// # Errors
    /// If one can't be attached. Nothing stays attached then.
    pub async fn attach(
        plan: &LivePlan,
        interfaces: &Interfaces,
        loaded: &Loaded,
    ) -> Result<Self, Failure> {
        let mut points = Self {
            programs: Attached::none(),
            ways: interfaces.ways.iter().map(|way| way.name.clone()).collect(),
            mirrors: Vec::new(),
        };
        let ways = || interfaces.ways.iter().enumerate();
        for (way, it) in ways() {
            for (exit, place) in it.exits.iter().enumerate() {
                points.add(plan, interfaces, loaded, place, (way, SeenAt::Exit(exit)))?;
                // A request to end is noticed here.
                yield_now().await;
            }
        }
        for (way, it) in ways() {
            points.add(plan, interfaces, loaded, &it.entry, (way, SeenAt::Entry))?;
            yield_now().await;
        }
        if let Some(mirrored) = &interfaces.mirrored {
            interfaces
                .scope
                .visit(|| points.mirror(mirrored, loaded))??;
        }
        Ok(points)
    }

    fn add(
        &mut self,
        plan: &LivePlan,
        interfaces: &Interfaces,
        loaded: &Loaded,
        (link, seen): &(Link, Seen),
        (way, at): (usize, SeenAt),
    ) -> Result<(), Failure> {
        let scope = match seen {
            Seen::ReceivedByPeer if interfaces.peer_scope.is_elsewhere() => &interfaces.peer_scope,
            _ => &interfaces.scope,
        };
        let place = Place {
            scope,
            link,
            number: self.programs.all.len() as u32,
            seen: match seen {
                Seen::Received | Seen::ReceivedByPeer => SeenWhen::Received,
                Seen::BeforeQueueing => SeenWhen::BeforeQueueing,
                Seen::BehindQueueing => SeenWhen::BehindQueueing,
            },
            filter: plan.filter.as_ref(),
        };
        let name = seen.name();
        self.programs.add(loaded, &place, Role { name, way, at })
    }

    /// Mirrors what the first interface receives and what the second one sends.
    fn mirror(
        &mut self,
        ([entry, exit], to): &([Link; 2], Link),
        loaded: &Loaded,
    ) -> Result<(), Failure> {
        let what = format!("cannot mirror to {}", to.name);
        let program = loaded.mirror_to(to.index).context(what.clone())?;
        for (link, at) in [(exit, LinkPoint::TcxEgress), (entry, LinkPoint::TcxIngress)] {
            let program = std::os::fd::AsFd::as_fd(&program);
            let mirror = InterfaceLink::attach(program, link.index, at);
            let mirror = mirror.context(format!("{what} what {} has", link.name));
            self.mirrors
                .push(mirror.hint("mirroring by tcx needs Linux 6.6")?);
        }
        Ok(())
    }

    /// Detaches the programs of entries: what is inside can still be seen when it leaves.
    /// With mirrored ends there is nothing else, and nothing is detached.
    pub fn close_entries(&self) {
        if self.mirrors.is_empty() {
            let all = self.programs.all.iter();
            let entries = all.filter(|point| point.role.at == SeenAt::Entry);
            entries.for_each(Point::detach);
        }
        // The copy of what enters comes first.
        if let Some(entry) = self.mirrors.last() {
            let _ = entry.detach();
        }
    }

    /// What a reader must know of where packets are stamped.
    pub fn warnings(&self) -> Vec<String> {
        let all = self.programs.all.iter();
        let late = all.filter(|it| it.role.at == SeenAt::Entry && it.is_behind_gro());
        let late = late.map(|point| {
            format!(
                "{}: packets are stamped in the network stack, at {}, where they may be \
                 aggregates (GRO), which match nothing: `ethtool -K {} gro off`",
                point.interface,
                point.attachment.hook(),
                point.interface
            )
        });
        late.collect()
    }
}

impl Points for AttachedPoints {
    fn is_gone(&self) -> bool {
        self.programs.is_gone()
    }

    fn close(&self) {
        for mirror in &self.mirrors {
            let _ = mirror.detach();
        }
        self.programs.close();
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        self.programs.changes()
    }
}
