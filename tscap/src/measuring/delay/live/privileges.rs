//! What is left of this process's privileges while it measures.

use nix::unistd::geteuid;

use super::Running;
use super::points::Points;
use crate::capturing::capture::privileges::{default_account, says};
use crate::capturing::capture::{Event, Severity};
use crate::capturing::hook::AttachPoint;
use crate::capturing::host::caps::{self, Capability};
use crate::failure::{Context as _, Failure};

impl Running {
    /// Gives up, for good and for the whole process, what is not needed any more: root becomes
    /// the user `tscap` where there is one, and this thread keeps what detaching takes. If the
    /// caller `makes_files` at the end, root stays root and keeps what that takes. Threads that
    /// run already keep theirs.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn give_up_privileges(
        &mut self,
        makes_files: bool,
        hear: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        self.points.leave_changes()?;
        let account = match makes_files {
            true => None,
            false => default_account()?,
        };
        let lacking = caps::missing(&caps::TO_BECOME);
        let lacking = lacking.context("cannot read this process's capabilities")?;
        let account = account.filter(|_| lacking.is_empty());
        if let Some(account) = &account {
            let taken_over = account.take_over();
            taken_over.context(format!("cannot go on as user {}", account.name))?;
        }
        let mut kept = needed_later(&self.points);
        let what = "cannot give up capabilities";
        // Before Linux 5.19 the look at counters takes CAP_BPF where unprivileged BPF is
        // disabled (commit c8644cd0efe7).
        caps::use_only(&kept).context(what)?;
        if self.loaded.counters.seen().is_err() {
            kept.push(Capability::Bpf);
        }
        if makes_files && geteuid().is_root() {
            kept.extend(caps::FOR_FILES);
        }
        caps::keep_only(&kept).context(what)?;
        let says = says(account.as_ref(), &kept);
        hear(Event::Notice(Severity::Detail, says));
        Ok(())
    }
}

/// Filters of tc are removed at the end.
fn needed_later(points: &Points) -> Vec<Capability> {
    let mut attached = points.all.iter().map(|point| point.attachment.at);
    let has_filters = attached.any(AttachPoint::is_filter);
    has_filters
        .then_some(Capability::NetAdmin)
        .into_iter()
        .collect()
}
