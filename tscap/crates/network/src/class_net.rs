//! The folder of an interface in sysfs. It belongs to the network namespace in
//! which this sysfs was mounted, which need not be the thread's own.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use tscap_base::kernel_files::{KernelFileError, KernelFiles, names, read_if_there};

/// An interface as sysfs shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsInterface {
    /// Its name.
    pub name: String,
    /// Its hardware address, bytes in hexadecimal with colons between them; empty
    /// without one.
    pub address: String,
}

/// `/sys/class/net/<interface>`.
pub fn folder(files: &KernelFiles, interface: &str) -> PathBuf {
    files.sys("class/net").join(interface)
}

/// Whether sysfs shows the very interface: with this name, this number and, if
/// it has one, this hardware address. Else it is the sysfs of another network
/// namespace.
pub fn shows(
    files: &KernelFiles,
    interface: &str,
    ifindex: u32,
    mac: Option<[u8; 6]>,
) -> Result<bool, KernelFileError> {
    let shown = by_index(files, ifindex)?.filter(|shown| shown.name == interface);
    Ok(shown.is_some_and(|shown| mac.is_none_or(|mac| shown.address == address(mac))))
}

/// The interface with this number, if this sysfs has it.
pub fn by_index(
    files: &KernelFiles,
    ifindex: u32,
) -> Result<Option<SysfsInterface>, KernelFileError> {
    let ifindex = ifindex.to_string();
    for name in names(&files.sys("class/net"))? {
        let folder = folder(files, &name);
        if read_if_there(&folder.join("ifindex"))?.is_some_and(|shown| shown == ifindex) {
            let address = read_if_there(&folder.join("address"))?.unwrap_or_default();
            return Ok(Some(SysfsInterface { name, address }));
        }
    }
    Ok(None)
}

/// A hardware address as sysfs writes it.
pub fn address(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Whether `/sys` is the one of this thread's network namespace: a sysfs that is
/// mounted now, on no path, is on the same device (the kernel has one superblock for
/// each namespace: `kernfs_test_super`, fs/kernfs/mount.c).
///
/// # Errors
/// EPERM without CAP_SYS_ADMIN.
pub fn is_of_this_namespace(files: &KernelFiles) -> io::Result<bool> {
    let context = fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mounted = fsmount(&context, flags, MountAttrFlags::empty())?;
    let mounted = std::fs::File::from(mounted).metadata()?;
    Ok(std::fs::metadata(files.sys("class/net"))?.dev() == mounted.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_namespaces_sysfs_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let files = KernelFiles::below(root.path());
        let mac = [2, 0, 0, 0xaa, 0xbb, 1];
        assert!(!shows(&files, "eth0", 2, Some(mac)).unwrap());
        assert_eq!(by_index(&files, 2).unwrap(), None);
        let folder = folder(&files, "eth0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ifindex"), "2\n").unwrap();
        std::fs::write(folder.join("address"), "02:00:00:aa:bb:01\n").unwrap();
        assert!(shows(&files, "eth0", 2, Some(mac)).unwrap());
        assert!(shows(&files, "eth0", 2, None).unwrap());
        assert!(!shows(&files, "eth0", 3, Some(mac)).unwrap());
        assert!(!shows(&files, "eth0", 2, Some([0; 6])).unwrap());
        assert!(!shows(&files, "eth1", 2, Some(mac)).unwrap());
        let shown = by_index(&files, 2).unwrap().unwrap();
        assert_eq!((shown.name, shown.address), ("eth0".into(), address(mac)));
        assert_eq!(by_index(&files, 3).unwrap(), None);
    }
}
