//! Whose a new file is, and who may read it.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use nix::unistd::{Gid, Uid};

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != "");
    folder.unwrap_or(Path::new("."))
}

/// Whom a new file is given to: its owner alone may read it, and the group if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user; `None` for the one that makes it.
    pub user: Option<Uid>,
    /// The group.
    pub group: Option<Gid>,
}

impl Owner {
    /// Gives it a file.
    ///
    /// # Errors
    /// If that is not allowed: to other users without CAP_CHOWN, and to groups that one is no
    /// member of.
    pub fn take(self, file: &File) -> io::Result<()> {
        if self == Self::default() {
            return Ok(());
        }
        fchown(
            file,
            self.user.map(Uid::as_raw),
            self.group.map(Gid::as_raw),
        )?;
        let mode = if self.group.is_some() { 0o640 } else { 0o600 };
        file.set_permissions(Permissions::from_mode(mode))
    }
}

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
    fn a_group_reads_what_it_is_given() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let file = file.as_file();
        let mode = || file.metadata().unwrap().mode() & 0o777;
        Owner::default().take(file).unwrap();
        assert_eq!(mode(), 0o600);
        let group = Gid::from_raw(file.metadata().unwrap().gid());
        let owner = Owner {
            group: Some(group),
            user: None,
        };
        owner.take(file).unwrap();
        assert_eq!(mode(), 0o640);
    }

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
