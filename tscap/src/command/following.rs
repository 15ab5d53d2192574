//! The references of a measurement's times, which are followed beside it.

use crate::command::Failure;
use tscap_capture::Event;
use tscap_references::{Followed, ReferenceSummary};
use tscap_sources::reference::{Follower, ReferencePlan};

/// A follower, if there is a reference.
#[derive(Debug, Default)]
pub(super) struct Following(Option<Follower>);

impl Following {
    /// Begins, and waits until the references have told their times.
    ///
    /// # Errors
    /// If it does not.
    pub async fn start(
        plans: &[ReferencePlan],
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        Ok(Self(match plans {
            [] => None,
            plans => Some(Follower::start(plans, on_event).await?),
        }))
    }

    /// What the times go by.
    pub fn followed(&self) -> Option<Followed> {
        self.0.as_ref()?.followed().cloned()
    }

    /// The programs of the measurement were attached.
    pub fn others_began(&mut self) {
        if let Some(follower) = &mut self.0 {
            follower.others_began();
        }
    }

    /// How far the host's clock is off the reference now, if there is one.
    pub fn beside_host(&self) -> Option<ReferenceSummary> {
        Some(ReferenceSummary::beside(self.0.as_ref()?.followed()?))
    }

    /// Waits until a turn is due: without end if there is no reference.
    pub async fn due(&mut self) {
        match &mut self.0 {
            Some(follower) => follower.due().await,
            None => std::future::pending().await,
        }
    }

    /// Takes in what the reference says.
    pub fn turn(&mut self, on_event: &mut dyn FnMut(Event)) {
        if let Some(follower) = &mut self.0 {
            follower.turn(on_event);
        }
    }

    /// Does `work` and follows meanwhile. What there is to tell of the reference is told behind
    /// what `work` tells.
    pub async fn beside<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut dyn FnMut(Event)) -> T,
        on_event: &mut dyn FnMut(Event),
    ) -> T {
        let mut waiting = Vec::new();
        let done = {
            let mut work = std::pin::pin!(work(on_event));
            loop {
                tokio::select! {
                    done = &mut work => break done,
                    () = self.due() => self.turn(&mut |event| waiting.push(event)),
                }
            }
        };
        waiting.into_iter().for_each(on_event);
        done
    }
}
