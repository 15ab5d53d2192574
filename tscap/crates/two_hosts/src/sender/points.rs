//! Where the packets of sessions are stamped: behind the queueing discipline when they leave,
//! first of all when replies arrive.

use tscap_base::failure::Failure;
use tscap_base::kernel_files::KernelFiles;
use tscap_common::hook::{Direction, Slot};
use tscap_filter::{Filter, LinkType};
use tscap_live::Scope;
use tscap_live::settings::{JournalFolder, SettingsGuard};
use tscap_network::netdev::Link;
use tscap_programs::hook::{Attacher, Attachment, HookChoice, Loaded, Port, Presence};
use tscap_session::{Points, by_filter, not_attached};

/// The programs of one interface.
#[derive(Debug)]
struct Pair {
    interface: String,
    sent: Attachment,
    received: Attachment,
}

/// The programs of all interfaces that packets leave by.
pub(super) struct SenderPoints {
    pairs: Vec<Pair>,
    changes: SettingsGuard,
    is_elsewhere: bool,
}

impl SenderPoints {
    /// Attaches both programs to each of `links`, that of sent packets first.
    ///
    /// # Errors
    /// If one can't be attached. Nothing stays attached then.
    pub fn attach(
        links: &[Link],
        loaded: &Loaded,
        filter: Option<&Filter>,
        scope: &Scope,
    ) -> Result<Self, Failure> {
        let mut points = Self {
            pairs: Vec::new(),
            changes: SettingsGuard::new(JournalFolder::live(), KernelFiles::live()),
            is_elsewhere: scope.is_elsewhere(),
        };
        for (number, link) in links.iter().enumerate() {
            let filter = filter.map(|it| it.program_for(LinkType::Ethernet, None));
            let port = Port {
                link,
                number: number as u32,
                filter: filter.transpose()?,
            };
            let pair = scope.visit(|| {
                let by_filter = &mut by_filter(&mut points.changes);
                let mut attacher = Attacher { loaded, by_filter };
                let sent = attacher.tapped(&port).map_err(not_attached)?;
                let received = attacher.received(&port, HookChoice::Auto);
                Ok::<_, Failure>(Pair {
                    interface: scope.name_of(&link.name),
                    sent,
                    received: received.map_err(not_attached)?,
                })
            })??;
            points.pairs.push(pair);
        }
        Ok(points)
    }

    /// Of each interface, for people.
    pub fn ready(&self) -> String {
        let pairs = self.pairs.iter().map(|it| {
            let (sent, received) = (it.sent.hook(), it.received.hook());
            format!("{} (sent at {sent}, received at {received})", it.interface)
        });
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// The slots, for the account.
    pub fn slots(&self) -> Vec<Slot> {
        let numbers = 0..self.pairs.len() as u32;
        let slots =
            numbers.flat_map(|it| [Direction::In, Direction::Out].map(|way| Slot::of(it, way)));
        slots.collect()
    }
}

impl Points for SenderPoints {
    fn is_gone(&self) -> bool {
        let mut all = self.pairs.iter().flat_map(|it| [&it.sent, &it.received]);
        all.any(|it| it.held.look() == Presence::Gone)
    }

    fn close(&self) {
        for pair in &self.pairs {
            // An interface that is gone has no program.
            let _ = pair.sent.held.detach();
            let _ = pair.received.held.detach();
        }
    }

    fn changes(&mut self) -> (Option<&mut SettingsGuard>, bool) {
        (Some(&mut self.changes), self.is_elsewhere)
    }
}
