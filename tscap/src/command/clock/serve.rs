//! `tscap clock --serve`: the clock in memory that programs read.

use std::path::Path;

use super::READ_EVERY;
use crate::command::print::say;
use crate::command::{Context as _, Failure};
use tscap_clock::{CrossTimestamp, HostClocks, Observation, StampSource, Tracker};
use tscap_host::readable::Readable;
use tscap_host::service::Service;
use tscap_shared_clock::{PageFile, PageFileError, Publisher, Utc};
use tscap_time::timex::ClockSetWatch;
use tscap_utc::UtcReader;

/// The page, and whom it is served to.
#[derive(Debug)]
pub(super) struct Server {
    publisher: Publisher,
    file: PageFile,
    service: Service,
    /// Wakes when somebody sets the clock.
    set: Readable<ClockSetWatch>,
}

impl Server {
    /// Reads the clocks until there is a first page, for about a second, and makes its file. UTC is
    /// not known yet where it `waits_for_reference`.
    pub async fn start(
        path: &Path,
        waits_for_reference: bool,
        tracker: &mut Tracker,
        utc: &mut UtcReader,
    ) -> Result<Self, Failure> {
        let set = ClockSetWatch::new().and_then(Readable::new);
        let mut server = Self {
            publisher: Publisher::default(),
            file: PageFile::new(path),
            service: Service::from_env()?,
            set: set.context("cannot watch for a clock that is set")?,
        };
        let mut clocks = HostClocks::new(StampSource::Tsc);
        loop {
            let (cross, seen) = tracker.look(&mut clocks);
            tracker.look_at_raw(cross.mono[1], &mut clocks);
            let bound_ns = utc.read().bound_ns.filter(|_| !waits_for_reference);
            if server.publish(tracker, (&cross, seen), &Utc::within(bound_ns))? {
                break;
            }
            tokio::time::sleep(READ_EVERY).await;
        }
        server.service.ready()?;
        say(&format!(
            "ready: programs read the clock at {}",
            path.display()
        ));
        Ok(server)
    }

    /// Shares what a reading was to the tracker; whether there is a page by now.
    ///
    /// # Errors
    /// If the file of the first page can't be made.
    pub fn publish(
        &mut self,
        tracker: &mut Tracker,
        (cross, seen): (&CrossTimestamp, Observation),
        utc: &Utc,
    ) -> Result<bool, Failure> {
        let Some(page) = self.publisher.observe(tracker, cross, seen, utc) else {
            return Ok(false);
        };
        let written = self.file.write(&page);
        written.map(|()| true).map_err(|error| {
            let hint = match &error {
                PageFileError::InUse => "one is enough for all programs: tscap clock --read",
                PageFileError::OtherFile => "remove it, or give --serve another path",
                _ => "give --serve a path in a folder that you may write to",
            };
            let what = format!("cannot share the clock at {}", self.file.path().display());
            Failure::from_error(error, what).hint(hint)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.service.stopping();
    }
}

/// Ends when somebody has set the clock; never without a server.
pub(super) async fn clock_set(server: Option<&Server>) {
    let Some(Server { set, .. }) = server else {
        return std::future::pending().await;
    };
    if set.wait().await.is_err() {
        // The next reading shows it.
        return std::future::pending().await;
    }
    let _ = set.get().was_set();
}
