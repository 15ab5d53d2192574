//! Threaded NAPI: poll functions that run in kernel threads, one for each
//! (`napi_threaded_poll`, net/core/dev.c), which can be pinned like any thread.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::class_net;
use crate::netdev_family;
use tscap_base::kernel_files::{KernelFileError, KernelFiles, numbered, read_if_there};
use tscap_host::process;

/// The kernel thread that polls for one NAPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kthread {
    /// The NAPI's number, the same for one NAPI only.
    pub napi: u32,
    /// Process number of the thread.
    pub pid: u32,
    /// When it was started, clock ticks since boot.
    pub started: u64,
    /// Its name: `napi/<interface>-<number>` (`napi_kthread_create`).
    pub name: String,
}

/// The file that says whether threads poll.
pub fn threaded_file(files: &KernelFiles, interface: &str) -> PathBuf {
    class_net::folder(files, interface).join("threaded")
}

/// The file that says after how many empty polls interrupts are on again.
pub fn deferred_file(files: &KernelFiles, interface: &str) -> PathBuf {
    class_net::folder(files, interface).join("napi_defer_hard_irqs")
}

/// Whether the interface's NAPIs are polled by threads
/// (`/sys/class/net/<interface>/threaded`).
pub fn is_threaded(files: &KernelFiles, interface: &str) -> Result<bool, KernelFileError> {
    // 2 is a busy-polling thread.
    Ok(read_if_there(&threaded_file(files, interface))?.is_some_and(|threaded| threaded != "0"))
}

/// The numbers of the NAPIs of interface `ifindex` in this thread's network
/// namespace, as the kernel tells since 6.8 (netdev family, `napi-get`); `None`
/// from an older one.
pub fn ids(ifindex: u32) -> io::Result<Option<Vec<u32>>> {
    netdev_family::napi_ids(ifindex)
}

/// The kernel threads of the interface, by the number of the NAPI. Without
/// `ids` every thread with the interface's name counts, also those of an
/// interface of this name in another network namespace.
pub fn kthreads(
    files: &KernelFiles,
    interface: &str,
    ids: Option<&[u32]>,
) -> Result<Vec<Kthread>, KernelFileError> {
    let mut threads = Vec::new();
    for pid in numbered(&files.proc(""), "")? {
        let Some(name) = process::name(files, pid)? else {
            continue;
        };
        let Some(napi) = napi_of(&name, interface) else {
            continue;
        };
        let is_ours = ids.is_none_or(|ids| ids.contains(&napi));
        // An ordinary process may have any name, but has an executable.
        if is_ours
            && fs::read_link(files.proc(format!("{pid}/exe"))).is_err()
            && let Some(started) = process::started(files, pid)?
        {
            threads.push(Kthread {
                napi,
                pid,
                started,
                name,
            });
        }
    }
    threads.sort_by_key(|thread| thread.napi);
    Ok(threads)
}

/// The number in the name of a NAPI's thread. 0 stands for NAPIs that can't be
/// busy-polled: they only send (`netif_napi_add_tx`).
fn napi_of(name: &str, interface: &str) -> Option<u32> {
    let number = name.strip_prefix("napi/")?.strip_prefix(interface)?;
    number.strip_prefix('-')?.parse().ok().filter(|id| *id != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_threads() {
        assert_eq!(napi_of("napi/eth0-8193", "eth0"), Some(8193));
        assert_eq!(napi_of("napi/eth0-0", "eth0"), None);
        assert_eq!(napi_of("napi/eth0-1-8193", "eth0"), None);
        assert_eq!(napi_of("napi/eth01-8193", "eth0"), None);
        assert_eq!(napi_of("eth0-8193", "eth0"), None);
    }

    #[test]
    fn kernel_threads_are_told_from_processes() {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        let process = |pid: u32, name: &str| {
            let folder = files.proc(pid.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
            let stat = format!("{pid} ({name}) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 77 0");
            fs::write(folder.join("stat"), stat).unwrap();
            folder
        };
        process(300, "napi/eth0-12");
        process(20, "napi/eth0-13");
        process(21, "napi/eth0-0");
        process(22, "napi/eth1-14");
        let impostor = process(23, "napi/eth0-15");
        std::os::unix::fs::symlink("/bin/sh", impostor.join("exe")).unwrap();
        fs::create_dir_all(files.proc("self")).unwrap();

        let found = |ids| {
            let threads = kthreads(&files, "eth0", ids).unwrap();
            let pairs = threads.iter().map(|thread| (thread.napi, thread.pid));
            pairs.collect::<Vec<_>>()
        };
        assert_eq!(found(None), [(12, 300), (13, 20)]);
        assert_eq!(found(Some(&[13, 14])), [(13, 20)]);
        assert!(found(Some(&[])).is_empty());
        let first = &kthreads(&files, "eth0", None).unwrap()[0];
        assert_eq!((first.started, first.name.as_str()), (77, "napi/eth0-12"));
    }

    #[test]
    fn threaded_or_not() {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        let folder = class_net::folder(&files, "eth0");
        fs::create_dir_all(&folder).unwrap();
        assert!(!is_threaded(&files, "eth0").unwrap());
        for (value, threaded) in [("0\n", false), ("1\n", true), ("2\n", true)] {
            fs::write(folder.join("threaded"), value).unwrap();
            assert_eq!(is_threaded(&files, "eth0").unwrap(), threaded);
        }
    }

    #[test]
    fn the_kernel_is_asked_for_napis() {
        // The loopback has none; a kernel before 6.8 can't be asked.
        assert!(matches!(ids(1), Ok(None)) || ids(1).unwrap().unwrap().is_empty());
    }
}
