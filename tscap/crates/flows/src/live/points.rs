//! The programs of a measurement on its interfaces.

use tokio::task::yield_now;

use super::LivePlan;
use tscap_base::failure::Failure;
use tscap_capture::DirectionChoice;
use tscap_capture::interface::find_usable;
use tscap_file::accounting::Direction;
use tscap_filter::LinkType;
use tscap_live::Scope;
use tscap_network::netdev::Link;
use tscap_programs::hook::Loaded;
use tscap_session::{Attached, Place, SeenWhen};

/// The task, in errors.
const TASK: &str = "measure at";
const KINDS: [LinkType; 1] = [LinkType::Ethernet];

/// A program on an interface, for packets of this direction.
pub(super) type Point = tscap_session::Point<Direction>;

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

/// Attaches the programs of `loaded`.
///
/// # Errors
/// If one can't be attached. Nothing stays attached then.
pub(super) async fn attach(
    plan: &LivePlan,
    interfaces: &Interfaces,
    loaded: &Loaded,
) -> Result<Attached<Direction>, Failure> {
    let mut points = Attached::none();
    for (number, link) in (0..).zip(&interfaces.links) {
        for direction in interfaces.direction.of(link) {
            let place = Place {
                scope: &interfaces.scope,
                link,
                number,
                seen: match direction {
                    Direction::In => SeenWhen::Received,
                    Direction::Out => SeenWhen::BeforeQueueing,
                },
                filter: plan.filter.as_ref(),
            };
            points.add(loaded, &place, *direction)?;
            // A request to end is noticed here.
            yield_now().await;
        }
    }
    Ok(points)
}

/// Index of the program that stamps the same interface's packets of the other direction.
pub(super) fn opposite(points: &Attached<Direction>, point: &Point) -> Option<u16> {
    let mut all = (0..).zip(&points.all);
    let found =
        all.find(|(_, it)| it.slot.interface() == point.slot.interface() && it.role != point.role);
    found.map(|(index, _)| index)
}

/// What a reader must know of where packets are stamped.
pub(super) fn warnings(points: &Attached<Direction>) -> Vec<String> {
    let in_stack = points.all.iter().filter(|point| point.is_behind_gro());
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
