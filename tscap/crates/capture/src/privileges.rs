//! What is left of this process's privileges once everything is open, and whose the files
//! are.

use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, geteuid};

use super::attach::Attaching;
use super::event::Reporter;
use super::going_on::{GoingOn, default_account};
use super::live_links::LiveLinks;
use super::plan::{Capture, Privileges, Target};
use super::selection::Interfaces;
use tscap_base::failure::{Context as _, Failure};
use tscap_clock::StampPath;
use tscap_file::accounting::Direction;
use tscap_host::access::{Owner, folder_of};
use tscap_host::caps::{self, Capability};
use tscap_host::user::{self, Account, group};
use tscap_programs::hook::{AttachPoint, Loaded};

/// Where users and groups are listed, if nothing else lists them (nsswitch.conf(5)).
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Who goes on with the capture, and may read its files.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// `None` for who has started it.
    account: Option<Account>,
    group: Option<Gid>,
    /// Who became root for this, if the files are to be theirs.
    invoker: Option<(Uid, Gid)>,
}

impl Identity {
    /// As `plan` has it.
    ///
    /// # Errors
    /// If there is no such user or group, or the user can't make the next file.
    pub fn of(plan: &Capture, reporter: &mut Reporter<'_>) -> Result<Self, Failure> {
        let group = plan.group.as_deref().map(find_group).transpose()?;
        let account = match &plan.privileges {
            Privileges::Keep => None,
            // Root stays what it is, also where there is no list of users.
            Privileges::GiveUp {
                user: Some(name), ..
            } if geteuid().is_root() && ["root", "0"].contains(&name.as_str()) => None,
            Privileges::GiveUp {
                user: Some(name), ..
            } => Some(find_user(name)?),
            Privileges::GiveUp { user: None, .. } => default_account()?,
        };
        let invoker = match &plan.privileges {
            Privileges::GiveUp { user: None, .. } => user::invoker(),
            _ => None,
        };
        // Who goes on makes the next files, and they are to be the invoker's.
        let account = match invoker.filter(|_| plan.rotation.is_some()) {
            Some((uid, _)) => find_number(uid)?,
            None => account,
        };
        let mut account = account.filter(|account| account.uid != geteuid());
        if let (Some(account), Some(group)) = (&mut account, group) {
            account.join(group);
        }
        let account = match account {
            Some(account) => may_go_on(plan, account, reporter)?,
            None => None,
        };
        Ok(Self {
            account,
            group,
            invoker,
        })
    }

    /// Whose the files are.
    pub fn owner(&self) -> Owner {
        let user = self.account.as_ref().map(|account| account.uid);
        let (user, own) = match self.invoker {
            Some((user, group)) => (Some(user), Some(group)),
            None => (user, None),
        };
        Owner {
            user,
            group: self.group.or(own),
            is_groups: self.group.is_some(),
        }
    }

    /// Whose the files are that who goes on makes.
    pub fn next_owner(&self) -> Owner {
        match &self.account {
            // Nobody can give files away but root.
            Some(_) => Owner {
                user: None,
                group: self.group,
                is_groups: self.group.is_some(),
            },
            None => self.owner(),
        }
    }

    /// Gives up, for good, what is not needed any more: changes are left to a keeper, every
    /// thread becomes the user's, and this thread keeps the capabilities that are needed
    /// later, and what its writers begin with. Gives those that are needed later, `None` if
    /// nothing is given up.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn drop_other_privileges(
        &self,
        plan: &Capture,
        (interfaces, links): (&Interfaces, &LiveLinks),
        (loaded, path): (&Loaded, StampPath),
        attaching: &mut Attaching,
        reporter: &mut Reporter<'_>,
    ) -> Result<Option<Vec<Capability>>, Failure> {
        if plan.privileges == Privileges::Keep {
            return Ok(None);
        }
        if interfaces.selection.is_open() || attaching.has_changes() {
            attaching.leave_to_keeper(interfaces.is_elsewhere())?;
        }
        let going_on = GoingOn {
            account: self.account.as_ref(),
            needed: needed_later(interfaces, links, path),
            // By the threads that begin, replace and remove files.
            makes_files: plan.rotation.is_some(),
            reads_counters: &|| loaded.counters.seen().is_ok(),
        };
        let for_writers = plan.priority.map(|_| Capability::SysNice);
        let kept = going_on.drop_other_privileges(for_writers.as_slice(), reporter)?;
        Ok(Some(kept))
    }
}

/// The capabilities for what may come: interfaces that join, programs of others at XDP that
/// are replaced, filters of tc that are removed at the end.
fn needed_later(interfaces: &Interfaces, links: &LiveLinks, path: StampPath) -> Vec<Capability> {
    let is_open = interfaces.selection.is_open();
    let is_beside = links.0.iter().any(|live| live.is_beside_others());
    let is_elsewhere = interfaces.is_elsewhere();
    let at = |direction| links.0.iter().filter_map(move |live| live.at(direction));
    let has_filters = || {
        Direction::ALL
            .into_iter()
            .flat_map(at)
            .any(AttachPoint::is_filter)
    };
    let mut kept = Vec::new();
    if is_open || is_beside {
        kept.extend(caps::XDP);
        // To enter namespaces, to call a module, to find the program of somebody else.
        if is_elsewhere || path.is_by_kfunc() || is_beside {
            kept.push(Capability::SysAdmin);
        }
    } else if has_filters() {
        kept.push(Capability::NetAdmin);
    }
    if is_open {
        kept.push(Capability::NetRaw);
    }
    kept
}

fn find_user(name: &str) -> Result<Account, Failure> {
    let account = Account::find(name).context(format!("cannot look up the user {name}"))?;
    let Some(account) = account else {
        return Err(if has_list(USERS) {
            Failure::new(format!("cannot go on as {name}: there is no such user")).hint(
                "give -Z a user of this machine, or make one: `adduser --system --group tscap`",
            )
        } else {
            Failure::new(format!(
                "cannot go on as {name}: there is no list of users ({USERS})"
            ))
            .hint("-Z root stays root; or give this container the file")
        });
    };
    if account.uid != geteuid() && !geteuid().is_root() {
        return Err(Failure::new(format!(
            "cannot go on as {name}: only root can become another user"
        ))
        .hint("leave out -Z: capabilities are given up in any case"));
    }
    Ok(account)
}

fn has_list(path: &str) -> bool {
    Path::new(path).exists()
}

fn find_number(uid: Uid) -> Result<Option<Account>, Failure> {
    Account::find(&uid.to_string()).context(format!("cannot look up the user {uid}"))
}

fn find_group(name: &str) -> Result<Gid, Failure> {
    let found = group(name).context(format!("cannot look up the group {name}"))?;
    found.ok_or_else(|| {
        if has_list(GROUPS) {
            Failure::new(format!(
                "cannot give files to {name}: there is no such group"
            ))
            .hint("give --group a group of this machine: getent group lists them")
        } else {
            Failure::new(format!(
                "cannot give files to {name}: there is no list of groups ({GROUPS})"
            ))
            .hint("leave out --group; or give this container the file")
        }
    })
}

/// The user if this process can become it, and it can go on: it makes the next files.
fn may_go_on(
    plan: &Capture,
    account: Account,
    reporter: &mut Reporter<'_>,
) -> Result<Option<Account>, Failure> {
    let Privileges::GiveUp { user, folders } = &plan.privileges else {
        return Ok(None);
    };
    let next = match (&plan.rotation, &plan.target) {
        (Some(_), Target::Path(path)) => Some(folder_of(path)),
        _ => None,
    };
    let name = &account.name;
    let missing = caps::missing(&caps::TO_BECOME);
    let missing = missing.context("cannot read this process's capabilities")?;
    if let Some(first) = missing.first() {
        if user.is_some() {
            let failure = Failure::new(format!(
                "cannot go on as {name}: this process lacks {first}"
            ));
            return Err(failure.hint("-Z root stays root; or give the container that capability"));
        }
        reporter.note(&format!(
            "goes on as root, because this process lacks {first}"
        ));
        return Ok(None);
    }
    for folder in folders.iter().map(PathBuf::as_path).chain(next) {
        let Err(error) = account.try_to_make_files_in(folder) else {
            continue;
        };
        let folder = folder.display();
        if user.is_some() {
            let what = format!("cannot go on as {name}, which is to make files in {folder}");
            return Err(Failure::from_error(error, what).hint(format!(
                "take a folder of {name}'s (install -d -o {name} DIR), or -Z root"
            )));
        }
        reporter.note(&format!(
            "goes on as root, because {name} can't make files in {folder}: {error}"
        ));
        return Ok(None);
    }
    Ok(Some(account))
}
