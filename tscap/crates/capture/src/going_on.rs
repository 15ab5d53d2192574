//! What a command goes on with once its programs are attached: one way for each that runs for
//! a time.

use nix::unistd::geteuid;

use super::event::Reporter;
use tscap_base::failure::{Context as _, Failure, Hint as _};
use tscap_host::caps::{self, Capability};
use tscap_host::user::Account;
use tscap_live::settings::SettingsGuard;

/// The user that root becomes if nobody says which, where there is such a user.
const DEFAULT_USER: &str = "tscap";

/// As whom this process goes on, and with which capabilities.
pub(crate) struct GoingOn<'a> {
    /// The user that every thread becomes; `None` for who has started it.
    pub account: Option<&'a Account>,
    /// Capabilities that this thread needs later.
    pub needed: Vec<Capability>,
    /// Whether it makes, replaces or removes files later, as root in folders of others too.
    pub makes_files: bool,
    /// Tries whether the counters of the programs can be read.
    pub reads_counters: &'a dyn Fn() -> bool,
}

impl GoingOn<'_> {
    /// Gives up the rest, for good: every thread becomes the user's, and this thread keeps what
    /// is needed later, and those of `for_now`. Threads that run already give up theirs
    /// themselves, unless the user changes. Gives the capabilities that are needed later.
    ///
    /// # Errors
    /// If the kernel refuses. What has been given up by then is gone.
    pub fn drop_other_privileges(
        self,
        for_now: &[Capability],
        reporter: &mut Reporter<'_>,
    ) -> Result<Vec<Capability>, Failure> {
        if let Some(account) = self.account {
            let taken_over = account.take_over();
            taken_over.context(format!("cannot go on as user {}", account.name))?;
        }
        let mut kept = self.needed;
        let what = "cannot give up capabilities";
        // Before Linux 5.19 the look at counters takes CAP_BPF where unprivileged BPF is
        // disabled (commit c8644cd0efe7).
        caps::use_only(&kept).context(what)?;
        if !kept.contains(&Capability::Bpf) && !(self.reads_counters)() {
            kept.push(Capability::Bpf);
        }
        if self.makes_files && self.account.is_none() && geteuid().is_root() {
            kept.extend(caps::FOR_FILES);
        }
        let now: Vec<_> = kept.iter().chain(for_now).copied().collect();
        caps::keep_only(&now).context(what)?;
        reporter.detail(&account_and_capabilities(self.account, &kept));
        Ok(kept)
    }
}

/// Has a command that measures, and whose programs are attached, give up the rest. Its
/// `changes` are left to a keeper, if there are any; interfaces that they are of may be in
/// other network namespaces if `is_elsewhere`. Root becomes the user `tscap` where there is
/// one, and may be become; not if the caller `makes_files` at the end.
///
/// # Errors
/// If the kernel refuses. What has been given up by then is gone.
pub fn drop_other_privileges(
    (changes, is_elsewhere): (Option<&mut SettingsGuard>, bool),
    makes_files: bool,
    reads_counters: &dyn Fn() -> bool,
    reporter: &mut Reporter<'_>,
) -> Result<(), Failure> {
    let mut needed = Vec::new();
    if let Some(changes) = changes.filter(|changes| !changes.is_empty()) {
        // This thread takes filters of tc off at the end, and others are kept away until then.
        needed.push(Capability::NetAdmin);
        leave_to_keeper(changes, is_elsewhere)?;
    }
    let account = if makes_files {
        None
    } else {
        default_account()?
    };
    let lacking = caps::missing(&caps::TO_BECOME);
    let lacking = lacking.context("cannot read this process's capabilities")?;
    let account = account.filter(|_| lacking.is_empty());
    let going_on = GoingOn {
        account: account.as_ref(),
        needed,
        makes_files,
        reads_counters,
    };
    going_on.drop_other_privileges(&[], reporter).map(drop)
}

/// Leaves `changes`, those to come too, to a process that keeps its privileges.
///
/// # Errors
/// If it can't be started.
pub(super) fn leave_to_keeper(
    changes: &mut SettingsGuard,
    is_elsewhere: bool,
) -> Result<(), Failure> {
    let left = changes.leave_to_keeper(is_elsewhere);
    left.context("cannot start the process that gives settings back")
        .hint("mount procfs at /proc: tscap starts itself by /proc/self/exe")
}

/// The user that this process becomes if nobody says which: none but for root.
///
/// # Errors
/// If users can't be looked up.
pub(super) fn default_account() -> Result<Option<Account>, Failure> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    Account::find(DEFAULT_USER).context(format!("cannot look up the user {DEFAULT_USER}"))
}

/// As whom this process goes on, and with which capabilities.
fn account_and_capabilities(account: Option<&Account>, kept: &[Capability]) -> String {
    let names: Vec<_> = kept.iter().map(Capability::to_string).collect();
    let kept = match names.as_slice() {
        [] => "without capabilities".into(),
        names => format!("with {}", names.join(", ")),
    };
    match account {
        Some(account) => format!("goes on as user {} {kept}", account.name),
        None => format!("goes on {kept}"),
    }
}
