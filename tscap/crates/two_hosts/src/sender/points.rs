//! Where the packets of sessions are stamped: behind the queueing discipline when they leave,
//! first of all when replies arrive.

use tscap_base::failure::Failure;
use tscap_filter::Filter;
use tscap_live::Scope;
use tscap_network::netdev::Link;
use tscap_programs::hook::Loaded;
use tscap_session::{Attached, Place, SeenWhen};

/// Attaches both programs to each of `links`, by which packets leave: that of sent packets first.
///
/// # Errors
/// If one can't be attached. Nothing stays attached then.
pub(super) fn attach(
    links: &[Link],
    loaded: &Loaded,
    filter: Option<&Filter>,
    scope: &Scope,
) -> Result<Attached<()>, Failure> {
    let mut points = Attached::none();
    for (number, link) in (0..).zip(links) {
        for seen in [SeenWhen::BehindQueueing, SeenWhen::Received] {
            let place = Place {
                scope,
                link,
                number,
                seen,
                filter,
            };
            points.add(loaded, &place, ())?;
        }
    }
    Ok(points)
}

/// Where packets are stamped at each interface, for people.
pub(super) fn ready(points: &Attached<()>) -> String {
    let pairs = points.all.chunks_exact(2).map(|pair| {
        let [sent, received] = [0, 1].map(|index| pair[index].attachment.hook());
        format!(
            "{} (sent at {sent}, received at {received})",
            pair[0].interface
        )
    });
    pairs.collect::<Vec<_>>().join(", ")
}
