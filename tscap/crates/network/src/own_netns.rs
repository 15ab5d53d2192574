//! Network namespaces without a name, that last as long as somebody holds them:
//! nothing is left behind, however the process ends.

use std::fs::{self, File};
use std::io;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

/// A namespace of our own.
#[derive(Debug)]
pub struct OwnNetns(File);

impl OwnNetns {
    /// Makes one; interfaces in it send nothing of their own accord (no IPv6).
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN.
    pub fn new() -> io::Result<Self> {
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // Shows the values of the namespace of the thread that opens it. A
            // kernel without IPv6 has no such file.
            let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            File::open("/proc/thread-self/ns/net").map(Self)
        })
    }

    /// The file that stands for it.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// Moves this thread there, for good.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Does something there, in a thread of its own.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_thread(|| self.enter().and_then(|()| work()))
    }
}

/// Does something in a thread of its own, which takes its namespaces along when it ends.
pub(super) fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(work).join();
        thread.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}
