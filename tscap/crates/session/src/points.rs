//! Programs at interfaces, attached for a measurement.

use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_capture::netmask_for;
use tscap_common::hook::Slot;
use tscap_filter::{Filter, LinkType};
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::netdev::Link;
use tscap_programs::hook::{
    AttachPoint, Attacher, Attachment, EgressPoint, HookChoice, Loaded, Port, Presence,
};

use super::attaching::{by_filter, not_attached};

/// The programs of a measurement where they are attached. They are detached on drop.
pub trait Points {
    /// Whether one of them is gone, with its interface or without.
    fn is_gone(&self) -> bool;

    /// Detaches all of them.
    fn close(&self);

    /// What was changed on the machine, and whether that may be in other network namespaces.
    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool);
}

/// Where an interface shows packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenWhen {
    /// As soon as they are received: at XDP, or where that can't be, at tcx ingress.
    Received,
    /// When they leave, before the queueing discipline.
    BeforeQueueing,
    /// When they leave, behind the queueing discipline: at the tap.
    BehindQueueing,
}

/// A program to be attached to an interface.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The network namespace that the interface is in.
    pub scope: &'a Scope,
    /// The interface.
    pub link: &'a Link,
    /// Its number in the records; programs of one number have different directions.
    pub number: u32,
    /// Where it shows packets.
    pub seen: SeenWhen,
    /// Of all packets, those that match.
    pub filter: Option<&'a Filter>,
}

/// A program at an interface, and its `role` in the measurement.
#[derive(Debug)]
pub struct Point<R> {
    /// The interface, for people: with its network namespace if that is another one.
    pub interface: String,
    /// How the program is attached.
    pub attachment: Attachment,
    /// What its records name it by.
    pub slot: Slot,
    /// What the measurement has it for.
    pub role: R,
}

/// Programs at interfaces, and what was changed on the machine for them.
#[derive(Debug)]
pub struct Attached<R> {
    /// In the order in which they were attached, and are detached.
    pub all: Vec<Point<R>>,
    changes: SettingsGuard,
    is_elsewhere: bool,
}

impl<R> Attached<R> {
    /// None so far.
    pub fn none() -> Self {
        Self {
            all: Vec::new(),
            changes: SettingsGuard::new(JournalFolder::live(), KernelFiles::live()),
            is_elsewhere: false,
        }
    }

    /// Attaches the program of `loaded` for a place.
    ///
    /// # Errors
    /// If it can't be attached, or no filter can be made for the interface.
    pub fn add(&mut self, loaded: &Loaded, place: &Place<'_>, role: R) -> Result<(), Failure> {
        let Place { scope, link, .. } = *place;
        self.is_elsewhere |= scope.is_elsewhere();
        let attached = scope.visit(|| {
            let netmask = netmask_for(place.filter, link)?;
            let filter = place.filter;
            let filter = filter.map(|it| it.program_for(LinkType::Ethernet, netmask));
            let port = Port {
                link,
                number: place.number,
                filter: filter.transpose()?,
            };
            let by_filter = &mut by_filter(&mut self.changes);
            let mut attacher = Attacher { loaded, by_filter };
            let attachment = match place.seen {
                SeenWhen::Received => attacher.received(&port, HookChoice::Auto),
                SeenWhen::BeforeQueueing => attacher.sent(&port, EgressPoint::Qdisc),
                SeenWhen::BehindQueueing => attacher.tapped(&port),
            };
            attachment.map_err(not_attached)
        });
        let attachment = attached??;
        self.all.push(Point {
            interface: scope.name_of(&link.name),
            slot: Slot::of(place.number, attachment.at.hook().direction()),
            attachment,
            role,
        });
        Ok(())
    }

    /// The slots, in the order of the programs: for [`super::Ended::losses`].
    pub fn slots(&self) -> Vec<Slot> {
        self.all.iter().map(|point| point.slot).collect()
    }

    /// Where packets are seen, for people: "eth0 (xdp), eth1 (tap)".
    pub fn ready(&self) -> String {
        let points = self.all.iter();
        let points = points.map(|it| format!("{} ({})", it.interface, it.attachment.hook()));
        points.collect::<Vec<_>>().join(", ")
    }
}

impl<R> Point<R> {
    /// Whether packets are received in the network stack, where they may be aggregates (GRO).
    pub fn is_behind_gro(&self) -> bool {
        let at = &self.attachment.at;
        *at != AttachPoint::Tap
            && at.hook().direction() == tscap_common::hook::Direction::In
            && !at.is_in_driver()
    }

    /// Detaches the program.
    pub fn detach(&self) {
        // An interface that is gone has no program.
        let _ = self.attachment.held.detach();
    }
}

impl<R> Points for Attached<R> {
    fn is_gone(&self) -> bool {
        let mut all = self.all.iter();
        all.any(|point| point.attachment.held.look() == Presence::Gone)
    }

    fn close(&self) {
        self.all.iter().for_each(Point::detach);
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        (Some(&mut self.changes), self.is_elsewhere)
    }
}
