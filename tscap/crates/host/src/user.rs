//! Users and groups of this machine, and becoming one of them.

use std::ffi::CString;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{self, Gid, Group, Uid, User};
use rustix::thread as own;

/// A user with all of the groups that it is a member of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Account {
    /// The user with this name or number; `None` if there is none.
    ///
    /// # Errors
    /// If the list of users can't be read.
    pub fn find(text: &str) -> io::Result<Option<Self>> {
        let named = there(User::from_name(text))?;
        let numbered = || match text.parse() {
            Ok(uid) => there(User::from_uid(Uid::from_raw(uid))),
            Err(_) => Ok(None),
        };
        let Some(user) = named.map_or_else(numbered, |user| Ok(Some(user)))? else {
            return Ok(None);
        };
        let name = CString::new(user.name.as_str())?;
        Ok(Some(Self {
            groups: unistd::getgrouplist(&name, user.gid)?,
            name: user.name,
            uid: user.uid,
            gid: user.gid,
        }))
    }

    /// Adds a group that it is to be a member of in this process.
    pub fn join(&mut self, group: Gid) {
        if !self.groups.contains(&group) {
            self.groups.push(group);
        }
    }

    /// Makes every thread of this process the user's. The calling thread keeps the
    /// capabilities that it has, without any in effect; the others lose theirs.
    ///
    /// # Errors
    /// If the kernel refuses: without CAP_SETUID and CAP_SETGID.
    pub fn take_over(&self) -> io::Result<()> {
        own::set_keep_capabilities(true)?;
        // glibc has every thread make these calls (nptl(7)).
        unistd::setgroups(&self.groups)?;
        unistd::setresgid(self.gid, self.gid, self.gid)?;
        unistd::setresuid(self.uid, self.uid, self.uid)?;
        own::set_keep_capabilities(false)?;
        Ok(())
    }

    /// Tries whether the user can make files in a folder, by one without a name that stays
    /// (or, where there is none of that kind, by one that is removed again).
    ///
    /// # Errors
    /// Why it can't.
    pub fn try_to_make_files_in(&self, folder: &Path) -> io::Result<()> {
        std::thread::scope(|scope| {
            let trying = scope.spawn(|| {
                let uid = own::Uid::from_raw(self.uid.as_raw());
                let gid = |gid: &Gid| own::Gid::from_raw(gid.as_raw());
                let groups: Vec<_> = self.groups.iter().map(gid).collect();
                let gid = gid(&self.gid);
                // Of this thread alone, which has no capabilities then.
                own::set_thread_groups(&groups)?;
                own::set_thread_res_gid(gid, gid, gid)?;
                own::set_thread_res_uid(uid, uid, uid)?;
                tempfile::tempfile_in(folder).map(drop)
            });
            let tried = trying.join();
            tried.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })
    }
}

/// The user who became root to start this process, and its group: by sudo(8), whose word counts
/// for root only.
pub fn invoker() -> Option<(Uid, Gid)> {
    if !unistd::geteuid().is_root() || !unistd::getuid().is_root() {
        return None;
    }
    let [user, group] = ["SUDO_UID", "SUDO_GID"].map(|name| std::env::var(name).ok());
    invoker_of(user.as_deref(), group.as_deref())
}

fn invoker_of(user: Option<&str>, group: Option<&str>) -> Option<(Uid, Gid)> {
    let [user, group] = [user, group].map(|it| it.and_then(|it| it.parse::<u32>().ok()));
    // -1 is nobody's number for chown(2).
    let is_user = |it: &u32| *it != 0 && *it != u32::MAX;
    let user = user.filter(is_user)?;
    let group = group.filter(|it| *it != u32::MAX)?;
    Some((Uid::from_raw(user), Gid::from_raw(group)))
}

/// The number of the group with this name or number; `None` if there is none.
///
/// # Errors
/// If the list of groups can't be read.
pub fn group(text: &str) -> Result<Option<Gid>, Errno> {
    let named = there(Group::from_name(text))?;
    let numbered = || match text.parse() {
        Ok(gid) => there(Group::from_gid(Gid::from_raw(gid))),
        Err(_) => Ok(None),
    };
    let group = named.map_or_else(numbered, |group| Ok(Some(group)))?;
    Ok(group.map(|group| group.gid))
}

/// What was found. Without a list of users nobody is there (getpwnam(3): these errors mean so).
fn there<T>(found: nix::Result<Option<T>>) -> nix::Result<Option<T>> {
    match found {
        Err(Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::EPERM) => Ok(None),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sudo_says_who_started_it() {
        let ids = |user, group| invoker_of(user, group).map(|(u, g)| (u.as_raw(), g.as_raw()));
        assert_eq!(ids(Some("1000"), Some("100")), Some((1000, 100)));
        assert_eq!(ids(Some("1000"), Some("0")), Some((1000, 0)));
        for (user, group) in [
            (None, None),
            (Some("0"), Some("0")),
            (Some("1000"), None),
            (None, Some("100")),
            (Some("4294967295"), Some("100")),
            (Some("1000"), Some("4294967295")),
            (Some("-1"), Some("100")),
            (Some("1000 "), Some("100")),
        ] {
            assert_eq!(ids(user, group), None, "{user:?} {group:?}");
        }
    }

    #[test]
    fn users_and_groups_are_found_by_name_and_number() {
        let by_name = Account::find("nobody").unwrap().expect("everywhere");
        let number = by_name.uid.to_string();
        assert_eq!(Account::find(&number).unwrap(), Some(by_name));
        for none in ["no such user", "4000000000", ""] {
            assert_eq!(Account::find(none).unwrap(), None, "{none:?}");
            assert_eq!(group(none).unwrap(), None, "{none:?}");
        }
        assert_eq!(group("root").unwrap(), Some(Gid::from_raw(0)));
        assert_eq!(group("0").unwrap(), Some(Gid::from_raw(0)));
    }
}
