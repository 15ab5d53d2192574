//! Who may read a file that takes another's name.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

/// Gives a new file the mode and the group of the one whose name it is to take, if both
/// belong to one user: what another user left there must not open the new file to them.
/// A group that it can't be given gets no access.
///
/// # Errors
/// If the mode can't be set.
pub fn keep_access(before: &Metadata, file: &File) -> io::Result<()> {
    let now = file.metadata()?;
    if now.uid() != before.uid() {
        return Ok(());
    }
    let has_group = now.gid() == before.gid() || fchown(file, None, Some(before.gid())).is_ok();
    let lost = if has_group { 0 } else { 0o070 };
    file.set_permissions(Permissions::from_mode(before.mode() & 0o777 & !lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_kept_whatever_the_umask() {
        let [before, after] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        for mode in [0o600, 0o640, 0o666, 0o444] {
            let permissions = Permissions::from_mode(mode);
            before.set_permissions(permissions).unwrap();
            keep_access(&before.metadata().unwrap(), &after).unwrap();
            assert_eq!(after.metadata().unwrap().mode() & 0o777, mode);
        }
    }
}
