//! The programs of a measurement on its interfaces.

use tokio::task::yield_now;
use tscap_common::hook::Slot;

use super::plan::{LivePlan, MeasuredPath, OutPoint};
use crate::schema::Match;
use crate::{MOST_EXITS, SeenAt};
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::interface::{find, find_usable};
use tscap_capture::netmask_for;
use tscap_filter::LinkType;
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::bpf::{InterfaceLink, LinkPoint};
use tscap_network::ethtool;
use tscap_network::netdev::{self, Link};
use tscap_programs::hook::{
    AttachPoint, Attacher, Attachment, EgressPoint, HookChoice, Loaded, Port, Presence,
};
use tscap_session::{Points, by_filter, not_attached};

/// The task, in errors.
const TASK: &str = "measure at";
const KINDS: [LinkType; 1] = [LinkType::Ethernet];

/// Where a program of the measurement is.
#[derive(Debug)]
pub(super) struct Point {
    /// The interface, for people.
    pub interface: String,
    /// What it is called as an exit.
    pub name: &'static str,
    pub attachment: Attachment,
    /// The program's place.
    pub slot: Slot,
    /// The way that it belongs to, and where on that it is.
    pub way: usize,
    pub at: SeenAt,
}

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
    /// Where packets enter, then where they leave.
    pub all: Vec<Point>,
    /// Names of the ways.
    pub ways: Vec<String>,
    mirrors: Vec<InterfaceLink>,
    changes: SettingsGuard,
    /// Some are in other network namespaces.
    is_elsewhere: bool,
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
            all: Vec::new(),
            ways: interfaces.ways.iter().map(|way| way.name.clone()).collect(),
            mirrors: Vec::new(),
            changes: SettingsGuard::new(JournalFolder::live(), KernelFiles::live()),
            is_elsewhere: interfaces.scope.is_elsewhere() || interfaces.peer_scope.is_elsewhere(),
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
        let number = self.all.len() as u32;
        let scope = match seen {
            Seen::ReceivedByPeer if interfaces.peer_scope.is_elsewhere() => &interfaces.peer_scope,
            _ => &interfaces.scope,
        };
        let filter = plan.filter.as_ref();
        let netmask = scope.visit(|| netmask_for(filter, link))??;
        let filter = filter
            .map(|it| it.program_for(LinkType::Ethernet, netmask))
            .transpose()?;
        let port = Port {
            link,
            number,
            filter,
        };
        let attachment = scope.visit(|| {
            let by_filter = &mut by_filter(&mut self.changes);
            let mut attacher = Attacher { loaded, by_filter };
            match seen {
                Seen::Received | Seen::ReceivedByPeer => attacher.received(&port, HookChoice::Auto),
                Seen::BeforeQueueing => attacher.sent(&port, EgressPoint::Qdisc),
                Seen::BehindQueueing => attacher.tapped(&port),
            }
        })?;
        let attachment = attachment.map_err(not_attached)?;
        self.all.push(Point {
            interface: scope.name_of(&link.name),
            name: seen.name(),
            slot: Slot::of(number, attachment.at.hook().direction()),
            attachment,
            way,
            at,
        });
        Ok(())
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

    /// The slots, for the account.
    pub fn slots(&self) -> Vec<Slot> {
        self.all.iter().map(|point| point.slot).collect()
    }

    /// Detaches the programs of entries: what is inside can still be seen when it leaves.
    /// With mirrored ends there is nothing else, and nothing is detached.
    pub fn close_entries(&self) {
        for point in self.all.iter().filter(|point| point.at == SeenAt::Entry) {
            if self.mirrors.is_empty() {
                // An interface that is gone has no program.
                let _ = point.attachment.held.detach();
            }
        }
        // The copy of what enters comes first.
        if let Some(entry) = self.mirrors.last() {
            let _ = entry.detach();
        }
    }

    /// What a reader must know of where packets are stamped.
    pub fn warnings(&self) -> Vec<String> {
        let late = |point: &&Point| {
            point.at == SeenAt::Entry
                && !point.attachment.at.is_in_driver()
                && point.attachment.at != AttachPoint::Tap
        };
        let late = self.all.iter().filter(late).map(|point| {
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
        let mut all = self.all.iter();
        all.any(|point| point.attachment.held.look() == Presence::Gone)
    }

    fn close(&self) {
        for mirror in &self.mirrors {
            let _ = mirror.detach();
        }
        for point in &self.all {
            let _ = point.attachment.held.detach();
        }
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        (Some(&mut self.changes), self.is_elsewhere)
    }
}
