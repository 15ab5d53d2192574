//! What somebody may do by the capabilities of tscap's own file, as members of the group
//! `tscap` run it: capture. The rest of what these capabilities allow is root's, unless the
//! administrator's file says otherwise. Root may do everything, and so may who has the
//! capabilities from the process that started tscap: they are not lent by its file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tscap_base::failure::Failure;
use tscap_host::caps;

/// The administrator's file.
const FILE: &str = "/etc/tscap/members";

/// Something that is not a capture, and takes the same capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivilegedTask {
    /// Take the frames of an interface in use from the network stack.
    TakeInterface,
    /// Change settings of interfaces, or give back what a journal says was changed.
    ChangeSettings,
    /// Change the receive times that other programs get.
    Stamp,
    /// Send frames with another's addresses, or into a real network.
    Send,
}

impl PrivilegedTask {
    const ALL: [Self; 4] = [
        Self::TakeInterface,
        Self::ChangeSettings,
        Self::Stamp,
        Self::Send,
    ];

    /// Its word in the administrator's file.
    const fn word(self) -> &'static str {
        match self {
            Self::TakeInterface => "take-interface",
            Self::ChangeSettings => "change-settings",
            Self::Stamp => "stamp",
            Self::Send => "send",
        }
    }

    /// What is refused, and by which options and commands it is asked for.
    const fn refused(self) -> &'static str {
        match self {
            Self::TakeInterface => {
                "cannot take an interface that is in use from the network stack (--tap=force)"
            }
            Self::ChangeSettings => {
                "cannot change settings of interfaces, or restore them (--offloads off, --rx-cpu, \
                 --hw-stamps=set, restore)"
            }
            Self::Stamp => {
                "cannot change the receive times of other programs (tscap stamp, tscap delay --serve)"
            }
            Self::Send => {
                "cannot send frames with other addresses, tags or into a real network (gen --src, \
                 --src-mac, --vlan, --yes-send-here)"
            }
        }
    }
}

/// Refuses what of `acts` is not for the user of this process.
///
/// # Errors
/// If one is not, or the administrator's file can't be understood.
pub fn check(acts: &[PrivilegedTask]) -> Result<(), Failure> {
    if caps::are_of_file() {
        check_member(acts, Path::new(FILE))
    } else {
        Ok(())
    }
}

fn check_member(acts: &[PrivilegedTask], file: &Path) -> Result<(), Failure> {
    if acts.is_empty() {
        return Ok(());
    }
    let allowed = allowed(file)?;
    let Some(act) = acts.iter().find(|act| !allowed.contains(act)) else {
        return Ok(());
    };
    Err(Failure::new(format!(
        "{}: a member of the group that may capture is not root",
        act.refused()
    ))
    .hint(format!(
        "run it as root; or the administrator allows it to all members: a line {} in {}",
        act.word(),
        file.display()
    )))
}

/// What the file allows; nothing if there is none.
fn allowed(path: &Path) -> Result<Vec<PrivilegedTask>, Failure> {
    let what = || {
        let path = path.display();
        format!("cannot tell from {path} what members of the group may do")
    };
    let mut text = String::new();
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.map_err(|error| Failure::from_error(error, what()))?,
    };
    let read = file.metadata().and_then(|meta| {
        (&file)
            .take(1 << 16)
            .read_to_string(&mut text)
            .map(|_| meta)
    });
    let meta = read.map_err(|error| Failure::from_error(error, what()))?;
    if meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        let path = path.display();
        return Err(
            Failure::new(format!("{}: others than root may write to it", what()))
                .hint(format!("chown root {path}; chmod go-w {path}")),
        );
    }
    parse(&text).map_err(|word| {
        let words = PrivilegedTask::ALL.map(PrivilegedTask::word).join(", ");
        Failure::new(format!("{}: there is no {word:?}", what()))
            .hint(format!("each line has one of {words}, or begins with #"))
    })
}

/// The acts of a file, a word a line; or a word that is none.
fn parse(text: &str) -> Result<Vec<PrivilegedTask>, &str> {
    let lines = text.lines().map(str::trim);
    let words = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let act = |word| {
        PrivilegedTask::ALL
            .into_iter()
            .find(|act| act.word() == word)
    };
    words.map(|word| act(word).ok_or(word)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_has_a_word_a_line() {
        let text = "# for the lab\n\n  stamp\nsend\n";
        assert_eq!(
            parse(text),
            Ok(vec![PrivilegedTask::Stamp, PrivilegedTask::Send])
        );
        assert_eq!(parse(""), Ok(Vec::new()));
        assert_eq!(parse("stamp send"), Err("stamp send"));
        assert_eq!(parse("#\nall"), Err("all"));
        for act in PrivilegedTask::ALL {
            assert_eq!(parse(act.word()), Ok(vec![act]));
        }
    }

    #[test]
    fn a_member_captures_and_the_rest_is_by_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("members");
        let says = |acts: &[PrivilegedTask]| check_member(acts, &file).map_err(|it| it.to_string());
        assert_eq!(says(&[]), Ok(()));
        for act in PrivilegedTask::ALL {
            let refused = says(&[act]).unwrap_err();
            let line = format!("a line {} in {}", act.word(), file.display());
            assert!(refused.contains(&line), "{refused}");
        }
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        fs::write(&file, "stamp\n").unwrap();
        assert_eq!(says(&[PrivilegedTask::Stamp]), Ok(()));
        let refused = says(&[PrivilegedTask::Stamp, PrivilegedTask::Send]).unwrap_err();
        assert!(refused.contains("gen --src"), "{refused}");
        fs::write(&file, "stamps\n").unwrap();
        let refused = says(&[PrivilegedTask::Stamp]).unwrap_err();
        assert!(refused.contains("there is no \"stamps\""), "{refused}");
        // What others may write says nothing.
        fs::write(&file, "stamp\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        let refused = says(&[PrivilegedTask::Stamp]).unwrap_err();
        assert!(refused.contains("others than root may write"), "{refused}");
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        let refused = says(&[PrivilegedTask::Stamp]).unwrap_err();
        assert!(refused.contains("others than root may write"), "{refused}");
    }

    /// Tests have what privileges they have from who started them.
    #[test]
    fn nothing_is_refused_to_who_has_privileges_without_the_file() {
        check(&PrivilegedTask::ALL).unwrap();
    }
}
