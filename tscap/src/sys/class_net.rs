//! The folder of an interface in sysfs. It belongs to the network namespace in
//! which this sysfs was mounted, which need not be the thread's own.

use std::path::PathBuf;

use super::kernel_files::{KernelFileError, KernelFiles, names, read_if_there};

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
    let folder = folder(files, interface);
    if read_if_there(&folder.join("ifindex"))? != Some(ifindex.to_string()) {
        return Ok(false);
    }
    let Some(mac) = mac else { return Ok(true) };
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    Ok(read_if_there(&folder.join("address"))?.is_some_and(|shown| shown == mac))
}

/// The name of the interface with this number, if this sysfs has it.
pub fn name_of(files: &KernelFiles, ifindex: u32) -> Result<Option<String>, KernelFileError> {
    let ifindex = ifindex.to_string();
    for name in names(&files.sys("class/net"))? {
        let shown = read_if_there(&folder(files, &name).join("ifindex"))?;
        if shown.is_some_and(|shown| shown == ifindex) {
            return Ok(Some(name));
        }
    }
    Ok(None)
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
        assert_eq!(name_of(&files, 2).unwrap(), None);
        let folder = folder(&files, "eth0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ifindex"), "2\n").unwrap();
        std::fs::write(folder.join("address"), "02:00:00:aa:bb:01\n").unwrap();
        assert!(shows(&files, "eth0", 2, Some(mac)).unwrap());
        assert!(shows(&files, "eth0", 2, None).unwrap());
        assert!(!shows(&files, "eth0", 3, Some(mac)).unwrap());
        assert!(!shows(&files, "eth0", 2, Some([0; 6])).unwrap());
        assert!(!shows(&files, "eth1", 2, Some(mac)).unwrap());
        assert_eq!(name_of(&files, 2).unwrap().as_deref(), Some("eth0"));
        assert_eq!(name_of(&files, 3).unwrap(), None);
    }
}
