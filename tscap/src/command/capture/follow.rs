//! The reference of a capture's times, which is followed beside it.

use crate::command::Failure;
use tscap_capture::Event;
use tscap_references::Followed;
use tscap_sources::reference::{Follower, ReferencePlan};

/// A follower, if there is a reference.
#[derive(Debug)]
pub(super) struct Following(Option<Follower>);

impl Following {
    /// Begins, and waits until the reference has told its time.
    ///
    /// # Errors
    /// If it does not.
    pub async fn start(
        plan: Option<&ReferencePlan>,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Self, Failure> {
        Ok(Self(match plan {
            Some(plan) => Some(Follower::start(plan, on_event).await?),
            None => None,
        }))
    }

    /// What the capture goes by.
    pub fn followed(&self) -> Option<Followed> {
        self.0.as_ref()?.followed().cloned()
    }

    /// The capture was attached.
    pub fn capture_began(&mut self) {
        if let Some(follower) = &mut self.0 {
            follower.capture_began();
        }
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
