//! What is left of this process's privileges while it measures.

use super::Running;
use tscap_base::failure::Failure;
use tscap_capture::going_on::give_up_the_rest;
use tscap_capture::{Event, Listener};

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
        let counters = &self.loaded.counters;
        let told = &mut Listener::new(hear);
        let reads = || counters.seen().is_ok();
        give_up_the_rest(self.points.changes(), Vec::new(), makes_files, &reads, told)
    }
}
