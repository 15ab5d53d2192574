//! Network namespaces by the inode number of their file, which names each of
//! those that exist (namespaces(7)); a number is used again later.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::kernel_files::{KernelFiles, names};

/// Where `ip netns` keeps the ones that it has named (`NETNS_RUN_DIR`).
const NAMED: &str = "/run/netns";

/// The one that this thread is in.
pub fn here() -> io::Result<u64> {
    Ok(fs::metadata("/proc/thread-self/ns/net")?.ino())
}

/// The name that `ip netns` knows it by, if it has one.
pub fn name_of(inode: u64) -> Option<String> {
    let mut names = names(Path::new(NAMED)).unwrap_or_default().into_iter();
    names.find(|name| fs::metadata(Path::new(NAMED).join(name)).is_ok_and(|it| it.ino() == inode))
}

/// Whether it still exists, as far as this process can see: it has a name, or a
/// process is in it.
pub fn exists(files: &KernelFiles, inode: u64) -> bool {
    let processes = names(&files.proc("")).unwrap_or_default();
    let is_of = |process: &String| {
        let file = files.proc(process).join("ns/net");
        fs::metadata(file).is_ok_and(|it| it.ino() == inode)
    };
    name_of(inode).is_some() || processes.iter().any(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_one_exists_and_others_do_not() {
        let files = KernelFiles::live();
        let here = here().unwrap();
        assert!(exists(&files, here));
        assert!(!exists(&files, 1));
        assert_eq!(name_of(1), None);
        // No process, no name.
        let nothing = KernelFiles::below(Path::new("/nonexistent"));
        assert_eq!(exists(&nothing, here), name_of(here).is_some());
    }
}
