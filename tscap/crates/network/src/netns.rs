//! What identifies a network namespace. The inode number of its file
//! (namespaces(7)) is used again as soon as the namespace is gone; its cookie is
//! not used again before the next boot (`net_gen_cookie`, net/core/net_namespace.c).

use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use crate::own_netns::in_thread;
use tscap_base::kernel_files::{KernelFiles, names, read_if_there};

/// Where `ip netns` keeps the ones that it has named (`NETNS_RUN_DIR`).
const NAMED: &str = "/run/netns";

/// Identifies a network namespace within one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetnsId {
    /// Inode number of its file.
    #[serde(rename = "netns")]
    pub inode: u64,
    /// Its cookie; `None` before Linux 5.14, and in journals of version 1.
    #[serde(rename = "netns_cookie", default)]
    pub cookie: Option<u64>,
}

impl NetnsId {
    /// The one that this thread is in.
    ///
    /// # Errors
    /// If procfs is not mounted or no socket can be opened.
    pub fn here() -> io::Result<Self> {
        Ok(Self {
            inode: fs::metadata("/proc/thread-self/ns/net")?.ino(),
            cookie: cookie()?,
        })
    }

    /// Whether both are the same namespace: by the cookies, or by the inode numbers
    /// where a cookie is not known.
    pub fn is(self, other: Self) -> bool {
        match (self.cookie, other.cookie) {
            (Some(one), Some(other)) => one == other,
            _ => self.inode == other.inode,
        }
    }

    /// Whether this thread is in it.
    pub fn is_here(self) -> bool {
        Self::here().is_ok_and(|here| here.is(self))
    }

    /// The name that `ip netns` knows it by, if it has one.
    pub fn name(self) -> Option<String> {
        let mut names = names(Path::new(NAMED)).unwrap_or_default().into_iter();
        names.find(|name| self.is_at(&Path::new(NAMED).join(name)))
    }

    /// Whether it still exists, as far as this process can see.
    pub fn exists(self, files: &KernelFiles) -> bool {
        self.path(files).is_some()
    }

    /// A file that stands for it, as far as this process can see: one that is mounted
    /// somewhere (by `ip netns`, for instance), or that of a thread in it.
    fn path(self, files: &KernelFiles) -> Option<PathBuf> {
        let named = self.name().map(|name| Path::new(NAMED).join(name));
        let mounted = || self.mounts(files).into_iter().find(|path| self.is_at(path));
        named.or_else(mounted).or_else(|| self.of_a_thread(files))
    }

    /// Does something in it, in a thread of its own; `None` if it can't be found.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN, and those of `work`.
    pub fn within<T: Send>(
        self,
        files: &KernelFiles,
        work: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<Option<T>> {
        let Some(path) = self.path(files) else {
            return Ok(None);
        };
        in_thread(|| {
            setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
            work().map(Some)
        })
    }

    /// The paths at which files with this inode number are mounted
    /// (proc_pid_mountinfo(5): the fourth field is the root, the fifth the path).
    fn mounts(self, files: &KernelFiles) -> Vec<PathBuf> {
        let mounts = read_if_there(&files.proc("self/mountinfo"));
        let mounts = mounts.ok().flatten().unwrap_or_default();
        let root = format!("net:[{}]", self.inode);
        let fields = mounts.lines().map(|line| line.split(' ').skip(3));
        let of_root = fields.filter_map(|mut fields| {
            (fields.next() == Some(root.as_str())).then(|| fields.next())?
        });
        of_root.map(PathBuf::from).collect()
    }

    fn of_a_thread(self, files: &KernelFiles) -> Option<PathBuf> {
        names(&files.proc(""))
            .unwrap_or_default()
            .iter()
            .find_map(|process| {
                let tasks = files.proc(process).join("task");
                let threads = names(&tasks).unwrap_or_default().into_iter();
                let mut paths = threads.map(|thread| tasks.join(thread).join("ns/net"));
                paths.find(|path| self.is_at(path))
            })
    }

    /// Whether the file at `path` stands for it. A file with its inode number that
    /// can't be entered to read the cookie counts as such.
    fn is_at(self, path: &Path) -> bool {
        if fs::metadata(path).is_ok_and(|it| it.ino() == self.inode) {
            let found = in_thread(|| {
                setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?;
                Self::here()
            });
            return found.map_or(true, |found| found.is(self));
        }
        false
    }
}

/// The cookie of this thread's network namespace; `None` before Linux 5.14.
fn cookie() -> io::Result<Option<u64>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let mut cookie = 0_u64;
    let mut length = size_of_val(&cookie) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `cookie` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        return Ok(Some(cookie));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: NetnsId = NetnsId {
        inode: 1,
        cookie: None,
    };

    #[test]
    fn this_one_exists_and_others_do_not() {
        let files = KernelFiles::live();
        let here = NetnsId::here().unwrap();
        assert!(here.is_here() && here.exists(&files));
        assert!(!NONE.exists(&files));
        assert_eq!(NONE.name(), None);
        // No process, no mount.
        let nothing = KernelFiles::below(Path::new("/nonexistent"));
        assert_eq!(here.exists(&nothing), here.name().is_some());
    }

    #[test]
    fn a_cookie_decides_where_both_are_known() {
        let id = |inode, cookie| NetnsId { inode, cookie };
        assert!(id(7, Some(3)).is(id(7, Some(3))));
        assert!(!id(7, Some(3)).is(id(7, Some(4))), "the inode number again");
        assert!(id(7, None).is(id(7, Some(4))));
        assert!(!id(7, None).is(id(8, Some(4))));
    }

    #[test]
    fn mounted_ones_are_found() {
        let machine = tscap_base::recorded::Recorded::veth();
        machine.put(
            "proc/self/mountinfo",
            "22 1 0:20 / /sys rw - sysfs sysfs rw\n\
             40 24 0:4 net:[4026532217] /run/docker/netns/f00 rw shared:9 - nsfs nsfs rw",
        );
        let id = |inode| NetnsId { inode, ..NONE };
        let mounted = id(4_026_532_217).mounts(&machine.files);
        assert_eq!(mounted, [Path::new("/run/docker/netns/f00")]);
        assert!(id(4_026_532_218).mounts(&machine.files).is_empty());
    }
}
