//! How this program is installed: beside it there may be a copy that only members of a group
//! may execute, and whose file has the capabilities of a capture. It is `libexec/tscap/tscap`
//! for `bin/tscap`.

use std::env;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group};

/// The copy, relative to the folder that `bin` is in.
const COPY: &str = "libexec/tscap/tscap";
/// A document of Debian's package.
const OF_DEBIAN: &str = "/usr/share/doc/tscap/README.Debian";

/// Where this program is, and how a user comes to the privileges of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The copy, where it has to be; `None` for the copy itself.
    pub copy: Option<PathBuf>,
    /// The group that may execute the copy, if that is there.
    pub group: Option<String>,
    /// Whether a package of the distribution has installed it.
    pub is_packaged: bool,
    /// Whether that is Debian's.
    pub is_debian: bool,
}

impl Installed {
    /// This program.
    pub fn find() -> Self {
        let own = env::current_exe().unwrap_or_default();
        let copy = copy_of(&own);
        let group = copy.as_deref().and_then(group_of);
        Self {
            copy,
            group,
            is_packaged: own.starts_with("/usr") && !own.starts_with("/usr/local"),
            is_debian: Path::new(OF_DEBIAN).exists(),
        }
    }

    /// What to do for the privileges of a capture.
    pub fn advice(&self) -> String {
        match &self.group {
            Some(group) => format!(
                "run as root, or as a member of the group {group}: `sudo adduser USER {group}`, and \
                 log in anew"
            ),
            None if self.is_packaged && self.is_debian => {
                "run as root; `sudo dpkg-reconfigure tscap` asks whether members of a group may \
                 capture too"
                    .into()
            }
            None => {
                "run as root; docs/install.md says how members of a group get to capture".into()
            }
        }
    }
}

fn copy_of(own: &Path) -> Option<PathBuf> {
    let copy = own.parent()?.parent()?.join(COPY);
    (!own.ends_with(COPY)).then_some(copy)
}

/// The group of a file; `None` if it is not there.
fn group_of(path: &Path) -> Option<String> {
    let gid = Gid::from_raw(path.metadata().ok()?.gid());
    let group = Group::from_gid(gid).ok().flatten();
    Some(group.map_or_else(|| gid.to_string(), |group| group.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_beside_the_folder_of_the_program() {
        let copy = |own: &str| copy_of(Path::new(own));
        let expected = PathBuf::from("/usr/libexec/tscap/tscap");
        assert_eq!(copy("/usr/bin/tscap"), Some(expected));
        let expected = PathBuf::from("/usr/local/libexec/tscap/tscap");
        assert_eq!(copy("/usr/local/bin/tscap"), Some(expected));
        assert_eq!(copy("/usr/libexec/tscap/tscap"), None);
        assert_eq!(copy("tscap"), None);
    }

    #[test]
    fn who_is_no_member_is_told_of_the_group_where_there_is_one() {
        let without = Installed {
            copy: None,
            group: None,
            is_packaged: true,
            is_debian: true,
        };
        assert!(without.advice().contains("dpkg-reconfigure tscap"));
        let with = Installed {
            group: Some("netdev".into()),
            ..without.clone()
        };
        let advice = with.advice();
        assert!(advice.contains("adduser USER netdev"), "{advice}");
        let from_source = Installed {
            is_packaged: false,
            ..without
        };
        assert!(from_source.advice().contains("docs/install.md"));
    }
}
