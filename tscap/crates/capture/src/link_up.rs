//! Links that attaching has taken down.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::check::Machine;
use super::event::Reporter;
use super::live_link::LiveLink;
use super::live_links::LiveLinks;

/// Some drivers take the link down to attach; it is given this long to come up.
const LINK_UP_WITHIN: Duration = Duration::from_secs(10);

/// Waits until every link that had carrier before has it again.
pub(super) async fn wait_for_links(
    machine: &Machine,
    links: &LiveLinks,
    reporter: &mut Reporter<'_>,
) {
    let deadline = Instant::now() + LINK_UP_WITHIN;
    let had_carrier = |live: &&LiveLink| {
        let mut before = machine.interfaces.now.iter();
        before.any(|it| live.is_of(it) && it.link.has_carrier)
    };
    for live in links.0.iter().filter(had_carrier) {
        while live.has_lost_carrier() {
            if Instant::now() > deadline {
                let name = live.whole_name();
                reporter.warning(&format!("{name}: the link has not come up again"));
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }
}
