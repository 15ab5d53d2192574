//! Control groups.

use std::path::PathBuf;

use tscap_base::kernel_files::KernelFiles;

/// The root of the hierarchy of version 2, where it is mounted (proc_pid_mountinfo(5)); `None`
/// if it is not.
pub fn root(files: &KernelFiles) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string(files.proc("self/mountinfo")).ok()?;
    mounts.lines().find_map(root_in).map(PathBuf::from)
}

fn root_in(line: &str) -> Option<&str> {
    let (mount, system) = line.split_once(" - ")?;
    let mut words = mount.split(' ').skip(3);
    let (shown, at) = (words.next()?, words.next()?);
    let is_root = system.split(' ').next() == Some("cgroup2") && shown == "/";
    // A path with blanks has them escaped.
    (is_root && !at.contains('\\')).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tscap_base::recorded::Recorded;

    #[test]
    fn the_root_is_where_the_second_version_is_mounted() {
        let machine = Recorded::veth();
        let mounts = "24 1 0:22 / /proc rw - proc proc rw\n\
                      30 24 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n\
                      31 24 0:28 /user.slice /mnt rw - cgroup2 cgroup2 rw\n\
                      32 24 0:28 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw\n";
        machine.put("proc/self/mountinfo", mounts);
        let found = root(&machine.files);
        assert_eq!(found, Some("/sys/fs/cgroup/unified".into()));
        machine.put(
            "proc/self/mountinfo",
            "24 1 0:22 / /proc rw - proc proc rw\n",
        );
        assert_eq!(root(&machine.files), None);
    }
}
