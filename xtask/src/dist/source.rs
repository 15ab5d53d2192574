//! What is packaged: its version, and the time that the packages state.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{paths, sh};

/// The sources.
pub struct Source {
    /// Of the workspace, such as "0.1.0".
    pub version: &'static str,
    /// Seconds since 1970: of the commit, so that the same sources give the same bytes
    /// (<https://reproducible-builds.org/specs/source-date-epoch/>).
    pub epoch: u64,
}

/// The variable that says which time it is.
pub const EPOCH: &str = "SOURCE_DATE_EPOCH";

impl Source {
    /// Those of this checkout.
    pub fn here() -> Result<Self> {
        let epoch = match env::var(EPOCH) {
            Ok(epoch) => epoch,
            Err(_) => commit_time().with_context(|| {
                format!(
                    "cannot tell the time of the commit, which the packages state: without a \
                     git repository, set {EPOCH}"
                )
            })?,
        };
        let epoch = epoch.trim();
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            epoch: epoch
                .parse()
                .with_context(|| format!("{EPOCH}={epoch} is no number of seconds"))?,
        })
    }

    /// With the revision of the package.
    pub fn revised(&self) -> String {
        format!("{}-1", self.version)
    }

    /// The time as mail has it.
    pub fn date(&self) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", "--rfc-email", &format!("--date=@{}", self.epoch)]);
        Ok(sh::output(&mut date)?.trim().to_owned())
    }
}

fn commit_time() -> Result<String> {
    let mut git = Command::new("git");
    // In a container the checkout may be another user's.
    git.args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"]);
    sh::output(git.current_dir(paths::root()))
}
