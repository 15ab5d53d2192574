//! The programs of a measurement on its interfaces.

use tokio::task::yield_now;
use tscap_common::hook::Slot;

use super::LivePlan;
use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::interface::find_usable;
use tscap_capture::{DirectionChoice, netmask_for};
use tscap_file::accounting::Direction;
use tscap_filter::LinkType;
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::netdev::Link;
use tscap_programs::hook::{Attacher, Attachment, EgressPoint, HookChoice, Loaded, Port, Presence};
use tscap_session::{Points, by_filter, not_attached};

/// The task, in errors.
const TASK: &str = "measure at";
const KINDS: [LinkType; 1] = [LinkType::Ethernet];

/// A program on an interface.
#[derive(Debug)]
pub(super) struct Point {
    /// The interface, for people.
    pub interface: String,
    pub direction: Direction,
    pub attachment: Attachment,
    pub slot: Slot,
}

/// The interfaces of a measurement, looked up.
pub(super) struct Interfaces {
    links: Vec<Link>,
    scope: Scope,
    direction: DirectionChoice,
}

impl Interfaces {
    /// Looks up the interfaces of `plan`.
    ///
    /// # Errors
    /// If one is not there, is down or is no Ethernet interface.
    pub fn find(plan: &LivePlan) -> Result<Self, Failure> {
        let scope = Scope::open(plan.namespace.as_ref(), "measure")?;
        let links = scope.visit(|| {
            let names = plan.interfaces.iter();
            let links = names.map(|name| find_usable(name, TASK, &KINDS));
            links.collect::<Result<Vec<_>, Failure>>()
        })??;
        Ok(Self {
            links,
            scope,
            direction: plan.direction,
        })
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.links.len() as u32
    }
}

/// All programs of a measurement; they are detached on drop.
pub(super) struct AttachedPoints {
    pub all: Vec<Point>,
    changes: SettingsGuard,
    is_elsewhere: bool,
}

impl AttachedPoints {
    /// Attaches the programs of `loaded`.
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
            changes: SettingsGuard::new(JournalFolder::live(), KernelFiles::live()),
            is_elsewhere: interfaces.scope.is_elsewhere(),
        };
        for (number, link) in (0..).zip(&interfaces.links) {
            for direction in interfaces.direction.of(link) {
                points.add(plan, interfaces, loaded, (number, link), *direction)?;
                // A request to end is noticed here.
                yield_now().await;
            }
        }
        Ok(points)
    }

    fn add(
        &mut self,
        plan: &LivePlan,
        interfaces: &Interfaces,
        loaded: &Loaded,
        (number, link): (u32, &Link),
        direction: Direction,
    ) -> Result<(), Failure> {
        let scope = &interfaces.scope;
        let filter = plan.filter.as_ref();
        let netmask = scope.visit(|| netmask_for(filter, link))??;
        let filter = filter.map(|it| it.program_for(LinkType::Ethernet, netmask));
        let port = Port {
            link,
            number,
            filter: filter.transpose()?,
        };
        let attachment = scope.visit(|| {
            let by_filter = &mut by_filter(&mut self.changes);
            let mut attacher = Attacher { loaded, by_filter };
            match direction {
                Direction::In => attacher.received(&port, HookChoice::Auto),
                Direction::Out => attacher.sent(&port, EgressPoint::Qdisc),
            }
        })?;
        self.all.push(Point {
            interface: scope.name_of(&link.name),
            direction,
            attachment: attachment.map_err(not_attached)?,
            slot: Slot::of(number, direction),
        });
        Ok(())
    }

    /// Index of the program that stamps the same interface's packets of the other direction.
    pub fn opposite(&self, point: &Point) -> Option<u16> {
        let mut all = (0..).zip(&self.all);
        let found = all.find(|(_, it)| {
            it.slot.interface() == point.slot.interface() && it.direction != point.direction
        });
        found.map(|(index, _)| index)
    }

    /// The slots, in the order of the programs.
    pub fn slots(&self) -> Vec<Slot> {
        self.all.iter().map(|point| point.slot).collect()
    }

    /// What a reader must know of where packets are stamped.
    pub fn warnings(&self) -> Vec<String> {
        let in_stack = self.all.iter().filter(|point| {
            point.direction == Direction::In && !point.attachment.at.is_in_driver()
        });
        let warnings = in_stack.map(|point| {
            format!(
                "{}: packets are stamped in the network stack, at {}, where they may be \
                 aggregates (GRO), which count as one: `ethtool -K {} gro off`",
                point.interface,
                point.attachment.hook(),
                point.interface
            )
        });
        warnings.collect()
    }
}

impl Points for AttachedPoints {
    fn is_gone(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|point| point.attachment.held.look() == Presence::Gone)
    }

    fn close(&self) {
        for point in &self.all {
            // An interface that is gone has no program.
            let _ = point.attachment.held.detach();
        }
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        (Some(&mut self.changes), self.is_elsewhere)
    }
}
