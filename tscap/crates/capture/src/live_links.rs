//! The attached interfaces while the capture runs.

use std::time::Duration;

use super::live_link::{LiveLink, Loss};
use super::summary::InterfaceSummary;
use tscap_file::accounting::{Directed, InterfaceCounts, Observed, Written};
use tscap_live::Scope;
use tscap_network::netdev::Link;
use tscap_programs::hook::{CounterError, Counters, Shares};

/// All of them, in the file's order.
#[derive(Debug, Default)]
pub(super) struct LiveLinks(pub Vec<LiveLink>);

/// An interface at whose XDP others have changed something.
pub(super) struct ChangedLink {
    /// Its number in the file.
    pub number: u32,
    /// As it is now.
    pub link: Link,
    /// The time since the look before.
    pub since: Duration,
}

impl LiveLinks {
    /// Looks after all of them: gives those that have lost something since the last look.
    pub fn supervise(&self) -> Vec<(&LiveLink, Loss)> {
        let looks = self.0.iter();
        looks
            .filter_map(|live| Some((live, live.refresh()?)))
            .collect()
    }

    /// Looks at XDP where received frames are captured beside others: the interfaces where
    /// that has changed.
    pub fn look_beside(&self, scopes: &[Scope]) -> Vec<ChangedLink> {
        let numbered = (0..).zip(&self.0);
        let looks = numbered.filter_map(|(number, live)| {
            let (link, since) = live.look_beside(scopes)?;
            Some(ChangedLink {
                number,
                link,
                since,
            })
        });
        looks.collect()
    }

    /// Whether none is left.
    pub fn all_gone(&self) -> bool {
        self.0.iter().all(LiveLink::is_gone)
    }

    /// Whether interface `link` of namespace number `scope` is among them.
    pub fn has(&self, scope: usize, link: &Link, scopes: &[Scope]) -> bool {
        self.0.iter().any(|live| live.is(scope, link, scopes))
    }

    /// The counts of each, by writer. What an interface counted itself each writer has whole.
    pub fn counts(
        &self,
        counters: &Counters,
        shares: &Shares,
    ) -> Result<Vec<Vec<InterfaceCounts>>, CounterError> {
        // An interface that is gone now counts no more.
        let gone: Vec<_> = self.0.iter().map(LiveLink::is_gone).collect();
        let numbered = (0..).zip(&self.0);
        let slots: Vec<_> = numbered
            .flat_map(|(number, live)| live.slots(number))
            .collect();
        let mut losses = vec![vec![Directed::default(); self.0.len()]; shares.count()];
        let by_writer = counters.losses(&slots, shares)?;
        for (losses, of_slots) in losses.iter_mut().zip(by_writer) {
            for (slot, of_slot) in slots.iter().zip(of_slots) {
                losses[slot.interface() as usize][slot.direction()] = of_slot;
            }
        }
        let mut counts: Vec<_> = losses.iter().map(|_| Vec::new()).collect();
        for (number, (live, is_gone)) in self.0.iter().zip(gone).enumerate() {
            let of_link = live.counts(losses.iter().map(|losses| losses[number]), is_gone);
            for (counts, of_link) in counts.iter_mut().zip(of_link) {
                counts.push(of_link);
            }
        }
        Ok(counts)
    }

    /// The account of each by what the converter has `written`, which may not know the last
    /// ones yet.
    pub fn accounts(
        &self,
        observed: &Observed,
        written: &[Directed<Written>],
    ) -> Vec<InterfaceSummary> {
        let written = written
            .iter()
            .copied()
            .map(Some)
            .chain(std::iter::repeat(None));
        let counts = observed.interfaces.iter().zip(written);
        let interfaces = self.0.iter().zip(counts);
        interfaces
            .map(|(live, (observed, written))| live.account(observed, written.unwrap_or_default()))
            .collect()
    }

    /// Detaches the programs, all that can be; gives the first failure. An interface that
    /// is gone has none any more.
    pub fn detach(&self) -> std::io::Result<()> {
        let detached = self.0.iter().flat_map(LiveLink::detach);
        detached.fold(Ok(()), std::io::Result::and)
    }
}
