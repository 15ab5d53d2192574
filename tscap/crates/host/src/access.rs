//! Whose a new file is, and who may read it.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid};

/// Links that lead to links: as many as the kernel follows (path_resolution(7)).
pub const MOST_LINKS: u32 = 40;
/// Mode of a folder where everybody may make files, and nobody remove those of others.
const STICKY_AND_PUBLIC: u32 = 0o1002;

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != "");
    folder.unwrap_or(Path::new("."))
}

/// Refuses a link of another user in a folder where everybody may put one, such as /tmp: it would
/// lead to a file of its maker's choice. As the kernel does on its own where
/// `fs.protected_symlinks` is set, and only when a file is opened by way of the link.
///
/// # Errors
/// Of the kind `PermissionDenied` if there is such a link; else there is none that could be seen.
pub fn check_links(path: &Path) -> io::Result<()> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::symlink_metadata(&path) else {
            return Ok(());
        };
        if !link.is_symlink() {
            return Ok(());
        }
        let folder = folder_of(&path);
        let data = fs::metadata(folder)?;
        let is_public = data.mode() & STICKY_AND_PUBLIC == STICKY_AND_PUBLIC;
        if is_public && ![geteuid().as_raw(), data.uid()].contains(&link.uid()) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is a symbolic link of another user in a folder of everybody's",
            ));
        }
        path = folder.join(fs::read_link(&path)?);
    }
    Ok(())
}

/// Whom a new file is given to: its owner alone may read it, and the group if that is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The user; `None` for the one that makes it.
    pub user: Option<Uid>,
    /// The group.
    pub group: Option<Gid>,
    /// The group may read it.
    pub is_groups: bool,
}

impl Owner {
    /// A user, and the group that its files are of: only the user may read them.
    pub fn of(user: Uid, group: Gid) -> Self {
        Self {
            user: Some(user),
            group: Some(group),
            is_groups: false,
        }
    }

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
        let mode = if self.is_groups { 0o640 } else { 0o600 };
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
            is_groups: true,
            user: None,
        };
        owner.take(file).unwrap();
        assert_eq!(mode(), 0o640);
    }

    /// Links of others only root can make.
    #[test]
    fn own_links_and_those_in_folders_of_ones_own_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let [link, other, round] = ["link", "other", "round"].map(|it| folder.path().join(it));
        std::os::unix::fs::symlink("other", &link).unwrap();
        std::os::unix::fs::symlink("file", &other).unwrap();
        std::os::unix::fs::symlink("round", &round).unwrap();
        let is_root = geteuid().is_root();
        for (mode, is_refused) in [(0o755, false), (0o777, false), (0o1777, is_root)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            check_links(&link).unwrap();
            check_links(&round).unwrap();
            if is_root {
                let nobody = Some(65_534);
                std::os::unix::fs::lchown(&other, nobody, nobody).unwrap();
                assert_eq!(check_links(&link).is_err(), is_refused, "{mode:o}");
                assert_eq!(check_links(&other).is_err(), is_refused, "{mode:o}");
                std::os::unix::fs::lchown(&other, Some(0), Some(0)).unwrap();
            }
        }
        check_links(&folder.path().join("missing")).unwrap();
        check_links(Path::new("/dev/stdout")).unwrap();
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
