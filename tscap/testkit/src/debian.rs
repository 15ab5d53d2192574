//! Programs of Debian packages that nobody installs for a test, because installing them starts a
//! daemon that sets the machine's clock.

use std::fs::{File, create_dir_all};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::command::run;

/// More than a download takes.
const LIMIT: Duration = Duration::from_secs(120);

/// A program, by its path below the root, of a package: the system's, or else of the package unpacked
/// in `folder`, which is kept for the next test.
///
/// # Errors
/// What of that failed.
pub fn program(folder: &Path, package: &str, program: &str) -> Result<PathBuf, String> {
    let installed = Path::new("/").join(program);
    if installed.exists() {
        return Ok(installed);
    }
    let unpacked = folder.join(package);
    create_dir_all(&unpacked).map_err(|error| error.to_string())?;
    // Another test may be at it.
    let lock = File::create(unpacked.join("lock")).map_err(|error| error.to_string())?;
    let _lock =
        Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, error)| error.to_string())?;
    let path = unpacked.join(program);
    if !path.exists() {
        let script = format!("apt-get download {package} && dpkg -x {package}_*.deb .");
        let mut command = Command::new("sh");
        let done = run(command.args(["-c", &script]).current_dir(&unpacked), LIMIT);
        if !done.status.success() {
            return Err(format!("cannot unpack {package}: {}", done.stderr.trim()));
        }
    }
    Ok(path)
}
